"""What one replica that asked by GTID is not sent, and what it is told instead.

    MySQL     a heartbeat with the place behind what was passed over, before the next event and at the end of the stream
    MariaDB   where a domain's awaited group ends, the position there as an artificial Gtid_list

Sources do the same; positions of what follows stay right by it.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from protocol.artificial import MAX_WIRE_POSITION, gtid_list_event, heartbeat_event, heartbeat_v2_event
from protocol.errors import PositionRefused
from protocol.gtid.dump_refusals import hole_refused
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition
from protocol.kernel.gtid_skip import GtidSkip
from protocol.position import Position

FIRST_OFFSET: Final = 4


class GtidWalk:
    """Goes over a file's bytes ahead of the framer. Offsets are the file's.

    send_until: bytes before it were looked at and are to be sent.
    """

    def __init__(self, skip: GtidSkip) -> None:
        self.skip = skip
        self.send_until = 0
        self.refused: PositionRefused | None = None
        """Why the stream ends at the place that was reached."""

    def begin_file(self, checksum: bool) -> None:
        """The next bytes are the first event of another file."""
        self.skip.begin()
        self.send_until = FIRST_OFFSET

    def begin_behind(self, offset: int) -> None:
        """The next bytes are an event at `offset`, outside of any transaction."""
        self.skip.begin()
        self.send_until = offset

    def next_range(self, source: bytearray, start: int, stop: int, base: int) -> int:
        """End of the range at source[start], `base` being the offset of source[0]; `sending` says what it is.

        `start` itself: more bytes are wanted, or the stream is `refused`. Raises: ValueError for what is no event.
        """
        end = self.skip.next_range(source, start, stop)
        if self.skip.sending:
            self.send_until = base + end
        return end

    @property
    def sending(self) -> bool:
        """Whether the range told last is sent."""
        return self.skip.sending

    @property
    def is_done(self) -> bool:
        """Whether all from here on is sent."""
        return False

    def owed(self, position: Position, server_id: int, *, with_checksum: bool) -> list[bytes]:
        """Events that the replica gets before anything that stands behind `position`."""
        return []

    def paid(self) -> None:
        """It got them."""


class MysqlWalk(GtidWalk):
    """Passes over a set of transactions.

    held_here: how many of them the archive holds from the start on; `later`: whether others may come.
    takes_v2: the replica knows heartbeats that carry a position of 64 bits.
    """

    def __init__(self, intervals: Mapping[bytes, bytes], held_here: int, *, later: bool, takes_v2: bool) -> None:
        super().__init__(GtidSkip(intervals))
        self._held_here = held_here
        self._later = later
        self._takes_v2 = takes_v2
        self._passed = False

    def jumped(self, transactions: int) -> None:
        """So many were passed over outside of this walk, up to where it begins."""
        self._held_here -= transactions
        self._passed = True

    def next_range(self, source: bytearray, start: int, stop: int, base: int) -> int:
        """See `GtidWalk`."""
        end = super().next_range(source, start, stop, base)
        if end > start and not self.skip.sending:
            self._passed = True
        return end

    @property
    def is_done(self) -> bool:
        """See `GtidWalk`. A number that comes twice is passed over twice, as long as the walk goes on."""
        return not self._later and self.skip.sending and not self._passed and self.skip.skipped >= self._held_here

    def owed(self, position: Position, server_id: int, *, with_checksum: bool) -> list[bytes]:
        """See `GtidWalk`."""
        if not self._passed:
            return []
        if position.offset <= MAX_WIRE_POSITION:
            return [heartbeat_event(position, server_id, with_checksum=with_checksum)]
        if self._takes_v2:
            return [heartbeat_v2_event(position, server_id, with_checksum=with_checksum)]
        return []

    def paid(self) -> None:
        """See `GtidWalk`."""
        self._passed = False


class MariadbWalk(GtidWalk):
    """Passes over the groups of each domain up to and with the replica's last one.

    position: the replica's. awaited: of it, the groups that come in the files from the start on. strict: a group that never
    comes, although a later one of its server does, ends the stream.
    """

    def __init__(self, position: GtidPosition, awaited: Sequence[DomainGtid], *, strict: bool) -> None:
        super().__init__(GtidSkip(None, [(gtid.domain_id, gtid.server_id, gtid.sequence_number) for gtid in awaited]))
        self._position = position
        self._awaited = awaited
        self._strict = strict
        self._collector: FileGtidCollector | None = None
        self._earlier = GtidList()
        self._left = len(awaited)
        self._reached: list[tuple[GtidList, int]] = []

    def begin_file(self, checksum: bool) -> None:
        """See `GtidWalk`."""
        super().begin_file(checksum)
        if self._collector is not None:
            inside = self._collector.inside()
            assert isinstance(inside, GtidList)
            self._earlier = self._earlier.advanced(inside)
        self._collector = FileGtidCollector("mariadb", checksum=checksum)

    def begin_behind(self, offset: int) -> None:
        """See `GtidWalk`."""
        super().begin_behind(offset)
        if self._collector is not None:
            self._collector.begin(offset)

    def next_range(self, source: bytearray, start: int, stop: int, base: int) -> int:
        """See `GtidWalk`."""
        if self.refused is not None:
            return start
        skip = self.skip
        end = super().next_range(source, start, stop, base)
        if skip.hole >= 0 and self._strict:
            self.refused = hole_refused(self._position, self._awaited[skip.hole].domain_id)
            self.send_until = base + start
            return start
        if self._collector is not None and end > start:
            self._collector.take(memoryview(source)[start:end])
            if skip.reached >= 0:
                self._left -= 1
                inside = self._collector.inside()
                assert isinstance(inside, GtidList)
                self._reached.append((self._earlier.advanced(inside), base + end))
        return end

    @property
    def is_done(self) -> bool:
        """See `GtidWalk`. `skip.waiting` goes down when the group's head is seen, which is before it is passed over."""
        return self._left == 0 and self.skip.sending and not self._reached

    def owed(self, position: Position, server_id: int, *, with_checksum: bool) -> list[bytes]:
        """See `GtidWalk`."""
        return [gtid_list_event(state, end, server_id, with_checksum=with_checksum) for state, end in self._reached]

    def paid(self) -> None:
        """See `GtidWalk`."""
        self._reached.clear()
