"""The rules of one view: what becomes of each transaction of a MySQL source."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from protocol.binlog.format_description import version_numbers
from protocol.errors import ProtocolError
from protocol.kernel.codes import (
    ANNOTATE_ROWS_EVENT,
    CREATE_FILE_EVENT,
    EXEC_LOAD_EVENT,
    INCIDENT_EVENT,
    LOAD_EVENT,
    NEW_LOAD_EVENT,
    PARTIAL_ROW_DATA_EVENT,
    PRE_GA_DELETE_ROWS_EVENT,
    PRE_GA_UPDATE_ROWS_EVENT,
    PRE_GA_WRITE_ROWS_EVENT,
    XA_PREPARE_EVENT,
)
from relay.schema_history.tables.ddl_tokens import NotSure
from relay.view.rules import stop_reasons
from relay.view.rules.definition_rules import define
from relay.view.rules.engine_mixing import split_by_engine
from relay.view.rules.group import CannotBeKept, Copy, New, OutGroup, SourceGroup
from relay.view.rules.group_parts import REAL_GTIDS, GroupPart, PartKind, read_parts
from relay.view.rules.own_events import begin, changed, commit, copied, empty_group, out_group
from relay.view.rules.row_order import check_row_order
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.account_statements import is_account_statement, is_account_table, sets_password
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.named_tables import written_tables
from relay.view.rules.table_engines import TableEngines
from relay.view.rules.undone_parts import learn_all, left_of_undone
from relay.view.rules.watched_tables import watched_names

_OLD_LOADS: Final = (LOAD_EVENT, NEW_LOAD_EVENT, CREATE_FILE_EVENT, EXEC_LOAD_EVENT)
_OLD_ROWS: Final = (PRE_GA_WRITE_ROWS_EVENT, PRE_GA_UPDATE_ROWS_EVENT, PRE_GA_DELETE_ROWS_EVENT)
_ACCOUNTS_SEEN: Final = 1024
"""Bytes of a statement in which the name of its table stands."""
_MARIADB: Final = range(ANNOTATE_ROWS_EVENT, PARTIAL_ROW_DATA_EVENT + 1)
_DEFINES: Final = (b"create", b"alter", b"drop", b"rename", b"truncate")
_CREATE_SELECT_IN_ONE_SINCE: Final = (8, 0)
_READS_OLD_ROWS_UNTIL: Final = (5, 7)


class MysqlRules:
    """GroupRules of a MySQL source. Pure: the same groups in the same order give the same answers."""

    def __init__(self, settings: ViewSettings) -> None:
        self._settings = settings
        self._engines = TableEngines(settings.known_engines)
        wanted = bytearray(256)
        for kind in (*self._not_known(), INCIDENT_EVENT):
            wanted[kind] = 1
        self._look_at = bytes(wanted)
        self._watched: bytes | None = None
        self._watched_at: object = None

    @property
    def wants_statements(self) -> bool:
        """Whether some table that is there has no transactions."""
        return self._engines.any_without_transactions

    @property
    def watched(self) -> bytes | None:
        """See GroupRules."""
        if self._watched_at is not self._engines.changes:
            self._watched_at = self._engines.changes
            plain = self._engines.without_transactions()
            # With InnoDB everywhere nothing is split, and what else matters is no plain statement.
            several = plain if self._settings.engines == "keep" else []
            self._watched = None if several is None else watched_names(several, self._engines.with_triggers())
        return self._watched

    @property
    def look_at(self) -> bytes:
        """Types that no replica of the target reads, and incidents."""
        return self._look_at

    def state(self) -> bytes:
        """What is known of tables."""
        return self._engines.state()

    def restore(self, state: bytes) -> None:
        """Knows what `state` says and nothing else."""
        self._engines.restore(state)

    def source_started(self) -> None:
        """The source was started anew before the next group (its file's format description says when): temporary tables are gone."""
        self._engines.source_started()

    def skipped(self, group: SourceGroup) -> None:
        """The group is left out by a decision; what it defines at the source is known all the same."""
        try:
            learn_all(self._engines, read_parts(group))
        except ProtocolError:
            return

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """What becomes of a group. Raises: CannotBeKept, and nothing is learned."""
        self._engines.begin()
        try:
            plan = self._plan(group)
        except CannotBeKept:
            self._engines.take_back()
            raise
        except ProtocolError as error:
            self._engines.take_back()
            raise stop_reasons.malformed(str(error)) from error
        self._engines.keep()
        return plan

    def _plan(self, group: SourceGroup) -> list[OutGroup]:
        self._check_types(group)
        parts = read_parts(group)
        head = parts[0] if parts[0].kind is PartKind.GTID else None
        inside = parts[1:] if head is not None else parts
        if not inside or any(part.kind in (PartKind.XA, PartKind.PACKED) for part in inside):
            return [_whole(group, head)]
        if not group.is_whole:
            if inside[-1].kind is PartKind.ROLLBACK or any(part.kind is PartKind.ROLLBACK_TO for part in inside):
                raise stop_reasons.too_large()
            learn_all(self._engines, inside)
            return [_whole(group, head)]
        if inside[-1].event.type == XA_PREPARE_EVENT:
            return [_whole(group, head)]
        return _Planned(self._settings, self._engines, group, head, inside).groups()

    def _check_types(self, group: SourceGroup) -> None:
        """Raises: CannotBeKept for events that no replica of the target reads."""
        if not any(self._look_at[event.type] for event in group.events):
            return
        wrong = self._not_known()
        for event in group.events:
            if event.type == INCIDENT_EVENT:
                raise stop_reasons.incident()
            if event.type in wrong:
                raise stop_reasons.event_type(event.type, *wrong[event.type])

    def _not_known(self) -> Mapping[int, tuple[int, str]]:
        """Type code -> the error of a replica that gets one, and the way on."""
        through = "Replicate through a MySQL 5.1 to 5.7 in between, or repair the tables by hand and `view skip`."
        found: dict[int, tuple[int, str]] = {}
        if self._settings.target_version > _READS_OLD_ROWS_UNTIL:
            found |= dict.fromkeys((*_OLD_LOADS, *_OLD_ROWS), (13121, through))
        return found | dict.fromkeys(_MARIADB, (13121, "A view for MySQL needs a MySQL source."))


class _Planned:
    """One group on its way. `inside`: its parts behind the source's GTID event."""

    def __init__(
        self,
        settings: ViewSettings,
        engines: TableEngines,
        group: SourceGroup,
        head: GroupPart | None,
        inside: list[GroupPart],
    ) -> None:
        # Where nothing gets a GTID the target takes what the source's own replicas take.
        self._gtids = settings.gtids != "keep" or head is not None
        self._settings = settings
        self._engines = engines
        self._group = group
        self._head = head
        self._begin = inside[0] if inside[0].kind is PartKind.BEGIN else None
        self._end = inside[-1]
        self._all = inside[1:] if self._begin is not None else inside

    def groups(self) -> list[OutGroup]:
        """What becomes of it. Raises: CannotBeKept."""
        body = self._all
        if self._begin is not None and self._end.kind in (PartKind.COMMIT, PartKind.ROLLBACK):
            body = body[:-1]
        kept = [part for part in body if not self._is_of_accounts(part)]
        if not self._gtids and self._settings.engines == "keep" and kept == body:
            learn_all(self._engines, body)
            return [self._as_it_was(body)]
        rolled_back = self._end.kind is PartKind.ROLLBACK
        left = left_of_undone([*kept, self._end] if rolled_back else kept, self._engines, self._group.server_version)
        if rolled_back and not left and kept and len(kept) == len(body):
            raise stop_reasons.nothing_kept()
        for part in left:
            self._check_failed(part)
            if self._settings.engines == "innodb":
                check_row_order(part, self._group, self._engines)
        runs = self._runs(left)
        as_it_was = left == body and not rolled_back and not any(self._commits(part) for part in left)
        if as_it_was and runs in ([], [left]) and not self._lacks_begin:
            return [self._as_it_was(left)]
        return self._made(runs)

    @property
    def _lacks_begin(self) -> bool:
        """Whether there are rows outside of BEGIN, as 5.1 wrote them: with a GTID in front 9.7 waits for ever, or dies (tried)."""
        return self._begin is None and any(part.kind is PartKind.ROWS for part in self._all)

    def _as_it_was(self, left: list[GroupPart]) -> OutGroup:
        """The group, with the texts of definitions as the replica is to run them."""
        pieces: list[Copy | New] = [] if self._begin is None else [copied(self._begin)]
        for part in left:
            pieces += self._pieces(part)
        if self._begin is not None and self._end is not self._begin:
            pieces.append(copied(self._end))
        return out_group(pieces, self._head)

    def _made(self, runs: list[list[GroupPart]]) -> list[OutGroup]:
        """Transactions of our own around the runs."""
        anchor = self._begin or next((part for part in self._all if part.query is not None), self._all[0])
        if not runs:
            return [empty_group(anchor.event, anchor.query, self._head)]
        if len(runs) > 1 and self._head is not None and self._head.event.type in REAL_GTIDS:
            raise stop_reasons.two_gtids()
        made = []
        for number, run in enumerate(runs):
            pieces = [piece for part in run for piece in self._pieces(part)]
            if not self._stands_alone(run):
                last = run[-1].event
                pieces = [begin(anchor.event, anchor.query), *pieces, commit(last, anchor.query)]
            made.append(out_group(pieces, self._head if not number else None))
        return made

    def _stands_alone(self, run: list[GroupPart]) -> bool:
        """Whether a run is a statement that commits by itself."""
        if len(run) != 1 or run[0].query is None:
            return False
        return self._commits(run[0]) or (self._begin is None and not self._lacks_begin)

    def _pieces(self, part: GroupPart) -> list[Copy | New]:
        """The part, a definition with its text as the replica is to run it. Raises: CannotBeKept."""
        if part.kind is not PartKind.STATEMENT or part.query is None or part.query.is_load:
            return [copied(part)]
        if not _may_define(part.query.raw):
            return [copied(part)]
        raw = define(part.query, self._settings, has_gtid=self._gtids)
        if raw == part.query.raw:
            return [copied(part)]
        own = part.event.offset
        pieces: list[Copy | New] = [Copy(part.start, own)] if part.start < own else []
        return [*pieces, changed(part.event, part.query.with_text(raw))]

    def _runs(self, left: list[GroupPart]) -> list[list[GroupPart]]:
        """Which parts may stand in one transaction. Raises: CannotBeKept."""
        runs: list[list[GroupPart]] = [[]]
        for part in left:
            if self._commits(part):
                runs += [[part], []]
            else:
                runs[-1].append(part)
        if (
            self._settings.engines == "keep"
            and self._settings.target_version >= (5, 6)
            and self._settings.gtids != "anonymous"
        ):
            runs = [made for run in runs for made in split_by_engine(run, self._engines)]
        return [run for run in runs if any(part.kind in (PartKind.STATEMENT, PartKind.ROWS) for part in run)]

    def _commits(self, part: GroupPart) -> bool:
        """Whether a statement cannot stand behind BEGIN: the CREATE TABLE in front of the rows of CREATE … SELECT."""
        if self._begin is None or part.kind is not PartKind.STATEMENT or part.query is None or part.query.is_load:
            return False
        head = part.query.raw.lstrip()[:8].lower()
        if not head.startswith(_DEFINES):
            return False
        try:
            tokens = part.query.tokens
        except NotSure:
            return True
        if tokens[1].upper == "TEMPORARY":
            # Where transactions have GTIDs, these may not stand inside of one before 8.0.13: error 1787.
            return self._settings.gtids != "anonymous" and self._gtids and self._settings.target_version < (8, 0)
        starts = any(
            token.upper == "START" and following.upper == "TRANSACTION" for token, following in pairwise(tokens)
        )
        return not (starts and self._settings.target_version >= _CREATE_SELECT_IN_ONE_SINCE)

    def _is_of_accounts(self, part: GroupPart) -> bool:
        """Whether it changes accounts, and the view leaves that out. Raises: CannotBeKept."""
        if part.kind is PartKind.ROWS:
            of_accounts = [is_account_table(name) for name in part.tables]
            return self._settings.account_statements == "skip" and bool(of_accounts) and all(of_accounts)
        query = part.query
        if part.kind is not PartKind.STATEMENT or query is None:
            return False
        if is_account_statement(query.raw):
            old = (0, 0, 0) < version_numbers(query.server_version) < (5, 7, 6)
            if self._settings.account_statements == "skip":
                return True
            if old and self._settings.target_version >= (5, 7) and sets_password(query.raw):
                raise stop_reasons.password_hash(query)
            return False
        return self._settings.account_statements == "skip" and _writes_accounts(query)

    def _check_failed(self, part: GroupPart) -> None:
        """Raises: CannotBeKept for a statement that failed half-way in tables that keep that at the source and not on the replica."""
        query = part.query
        if query is None or not query.error or part.kind is not PartKind.STATEMENT:
            return
        try:
            tables = written_tables(query)
        except NotSure:
            return
        for name in tables:
            facts = self._engines.facts(name, query.thread_id)
            if facts is None:
                keeps, same_there = True, self._settings.engines == "keep"
            else:
                keeps = facts.keeps_rollbacks is not False
                same_there = facts.temporary or (self._settings.engines == "keep" and bool(facts.engine))
            if keeps and not same_there:
                raise stop_reasons.failed_half_way(query, (name,))


def _whole(group: SourceGroup, head: GroupPart | None) -> OutGroup:
    return OutGroup((Copy(group.start, group.stop),), "new" if head is None else "source")


def _may_define(raw: bytes) -> bool:
    """Whether a statement may be CREATE or ALTER TABLE: it is no plain change of rows."""
    return not raw[:7].upper().startswith((b"INSERT", b"UPDATE", b"DELETE", b"REPLACE"))


def _writes_accounts(query: LoggedQuery) -> bool:
    """Whether a statement changes tables of accounts only."""
    if query.schema.lower() != "mysql" and b"mysql" not in query.raw[:_ACCOUNTS_SEEN].lower():
        return False
    try:
        tables = written_tables(query)
    except NotSure:
        return False
    return bool(tables) and all(is_account_table(name) for name in tables)
