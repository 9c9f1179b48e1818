"""The event groups that a MariaDB replica is not sent because it has them, and the end of its stream if it wants one.

When a domain's awaited group ends, the replica gets the stream's position in an artificial Gtid_list, as from a source. A source also
sends one after the head of a later group if the awaited one is missing, and once more when `@slave_until_gtid` is reached. Source:
MariaDB 10.11 `sql_repl.cc (send_event_to_slave, is_until_reached)`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from protocol.binlog.encoded_events import gtid_list_event
from protocol.errors import ErrorCode, Malformed
from protocol.gtid.dump_refusals import hole_refused, unreadable_refused
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.mariadb import UNTIL_REACHED, DomainGtid, GtidList, GtidPosition
from protocol.kernel.gtid_filter import GtidSkip
from protocol.position import Position
from relay.archive.generation import Generation
from relay.archive.read.file_snapshot import FileSnapshot
from relay.downstream.gtid_filter.group_filter import GroupFilter
from relay.downstream.gtid_filter.gtid_filter import GtidFilter
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.gtid_filter.seek import Seek
from relay.downstream.request.refusal import refusal


@dataclass(frozen=True, slots=True)
class Until:
    """`@slave_until_gtid`: in the domains of `gtids` everything up to these groups is sent, of other domains nothing.

    before: these groups are not sent either (`@slave_gtid_until_before_gtids`, MariaDB 11.3).
    """

    gtids: Sequence[DomainGtid]
    before: bool = False

    def after(self, state: GtidList) -> "Until":
        """Return what is left of it for a stream that starts where the source's binlog had this state."""
        left = []
        for gtid in self.gtids:
            last = state.server(gtid.domain_id, gtid.server_id)
            if last is None or last.sequence_number < gtid.sequence_number:
                left.append(gtid)
        return Until(left, self.before)


@dataclass(frozen=True, slots=True)
class Awaited:
    """The groups of a replica's position that the stream must come to.

    gtids: those that are in the files from the start on. strict: one that never comes, although a later group of its server does,
    ends the stream.
    """

    position: GtidPosition
    gtids: Sequence[DomainGtid] = field(default_factory=list)
    strict: bool = False


