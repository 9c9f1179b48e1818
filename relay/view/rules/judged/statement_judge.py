"""Judges a statement by the survey: what the target is not known to compute as the source does stops the view by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from protocol.binlog.user_var import UserVarType, decode_user_var
from protocol.errors import ProtocolError
from protocol.sql.byte_text import blank_of
from protocol.sql.edits import TextEdit, edited
from protocol.sql.expressions.construct_names import LARGE_UNSIGNED, ZERO_DATES, accepted_name
from protocol.sql.expressions.constructs import (
    DISTINCT,
    FEED,
    LIMIT,
    NULL,
    TRIGGER_INSERT_NULL,
    TRIGGER_NO_VALUE,
    TRIGGER_UPDATE_NULL,
    UNREAD,
    Classes,
    FiredChange,
    Operand,
    StatementConstructs,
    UsedConstruct,
)
from protocol.sql.expressions.known_differences import known_difference
from protocol.sql.expressions.readers.program_reader import ProgramReader
from protocol.sql.expressions.readers.statement_reader import StatementReader
from protocol.sql.kind import ROW_VERBS
from protocol.sql.lexer import ReadAs, SqlText, UnsupportedSyntax, sql_text
from protocol.sql.server_version import version_numbers
from protocol.sql.sql_mode import STRICT
from protocol.sql.statements.statement import StatementText
from protocol.sql.survey.surveyed import Survey, SurveyKind, Verdict, surveyed
from protocol.sql.survey.value_class import ANY, NUMBERS, TEXTS, ValueClass, class_of_text
from protocol.sql.tables.source_table import TableName
from relay.source_tables.programs import KnownProgram
from relay.view.rules.judged.known_source import KnownSource
from relay.view.rules.judged.moved_keys import (
    EVERY_COLUMN,
    ReadBody,
    are_by_server,
    check_ignored_updates,
    may_leave_out,
    runs_unchecked,
)
from relay.view.rules.statement.logged_query import AS_LOGGED, LoggedQuery, RunsAs
from relay.view.stops import statement_stops
from relay.view.stops.stop_reason import TableWanted, Untranslatable

_SORTS_GROUPS_UNTIL: Final = (8, 0)
"""The version of MySQL from which GROUP BY does not sort."""
_UNUSUAL: Final = frozenset((ValueClass.JSON, ValueClass.GEOMETRY, ValueClass.BIT, ValueClass.BYTES, ValueClass.HEX))
"""What a value of which nothing is known is not taken for."""
_GUESSED: Final = ANY - _UNUSUAL
_OF_BYTES: Final = frozenset((ValueClass.BYTES, ValueClass.HEX))
_ZERO: Final = frozenset((ValueClass.DATE_ZERO,))
_LARGE: Final = frozenset((ValueClass.UNSIGNED,))
_INTEGER: Final = frozenset((ValueClass.INTEGER,))
_TIMES: Final = frozenset((ValueClass.DATE, ValueClass.DATETIME))
_JUDGED: Final = frozenset(
    (
        "INSERT",
        "REPLACE",
        "UPDATE",
        "DELETE",
        "LOAD",
        "WITH",
        "SELECT",
        "CALL",
        "DO",
        "SET",
        "CREATE",
        "VALUES",
        "TABLE",
        "",
    )
)
_OF_OTHER_RULES: Final = frozenset((
    LIMIT, FEED, DISTINCT, "REPLACE", "ON DUPLICATE KEY UPDATE", "multi-table UPDATE", "DISTINCT",
))  # fmt: skip
"""Clauses whose effects other rules judge, or that are unsafe between servers of one version too: the source warns of them (1592)."""
_OF_A_WHOLE: Final = frozenset(("LIKE", "CONCAT()", "IF()", "MAX()", "store INT"))
"""Constructs of each kind: a survey that has them asked for all that a source has."""
_MOST_REMEMBERED: Final = 4096
_MOST_BODIES: Final = 200
_MOST_TOKENS: Final = 1_000_000
"""The most words and signs of an INSERT. One of 2 MB has as many, if each of its short rows has a call."""
_RESULTS: Final = {
    UserVarType.REAL: ValueClass.DOUBLE,
    UserVarType.DECIMAL: ValueClass.DECIMAL,
}


class StatementJudge:
    """Judges the statements of one view, whose replicas are of the version `target`, such as (9, 7). `accept` are the names of
    constructs that are passed on. `foreign_keys`: who executes them at the replicas, as in the configuration.
    """

    def __init__(self, target: tuple[int, int], accept: Iterable[str], foreign_keys: str = "server") -> None:
        self._target = target
        self._is_target_by_server = are_by_server("{}.{}.0".format(*target))
        self._stops_for_keys = foreign_keys == "server"
        self._moves_keys = False
        """Whether servers of the source's and of the target's version execute foreign keys in different ways."""
        self._title = "MySQL {}.{}".format(*target)
        self._accepted = frozenset(accept)
        self._guessed = _GUESSED - _ZERO if ZERO_DATES in self._accepted else _GUESSED
        self._verdicts: dict[tuple[str, tuple[Classes, ...], bool, int], Verdict] = {}
        self._given_up: set[TableName | None] = set()
        self._passed: dict[tuple[object, ...], RunsAs] = {}
        """What was judged, and passed, at `_passed_at`, with all tables that are wanted: how it must run."""
        self._passed_at: object = None
        self.was_remembered = False
        """True if the last statement of `check` passed, and so does each one of its shape."""
        self._source = ""
        self._survey: Survey | None = None

    @property
    def has_survey(self) -> bool:
        """True if a survey judges the statements of the source."""
        return self._survey is not None

    @property
    def is_needed(self) -> bool:
        """True if statements of the source must be judged: by a survey, or for their foreign keys."""
        return self.has_survey or self._moves_keys

    def note_source(self, server_version: str) -> None:
        """Note the version of the source, before any of its statements."""
        self._survey_of(server_version)

    def give_up(self, name: TableName | None) -> Callable[[], None]:
        """Note that the columns of a table, or of all tables (None), cannot be known, until the function that is returned is called.

        Their values are judged by what else is known.
        """
        self._given_up.add(name)
        return self._given_up.clear

    def _survey_of(self, server_version: str) -> Survey | None:
        """Return the survey of this source; None: it has the target's version, or none was made of the two."""
        if server_version != self._source:
            self._source = server_version
            self._verdicts.clear()
            self._passed.clear()
            same = version_numbers(server_version)[:2] == self._target and "mariadb" not in server_version.lower()
            found = None if same else surveyed(server_version, "{}.{}.0".format(*self._target))
            self._survey = found if found is not None and found.constructs else None
            self._moves_keys = are_by_server(server_version) != self._is_target_by_server
        return self._survey

    def check(
        self,
        query: LoggedQuery,
        known: KnownSource,
        variables: Mapping[str, Operand],
        *,
        makes_numbers: bool,
        state: object = None,
    ) -> RunsAs:
        """Check a statement and what it sets off; return how the target must run it, see `_is_lenient` and `runs_unchecked`. `state` is
        replaced where `known` changes; None: it changes with each statement. Raises: Untranslatable.
        """
        self.was_remembered = False
        survey = self._survey_of(query.server_version)
        if query.error or not _is_judged(query) or (survey is None and not self._concerns_keys(query, known)):
            return AS_LOGGED
        key = self._key(query, variables, makes_numbers, state)
        if key is not None and key in self._passed:
            self.was_remembered = True
            return self._passed[key]
        runs_as = self._check(query, survey, known, variables, makes_numbers=makes_numbers)
        if key is not None and not self._given_up:
            if len(self._passed) >= _MOST_REMEMBERED:
                self._passed.clear()
            self._passed[key] = runs_as
            self.was_remembered = True
        return runs_as

    def _key(
        self, query: LoggedQuery, variables: Mapping[str, Operand], makes_numbers: bool, state: object
    ) -> tuple[object, ...] | None:
        """Return what the judgement of a statement depends on; None: it is not remembered."""
        if state is not self._passed_at:
            self._passed_at = state
            self._passed.clear()
        shape = query.shape if state is not None else None
        if shape is None:
            return None
        session = query.sql_mode, query.foreign_key_checks, query.schema_bytes, query.charset
        return shape, session, makes_numbers, frozenset(variables.items())

    def _check(
        self,
        query: LoggedQuery,
        survey: Survey | None,
        known: KnownSource,
        variables: Mapping[str, Operand],
        *,
        makes_numbers: bool,
    ) -> RunsAs:
        try:
            made = self._read(query, known, variables, makes_numbers=makes_numbers)
        except (UnsupportedSyntax, ProtocolError) as error:
            if self._concerns_keys(query) and self._stops_for_keys and known.references().updated_parents:
                raise statement_stops.tables_unknown("ignored_update", query, str(error)) from error
            if UNREAD in self._accepted or survey is None or not _is_whole(survey):
                return AS_LOGGED
            raise statement_stops.expressions_not_read(self._title, query, str(error), "") from error
        try:
            for used in made.used:
                self._judge(query, survey, used, "")
        except Untranslatable as stopped:
            if not stopped.reason.error or survey is None or not self._is_lenient(query, survey, known, made):
                raise
            lenient = True
        else:
            lenient = False
        bodies = self._check_programs(query, survey, known, made)
        return RunsAs(lenient, self._runs_unchecked(query, known, made, bodies))

    def _concerns_keys(self, query: LoggedQuery, known: KnownSource | None = None) -> bool:
        """Return whether it may matter for a statement, or for what it sets off (`known`), who executes foreign keys."""
        if not self._moves_keys or not query.foreign_key_checks:
            return False
        text = query.raw.lower()
        return b"ignore" in text or b"duplicate" in text or (known is not None and known.has_programs())

    def _runs_unchecked(
        self, query: LoggedQuery, known: KnownSource, made: StatementConstructs, bodies: Sequence[ReadBody]
    ) -> bool:
        """Check what a statement and the bodies that it runs change, by who executes foreign keys; return as `runs_unchecked`. Raises:
        Untranslatable."""
        if not self._moves_keys or not query.foreign_key_checks:
            return False
        changes = []
        for one, inside in ((made, ""), *((body.made, body.inside) for body in bodies)):
            for change in one.fired:
                tables = known.base_tables(change.table)
                if tables != [change.table] or known.sets_new_row(change):
                    change = change._replace(assigned=EVERY_COLUMN)
                if self._stops_for_keys:
                    check_ignored_updates(query, change, tables, known, inside)
                changes += [change._replace(table=table) for table in tables]
        try:
            return self._is_target_by_server and runs_unchecked(query, changes, bodies, known)
        except Untranslatable:
            if self._stops_for_keys:
                raise
            return False

    def _is_lenient(self, query: LoggedQuery, survey: Survey, known: KnownSource, made: StatementConstructs) -> bool:
        """Return whether the target gives the source's rows if it runs the statement without strict mode.

        Newer servers refuse in strict mode some values that older ones only warn of, such as 'abc' in `text_column = 5`. What a source
        stored in strict mode fits its columns, so without strict mode the target stores the same where it computes the same. That
        is so where all constructs are the same without strict mode, and where no program runs whose effect might depend on it.
        """
        if query.kind.verb not in ROW_VERBS or not query.sql_mode & STRICT or known.set_off(made):
            return False
        try:
            for used in made.used:
                self._judge(query, survey, used._replace(is_strict=False), "")
        except Untranslatable:
            return False
        return True

    def rewritten(self, query: LoggedQuery, *, makes_numbers: bool) -> bytes:
        """Return the statement with ORDER BY where the source sorts by GROUP BY, which the target does not."""
        if not may_sort_groups(query) or self._survey_of(query.server_version) is None or not self._sorts(query):
            return query.raw
        try:
            made = self._read(query, KnownSource(lambda _: (), lambda _: ()), {}, makes_numbers=makes_numbers)
        except (UnsupportedSyntax, ProtocolError):
            return query.raw
        edits = [
            TextEdit(one.end, one.end, b" ORDER BY " + query.raw[one.start : one.stop])
            for one in made.orders
            if one.is_exact
        ]
        return edited(query.raw, edits) if edits else query.raw

    def _read(
        self, query: LoggedQuery, known: KnownSource, variables: Mapping[str, Operand], *, makes_numbers: bool
    ) -> StatementConstructs:
        read = _read_rows(query) if query.kind.verb in ("INSERT", "REPLACE") else query.read
        reader = StatementReader(query, read.tokens, variables, known)
        reader.folded = dict(read.rows)
        reader.results = self._survey.results if self._survey is not None else None
        return reader.read(makes_numbers=makes_numbers, sorts_groups=self._sorts(query))

    def _sorts(self, query: LoggedQuery) -> bool:
        is_old = version_numbers(query.server_version)[:2] < _SORTS_GROUPS_UNTIL <= self._target
        return is_old and "mariadb" not in query.server_version.lower()

    # ---- verdicts ----

    def judge_one(self, query: LoggedQuery, used: UsedConstruct) -> None:
        """Judge one construct of a statement. Raises: Untranslatable."""
        survey = self._survey_of(query.server_version)
        if survey is not None:
            self._judge(query, survey, used, "")

    def _judge(self, query: LoggedQuery, survey: Survey | None, used: UsedConstruct, inside: str) -> None:
        if survey is None or accepted_name(used.name) in self._accepted:
            return
        guessed = any(len(one) == len(ANY) for one in used.arguments)
        for name in self._accepted & _ASSUMED.keys():
            used = used._replace(arguments=_ASSUMED[name](used.arguments))
        arguments = _with(used.arguments, self._guessed) if guessed else used.arguments
        verdict = self._verdict(survey, used, arguments)
        if _passes(verdict, used):
            return
        if verdict.kind is SurveyKind.UNSURVEYED and (used.name in _OF_OTHER_RULES or not _is_whole(survey)):
            return
        if used.name.startswith("store ") and used.unknown:
            guessed = True
        wanted = None
        if None not in self._given_up:
            wanted = next((name for name in sorted(used.unknown) if name not in self._given_up), None)
        if guessed and wanted is None:
            # Columns of which nothing is known are taken to be used with their like.
            verdict = self._verdict(survey, used, _with(used.arguments, _like(used.arguments)))
            may_pass = verdict.kind is not SurveyKind.DIFFERS or all(len(one) == len(ANY) for one in used.arguments)
            if verdict.kind is SurveyKind.SAME or (may_pass and self._may_be_same(survey, used)):
                return
        stopped = statement_stops.differs_by_survey(
            self._title, query, used.name, verdict, inside, assuming=self._enough(survey, used)
        )
        if guessed and wanted is not None:
            raise TableWanted(stopped.reason, wanted, self.give_up)
        raise stopped

    def _enough(self, survey: Survey, used: UsedConstruct) -> str:
        """Return the name in `accept` by which it is the same but for some values; an empty one if none is enough."""
        for name, without in _ASSUMED.items():
            arguments = without(used.arguments)
            if arguments != used.arguments and _passes(self._verdict(survey, used, arguments), used):
                return name
        return ""

    def _may_be_same(self, survey: Survey, used: UsedConstruct) -> bool:
        """Return whether the target does the same for some value of what is not known."""
        if known_difference(used.name, used.arguments, self._source, self._target) is not None:
            return False
        for guess in _GUESSED & survey.classes:
            arguments = _with(used.arguments, frozenset((guess,)))
            if self._verdict(survey, used, arguments).kind is SurveyKind.SAME:
                return True
        return used.name.startswith("store ")

    def _verdict(self, survey: Survey, used: UsedConstruct, arguments: tuple[Classes, ...]) -> Verdict:
        """Return the verdict on the construct with these arguments instead of its own."""
        key = used.name, arguments, used.is_strict, used.cannot_fail
        found = self._verdicts.get(key)
        if found is None:
            if len(self._verdicts) >= _MOST_REMEMBERED:
                self._verdicts.clear()
            found = known_difference(used.name, arguments, self._source, self._target)
            found = found or survey.verdict(used.name, arguments, used.is_strict, used.cannot_fail)
            self._verdicts[key] = found
        return found

    # ---- triggers and routines ----

    def _check_programs(
        self, query: LoggedQuery, survey: Survey | None, known: KnownSource, made: StatementConstructs
    ) -> list[ReadBody]:
        """Check the bodies that the statement runs, and those that these run; return them. Raises: Untranslatable."""
        read: list[ReadBody] = []
        seen: set[str] = set()
        ahead = [(program, change) for program, change in known.set_off(made)]
        while ahead:
            program, change = ahead.pop()
            if change is not None and program.timing == "BEFORE" and (change.nulls or change.absent):
                self._check_nulls(query, survey, known, program, change)
            if program.title in seen or not program.text:
                continue
            seen.add(program.title)
            inside = f" in {program.title}"
            if len(seen) > _MOST_BODIES:
                raise statement_stops.expressions_not_read(self._title, query, "it runs too many programs", inside)
            body = self._body(query, known, program)
            for used in body.used:
                self._judge(query, survey, used, inside)
            read.append(ReadBody(body, inside, may_leave_out(program.text)))
            ahead += known.set_off(body)
        return read

    def _reader(self, query: LoggedQuery, known: KnownSource, program: KnownProgram) -> ProgramReader:
        text = StatementText(
            program.text.encode("latin-1", "replace"),
            program.schema,
            program.sql_mode,
            query.server_version,
            query.charset,
        )
        reader = ProgramReader(text, known, program.table)
        reader.results = self._survey.results if self._survey is not None else None
        return reader

    def _body(self, query: LoggedQuery, known: KnownSource, program: KnownProgram) -> StatementConstructs:
        try:
            return self._reader(query, known, program).read_body(sorts_groups=self._sorts(query))
        except (UnsupportedSyntax, ProtocolError) as error:
            if UNREAD in self._accepted or self._survey is None or not _is_whole(self._survey):
                return StatementConstructs()
            inside = f" in {program.title}"
            raise statement_stops.expressions_not_read(self._title, query, str(error), inside) from error

    def _check_nulls(
        self, query: LoggedQuery, survey: Survey | None, known: KnownSource, program: KnownProgram, change: FiredChange
    ) -> None:
        """Check whether a BEFORE trigger reads NULL, which older servers replace before it runs. Raises: Untranslatable."""
        try:
            read = self._reader(query, known, program).row_columns
        except (UnsupportedSyntax, ProtocolError):
            return  # its body is judged
        names = []
        if read & change.nulls or (read and "" in change.nulls):
            names.append(TRIGGER_UPDATE_NULL if change.event == "UPDATE" else TRIGGER_INSERT_NULL)
        if read & change.absent:
            names.append(TRIGGER_NO_VALUE)
        unknown = frozenset((change.table,)) if known.columns_of(change.table) is None else frozenset()
        for name in names:
            used = UsedConstruct(name, (), 0, unknown, bool(query.sql_mode & STRICT))
            self._judge(query, survey, used, f" in {program.title}")


