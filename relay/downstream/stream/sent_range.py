"""Which part of the file being sent a replica may ask for again after it lost its connection."""

from collections import deque
from typing import Final

# What a replica has not read yet of what was sent: the kernel's send buffer here and its receive buffer there. Current
# kernels let them grow to 4 MiB and 32 MiB (tcp_wmem, tcp_rmem).
IN_FLIGHT_BYTES: Final = 64 << 20
_GRAIN_BYTES: Final = 256 << 10


class SentRange:
    """[low, high] of one file: the replica's next request, if its connection breaks now, is an event's start in it.

    An event that was sent in part is asked for again from its start, which for an event of a gigabyte is far behind
    `high`: so `low` is at or before the start of the oldest event that may not have arrived whole.
    """

    def __init__(self, start: int, in_flight_bytes: int = IN_FLIGHT_BYTES) -> None:
        self.low = start
        self.high = start
        self._in_flight_bytes = in_flight_bytes
        # (sent up to here, no event that was not whole by then starts before this)
        self._steps: deque[tuple[int, int]] = deque()
        self._event_floor = start

    def sent(self, start: int, stop: int, *, event_ended: bool, unread_bytes: int | None = None) -> None:
        """[start, stop) is about to be sent. `event_ended`: an event's last byte is in it.

        unread_bytes: an upper bound, where one is known, of what the replica has not read of all that was sent before.
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
        """The replica has everything up to `high`."""
        self.low = self.high
        self._event_floor = self.high
        self._steps.clear()
