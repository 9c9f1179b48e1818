"""A program at its own terminal, as a person sees and answers it."""

import contextlib
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

CTRL_C = "\x03"
_ROOT = Path(__file__).resolve().parents[2]


_PRESSED_AGAIN_S = 3.0


class Terminal:
    """The process `binlog-relay WORDS...`, whose input and output are a terminal. `with` starts it, and ends what is still running."""

    def __init__(self, *words: object) -> None:
        self._words = [str(word) for word in words]
        self.shown = ""
        """All that it has printed so far."""

    def __enter__(self) -> Self:
        self._ours, theirs = pty.openpty()
        # setsid makes it the session's terminal: Ctrl-C is a signal then. Who runs the tests in the background of a shell
        # has them ignore that signal, and what they start.
        self._process = subprocess.Popen(
            ["env", "--default-signal=INT", "setsid", "--ctty", sys.executable, "-m", "relay", *self._words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=_ROOT,
            env={**os.environ, "TERM": "dumb", "COLUMNS": "200"},
        )
        os.close(theirs)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._ours)

    def wait_for(self, text: str, times: int = 1, timeout_s: float = 30.0) -> None:
        """Wait until it has printed this, so often."""
        deadline = time.monotonic() + timeout_s
        while self.shown.count(text) < times:
            assert time.monotonic() < deadline, f"{text!r} was not shown {times} times, but:\n{self.shown}"
            assert self._read(0.1), f"it ended before {text!r}, with:\n{self.shown}"

    def type(self, text: str) -> None:
        """Type as a keyboard would."""
        os.write(self._ours, text.encode())

    def answer(self, question: str, text: str, times: int = 1) -> None:
        """Wait until the question was asked so often, then type this and Return."""
        self.wait_for(question, times)
        self.type(text + "\n")

    def wait_ended(self, timeout_s: float = 30.0) -> int:
        """Return its exit code."""
        deadline = time.monotonic() + timeout_s
        while self._read(0.1):
            assert time.monotonic() < deadline, f"it does not end:\n{self.shown}"
        return self._process.wait(timeout_s)

    def interrupt(self, timeout_s: float = 30.0) -> int:
        """Press Ctrl-C until it ends, as one does: Python may take one just before it waits for a line, and wait. Return its exit
        code."""
        deadline = time.monotonic() + timeout_s
        pressed = float("-inf")
        while self._read(0.1):
            assert time.monotonic() < deadline, f"it does not end:\n{self.shown}"
            if time.monotonic() - pressed > _PRESSED_AGAIN_S:
                pressed = time.monotonic()
                with contextlib.suppress(OSError):
                    self.type("\x03")
        return self._process.wait(timeout_s)

    def _read(self, wait_s: float) -> bool:
        """Take what has come; return False if nothing comes any more."""
        if select.select([self._ours], [], [], wait_s)[0]:
            with contextlib.suppress(OSError):  # EIO: the other end is closed
                piece = os.read(self._ours, 65536)
                self.shown += piece.decode("utf-8", "replace").replace("\r\n", "\n")
                return bool(piece)
            return False
        return True