def _read_rows(query: LoggedQuery) -> SqlText:
    """Return the words of a statement that may have many rows. Raises: UnsupportedSyntax."""
    blank = blank_of(query.charset)
    return sql_text(
        query.text, ReadAs(query.server_version, query.sql_mode, folds_rows=True, blank=blank, most=_MOST_TOKENS)
    )


def may_sort_groups(query: LoggedQuery) -> bool:
    """Return whether the statement may have GROUP BY."""
    return b"group" in query.raw.lower()


def _with(arguments: tuple[Classes, ...], guess: Classes) -> tuple[Classes, ...]:
    """Return the arguments with a guess for those of which nothing is known."""
    return tuple(guess if len(one) == len(ANY) else one for one in arguments)


def _without_zeros(arguments: tuple[Classes, ...]) -> tuple[Classes, ...]:
    """Return the arguments without dates with zeros; what is not known at all, and what is nothing else, stays."""
    return tuple(one if len(one) == len(ANY) else one - _ZERO or one for one in arguments)


def _without_large(arguments: tuple[Classes, ...]) -> tuple[Classes, ...]:
    """Return the arguments without numbers from 2^63 on; what is not known at all stays."""
    return tuple(
        one if len(one) == len(ANY) or ValueClass.UNSIGNED not in one else one - _LARGE | _INTEGER for one in arguments
    )


