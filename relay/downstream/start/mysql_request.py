"""The start of a MySQL replica that sends COM_BINLOG_DUMP_GTID, and its continuation in the next generation."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from protocol.binlog.layout import FIRST_EVENT
from protocol.commands import DumpFlag
from protocol.errors import ErrorCode, Malformed, PositionRefused
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.dump_decision import AnonymousInTheWay, UnreadableInTheWay, mysql_start
from protocol.gtid.dump_refusals import anonymous_refused, mode_refused, unreadable_refused
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.gtid.gtid_set import GtidSet
from protocol.kernel.gtid_filter import GtidSkip
from protocol.statements import SourceFacts
from relay.archive.storage.gtid_facts import GtidValue
from relay.downstream.gtid_filter.gtid_filter import GtidFilter
from relay.downstream.gtid_filter.gtid_lookup import ArchivedGtids, GtidLookup
from relay.downstream.gtid_filter.mysql_filter import MysqlFilter, MysqlGroupFilter
from relay.downstream.gtid_filter.seek import exact_seek
from relay.downstream.request.refusal import refusal, shown_name

_HEARTBEAT_V2_SINCE: Final = (8, 0, 26)


class MysqlRequest:
    """A set of transactions. Raises: PositionRefused if the source's GTID_MODE is not ON."""

    def __init__(self, request: BinlogDumpGtid, facts: SourceFacts, gtids: GtidLookup) -> None:
        known = facts.gtids()
        if not known.is_settled:
            text = "binlog-relay has not read its directory to the end yet, and no GTIDs so far: try again"
            raise refusal(text, ErrorCode.ER_UNKNOWN_ERROR)
        if known.mode != "ON":
            raise mode_refused(known.mode)
        self._request = request
        self._gtids = gtids
        self._own = gtids.source_uuids
        self._version = facts.version_numbers
        self._takes_v2 = (
            bool(request.flags & DumpFlag.HEARTBEAT_V2_OR_ANNOTATE) and self._version >= _HEARTBEAT_V2_SINCE
        )
        self._decoded: GtidSet | None = None

    def reported(self) -> GtidSet:
        """Implement `GtidRequest.reported`."""
        if self._decoded is None:
            try:
                self._decoded = decode_gtid_set(self._request.held)
            except Malformed:
                text = "Malformed GTID set encoding."
                raise PositionRefused(ErrorCode.ER_MALFORMED_GTID_SET_ENCODING, text) from None
        return self._decoded

    def start(self, series: Sequence[ArchivedGtids]) -> MysqlFilter | None:
        """Implement `GtidRequest.start`, in the newest generation before which the replica has everything."""
        held = self.reported()
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

    def go_on(self, sent: GtidValue | None, before: GtidFilter | None, archived: ArchivedGtids) -> MysqlFilter | None:
        """Implement `GtidRequest.go_on`."""
        held = self.reported() | sent if isinstance(sent, GtidSet) else self.reported()
        return self._planned(archived, held, (), None, goes_on=True)

    def _planned(
        self,
        archived: ArchivedGtids,
        held: GtidSet,
        own: Sequence[UUID],
        known: GtidSet | None,
        named: int | None = None,
        *,
        goes_on: bool = False,
    ) -> MysqlFilter | None:
        if archived.mysql is None:
            return None
        try:
            start = mysql_start(held, archived.mysql, source_uuids=own, version=self._version, named=named, known=known)
        except UnreadableInTheWay as met:
            raise unreadable_refused(archived.files.names[met.number]) from None
        except AnonymousInTheWay as met:
            snapshot = archived.files[met.number]
            offset, is_exact = snapshot.first_anonymous()
            raise anonymous_refused(snapshot.name, offset, is_exact=is_exact) from None
        snapshot = archived.files[start.number]
        groups: MysqlGroupFilter | None = None
        if start.held_here or start.later:
            intervals = start.held.intervals_by_key()
            groups = MysqlGroupFilter(
                start.held, start.held_here, intervals=intervals, later=start.later, takes_v2=self._takes_v2
            )
            groups.seek = exact_seek(snapshot, groups.find_seek(snapshot), GtidSkip(intervals), snapshot.head().end)
        return MysqlFilter(
            self._gtids,
            archived,
            snapshot.name,
            groups,
            # A source also looks at the first transaction only if it finds the file itself.
            continues=goes_on or (groups is not None and groups.seek is not None and named is None),
            strange=start.strange,
            takes_v2=self._takes_v2,
        )


def _named_file(request: BinlogDumpGtid, series: Sequence[ArchivedGtids]) -> tuple[ArchivedGtids, int]:
    """Return the file that the request names, of the newest generation that has one of that name. Raises: PositionRefused."""
    if request.offset != FIRST_EVENT:
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
