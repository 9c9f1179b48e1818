"""The rules of a view of a MariaDB source: each group is translated into MySQL's events."""

from contextlib import suppress
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.mariadb_gtid import PREPARED_XA, MariadbGtid, decode_mariadb_gtid, says_alters_nothing
from protocol.errors import ProtocolError
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from relay.view.rules.group import GivenGtid, GroupRules, OutGroup, SourceGroup
from relay.view.rules.mariadb.assigned_gtids import AssignedGtids, given_before
from relay.view.rules.mariadb.group_translation import GroupTranslation
from relay.view.rules.mariadb.left_out import LeftOut
from relay.view.rules.mariadb.parts import MariadbParts
from relay.view.rules.older_tables import TablesBefore, plan_with_recorded
from relay.view.rules.settings import ViewSettings
from relay.view.rules.xa.left_out_xa import LeftOutXa
from relay.view.stops import source_stops, transaction_stops
from relay.view.stops.stop_reason import Untranslatable

_BETWEEN_GROUPS: Final = frozenset((
    EventType.GTID_LIST, EventType.BINLOG_CHECKPOINT, EventType.START_ENCRYPTION, EventType.FORMAT_DESCRIPTION, EventType.ROTATE,
    EventType.STOP,
))  # fmt: skip


class MariadbRules(GroupRules):
    """The rules of a MariaDB source: MySQL reads none of its groups. Pure: the same groups in the same order give the same results."""

    def __init__(self, settings: ViewSettings, parts: MariadbParts) -> None:
        self._settings = settings
        self._parts = parts
        self.given = AssignedGtids(settings.uuid)
        self._server_version = ""
        self._left_out_xa = LeftOutXa()
        self._left_out: GivenGtid | None = None
        self.left_out_of = LeftOut()
        """The parts left out of all groups up to here."""
        self.before: TablesBefore | None = None
        """Tables from before the archive; None: nothing is known of them."""

    @property
    def look_at(self) -> bytes:
        """Every type that occurs in a group."""
        return bytes(kind not in _BETWEEN_GROUPS for kind in range(256))

    # --- what is known ----------------------------------------------------------------------------------------------------

    def state(self) -> bytes:
        """Return the assigned GTIDs, what was left out, and what is known of tables."""
        given, left_out = self.given.state(), self.left_out_of.state()
        tables = self._left_out_xa.in_front_of(self._parts.tables.state())
        return _with_size(given) + _with_size(left_out) + tables

    def restore(self, state: bytes) -> None:
        """Set the knowledge to `state` and nothing else."""
        given, rest = _taken(state)
        left_out, rest = _taken(rest)
        self.given.restore(given)
        self.left_out_of.restore(left_out)
        self._parts.tables.restore(self._left_out_xa.taken_from(rest))

    def after_source(self, state: bytes) -> bytes:
        """Return the state where another source continues, with `state` that of the former one's end: the assigned GTIDs, and none of
        the tables, which the other's binlogs define again. Raises: Untranslatable where rows may then be taken for others."""
        self.restore(state)
        table = self._parts.tables.described_by_definition
        if table:
            raise Untranslatable(source_stops.definition_of_former_source(table))
        return _with_size(given_before(self.given.state())) + _with_size(self.left_out_of.state())

    def source_started(self) -> None:
        """Note that the source was started before the next group."""
        self.given.begin_file()
        self._parts.tables.source_started()

    def source_went_on(self, *, decided: bool) -> None:
        """Note that the next file begins: a server that continues with it has ended the transactions of the one before."""
        self.given.begin_file()

    def check_unfinished(self, group: SourceGroup, *, is_followed: bool) -> None:
        """Accept a group without an end: it was written at once, before its commit, and the source's replicas undo it."""

    def executed_before(self, groups: GtidList) -> None:
        """Take a file's Gtid_list."""
        self.given.executed_before(groups)

    def executed(self) -> GtidSet:
        """Return the view's GTIDs up to here, with those of what the source executed before the view's start."""
        return self.given.executed()

    # --- for the kernel -----------------------------------------------------------------------------------------------------

    def begin_file(self, server_version: str) -> None:
        """Set the version of the server whose file contains the next groups."""
        self._server_version = server_version

    @property
    def changes(self) -> object:
        """An object that is replaced where `plain_map` may give other results."""
        return self._parts.tables.changes

    def plain_map(self, body: bytes) -> bytes | None:
        """Return the translation of a Table_map with this body if its rows are unchanged; None: `plan` gets groups with it."""
        try:
            conversion = self._parts.tables.convert_map(body, self._server_version)
        except (Untranslatable, ProtocolError):
            return None
        return conversion.map_body if conversion.rows_are_same else None

    # --- groups -------------------------------------------------------------------------------------------------------------

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """Implement `GroupRules.plan`."""
        return plan_with_recorded(self._plan, group, self.before, self._parts.tables)

    def _plan(self, group: SourceGroup) -> list[OutGroup]:
        gtid, body = _head(group)
        self.given.check(gtid.domain_id, gtid.sequence_number)
        translation = GroupTranslation(group, gtid, self._parts)
        if says_alters_nothing(body) or (gtid.xid is not None and self._ends_left_out(gtid)):
            made = [translation.nothing()]
        else:
            made = translation.groups()
            offset = next(iter(group.events)).offset
            if translation.changes_by_statement:
                self.left_out_of.add_statement(group.file, offset)
                self.first_statement = offset if self.first_statement is None else self.first_statement
            self.left_out_of.add(translation.left_out, group.file, offset)
        if gtid.flags & PREPARED_XA and gtid.xid is not None:
            self._left_out_xa.prepared(str(gtid.xid).encode(), left_out=translation.prepares_nothing)
        return self._numbered(gtid, made)

    def _ends_left_out(self, gtid: MariadbGtid) -> bool:
        """Return whether it ends an XA transaction that the view does not have."""
        return gtid.is_standalone and not gtid.flags & PREPARED_XA and self._left_out_xa.ended(str(gtid.xid).encode())

    def _numbered(self, gtid: MariadbGtid, made: list[OutGroup]) -> list[OutGroup]:
        """Assign GTIDs to the groups, and return the groups with them."""
        domain, number = gtid.domain_id, gtid.sequence_number
        back = self.given.give(domain, number, gtid.commit_id, len(made))
        last = len(made) - 1
        return [
            out._replace(number=GivenGtid(self.given.uuid(domain, last - index).bytes, number, back))
            for index, out in enumerate(made)
        ]

    def skipped(self, group: SourceGroup) -> None:
        """Implement `GroupRules.skipped`. Its GTID is assigned to its replacement."""
        self._left_out = None
        try:
            gtid, body = _head(group)
        except (Untranslatable, ProtocolError):
            return
        with suppress(Untranslatable):
            self.given.check(gtid.domain_id, gtid.sequence_number)
            self._left_out = self._numbered(gtid, [OutGroup(())])[0].number
        if gtid.xid is not None and gtid.flags & PREPARED_XA:
            self._left_out_xa.prepared(str(gtid.xid).encode(), left_out=True)
        elif gtid.xid is not None:
            self._left_out_xa.ended(str(gtid.xid).encode())
        if not says_alters_nothing(body):
            with suppress(Untranslatable, ProtocolError):
                GroupTranslation(group, gtid, self._parts).learn()

    def in_place_of(self, group: SourceGroup, empty: OutGroup) -> list[OutGroup]:
        """Implement `GroupRules.in_place_of`."""
        return [] if self._left_out is None else [empty._replace(number=self._left_out)]


def _with_size(part: bytes) -> bytes:
    return len(part).to_bytes(4, "little") + part


def _taken(state: bytes) -> tuple[bytes, bytes]:
    """Return the first part, and the rest."""
    stop = 4 + int.from_bytes(state[:4], "little")
    return state[4:stop], state[stop:]


def _head(group: SourceGroup) -> tuple[MariadbGtid, bytes]:
    """Decode the Gtid event; return it with its body. Raises: Untranslatable; Truncated."""
    first = next(iter(group.events))
    if first.type == EventType.INCIDENT:
        raise transaction_stops.incident()
    if first.type != EventType.MARIADB_GTID:
        raise transaction_stops.mariadb_gtid_missing()
    body = group.body(first)
    return decode_mariadb_gtid(body), body
