"""A relay as a separate process, with a configuration made for one test."""

import contextlib
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import pymysql

from deploy.servers.process import start_process
from tests.support.loop_holds import REPORT_VARIABLE, LoopHolds, read_report
from tests.support.relay_template import ForkedProcess, template_for
from tests.support.source_proof import proof_of

REPLICA_USER = "replica"
REPLICA_PASSWORD = "replica-password"
READY_TIMEOUT_S = 20.0


class Endpoint(Protocol):
    """A source to log in to: a server of deploy.servers, or a fake one."""

    port: int

    @property
    def replication_user(self) -> str:
        """The account for replicas."""

    @property
    def replication_password(self) -> str:
        """Its password."""


class RelayError(Exception):
    """The error that the relay did not do what was asked; the text has the end of its log."""


class RelayProcess:
    """The process `binlog-relay run` in `directory`, with its own relay.toml. `with` starts it and ends it.

    `source` is a server (of deploy.servers, or a fake one), or a directory of binlogs. `sections` change the configuration:
    sections={"archive": {"sync": "none"}, "source": {"start": "latest"}}. `open_files` is the system's limit for it, soft and hard.
    `checkout` is another checkout of this repository, with its own .venv, whose relay runs in place of this one's. With `watch_loop`,
    `loop_holds` returns how long its event loop was held.
    """

    def __init__(
        self,
        directory: Path,
        source: Endpoint | Path,
        *,
        port: int,
        server_id: int = 4242,
        sections: dict[str, dict[str, Any]] | None = None,
        markers: str = "tbm",
        environment: dict[str, str] | None = None,
        open_files: int | None = None,
        checkout: Path | None = None,
        watch_loop: bool = False,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.port = port
        self.config = directory / "relay.toml"
        self.log_path = directory / "relay.log"
        self.archive = directory / "archive" / "source"
        self._report = directory / "loop_holds.jsonl"
        self._listening_at = 0.0
        self._watched = {REPORT_VARIABLE: str(self._report)} if watch_loop else {}
        self._environment = environment or {}
        self._checkout = checkout
        self._limited = ["/usr/bin/prlimit", f"--nofile={open_files}:{open_files}"] if open_files is not None else []
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._log_start = 0
        if not isinstance(source, Path):
            upstream: dict[str, Any] = {
                "kind": "server",
                "host": "127.0.0.1",
                "port": source.port,
                "user": source.replication_user,
                "password": source.replication_password,
                "start": "earliest",
                "server_id": server_id,
                "heartbeat_period_s": 1.0,
                # It has connections of its own, and fake sources have scripts: who tests it says so.
                "record_schema": False,
            }
        else:
            upstream = {"kind": "directory", "path": str(source), "poll_interval_s": 0.05}
        wanted: dict[str, dict[str, Any]] = {
            "source": upstream,
            "archive": {"dir": str(directory / "archive")},
            "listen": {"host": "127.0.0.1", "port": port},
            "[account]": {"user": REPLICA_USER, "password": REPLICA_PASSWORD, "markers": markers},
        }
        for name, section in (sections or {}).items():
            wanted.setdefault(name, {}).update(section)
        wanted["source"] |= proof_of(source, wanted["source"])
        lines = []
        for name, section in wanted.items():
            lines.append(f"[{name}]")
            lines += [f"{key} = {_toml(value)}" for key, value in section.items()]
        self.config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.config.chmod(0o600)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running:
            self.kill()

    @property
    def running(self) -> bool:
        """True if the process exists."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process's id."""
        if self._process is None:
            raise RelayError("the relay was not started")
        return self._process.pid

    def start(self, *, wait: bool = True, options: Sequence[str] = ()) -> Self:
        """Start it; return when it listens. `options` are added to the command line."""
        self.log_path.touch()
        self._log_start = self.log_path.stat().st_size
        arguments = ["run", "--config", str(self.config), *options]
        environment = {**os.environ, **self._environment, **self._watched}
        template = None if self._limited or self._checkout else template_for(self._environment)
        if template is not None:
            with self.log_path.open("ab") as log:
                self._process = template.start(arguments, environment, [log.fileno(), log.fileno()])
        else:
            python = self._checkout / ".venv/bin/python" if self._checkout else sys.executable
            watched = ["tests.support.loop_holds", str(self._report)] if self._watched else ["relay"]
            self._process = start_process(
                [*self._limited, str(python), "-m", *watched, *arguments],
                account=pwd.getpwuid(os.getuid()),
                log=self.log_path,
                directory=self._checkout or Path(__file__).resolve().parents[2],
                environment=environment,
            )
        if wait:
            self.wait_listening()
        return self

    def wait_listening(self) -> None:
        """Return when it reports that it listens, and the port accepts connections."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if not self.running:
                raise RelayError(f"the relay ended with code {self.wait_ended()}:\n{self.log_tail()}")
            if self._listens():
                self._listening_at = time.monotonic()
                return
            time.sleep(0.02)
        raise RelayError(f"the relay does not listen:\n{self.log_tail()}")

    def _listens(self) -> bool:
        # Whoever else may have the port says nothing in our log.
        if b'"listening"' not in self.log_path.read_bytes()[self._log_start :]:
            return False
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

    def loop_holds(self, *, of_all_starts: bool = False) -> LoopHolds:
        """Return how long callbacks have held its event loop since it listens; with `of_all_starts` also before that, and in earlier
        processes."""
        return read_report(self._report, 0.0 if of_all_starts else self._listening_at)

    def kill(self) -> None:
        """Send SIGKILL: a crash."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self, timeout_s: float = 10.0) -> int:
        """Send SIGTERM and return its exit code. Raises: RelayError if it does not end in time."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self.wait_ended(timeout_s)

    def command(self, *words: str, timeout_s: float = 60.0) -> "subprocess.CompletedProcess[str]":
        """Run `binlog-relay WORDS... --config` with this relay's configuration, and return its output."""
        arguments = [*words, "--config", str(self.config)]
        environment = {**os.environ, **self._environment}
        template = template_for(self._environment)
        if template is not None:
            return template.run(arguments, environment, timeout_s)
        return subprocess.run(
            [sys.executable, "-m", "relay", *arguments],
            cwd=Path(__file__).resolve().parents[2],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def wait_ended(self, timeout_s: float = 10.0) -> int:
        """Return the exit code. Raises: RelayError if it does not end in time."""
        assert self._process is not None
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise RelayError(f"the relay did not end within {timeout_s} s:\n{self.log_tail()}") from error

    # ---- its configuration -----------------------------------------------------------------------------------------

    def add_account(self, **keys: Any) -> None:
        """Add an [[account]]; it takes effect at the start or by `reload`."""
        self._add("account", keys)

    def add_view(self, **keys: Any) -> None:
        """Add a [[view]]; it takes effect at the start. `for` is a word of Python: target="mysql-5.6"."""
        self._add("view", {"for" if key == "target" else key: value for key, value in keys.items()})

    def add_replica(self, **keys: Any) -> None:
        """Add a [[replica]]; it takes effect at the start or by `reload`."""
        self._add("replica", keys)

    def _add(self, section: str, keys: dict[str, Any]) -> None:
        lines = [f"[[{section}]]", *(f"{key} = {_toml(value)}" for key, value in keys.items())]
        with self.config.open("a", encoding="utf-8") as config:
            config.write("\n".join(lines) + "\n")

    def reload(self, timeout_s: float = 10.0) -> dict[str, Any]:
        """Send SIGHUP; return the line that the relay logs about it."""
        before = len(self.logged("reloaded")) + len(self.logged("reload_refused"))
        os.kill(self.pid, signal.SIGHUP)
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            lines = [line for line in self.log_lines() if line.get("event") in ("reloaded", "reload_refused")]
            if len(lines) > before:
                return lines[-1]
            time.sleep(0.02)
        raise RelayError(f"SIGHUP changed nothing:\n{self.log_tail()}")

    # ---- what it says and holds ------------------------------------------------------------------------------------

    def log_lines(self) -> list[dict[str, Any]]:
        """Return its log so far, a dictionary for each line."""
        lines = []
        for text in self.log_path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                lines.append(json.loads(text))
            except ValueError:
                lines.append({"event": text})
        return lines

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the log lines of one event name."""
        return [line for line in self.log_lines() if line.get("event") == event]

    def log_tail(self, lines: int = 25) -> str:
        """Return the end of its log, for messages."""
        return "\n".join(self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def archived(self) -> dict[str, int]:
        """Return the archived binlogs with their sizes in bytes."""
        found = {}
        for path in sorted(self.archive.glob("*.[0-9]*")):
            if path.name.rpartition(".")[2].isdigit():
                found[path.name] = path.stat().st_size
        return found

    def wait_archived(self, file: str, size: int, timeout_s: float = 60.0) -> None:
        """Return when `file` has `size` bytes. Raises: RelayError."""
        deadline = time.monotonic() + timeout_s
        path = self.archive / file
        while time.monotonic() < deadline:
            if path.exists() and path.stat().st_size >= size:
                return
            if not self.running:
                raise RelayError(f"the relay ended with code {self.wait_ended()}:\n{self.log_tail()}")
            time.sleep(0.02)
        raise RelayError(f"{file} did not reach {size} bytes, archive: {self.archived()}\n{self.log_tail()}")

    def sql(self, statement: str, user: str = REPLICA_USER) -> list[tuple[Any, ...]]:
        """Run a statement at the relay, as the replica's account or another with the same password."""
        with (
            contextlib.closing(
                pymysql.connect(host="127.0.0.1", port=self.port, user=user, password=REPLICA_PASSWORD)
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
            return list(cursor.fetchall())


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, str):
        return json.dumps(value)
    return str(value)


def wait_for_line(
    relay: RelayProcess, event: str, trouble: str | None = None, timeout_s: float = 15.0
) -> dict[str, Any]:
    """Return the first log line of this event and trouble. Raises: RelayError."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for line in relay.logged(event):
            if trouble is None or line["trouble"] == trouble:
                return line
        time.sleep(0.02)
    raise RelayError(f"no {event} {trouble or ''} within {timeout_s} s:\n{relay.log_tail()}")
