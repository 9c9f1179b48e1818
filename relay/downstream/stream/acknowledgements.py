"""The acknowledgements that semi-sync replicas were asked for and sent, and the sums over all of them."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from protocol.errors import ErrorCode, PeerError
from protocol.position import Position


@dataclass(slots=True)
class AcknowledgementSums:
    """The sums over all connections since the relay started. Times in seconds.

    `acknowledged`, `unanswered`: events that required an acknowledgement; an unanswered one is known when its connection ends.
    `waits`, `waited_s`: from sending to the acknowledgement, if nothing newer was requested in between.
    """

    acknowledged: int = 0
    unanswered: int = 0
    waits: int = 0
    waited_s: float = 0.0


class Acknowledgements:
    """The acknowledgements of one connection. A replica answers each request once, in order, with its position after the event."""

    def __init__(self, sums: AcknowledgementSums, knows_file: Callable[[str], bool]) -> None:
        self.requested: Position | None = None
        """The newest transaction end that an acknowledgement was requested for."""
        self.acked: Position | None = None
        """The position up to which the replica says that it has stored everything."""
        self.acked_at: float | None = None
        self.open = 0
        """Requested events that are not acknowledged."""
        self._before: deque[tuple[Position, int]] = deque()
        """For the generations before: the newest requested transaction end, and the number of answers that must still come."""
        self._requested_at = 0.0
        self._sums = sums
        self._knows_file = knows_file

    def ask(self, newest: Position, count: int, now: float) -> None:
        """Request `count` more events; the last of them ends at `newest`."""
        self.requested = newest
        self.open += count
        self._requested_at = now

    def pass_on(self) -> None:
        """Note that later requests are of the next generation, whose file names say nothing about those before it."""
        if self.requested is not None and self.open:
            self._before.append((self.requested, self.open))
        self.requested = self.acked = None
        self.open = 0

    def take(self, position: Position, now: float) -> None:
        """Take an acknowledgement. Raises: PeerError for one that cannot be true; nothing was changed then."""
        said = f"The replica acknowledged {position}"
        if self._before:
            self._take_earlier(said, position)
            return
        if self.open <= 0 or self.requested is None:
            raise _lie(f"{said}, and nothing was asked for that it had not acknowledged before")
        if not self._knows_file(position.file):
            raise _lie(f"{said}, and binlog-relay has no such file")
        if position > self.requested:
            raise _lie(f"{said}, and was asked for no more than {self.requested}")
        self.open -= 1
        self._sums.acknowledged += 1
        self.acked = position if self.acked is None else max(self.acked, position)
        self.acked_at = now
        if position == self.requested:
            self._sums.waits += 1
            self._sums.waited_s += now - self._requested_at

    def _take_earlier(self, said: str, position: Position) -> None:
        requested, left = self._before[0]
        if not self._knows_file(position.file):
            raise _lie(f"{said}, and binlog-relay has no such file")
        if position > requested:
            raise _lie(f"{said}, and was asked for no more than {requested}")
        self._sums.acknowledged += 1
        self._before[0] = (requested, left - 1)
        if left == 1:
            self._before.popleft()

    def end(self) -> None:
        """Note that the connection ended: what is open stays unanswered."""
        self._sums.unanswered += self.open + sum(left for _requested, left in self._before)
        self.open = 0
        self._before.clear()


def _lie(text: str) -> PeerError:
    return PeerError(ErrorCode.ER_MALFORMED_PACKET, text)


def semi_sync_status(sums: AcknowledgementSums, *, clients: int) -> dict[str, int | str]:
    """Return what SHOW STATUS shows, without the `Rpl_semi_sync_master_` or `Rpl_semi_sync_source_` before each name.

    The relay delays no commit: `yes_tx` counts the transaction ends that replicas acknowledged, `no_tx` those that a replica left
    without asking again on the same connection; the waits are those of the network. Times are in microseconds.
    """
    waited_us = round(sums.waited_s * 1e6)
    average_us = round(waited_us / sums.waits) if sums.waits else 0
    return {
        "clients": clients,
        "net_avg_wait_time": average_us,
        "net_wait_time": waited_us,
        "net_waits": sums.waits,
        "no_times": 0,
        "no_tx": sums.unanswered,
        "status": "ON" if clients else "OFF",
        "timefunc_failures": 0,
        "tx_avg_wait_time": average_us,
        "tx_wait_time": waited_us,
        "tx_waits": sums.waits,
        "wait_pos_backtraverse": 0,
        "wait_sessions": 0,
        "yes_tx": sums.acknowledged,
    }
