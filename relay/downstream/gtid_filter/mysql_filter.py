"""The transactions that a MySQL replica is not sent because it has them, and where a source would end its stream.

Pieces of a file in which NAME.gtx lists none of them are sent without being looked at. Before what follows, the replica gets a
heartbeat with the place after what was passed over; so does a source, and it keeps later positions right.
"""

import contextlib
from collections.abc import Mapping
from typing import Final

from protocol.binlog.encoded_events import MAX_WIRE_POSITION, heartbeat_event, heartbeat_v2_event
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.dump_decision import AnonymousInTheWay, MysqlHoldings, mysql_start
from protocol.gtid.dump_refusals import anonymous_refused, gtid_refused
from protocol.gtid.gtid_set import GtidSet
from protocol.kernel.codes import REFUSED_ANONYMOUS
from protocol.kernel.gtid_filter import GtidSkip
from protocol.position import Position
from relay.archive.read.file_snapshot import FileSnapshot
from relay.downstream.gtid_filter.group_filter import GroupFilter
from relay.downstream.gtid_filter.gtid_filter import GtidFilter
from relay.downstream.gtid_filter.gtid_lookup import ArchivedGtids, GtidLookup
from relay.downstream.gtid_filter.seek import Seek

_NOTHING: Final = GtidSet()
# Looking at a shorter piece takes no longer than entering and leaving it.
_WORTH_A_PIECE_BYTES: Final = 128 << 10


