"""The position at which a replica by file and position may continue if its connection breaks now, recorded in the archive before the
bytes are sent.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from relay.archive.storage.replica_marks import Mark

# The sent bytes that a replica may not have read: the kernel's send buffer here and its receive buffer there. Current kernels let
# them grow to 4 MiB and 32 MiB (tcp_wmem, tcp_rmem).
IN_FLIGHT_BYTES: Final = 64 << 20
_GRAIN_BYTES: Final = 256 << 10
# A receive window says less than its size about the last of it, and a proxy in between holds some.
_UNREAD_MARGIN_BYTES: Final = 1 << 20
# Asking for each run of 256 KiB takes a quarter of the time of sending it.
_UNREAD_ASKED_EVERY_BYTES: Final = 1 << 20
_UNREAD_ASKED_EVERY_S: Final = 0.01


class SentRange:
    """The range [low, high] of one file in which the replica's next request begins, if its connection breaks now. It is an event's
    start.

    An event that was sent in part is requested again from its start, which for an event of a gigabyte is far before `high`: so `low`
    is at or before the start of the oldest event that may not have arrived whole.
    """

    def __init__(self, start: int, in_flight_bytes: int = IN_FLIGHT_BYTES) -> None:
        self.low = start
        self.high = start
        self._in_flight_bytes = in_flight_bytes
        # (sent up to here, no event that was not whole by then starts before this)
        self._steps: deque[tuple[int, int]] = deque()
        self._event_floor = start

    def sent(self, start: int, stop: int, *, event_ended: bool, unread_bytes: int | None = None) -> None:
        """Note that [start, stop) is sent next. `event_ended`: an event's last byte is in it.

        unread_bytes: an upper bound, if one is known, of what the replica has not read of all that was sent before.
        """
        if event_ended:
            self._event_floor = start
        self.high = stop
        steps = self._steps
        if not steps or stop - steps[-1][0] >= _GRAIN_BYTES:
            steps.append((stop, self._event_floor))
        in_flight_bytes = self._in_flight_bytes
        if unread_bytes is not None:
            in_flight_bytes = min(in_flight_bytes, unread_bytes + stop - start)
        oldest_missing = stop - in_flight_bytes
        while steps and steps[0][0] <= oldest_missing:
            self.low = max(self.low, steps.popleft()[1])

    def arrived(self) -> None:
        """Note that the replica has everything up to `high`."""
        self.low = self.high
        self._event_floor = self.high
        self._steps.clear()


class ResumeRange:
    """Keeps `mark` up to date with what is sent; `end` when the stream is over.

    unread_bytes: the written bytes that the replica has not read, as far as the system knows; None: unknown.
    """

    def __init__(self, mark: Mark, offset: int, unread_bytes: Callable[[], int | None]) -> None:
        self._mark = mark
        self._range = SentRange(offset)
        self._ask_unread = unread_bytes
        self._unread: int | None = None
        self._unread_asked = 0.0
        self._sent_since_asked = 0

    def begin_file(self, offset: int) -> None:
        """Begin another file: what is sent next is from `offset` on."""
        self._range = SentRange(offset)

    def sending(self, file: str, start: int, stop: int, *, event_ended: bool, now: float) -> None:
        """Note that [start, stop) of `file` is sent next. `event_ended`: an event's last byte is in it. `now`: the loop's time."""
        self._range.sent(start, stop, event_ended=event_ended, unread_bytes=self._unread_at_most(stop - start, now))
        self._mark.sending(file, self._range.low, self._range.high)

    def arrived(self) -> None:
        """Note that the replica has stored everything: a start inside a transaction is no resume any more."""
        self._range.arrived()
        self._mark.arrived()

    def end(self) -> None:
        """End the stream; the mark stays for the replica's next request."""
        self._mark.end()

    def _unread_at_most(self, size: int, now: float) -> int | None:
        """Return an upper bound of the bytes that the replica had not read before a run of `size` bytes; None: unknown."""
        if self._sent_since_asked >= _UNREAD_ASKED_EVERY_BYTES or now >= self._unread_asked + _UNREAD_ASKED_EVERY_S:
            self._unread_asked = now
            self._unread = self._ask_unread()
            self._sent_since_asked = 0
        bound = None if self._unread is None else self._unread + self._sent_since_asked + _UNREAD_MARGIN_BYTES
        self._sent_since_asked += size
        return bound
