"""A starter of `python -m relay` as a copy of a process that has imported it (see forking_relay.py), while that is offered."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
# An interpreter or its libraries read these when they start: a copy would not see them changed.
_READ_AT_START = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "OPENSSL_", "LC_", "LANG")


class ForkedProcess:
    """A process that is another's child, with the interface of subprocess.Popen."""

    def __init__(self, arguments: Sequence[str], pid: int, ended: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._arguments = list(arguments)
        self._reading = threading.Lock()
        self._ended = ended  # descriptor: how it ended can be read there

    def __del__(self) -> None:
        if self.returncode is None:
            os.close(self._ended)

    def poll(self) -> int | None:
        """Return the exit code, or minus the signal that killed it; None while it runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the same, when it has ended. Raises: subprocess.TimeoutExpired."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self._arguments, timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal; nothing happens if it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout_s: float | None) -> int | None:
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._ended, select.POLLIN)
            if poll.poll(None if timeout_s is None else timeout_s * 1000):
                with self._reading:
                    if self.returncode is None:
                        # A template that was killed, with its copies, reports nothing.
                        self.returncode = int(os.read(self._ended, 16) or -signal.SIGKILL)
                        os.close(self._ended)
        return self.returncode


class RelayTemplate:
    """The process that has imported the relay; it is started when the first copy is wanted. `close` ends it and all copies."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._link: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], outputs: Sequence[int]) -> ForkedProcess:
        """Run `python -m relay ARGUMENTS` in the checkout. `outputs` are descriptors for its output, and for its log."""
        request = json.dumps({"arguments": list(arguments), "environment": dict(environment)}).encode()
        ended, told = os.pipe()
        with self._starting:
            link = self._link or self._begin()
            socket.send_fds(link, [request], [*outputs, told])
            os.close(told)
            pid = int(link.recv(16) or 0)
        if not pid:
            os.close(ended)
            raise AssertionError("tests.support.forking_relay ended; run it by hand to see why")
        return ForkedProcess(arguments, pid, ended)

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout_s: float
    ) -> "subprocess.CompletedProcess[str]":
        """Run the same to its end, and return its output. Raises: subprocess.TimeoutExpired."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self.start(arguments, environment, [out.fileno(), err.fileno()])
            try:
                code = process.wait(timeout_s)
            finally:
                process.kill()
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(arguments), code, out.read().decode(), err.read().decode())

    def close(self) -> None:
        """End what was started."""
        if self._link is not None and self._process is not None:
            self._link.close()
            self._process.wait()
            self._link = None

    def _begin(self) -> socket.socket:
        self._link, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.forking_relay", str(other.fileno())],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                # A Ctrl-C in the terminal is for the caller, which stops its relays in order.
                start_new_session=True,
            )
        return self._link


_offered: RelayTemplate | None = None


@contextlib.contextmanager
def offered() -> Iterator[None]:
    """Start relays as copies inside, on Linux."""
    template = RelayTemplate() if sys.platform == "linux" else None
    with _set(template):
        try:
            yield
        finally:
            if template is not None:
                template.close()


def withheld() -> contextlib.AbstractContextManager[object]:
    """Start each relay separately inside: for tests of the process itself, or of its memory."""
    return _set(None)


def template_for(added: Iterable[str]) -> RelayTemplate | None:
    """Return what makes copies, if it is offered. `added` are variables that the process must have besides those of this one."""
    return None if any(name.startswith(_READ_AT_START) for name in added) else _offered


@contextlib.contextmanager
def _set(template: RelayTemplate | None) -> Iterator[None]:
    global _offered
    before, _offered = _offered, template
    try:
        yield
    finally:
        _offered = before
