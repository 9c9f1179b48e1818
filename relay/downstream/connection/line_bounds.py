"""The bounds of what is logged about connections: a stranger can connect, and an account can ask, as often as it likes."""

import asyncio
from collections.abc import Callable
from typing import Final, Self

import structlog

_WINDOW_S: Final = 60.0
_MOST_LINES: Final = 600


class LineBounds:
    """Counts the lines of each account, and those of all who have not logged in together. Times are those of one monotonic clock, in
    seconds."""

    def __init__(self) -> None:
        self._windows: dict[str, _MinuteOfLines] = {}

    def left_out(self, now: float, user: str = "") -> int | None:
        """Return, before a line, how many lines of this account (without a name: of strangers) were left out since the last one;
        None: leave out this one too.
        """
        window = self._windows.setdefault(user, _MinuteOfLines())
        if now >= window.began_at + _WINDOW_S:
            window.began_at, window.lines = now, 0
        if window.lines >= _MOST_LINES:
            window.left_out += 1
            return None
        window.lines += 1
        left_out, window.left_out = window.left_out, 0
        return left_out


class BoundedLogger:
    """A logger whose lines are bounded. user(): the account that they are counted for. Debug lines and internal faults are always
    written.
    """

    def __init__(self, logger: structlog.stdlib.BoundLogger, bounds: LineBounds, user: Callable[[], str]) -> None:
        self._logger = logger
        self._bounds = bounds
        self._user = user
        self._loop = asyncio.get_running_loop()
        self.debug = logger.debug
        self.exception = logger.exception

    def bind(self, **fields: object) -> Self:
        """Return a logger that writes these fields, too."""
        return type(self)(self._logger.bind(**fields), self._bounds, self._user)

    def info(self, event: str, **fields: object) -> None:
        """Write a line at level info."""
        self._write(self._logger.info, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Write a line at level warning."""
        self._write(self._logger.warning, event, fields)

    def _write(self, write: Callable[..., object], event: str, fields: dict[str, object]) -> None:
        left_out = self._bounds.left_out(self._loop.time(), self._user())
        if left_out:
            fields["left_out"] = left_out
        if left_out is not None:
            write(event, **fields)


class _MinuteOfLines:
    __slots__ = ("began_at", "left_out", "lines")

    def __init__(self) -> None:
        self.began_at = 0.0
        self.lines = self.left_out = 0