class MysqlGroupFilter(GroupFilter):
    """Passes over a set of transactions.

    held: the set; `intervals`: the same, if the caller has it already. held_here: how many of them the archive contains from the
    start on; `later`: whether others may come. takes_v2: the replica knows heartbeats that carry a position of 64 bits.
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
        """Transactions that are passed over in this file after so many were counted already."""
        self._unseen: list[tuple[int, int]] = []
        """Pieces [start, stop) of the file `_unseen_of` that are sent without being looked at, the next one last. Both ends are
        starts of transactions, or the end of what was published.
        """
        self._unseen_of = ""

    def also(self, held: GtidSet) -> None:
        """Pass over these, too, from the next transaction on; how many of them come is unknown."""
        self._held |= held
        self._later = True
        self._unseen = []
        self.skip.hold(held.intervals_by_key())

    def refuse(self, *, anonymous: bool, gtids: bool) -> None:
        """Set whether the stream ends before a transaction without a GTID, and before one that has one."""
        self.skip.refuse_anonymous = anonymous
        self.skip.refuse_gtids = gtids
        if anonymous or gtids:
            self._unseen = []

    def begin_file(self, name: str, *, checksum: bool) -> None:
        """Implement `GroupFilter.begin_file`."""
        super().begin_file(name, checksum=checksum)
        if name != self._unseen_of:
            self._unseen = []
        if self._counted_from is not None:
            self._held_here += self.skip.skipped - self._counted_from
            self._counted_from = None

    def take_seek(self, seek: Seek) -> None:
        """Implement `GroupFilter.take_seek`."""
        super().take_seek(seek)
        # What may still come of the last transaction before the target, which the replica has.
        self.skip.numbered = 2
        self._held_here -= seek.transactions
        self._passed |= seek.transactions > 0
        if seek.all_counted:
            self._counted_from = self.skip.skipped

    def find_seek(self, snapshot: FileSnapshot) -> Seek | None:
        """Implement `GroupFilter.find_seek`, by the catalog if the replica has all of the file, else by NAME.gtx."""
        if snapshot.anonymous:
            return None
        place = snapshot.head().end
        if snapshot.inside is not None:
            inside = decode_gtid_set(snapshot.inside)
            if not inside.meets(self._held):
                self._note_unseen(snapshot, [(place, snapshot.last_start() or 0)])
                return None
            start = snapshot.last_start() if inside <= self._held else None
            if start is not None and start > place:
                return Seek(place, start, inside.count, all_counted=True)
        blocks = snapshot.blocks()
        if blocks is None or not len(blocks):
            return None
        self._note_unseen(snapshot, blocks.pieces_without(self._held, snapshot.end, _WORTH_A_PIECE_BYTES))
        missing = blocks.first_missing(self._held)
        target = missing.start if missing is not None else blocks.last_start
        return Seek(place, target, blocks.transactions_before(target)) if place < target <= snapshot.end else None

    def _note_unseen(self, snapshot: FileSnapshot, pieces: list[tuple[int, int]]) -> None:
        self._unseen_of = snapshot.name
        self._unseen = [(start, stop) for start, stop in reversed(pieces) if start < stop]

    def next_range(self, source: bytearray, start: int, stop: int, base: int) -> int:
        """Implement `GroupFilter.next_range`."""
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
            # The bytes before a piece are sent with it.
            self.unseen_until = self._unseen.pop()[1]
            self.begin_behind(self.unseen_until)
            return min(stop, self.unseen_until - base)
        return end

    @property
    def counts_again(self) -> bool:
        """Implement `GroupFilter.counts_again`."""
        return self._later

    def count_again(self, holdings: MysqlHoldings, number: int) -> None:
        """Implement `GroupFilter.count_again`."""
        with contextlib.suppress(AnonymousInTheWay):  # it ends the stream when it comes
            start = mysql_start(self._held, holdings, source_uuids=(), version=(), named=number)
            if not start.later:
                self._held_here = self.skip.skipped + start.held_here
                self._later = False

    @property
    def is_done(self) -> bool:
        """Implement `GroupFilter.is_done`. A number that comes twice is passed over twice, as long as events are looked at."""
        skip = self.skip
        if self._later or self._counted_from is not None or skip.refuse_anonymous or skip.refuse_gtids:
            return False
        return skip.sending and not self._passed and skip.skipped >= self._held_here

    @property
    def has_pending(self) -> bool:
        """Implement `GroupFilter.has_pending`."""
        return self._passed

    def pending_events(self, position: Position, server_id: int, *, with_checksum: bool) -> list[bytes]:
        """Implement `GroupFilter.pending_events`."""
        if not self._passed:
            return []
        if position.offset <= MAX_WIRE_POSITION:
            return [heartbeat_event(position, server_id, with_checksum=with_checksum)]
        if self._takes_v2:
            return [heartbeat_v2_event(position, server_id, with_checksum=with_checksum)]
        return []

    def pending_sent(self) -> None:
        """Implement `GroupFilter.pending_sent`."""
        self._passed = False


class MysqlFilter(GtidFilter):
    """The filter of a MySQL replica.

    A source ends a stream by GTID before a transaction that has none, and, with GTID_MODE = OFF, before one that has one. strange:
    transactions that the replica has, of sources of which nothing was published in `archived`. Most replicas have such transactions,
    their own; as long as nothing of those sources comes, they require no look at the events. takes_v2: as in `MysqlGroupFilter`.
    Source: MySQL 9.7 `rpl_binlog_sender.cc (check_event_type)`.
    """

    def __init__(
        self,
        gtids: GtidLookup,
        archived: ArchivedGtids,
        first_file: str,
        groups: MysqlGroupFilter | None,
        *,
        continues: bool,
        strange: GtidSet = _NOTHING,
        takes_v2: bool = False,
    ) -> None:
        super().__init__(gtids, archived.generation, first_file, groups, continues=continues)
        self._strange = strange
        self._takes_v2 = takes_v2
        self._sources_seen = archived.source_count
        self._came = GtidSet()
        """The part of `strange` that is of sources of which something was published since."""
        self._anonymous = False
        self._refuses = False
        """True if the filter of groups was set to end the stream: it must then be set to let it continue, too."""

    @property
    def _off(self) -> bool:
        return self._gtids.source.gtid_mode() == "OFF"

    def must_look(self, file: str) -> bool:
        """Implement `GtidFilter.must_look`."""
        state = self.generation.gtids
        if len(state.sources) != self._sources_seen:
            self._came |= self._strange.of_sources(state.sources[self._sources_seen :])
            self._sources_seen = len(state.sources)
        self._anonymous = state.has_anonymous(file)
        return self._anonymous or self._off or self._refuses or bool(self._came)

    def changed(self, groups: GroupFilter | None) -> GroupFilter:
        """Implement `GtidFilter.changed`."""
        off = self._off
        groups = groups or MysqlGroupFilter(takes_v2=self._takes_v2)
        assert isinstance(groups, MysqlGroupFilter)
        if self._came:
            groups.also(self._came)
            self._came = GtidSet()
        groups.refuse(anonymous=self._anonymous, gtids=off)
        self._refuses = self._anonymous or off
        return groups
