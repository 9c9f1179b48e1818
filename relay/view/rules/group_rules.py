"""The rules of one view: they translate each transaction of a MySQL source."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from protocol.errors import ErrorCode, ProtocolError
from protocol.sql.byte_text import is_wide
from protocol.sql.expressions.statement_shape import shortens_all
from protocol.sql.kind import ROW_VERBS
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.server_version import version_numbers
from protocol.sql.sql_mode import NO_BACKSLASH_ESCAPES
from protocol.sql.statements.named_tables import perhaps_written_tables
from relay.view.rules.definition_rules import define
from relay.view.rules.engine_mixing import changes_without_transactions, is_plain
from relay.view.rules.foreign_key_rules import may_differ
from relay.view.rules.group import Copy, GroupRules, New, OutGroup, SourceGroup
from relay.view.rules.group_parts import REAL_GTIDS, GroupPart, GroupParts, PartKind, ends_of, query_of
from relay.view.rules.judged.converted_columns import check_conversions
from relay.view.rules.judged.known_source import KnownSource
from relay.view.rules.judged.statement_judge import StatementJudge, may_sort_groups, variable_of
from relay.view.rules.left_out_parts import LeftOutParts
from relay.view.rules.older_tables import TablesBefore, plan_with_recorded
from relay.view.rules.refused.replicas import Replicas
from relay.view.rules.refused.written_statement import ReplicaStatements
from relay.view.rules.rolled_back_statements import RolledBackEffects, UndoneParts, learn_all
from relay.view.rules.row_order import check_numbered_rows, check_row_order
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.logged_query import AS_LOGGED, LoggedQuery, RunsAs
from relay.view.rules.sub_transactions import PartRanges, PartRuns, Pieces, SubTransaction
from relay.view.rules.synthesized_events import begin, changed, commit, copied, empty_group, out_group
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.rules.tables.watched_tables import watched_names, watched_removals
from relay.view.rules.trigger_rules import TriggerRisk, check_changes, fired_risk
from relay.view.rules.unfinished_group import OpenEnd, check_unfinished
from relay.view.rules.xa.left_out_xa import LeftOutXa
from relay.view.stops import transaction_stops
from relay.view.stops.server_differences import EVENTS
from relay.view.stops.stop_reason import TableUnknown, Untranslatable

_MAY_DEFINE: Final = frozenset(("CREATE", "ALTER", ""))
"""The first words of what may be CREATE or ALTER TABLE; none where a comment for servers comes first."""
_CREATE_SELECT_IN_ONE_SINCE: Final = (8, 0)
_MOST_CHANGING: Final = 2_000
_GTIDS_SINCE: Final = (5, 6)
_CONSISTENCY_SINCE: Final = (5, 7)
"""The version from which replicas may switch to GTIDs while they run."""


class MysqlRules(GroupRules):
    """The rules of a MySQL source. Pure: the same groups in the same order give the same results."""

    def __init__(self, settings: ViewSettings) -> None:
        self._settings = settings
        self._engines = TableEngines(settings.known_engines, settings.plain_tables)
        self.before: TablesBefore | None = None
        """Tables from before the archive; None: nothing is known of them."""
        self._left_out_xa = LeftOutXa()
        self._open_end = OpenEnd()
        differences = [one for one in EVENTS if settings.target_version >= one.since]
        self._unread = {kind: one for one in differences for kind in one.types}
        self._look_at = bytes(kind in self._unread for kind in range(256))
        self._watched: bytes | None = None
        self._watched_at: object = None
        self._risk = TriggerRisk((), False, False)
        self._risk_at: object = None
        self._judge = StatementJudge(settings.target_version, settings.accept, settings.foreign_keys)
        self._statements = ReplicaStatements(
            Replicas(settings.target_version, frozenset(settings.accept), becomes_innodb=settings.engines == "innodb")
        )
        self._is_older = False
        self._removals: bytes | None = None
        self._removals_at: object = None
        self._passes_alike = False

    def of_source(self, server_version: str) -> GroupRules:
        """Implement `GroupRules.of_source`: each statement of an older server is looked at."""
        self._is_older = (0, 0) < version_numbers(server_version)[:2] < self._settings.target_version
        self._judge.note_source(server_version)
        self._watched_at = None
        return self

    @property
    def wants_statements(self) -> bool:
        """True if some existing table has no transactions, or triggers and functions matter."""
        return self._engines.any_without_transactions or bool(self._fired) or self._is_older or self._judge.is_needed

    @property
    def watched(self) -> bytes | None:
        """Implement `GroupRules.watched`."""
        if self._watched_at is not self._engines.changes:
            self._watched_at = self._engines.changes
            plain = self._engines.without_transactions()
            # With InnoDB everywhere nothing is split, and what else matters is no plain statement.
            several = plain if self._settings.engines == "keep" else []
            triggered = self._engines.with_views(self._engines.with_triggers())
            every = self._is_older or self._judge.is_needed
            if several is None or (self._fired.calls and not every):
                self._watched = None
            else:
                self._watched = watched_names(self._engines.with_views(several), triggered, every=every)
        return self._watched

    @property
    def _fired(self) -> TriggerRisk:
        """The possible different effects of triggers and functions on the target."""
        if self._risk_at is not self._engines.changes:
            self._risk_at = self._engines.changes
            self._risk = fired_risk(self._engines, self._settings)
        return self._risk

    @property
    def wants_removals(self) -> bool:
        """Implement `GroupRules.wants_removals`."""
        return may_differ(self._settings)

    @property
    def removals(self) -> bytes | None:
        """Implement `GroupRules.removals`."""
        if self._removals_at is not self._engines.changes:
            self._removals_at = self._engines.changes
            references = self._engines.references
            if self._settings.foreign_keys == "innodb":
                self._removals = watched_removals([], [])
            else:
                with_views = self._engines.with_views
                replaced = with_views(references.acting_parents) if self._engines.all_told_plain else None
                self._removals = watched_removals(replaced, with_views(references.deep_parents))
        return self._removals

    @property
    def look_at(self) -> bytes:
        """The types that no replica of the target reads, and incidents."""
        return self._look_at

    def state(self) -> bytes:
        """Return what is known of tables, of XA transactions that were left out, and of the end of the file before."""
        return self._open_end.in_front_of(self._left_out_xa.in_front_of(self._engines.state()))

    def restore(self, state: bytes) -> None:
        """Set the knowledge to `state` and nothing else."""
        self._engines.restore(self._left_out_xa.taken_from(self._open_end.taken_from(state)))

    def source_started(self) -> None:
        """Note that the source was started before the next group, as its file's format description shows: temporary tables are
        dropped.
        """
        self._open_end.note(None)
        self._engines.source_started()

    def source_went_on(self, *, decided: bool) -> None:
        """Implement `GroupRules.source_went_on`."""
        if not decided:
            self._open_end.source_went_on()
        self._open_end.note(None)

    def skipped(self, group: SourceGroup) -> None:
        """Learn from a group that a decision leaves out; its definitions at the source are known all the same."""
        try:
            parts = GroupParts(group)
            learn_all(self._engines, parts)
            ends = ends_of(group, parts)
            if ends.last is not None:
                self._note_xa(ends.first or ends.last, ends.last, left_out=True)
        except (Untranslatable, ProtocolError):
            return  # its definitions are unknown

    def check_unfinished(self, group: SourceGroup, *, is_followed: bool) -> None:
        """Implement `GroupRules.check_unfinished`."""
        self._open_end.note(check_unfinished(group, self._engines, is_followed=is_followed))

    @property
    def known_at(self) -> object:
        """Implement `GroupRules.known_at`."""
        return None if self._engines.has_temporary else self._engines.changes

    @property
    def passes_alike(self) -> bool:
        """Implement `GroupRules.passes_alike`."""
        return self._passes_alike

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """Translate a group. Raises: Untranslatable, and nothing is learned of it."""
        self._passes_alike = False
        return plan_with_recorded(self._plan, group, self.before, self._engines)

    def _plan(self, group: SourceGroup) -> list[OutGroup]:
        self._check_types(group)
        parts = GroupParts(group)
        head, first, last, is_packed = ends_of(group, parts)
        if first is None or last is None or is_packed:
            check_changes(parts, self._engines, self._settings)
            return [_whole(group, head)]
        if first.kind in (PartKind.XA_COMMIT, PartKind.XA_ROLLBACK):
            if self._left_out_xa.ended(first.name):
                return [empty_group(first.event, first.query, head)]
            return [_whole(group, head)]
        ends = (head, first, last)
        planned = _Planned(self._settings, self._engines, self._judge, self._statements, group, parts, ends)
        made = planned.groups()
        self._note_xa(first, last, left_out=False)
        self._passes_alike = planned.passes_alike
        return made

    def _note_xa(self, first: GroupPart, last: GroupPart, *, left_out: bool) -> None:
        """Learn what a group from `first` to `last` does to a prepared XA transaction."""
        if last.kind is PartKind.PREPARED:
            self._left_out_xa.prepared(first.name, left_out=left_out)
        elif first.kind in (PartKind.XA_COMMIT, PartKind.XA_ROLLBACK):
            self._left_out_xa.ended(first.name)

    def _check_types(self, group: SourceGroup) -> None:
        """Check for events that no replica of the target reads. Raises: Untranslatable."""
        for event in group.events:
            if event.type in self._unread:
                raise self._unread[event.type].stop(event.type)


class _Planned:
    """One group in translation. `ends` are the source's GTID event, if there is one, the first part after it, and the last."""

    def __init__(
        self,
        settings: ViewSettings,
        engines: TableEngines,
        judge: StatementJudge,
        statements: ReplicaStatements,
        group: SourceGroup,
        parts: GroupParts,
        ends: tuple[GroupPart | None, GroupPart, GroupPart],
    ) -> None:
        self._head, first, self._end = ends
        # Where nothing gets a GTID the target accepts what the source's own replicas accept.
        self._gtids = settings.gtids != "keep" or self._head is not None
        self._settings = settings
        self._statements = statements
        self._leaves_out = LeftOutParts(settings, statements)
        self._engines = engines
        self._judge = judge
        self._group = group
        self._parts = parts
        self._begin = first if first.kind is PartKind.BEGIN else None
        self._has_end = self._begin is not None and self._end.kind in (
            PartKind.COMMIT,
            PartKind.ROLLBACK,
            PartKind.PREPARED,
        )
        edges = (self._head, self._begin)
        self._edges = frozenset(part.start for part in edges if part is not None)
        self._stopped: Untranslatable | None = None
        """The first stop by the survey."""
        self._run_as: dict[int, RunsAs] = {}
        """How replicas must run statements, by the places where these begin."""
        self._changing: list[GroupPart] | None = []
        """The parts whose statements may have another text in the view, without the statements; None: they are too many."""
        self._left_out = PartRanges()
        """The ranges between BEGIN and the end that are left out."""
        self._is_as_logged = False
        self._are_alike = True
        # Replicas assign numbers of their own to what has none (ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS), or are about to: what must be
        # split with GTIDs they refuse without, where enforce_gtid_consistency is ON (1785, tried on 9.7).
        since = _CONSISTENCY_SINCE if settings.gtids == "anonymous" else _GTIDS_SINCE
        self._splits = settings.engines == "keep" and settings.target_version >= since

    def groups(self) -> list[OutGroup]:
        """Translate the group. Raises: Untranslatable, by the survey only where no other rule does, as these know more."""
        made = self._translated()
        if self._stopped is not None:
            raise self._stopped
        return made

    @property
    def passes_alike(self) -> bool:
        """Return whether the group is passed on as it is, and each statement like one of it, in the same place, would be."""
        return self._is_as_logged and self._are_alike

    def _translated(self) -> list[OutGroup]:
        if not self._gtids and self._settings.engines == "keep" and self._keeps_all():
            for part in self._body():
                self._stopped = self._stopped or self._judged(part)
                learn_all(self._engines, (part,))
            return [self._as_it_was()]
        self._leave_out()
        if self._end.kind is PartKind.PREPARED:
            self._check_prepared()
            return [self._as_it_was()]
        runs = self._runs()
        changing = [run for run in runs.all if run.changes]
        as_it_was = not self._left_out and self._end.kind is not PartKind.ROLLBACK
        as_it_was = as_it_was and not any(run.commits for run in changing)
        is_one = not changing or changing[0].size == runs.parts
        if as_it_was and is_one and not self._lacks_begin:
            return [self._as_it_was()]
        return self._made(changing)

    def _keeps_all(self) -> bool:
        """Return whether no part is left out; all are checked then. Raises: Untranslatable."""
        stopped: Untranslatable | None = None
        for part in self._body():
            if self._leaves_out.has(part):
                return False
            try:
                check_changes((part,), self._engines, self._settings)
            except Untranslatable as error:
                stopped = stopped or error
        if stopped is not None:
            raise stopped
        return True

    def _body(self) -> Iterator[GroupPart]:
        """Yield all parts but the GTID event, BEGIN, and the end where it only ends the transaction."""
        for part in self._parts:
            if self._has_end and part.start >= self._end.start:
                return
            if part.start not in self._edges:
                yield part

    def _left(self) -> Iterator[GroupPart]:
        """Return the parts of the body that are kept."""
        return (part for part in self._body() if part.start not in self._left_out)

    def _leave_out(self) -> None:
        """Find the parts of the body that the view leaves out, and learn what the group defines. Raises: Untranslatable."""
        undone = UndoneParts()
        for part in self._body():
            if not self._leaves_out.has(part):
                undone.see(part)
        undone.all = self._end.kind is PartKind.ROLLBACK
        left_of = RolledBackEffects(undone, self._engines, self._group.server_version)
        of_accounts = kept = left = 0
        for part in self._body():
            if self._leaves_out.has(part):
                of_accounts += 1
                self._left_out.add(part.start, part.stop)
                continue
            kept += 1
            if self._settings.engines == "innodb":
                check_numbered_rows(part, self._engines)
            stopped = self._judged(part)
            if left_of.stays(part):
                left += 1
                self._stopped = self._stopped or stopped
            else:
                self._left_out.add(part.start, part.stop)
        if undone.all and kept and not left and not of_accounts:
            raise transaction_stops.nothing_kept()

    def _judged(self, part: GroupPart) -> Untranslatable | None:
        """Return why a statement stops the view if it is kept, by the tables before it; None: it does not."""
        query = part.query
        if part.kind is not PartKind.STATEMENT or query is None:
            self._are_alike = False
            return None
        engines = self._engines
        known = KnownSource(
            lambda name: engines.columns_of(name, query.thread_id),
            engines.programs_of,
            lambda: engines.references,
            lambda name: engines.knows_references_to(name, query.thread_id),
            lambda: bool(engines.bodies),
        )
        try:
            check_conversions(query, known, self._judge)
            variables = dict(variable_of(self._group.body(event)) for event in part.variables)
            state = None if engines.has_temporary else engines.changes
            runs_as = self._judge.check(query, known, variables, makes_numbers=part.makes_numbers, state=state)
            if runs_as != AS_LOGGED:
                self._run_as[part.start] = runs_as
            self._are_alike = self._are_alike and self._judge.was_remembered and _is_plain_text(query)
        except Untranslatable as stopped:
            return stopped
        finally:
            self._note_change(part, query)
        return None

    def _note_change(self, part: GroupPart, query: LoggedQuery) -> None:
        """Note the part if its statement may have another text in the view."""
        may_change = (
            part.start in self._run_as
            or query.kind.verb in _MAY_DEFINE
            or may_sort_groups(query)
            or self._statements.may_change(query)
        )
        if self._changing is not None and may_change:
            self._changing.append(part._replace(query=None))
            if len(self._changing) > _MOST_CHANGING:
                self._changing = None

    def _check_prepared(self) -> None:
        """Check that all effects depend on the end of the prepared XA transaction, and are allowed in it. Raises: Untranslatable."""
        for part in self._left():
            self._check(part)
            if self._commits(part):
                raise transaction_stops.xa_changes_plain_tables(
                    part.query, [], ErrorCode.ER_GTID_UNSAFE_CREATE_DROP_TEMPORARY_TABLE_IN_TRANSACTION
                )
            if self._settings.engines == "innodb" or self._splits:
                kept = changes_without_transactions(part, self._engines)
                if kept:
                    raise transaction_stops.xa_changes_plain_tables(
                        part.query, kept, ErrorCode.ER_GTID_UNSAFE_NON_TRANSACTIONAL_TABLE if self._splits else 0
                    )

    @property
    def _lacks_begin(self) -> bool:
        """True if there are rows outside of BEGIN, as 5.1 wrote them: after a GTID 9.7 waits for ever, or dies (tried)."""
        return self._begin is None and any(part.kind is PartKind.ROWS for part in self._body())

    def _as_it_was(self) -> OutGroup:
        """Return the group, with the texts of definitions that the replica must run."""
        made = Pieces()
        self._is_as_logged = self._changing == [] and not self._left_out
        if self._changing is not None and not self._left_out:
            at = self._head.stop if self._head is not None else self._group.start
            for part in self._changing:
                made.copy(at, part.start)
                made.extend(self._pieces(part._replace(query=query_of(self._group, part.event))))
                at = part.stop
            made.copy(at, self._group.stop)
            return out_group(made.all, self._head)
        if self._begin is not None:
            made.add(copied(self._begin))
        for part in self._left():
            made.extend(self._pieces(part))
        if self._has_end:
            made.add(copied(self._end))
        return out_group(made.all, self._head)

    def _made(self, runs: list[SubTransaction]) -> list[OutGroup]:
        """Return transactions of our own around the runs."""
        anchor = self._begin or next((part for part in self._body() if part.query is not None), next(self._body()))
        if not runs:
            return [empty_group(anchor.event, anchor.query, self._head)]
        if len(runs) > 1 and self._head is not None and self._head.event.type in REAL_GTIDS:
            raise transaction_stops.not_splittable()
        starts, ends = begin(anchor.event, anchor.query), commit(anchor.event, anchor.query)
        made: list[OutGroup] = []
        left = self._left()
        pieces = Pieces()
        for run in runs:
            pieces = Pieces(pieces.held)
            for part in left:
                if part.start < run.start:
                    continue  # savepoints between the runs
                if run.takes(part):
                    pieces.extend(self._pieces(part))
                if part.stop >= run.stop:
                    break
            found: list[Copy | New] = pieces.all
            if not self._stands_alone(run):
                last = run.ends_with
                end = ends._replace(timestamp=last.timestamp, server_id=last.server_id)
                found = [starts, *found, end]
            made.append(out_group(found, self._head if not made else None))
        return made

    def _stands_alone(self, run: SubTransaction) -> bool:
        """Return whether a run is a statement that commits by itself."""
        if run.size != 1 or not run.is_statement:
            return False
        return run.commits or (self._begin is None and not self._lacks_begin)

    def _pieces(self, part: GroupPart) -> list[Copy | New]:
        """Return the part, a definition with the text that the replica must run. Raises: Untranslatable."""
        if part.kind is not PartKind.STATEMENT or part.query is None or part.query.is_load:
            return [copied(part)]
        raw = self._statements.text_of(part.query, self._engines)
        query = part.query if raw == part.query.raw else replace(part.query, raw=raw)
        raw = self._judge.rewritten(query, makes_numbers=part.makes_numbers)
        if raw == query.raw and query.kind.verb in _MAY_DEFINE:
            raw = define(query, self._settings, self._engines, has_gtid=self._gtids)
        head = part.query.head_as(self._run_as.get(part.start, AS_LOGGED))
        if raw == part.query.raw and head == part.query.head:
            return [copied(part)]
        own = part.event.offset
        pieces: list[Copy | New] = [Copy(part.start, own)] if part.start < own else []
        return [*pieces, changed(part.event, head + raw)]

    def _runs(self) -> PartRuns:
        """Return which parts may be in one transaction. Raises: Untranslatable."""
        runs = PartRuns()
        for part in self._left():
            self._check(part)
            if self._commits(part):
                runs.add_alone(part, commits=True)
            elif self._splits and is_plain(part, self._engines):
                runs.add_alone(part)
            else:
                runs.add(part)
        return runs

    def _check(self, part: GroupPart) -> None:
        """Check for what a replica would do differently than the source. Raises: Untranslatable."""
        check_changes([part], self._engines, self._settings)
        self._check_failed(part)
        if self._settings.engines == "innodb":
            check_row_order(part, self._engines)

    def _commits(self, part: GroupPart) -> bool:
        """Return whether a statement cannot follow BEGIN: the CREATE TABLE before the rows of CREATE … SELECT."""
        if self._begin is None or part.kind is not PartKind.STATEMENT or part.query is None or part.query.is_load:
            return False
        if not part.query.kind.may_commit:
            return False
        try:
            tokens = part.query.tokens
        except UnsupportedSyntax:
            return True
        if tokens[1].upper == "TEMPORARY":
            # Where transactions have GTIDs, these are forbidden inside one before 8.0.13: error 1787.
            return self._settings.gtids != "anonymous" and self._gtids and self._settings.target_version < (8, 0)
        starts = any(
            token.upper == "START" and following.upper == "TRANSACTION" for token, following in pairwise(tokens)
        )
        return not (starts and self._settings.target_version >= _CREATE_SELECT_IN_ONE_SINCE)

    def _check_failed(self, part: GroupPart) -> None:
        """Check for a statement that failed half-way in tables that keep its changes at the source alone. Raises: Untranslatable."""
        query = part.query
        if query is None or not query.error or part.kind is not PartKind.STATEMENT:
            return
        try:
            tables = perhaps_written_tables(query)
        except UnsupportedSyntax as error:
            if self._settings.engines == "innodb" and not query.kind.may_define:
                raise transaction_stops.failed_partway(query, (), str(error)) from error
            return
        for name in tables:
            facts = self._engines.facts(name, query.thread_id)
            if facts is None:
                keeps, same_there = True, self._settings.engines == "keep"
            else:
                keeps = facts.keeps_rollbacks is not False
                same_there = facts.temporary or (self._settings.engines == "keep" and bool(facts.engine))
            if keeps and not same_there:
                stop = transaction_stops.failed_partway(query, (name,))
                raise stop if facts is not None else TableUnknown(stop.reason, name)


def _is_plain_text(query: LoggedQuery) -> bool:
    """Return whether the kernel may know the statement by its bytes: a change of rows whose literals count by their classes alone, of
    which no character contains a byte of ASCII."""
    if query.kind.verb not in ROW_VERBS or query.sql_mode & NO_BACKSLASH_ESCAPES:
        return False
    return query.charset is not None and not is_wide(query.charset) and shortens_all(query.text)


def _whole(group: SourceGroup, head: GroupPart | None) -> OutGroup:
    return OutGroup((Copy(group.start, group.stop),), "new" if head is None else "source")
