"""Where a MySQL replica starts that asks by COM_BINLOG_DUMP_GTID, and where it goes on in the next generation."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from protocol.commands import DumpFlag
from protocol.errors import ErrorCode, Malformed, PositionRefused
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.dump_decision import AnonymousInTheWay, mysql_start
from protocol.gtid.dump_refusals import anonymous_refused, mode_refused
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mysql_gtid import parse_uuid
from protocol.kernel.gtid_filter import GtidSkip
from protocol.statements import SourceFacts
from relay.archive.storage.gtid_facts import GtidValue
from relay.downstream.gtid_filter.group_filter import GtidWalk
from relay.downstream.gtid_filter.gtid_filter import MysqlGuide
from relay.downstream.gtid_filter.gtid_lookup import ArchivedGtids, GtidLookup
from relay.downstream.gtid_filter.mysql_filter import MysqlWalk
from relay.downstream.request.refusal import refusal, shown_name
from relay.downstream.request.request_checks import FIRST_OFFSET
from relay.downstream.start.gtid_request import GtidStart, exact_jump

_HEARTBEAT_V2_SINCE: Final = (8, 0, 26)


class MysqlRequest:
    """A set of transactions. Raises PositionRefused where the source's GTID_MODE is not ON."""

    def __init__(self, request: BinlogDumpGtid, facts: SourceFacts, gtids: GtidLookup) -> None:
        if facts.gtid_mode != "ON":
            raise mode_refused(facts.gtid_mode)
        self._request = request
        self._gtids = gtids
        self._own = parse_uuid(gtids.source_uuid) if gtids.source_uuid else None
        self._version = facts.version_numbers
        self._takes_v2 = (
            bool(request.flags & DumpFlag.HEARTBEAT_V2_OR_ANNOTATE) and self._version >= _HEARTBEAT_V2_SINCE
        )
        self._decoded: GtidSet | None = None

    def _held(self) -> GtidSet:
        if self._decoded is None:
            try:
                self._decoded = decode_gtid_set(self._request.held)
            except Malformed:
                text = "Malformed GTID set encoding."
                raise PositionRefused(ErrorCode.ER_MALFORMED_GTID_SET_ENCODING, text) from None
        return self._decoded

    def start(self, series: Sequence[ArchivedGtids]) -> GtidStart | None:
        """See `GtidRequest`. In the newest generation before which there is nothing that the replica lacks."""
        held = self._held()
        executed = series[-1].executed
        known = executed if isinstance(executed, GtidSet) else None
        if self._request.file:
            archived, number = _named_file(self._request, series)
            return self._planned(archived, held, self._own, known, number)
        chosen: ArchivedGtids | None = None
        for archived in reversed(series):
            if archived.mysql is None:
                continue
            chosen = archived
            if len(series) == 1 or archived.mysql.purged <= held:
                break
        return self._planned(chosen, held, self._own, known) if chosen is not None else None

    def go_on(self, sent: GtidValue | None, walk: GtidWalk | None, archived: ArchivedGtids) -> GtidStart | None:
        """See `GtidRequest`."""
        held = self._held() | sent if isinstance(sent, GtidSet) else self._held()
        return self._planned(archived, held, None, None)

    def _planned(
        self, archived: ArchivedGtids, held: GtidSet, own: UUID | None, known: GtidSet | None, named: int | None = None
    ) -> GtidStart | None:
        if archived.mysql is None:
            return None
        try:
            start = mysql_start(held, archived.mysql, source_uuid=own, version=self._version, named=named, known=known)
        except AnonymousInTheWay as met:
            extent = archived.files[met.number]
            raise anonymous_refused(extent.name, extent.first_anonymous()) from None
        extent = archived.files[start.number]
        head = extent.head()
        guide = MysqlGuide(
            self._gtids,
            archived.generation,
            start.strange,
            sources_seen=archived.source_count,
            takes_v2=self._takes_v2,
        )
        walk: MysqlWalk | None = None
        jump = None
        if start.held_here or start.later:
            intervals = start.held.intervals_by_key()
            walk = MysqlWalk(
                start.held, start.held_here, intervals=intervals, later=start.later, takes_v2=self._takes_v2
            )
            jump = exact_jump(extent, walk.find_jump(extent), GtidSkip(intervals), head.end)
        # As a source, which looks at the first transaction only where it finds the file itself.
        skipped = jump is not None and named is None
        return GtidStart(archived.generation, extent.name, head.format_description, skipped, walk, jump, guide, self)


def _named_file(request: BinlogDumpGtid, series: Sequence[ArchivedGtids]) -> tuple[ArchivedGtids, int]:
    """The file that the request names, of the newest generation that has one of that name. Raises: PositionRefused."""
    if request.offset != FIRST_OFFSET:
        raise refusal(
            f"{shown_name(request.file)}:{request.offset}: with a set of GTIDs binlog-relay starts at position 4 of a file"
        )
    for archived in reversed(series):
        if request.file in archived.files.names:
            return archived, archived.files.names.index(request.file)
    names = series[-1].files.names
    held = f"it holds {names[0]} to {names[-1]}" if names else "it holds no file yet"
    raise refusal(
        f"{shown_name(request.file)}: binlog-relay has no such file, {held}. "
        "Could not find first log file name in binary log index file"
    )