_ASSUMED: Final = {ZERO_DATES: _without_zeros, LARGE_UNSIGNED: _without_large}
"""What a name in `accept` says of values: the arguments without those that do not occur."""


def _passes(verdict: Verdict, used: UsedConstruct) -> bool:
    """Return whether a construct with this verdict is passed on."""
    return verdict.kind is SurveyKind.SAME or verdict.only_type or (verdict.only_form and used.only_number)


def _like(arguments: tuple[Classes, ...]) -> Classes:
    """Return what is usually beside the arguments that are known: numbers beside a number, texts and times beside a
    text, bytes and texts beside bytes.
    """
    known: Classes = frozenset().union(*(one for one in arguments if len(one) < len(ANY))) - {ValueClass.NULL}
    if known and known <= NUMBERS:
        return NUMBERS
    if known and known <= _OF_BYTES:
        return _OF_BYTES | TEXTS
    return TEXTS | _TIMES if known & (TEXTS | {ValueClass.TEXT_DATE}) else _GUESSED


def _is_whole(survey: Survey) -> bool:
    """Return whether the survey asked for all constructs: what it does not have is not known then to be the same."""
    return survey.constructs >= _OF_A_WHOLE


def _is_judged(query: LoggedQuery) -> bool:
    """Return whether the statement reads or changes rows; of definitions, one with a query."""
    kind = query.kind
    if kind.verb == "CREATE":
        return kind.thing == "TABLE" and b"select" in query.raw.lower()
    return kind.verb in _JUDGED and kind.thing != "PASSWORD"


def variable_of(body: bytes) -> tuple[str, Operand]:
    """Return the name in lower case and the value of a User_var event. Raises: ProtocolError."""
    made = decode_user_var(body)
    name = made.name.decode("utf-8", "backslashreplace").lower()
    if made.type is None:
        return name, NULL
    if made.type is UserVarType.STRING and isinstance(made.value, bytes):
        return name, Operand(frozenset((class_of_text(made.value.decode("latin-1")),)), is_literal=True)
    if made.type is UserVarType.INT and isinstance(made.value, int):
        kind = ValueClass.NEGATIVE if made.value < 0 else ValueClass.INTEGER
        return name, Operand(frozenset((ValueClass.UNSIGNED if made.value >> 63 > 0 else kind,)), is_literal=True)
    return name, Operand(frozenset((_RESULTS.get(made.type, ValueClass.DECIMAL),)), is_literal=True)