class MariadbGroupFilter(GroupFilter):
    """Passes over the groups of each domain up to and with the replica's last one."""

    def __init__(self, awaited: Awaited, until: Until | None = None) -> None:
        limits = None if until is None else [_numbers(gtid) for gtid in until.gtids]
        super().__init__(
            GtidSkip(None, list(map(_numbers, awaited.gtids)), awaited.strict, limits, bool(until and until.before))
        )
        self._awaited = awaited
        self._until = until
        self.waiting = {gtid.domain_id: gtid for gtid in awaited.gtids}
        """By domain, the groups that have not come yet."""
        self._collector: FileGtidCollector | None = None
        self._earlier = GtidList()
        self._pending: list[tuple[GtidList, int]] = []
        """The states that the replica must still get, each with its offset."""
        self._pending_made = 0

    def begin_file(self, name: str, *, checksum: bool) -> None:
        """Implement `GroupFilter.begin_file`."""
        super().begin_file(name, checksum=checksum)
        if self._collector is not None:
            self._earlier = self._state()
        self._collector = FileGtidCollector("mariadb", checksum=checksum)

    def begin_behind(self, offset: int) -> None:
        """Implement `GroupFilter.begin_behind`."""
        super().begin_behind(offset)
        if self._collector is not None:
            self._collector.begin(offset)

    def take_seek(self, seek: Seek) -> None:
        """Implement `GroupFilter.take_seek`."""
        super().take_seek(seek)
        self._earlier = self._earlier.advanced(seek.groups)

    def find_seek(self, snapshot: FileSnapshot) -> Seek | None:
        """Implement `GroupFilter.find_seek`, by the catalog if nothing of the file is sent, else by NAME.gtx.

        The notes on storage engines between groups (Binlog_checkpoint) are passed over with them: replicas only count them.
        """
        if self._until is not None or not self.waiting:
            return None
        place = snapshot.head().end
        groups = self._whole_file(snapshot)
        if groups is not None:
            start = snapshot.last_start()
            if start is not None and start > place:
                return Seek(place, start, 0, groups)
        blocks = snapshot.blocks()
        if blocks is None or not len(blocks):
            return None
        waiting = {domain.to_bytes(4, "little"): gtid for domain, gtid in self.waiting.items()}
        target, runs = blocks.first_reaching(
            {key: (gtid.server_id.to_bytes(4, "little"), gtid.sequence_number) for key, gtid in waiting.items()}
        )
        if not place < target <= snapshot.end:
            return None
        return Seek(place, target, 0, [_gtid(key, last) for key, last in runs])

    def _whole_file(self, snapshot: FileSnapshot) -> list[DomainGtid] | None:
        """Return the last group of each server in the file, if none of the file's groups is sent; None: one is, or it is unknown."""
        before, after = snapshot.before, snapshot.after
        if before is None or after is None:
            return None
        groups = []
        domains = set()
        for gtid in after:
            domains.add(gtid.domain_id)
            if before.server(gtid.domain_id, gtid.server_id) == gtid:
                continue
            awaited = self.waiting.get(gtid.domain_id)
            if awaited is None or (
                awaited.server_id == gtid.server_id and awaited.sequence_number <= gtid.sequence_number
            ):
                return None
            groups.append(gtid)
        # A domain that was removed from the source's state may have had anything in this file.
        return groups if all(gtid.domain_id in domains for gtid in before) else None

    def next_range(self, source: bytearray, start: int, stop: int, base: int) -> int:
        """Implement `GroupFilter.next_range`."""
        if self.refused is not None or self.finished:
            return start
        skip, collector = self.skip, self._collector
        end = super().next_range(source, start, stop, base)
        if end == start:
            if skip.hole >= 0:
                self.refused = hole_refused(self._awaited.position, self._awaited.gtids[skip.hole].domain_id)
            return start
        assert collector is not None
        try:
            collector.take(memoryview(source)[start:end])
        except Malformed:
            self.refused = unreadable_refused(self.file)
            return start
        if skip.reached >= 0:
            gtid = self._awaited.gtids[skip.reached]
            self.waiting.pop(gtid.domain_id, None)
            state = self._state()
            if skip.in_hole:
                state = state.advanced([DomainGtid(gtid.domain_id, gtid.server_id, skip.hole_number)])
            self._pending.append((state, base + end))
        if skip.finished:
            self.finished = True
            self._pending.append((GtidList(self._state(), UNTIL_REACHED), base + end))
        return end

    def _state(self) -> GtidList:
        """Return the groups up to here since the start; with an end of the stream also those before, as sources have it."""
        collector = self._collector
        assert collector is not None
        inside = collector.inside()
        assert isinstance(inside, GtidList)
        before = collector.before if self._until is not None else None
        return (before if isinstance(before, GtidList) else self._earlier).advanced(inside)

    @property
    def is_done(self) -> bool:
        """Implement `GroupFilter.is_done`. `skip.waiting` shrinks when the group's head is seen, which is before it is passed over."""
        return not self.waiting and self.skip.sending and not self._pending and self._until is None

    @property
    def has_pending(self) -> bool:
        """Implement `GroupFilter.has_pending`."""
        return bool(self._pending)

    def pending_events(self, position: Position, server_id: int, *, with_checksum: bool) -> list[bytes]:
        """Implement `GroupFilter.pending_events`."""
        due = [state for state in self._pending if state[1] <= position.offset]
        self._pending_made = len(due)
        return [gtid_list_event(state, end, server_id, with_checksum=with_checksum) for state, end in due]

    def pending_sent(self) -> None:
        """Implement `GroupFilter.pending_sent`."""
        del self._pending[: self._pending_made]
        self._pending_made = 0


class MariadbFilter(GtidFilter):
    """The filter of a MariaDB replica.

    A source checks a replica's position in a domain that was empty there as soon as something of the domain comes. Here the stream
    ends then, with an error that makes the replica ask again at once: its position in that domain is then judged as with any request.
    strange: the position in such domains. Source: MariaDB 10.11 `sql_repl.cc (START_ON_EMPTY_DOMAIN)`.
    """

    def __init__(
        self,
        gtids: GtidLookup,
        generation: Generation,
        first_file: str,
        groups: MariadbGroupFilter | None,
        *,
        continues: bool,
        strange: Sequence[DomainGtid],
    ) -> None:
        super().__init__(gtids, generation, first_file, groups, continues=continues)
        self._strange = strange

    @property
    def waiting(self) -> Mapping[int, DomainGtid]:
        """By domain, the groups of the replica's position that have not come yet."""
        return self._groups.waiting if isinstance(self._groups, MariadbGroupFilter) else {}

    def must_look(self, file: str) -> bool:
        """Implement `GtidFilter.must_look`."""
        return bool(self._strange) and bool(self._known())

    def _known(self) -> list[DomainGtid]:
        state = self._gtids.executed
        domains = {gtid.domain_id for gtid in state} if isinstance(state, GtidList) else set()
        return [gtid for gtid in self._strange if gtid.domain_id in domains]

    def changed(self, groups: GroupFilter | None) -> GroupFilter | None:
        """Implement `GtidFilter.changed`. Raises: PositionRefused (1105)."""
        known = ",".join(map(str, self._known()))
        raise refusal(
            f"The replica's position has {known}, of a domain that was empty at the source and is not any more: "
            "the replica asks again with the same position, which is then compared with what is there",
            ErrorCode.ER_UNKNOWN_ERROR,
        )


def _numbers(gtid: DomainGtid) -> tuple[int, int, int]:
    return gtid.domain_id, gtid.server_id, gtid.sequence_number


def _gtid(key: bytes, number: int) -> DomainGtid:
    return DomainGtid(int.from_bytes(key[:4], "little"), int.from_bytes(key[4:8], "little"), number)
