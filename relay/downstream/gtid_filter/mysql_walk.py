"""Passes over the transactions that a MySQL replica has, and ends the stream where a source would.

Pieces of a file in which NAME.gtx has nothing of what it has are sent without being looked at.
Before what follows the replica gets a heartbeat with the place behind what was passed over; so does a source, and positions
of what follows stay right by it.
"""

import contextlib
from collections.abc import Mapping
from typing import Final

from protocol.binlog.made_events import MAX_WIRE_POSITION, heartbeat_event, heartbeat_v2_event
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.dump_decision import AnonymousInTheWay, MysqlHoldings, mysql_start
from protocol.gtid.dump_refusals import anonymous_refused, gtid_refused
from protocol.gtid.gtid_set import GtidSet
from protocol.kernel.codes import REFUSED_ANONYMOUS
from protocol.kernel.gtid_filter import GtidSkip
from protocol.position import Position
from relay.archive.read.file_snapshot import FileExtent
from relay.downstream.gtid_filter.gtid_walk import GtidWalk, Jump

_NOTHING: Final = GtidSet()
# A shorter piece is walked over in the time that it takes to go into it and out again.
_WORTH_A_PIECE_BYTES: Final = 128 << 10


class MysqlWalk(GtidWalk):
    """Passes over a set of transactions.

    held: the set; `intervals`: the same, where the caller has it already. held_here: how many of them the archive holds from
    the start on; `later`: whether others may come. takes_v2: the replica knows heartbeats that carry a position of 64 bits.
    """

    def __init__(
        self,
        held: GtidSet = _NOTHING,
        held_here: int = 0,
        *,
        intervals: Mapping[bytes, bytes] | None = None,
        later: bool = False,
        takes_v2: bool = False,
    ) -> None:
        super().__init__(GtidSkip(held.intervals_by_key() if intervals is None else intervals))
        self._held = held
        self._held_here = held_here
        self._later = later
        self._takes_v2 = takes_v2
        self._passed = False
        self._counted_from: int | None = None
        """From so many on, what is passed over in this file was counted already."""
        self._unseen: list[tuple[int, int]] = []
        """Pieces [start, stop) of the file `_unseen_of` that are sent without a look, the next one last. Both are starts of
        transactions, or the end of what was published."""
        self._unseen_of = ""

    def also(self, held: GtidSet) -> None:
        """From the next transaction on these are passed over, too; nobody knows how many of them come."""
        self._held |= held
        self._later = True
        self._unseen = []
        self.skip.hold(held.intervals_by_key())

    def refuse(self, *, anonymous: bool, gtids: bool) -> None:
        """Whether the stream ends before a transaction without a GTID, and before one that has one."""
        self.skip.refuse_anonymous = anonymous
        self.skip.refuse_gtids = gtids
        if anonymous or gtids:
            self._unseen = []

    def begin_file(self, name: str, *, checksum: bool) -> None:
        """See `GtidWalk`."""
        super().begin_file(name, checksum=checksum)
        if name != self._unseen_of:
            self._unseen = []
        if self._counted_from is not None:
            self._held_here += self.skip.skipped - self._counted_from
            self._counted_from = None

    def jumped(self, jump: Jump) -> None:
        """See `GtidWalk`."""
        super().jumped(jump)
        self._held_here -= jump.transactions
        self._passed |= jump.transactions > 0
        if jump.all_counted:
            self._counted_from = self.skip.skipped

    def find_jump(self, extent: FileExtent) -> Jump | None:
        """See `GtidWalk`. By the catalog where the replica has all of the file, else by NAME.gtx."""
        if extent.anonymous:
            return None
        place = extent.head().end
        if extent.inside is not None:
            inside = decode_gtid_set(extent.inside)
            if not inside.meets(self._held):
                self._note_unseen(extent, [(place, extent.last_start() or 0)])
                return None
            start = extent.last_start() if inside <= self._held else None
            if start is not None and start > place:
                return Jump(place, start, inside.count, all_counted=True)
        stretches = extent.stretches()
        if stretches is None or not len(stretches):
            return None
        self._note_unseen(extent, stretches.pieces_without(self._held, extent.end, _WORTH_A_PIECE_BYTES))
        lacking = stretches.first_lacking(self._held)
        target = lacking.start if lacking is not None else stretches.last_start
        return Jump(place, target, stretches.transactions_before(target)) if place < target <= extent.end else None

    def _note_unseen(self, extent: FileExtent, pieces: list[tuple[int, int]]) -> None:
        self._unseen_of = extent.name
        self._unseen = [(start, stop) for start, stop in reversed(pieces) if start < stop]

    def next_range(self, source: bytearray, start: int, stop: int, base: int) -> int:
        """See `GtidWalk`."""
        if start == stop:
            return start
        at = base + start
        while self._unseen and self._unseen[-1][0] < at:
            self._unseen.pop()
        first = self._unseen[-1][0] if self._unseen else base + stop
        end = super().next_range(source, start, min(stop, first - base), base) if at < first else start
        if end > start:
            self._passed |= not self.skip.sending
        elif self.skip.refused:
            word = anonymous_refused if self.skip.refused == REFUSED_ANONYMOUS else gtid_refused
            self.refused = word(self.file, base + start)
        if self._unseen and base + end == first and (at == first or self.skip.sending):
            # What comes before a piece is sent with it.
            self.unseen_until = self._unseen.pop()[1]
            self.begin_behind(self.unseen_until)
            return min(stop, self.unseen_until - base)
        return end

    @property
    def counts_again(self) -> bool:
        """See `GtidWalk`."""
        return self._later

    def count_again(self, holdings: MysqlHoldings, number: int) -> None:
        """File `number` begins: how many are passed over from there on, if all of them are known by now. For a thread."""
        with contextlib.suppress(AnonymousInTheWay):  # it ends the stream when it comes
            start = mysql_start(self._held, holdings, source_uuid=None, version=(), named=number)
            if not start.later:
                self._held_here = self.skip.skipped + start.held_here
                self._later = False

    @property
    def is_done(self) -> bool:
        """See `GtidWalk`. A number that comes twice is passed over twice, as long as the walk goes on."""
        skip = self.skip
        if self._later or self._counted_from is not None or skip.refuse_anonymous or skip.refuse_gtids:
            return False
        return skip.sending and not self._passed and skip.skipped >= self._held_here

    @property
    def owes(self) -> bool:
        """See `GtidWalk`."""
        return self._passed

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
