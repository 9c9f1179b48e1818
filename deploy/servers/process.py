"""The start of other programs: a server that dies with this process, a tool to its end."""

import os
import pwd
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path

from .location import ServerUnavailable

_LAUNCH = Path(__file__).with_name("launch.py")
_requests: "queue.SimpleQueue[tuple[Future[subprocess.Popen[bytes]], list[str], Path, Path, dict[str, str]]]"
_requests = queue.SimpleQueue()
_starting = threading.Lock()
_starter: threading.Thread | None = None


def start_process(
    program: list[str], *, account: pwd.struct_passwd, log: Path, directory: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start `program` (absolute path first) as `account`, its output appended to `log`.

    The parent-death signal follows the thread that forked, not the process. A server started from a worker thread
    would die with that thread, so one thread that lives as long as the process starts them all.
    """
    global _starter
    with _starting:
        if _starter is None or not _starter.is_alive():
            _starter = threading.Thread(target=_serve, name="server-starter", daemon=True)
            _starter.start()
    command = [sys.executable, "-I", "-S", str(_LAUNCH), str(os.getpid()), str(account.pw_uid), str(account.pw_gid)]
    answer: Future[subprocess.Popen[bytes]] = Future()
    # LANG and the like are left out on purpose: a server's messages should not follow the caller's locale.
    _requests.put((answer, command + program, log, directory, {"PATH": os.defpath, **environment}))
    return answer.result()


def _serve() -> None:
    while True:
        answer, command, log, directory, environment = _requests.get()
        try:
            with log.open("ab") as output:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=directory,
                    env=environment,
                    # A Ctrl-C in the terminal is for the caller, which stops its servers in order.
                    start_new_session=True,
                )
        except BaseException as error:
            answer.set_exception(error)
        else:
            answer.set_result(process)


def run_tool(
    command: list[str], *, directory: Path | None = None, environment: Mapping[str, str] | None = None, what: str = ""
) -> str:
    """Run a tool to its end and return its output. Raises: ServerUnavailable with the end of its output."""
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, **environment} if environment else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    except OSError as error:
        raise ServerUnavailable(f"{what or command[0]} failed: {error}") from error
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        last = " | ".join(line.strip() for line in output.splitlines()[-10:] if line.strip())
        raise ServerUnavailable(f"{what or command[0]} failed with status {done.returncode}: {last}")
    return output
