"""The source's tables at successive places of its binlogs, as the plans of a view's write sets need them.

The known tables are a function of the lines of one file and of the statements that the view itself translates, so they are the same
each time that the view is built: up to a place, they are what the relay had recorded when the view was begun; after it, they follow
from the statements that define something, and from later records of tables that were not known, each from a place that its line names.

Lines about binlogs that the archive has purged may be left out: then the first line, `state`, says what was known at a place, as
`SourceTables.state` returns it, and nothing is known before that place.
"""

import bisect
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from protocol.binlog.table_map import decode_table_map
from protocol.dependencies.write_set_codes import MOST_TOLD_TABLES, PLAN_TABLE
from protocol.errors import ProtocolError
from protocol.position import binlog_number
from protocol.sql.engines import takes_foreign_keys
from protocol.sql.tables.source_table import ForeignKey, Table, TableName
from relay.schema_history.logged_definition import LoggedDefinition, definition_of
from relay.schema_history.schema_facts import Place
from relay.schema_history.schema_record import Line, RecordedSchema, line, parse_lines, table_line, table_of_line
from relay.source_tables.applied_definition import note_table
from relay.source_tables.kept_book import KeptTablesUnreadable
from relay.source_tables.known_table import KnownTable
from relay.source_tables.names import in_lower_case
from relay.source_tables.table_book import SourceTables
from relay.source_tables.table_facts import table_facts
from relay.view.dependencies.definitions_passed import definitions_in
from relay.view.dependencies.key_plans import TablePlan, plan_of, serial_plan
from relay.view.rules.group import SourceGroup
from relay.view.translate.passed_tables import CountedTable

TAKEN: Final = "taken"
"""The kind of the line after those that were recorded when the view was begun: up to its place there are no others."""
STATE: Final = "state"
"""The kind of the first line of a file that does not begin where the view did: `SourceTables.state` at its place."""
NEVER: Final = 1 << 62
"""An offset that no file has."""
_LEAST_GONE: Final = 256
"""The least lines that are left out at once, or half of those that replace them if more: to write the others takes time."""
_NOT_KNOWN: Final = frozenset(("table_unknown", "definition_differs", "foreign_keys_unknown"))


class PlannedTables:
    """Tables for `plan` at the place of the last `move_to`; `define` adds statements that are passed. Not thread-safe.

    `unsaved` contains lines that are not in the file yet: the caller writes them before anything that is built after them is stored.
    `counted` lists the tables by the number under which a plan is counted; the last number counts all further ones.
    """

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self.unsaved: list[str] = []
        self.counted: list[CountedTable] = []
        self._numbers: dict[str, int] = {}
        self.lacks_some = False
        """True if a plan was requested that could not be made because a definition is missing."""
        every = list(lines)
        taken = next((number for number, one in enumerate(every) if one.kind == TAKEN), 0)
        self._kept = _state_of(every[:taken])
        """The state at `_end`, if nothing is known of what was before."""
        self._recorded = RecordedSchema(every[:taken] if self._kept is None else ())
        self._begun_with = taken + 1
        """The number of lines that say what was known at `_end`."""
        self._end: Place = every[taken].place if every else (-1, 0)
        self._changes = [(place, key) for place, key in self._recorded.changes() if place <= self._end]
        self._later: list[tuple[Place, LoggedDefinition | Table]] = []
        self._defined = [one for one in every[taken + 1 :] if one.kind == "definition"]
        for one in every[taken + 1 :]:
            later = _later(one)
            if later is not None:
                self._later.append((one.place, later))
        self._begin()

    def _begin(self) -> None:
        self._place: Place = (-1, 0)
        self._is_at_kept = False
        self._next_change = self._next_later = 0
        self._state: SourceTables | None = None
        self._tables: dict[TableName, Table] = {}
        self._children: dict[TableName, set[TableName]] = {}
        self._unsure: set[TableName] = set()
        """The tables whose foreign keys are not known."""

    # --- what is known ---------------------------------------------------------------------------------------------------

    def table(self, name: TableName) -> Table | None:
        """Implement `KnownTables.table`."""
        return self._tables.get(name)

    @property
    def knows_all_references(self) -> bool:
        """Implement `KnownTables.knows_all_references`."""
        return not self._unsure

    def children(self, name: TableName) -> Iterator[tuple[Table, ForeignKey]]:
        """Implement `KnownTables.children`."""
        parent = in_lower_case(name)
        for key in sorted(self._children.get(parent, ())):
            table = self._tables[key]
            for _name, foreign in table.foreign_keys or ():
                if in_lower_case((foreign.schema, foreign.table)) == parent:
                    yield table, foreign

    def move_to(self, place: Place) -> int:
        """Move to a transaction at this place; return the offset in the file up to which the tables stay the same; NEVER: all."""
        if place < self._place:
            self._begin()
        self._place = place
        changes, later = self._changes, self._later
        if self._kept is not None and not self._is_at_kept:
            if place < self._end:
                return self._end[1] if self._end[0] == place[0] else NEVER
            self._is_at_kept = True
            self._state = SourceTables()
            with suppress(KeptTablesUnreadable):  # then none of these tables is known: `adopt` learns them again
                self._state.restore(self._kept)
            for key, table in self._state.tables():
                self._set(key, table)
        while self._next_change < len(changes) and changes[self._next_change][0] <= place:
            at, key = changes[self._next_change]
            self._set(key, self._recorded.at(key, at))
            self._next_change += 1
        while self._next_later < len(later) and later[self._next_later][0] <= place:
            self._apply(later[self._next_later][1])
            self._next_later += 1
        following = [
            places[number][0]
            for places, number in ((changes, self._next_change), (later, self._next_later))
            if number < len(places)
        ]
        return min((offset for file, offset in following if file == place[0]), default=NEVER)

    def _known_state(self) -> SourceTables:
        """Return the tables at the place, which is not before the end of what was recorded."""
        if self._state is None:
            self._state = SourceTables()
            for schema, default in self._recorded.charsets().items():
                self._state.note_charset(schema, default)
            for key, table in self._tables.items():
                self._state.put(key, KnownTable(table), is_new=True)
            self._state.note_temporary(self._recorded.temporary())
        return self._state

    def _apply(self, one: LoggedDefinition | Table) -> None:
        state = self._known_state()
        if isinstance(one, Table):
            note_table(state, one)
        else:
            one.apply_to(state)
        for key in state.take_touched():
            self._set(key, state.exact(key))

    def _set(self, key: TableName, table: Table | None) -> None:
        before = self._tables.pop(key, None)
        self._unsure.discard(key)
        if table is not None and table.foreign_keys is None and takes_foreign_keys(table.engine):
            self._unsure.add(key)
        for parent in before.parents if before is not None else ():
            self._children[parent].discard(key)
        if table is not None:
            self._tables[key] = table
            for parent in table.parents:
                self._children.setdefault(parent, set()).add(key)

    # --- what is passed --------------------------------------------------------------------------------------------------

    def pass_group(self, group: SourceGroup) -> bool:
        """Implement `PassedTables.pass_group`."""
        number = binlog_number(group.file)
        defines = False
        for offset, definition in definitions_in(group):
            self.define(group.file, (number, offset), definition)
            defines = True
        return defines

    def define(self, file: str, place: Place, definition: LoggedDefinition) -> None:
        """Note that a statement at this place defines something; a definition that is known already is ignored."""
        if place <= self._end or (self._later and place <= self._later[-1][0]):
            return
        names = sorted(definition.names) if definition.names is not None else None
        told = {"sql": definition.facts} if definition.facts is not None else {}
        text = line("definition", file, place[1], names=names, **told)
        self.unsaved.append(text)
        self._defined += parse_lines(text.encode())
        self._later.append((place, definition))

    def adopt(self, file: str, place: Place, recorded: Sequence[Line]) -> None:
        """Take, at a place after which nothing is built, the definitions `recorded` now of tables that are not known."""
        self.lacks_some = False
        end = max((one.place for one in recorded), default=(-1, 0))
        if end < self._end or place <= self._end or (self._later and place <= self._later[-1][0]):
            return
        # After the last record the view has looked for definitions by itself.
        own = [one for one in self._defined if one.place > end]
        schema = RecordedSchema([*recorded, *own])
        self.move_to(place)
        for key in schema.names():
            found = schema.at(key, place)
            if found is not None and _is_more(found, self._tables.get(key)):
                self.unsaved.append(table_line(table_facts(found), file, place[1]))
                self._later.append((place, found))
        self.move_to(place)

    # --- lines before the oldest place that a view is built from --------------------------------------------------------

    def is_long_before(self, place: Place) -> bool:
        """Return whether many lines concern only what is before a place."""
        gone = bisect.bisect_right(self._later, place, key=lambda one: one[0])
        return place > self._end and gone >= max(_LEAST_GONE, self._begun_with // 2)

    def lines_at(self, file: str, place: Place) -> list[str]:
        """Return lines that say what is known at this place of `file`, and nothing of what is before; later lines may follow. The place
        is after the records that the view was begun with."""
        self.move_to(place)
        kept = self._known_state().state().decode()
        return [line(STATE, file, place[1], tables=kept), line(TAKEN, file, place[1])]

    # --- plans -----------------------------------------------------------------------------------------------------------

    def plan(self, table_map: bytes, id_size: int) -> "array[int]":
        """Return a plan for `WriteSets.add_plan`. `table_map` is the event's body, whose table id has `id_size` bytes."""
        name = ("", "")
        try:
            table = decode_table_map(table_map, id_size)
            name = (table.schema_bytes.decode(), table.table_bytes.decode())
            columns = table.columns
            types = bytes(column.real_type for column in columns)
            plan = plan_of(name, types, [column.arguments for column in columns], self)
        except (ProtocolError, UnicodeDecodeError):
            plan = serial_plan("table_unknown")
        self.lacks_some = self.lacks_some or plan.why_serial in _NOT_KNOWN
        return self._counted(".".join(name), plan)

    def _counted(self, name: str, plan: TablePlan) -> "array[int]":
        number = self._numbers.get(name)
        if number is None and len(self.counted) < MOST_TOLD_TABLES:
            number = self._numbers[name] = len(self.counted)
            self.counted.append(CountedTable(name, plan.why_serial))
        elif number is not None and plan.why_serial:
            self.counted[number] = CountedTable(name, plan.why_serial)
        plan.numbers[PLAN_TABLE] = MOST_TOLD_TABLES if number is None else number
        return plan.numbers


def taken_lines(recorded: list[Line], file: str, place: Place) -> list[str]:
    """Return the lines for a view that begins at this place of `file`: the records, if they go up to there at least."""
    end = max(recorded, key=lambda one: one.place, default=None)
    if end is None or end.place < place:
        return [line(TAKEN, file, place[1])]
    return [*(one.text for one in recorded), line(TAKEN, str(end.facts["file"]), end.place[1])]


def shortened(lines: Sequence[Line], file: str, place: Place) -> list[str]:
    """Return lines that say the same of this place of `file` and all after it; it is after the records that the view was begun with."""
    return [*PlannedTables(lines).lines_at(file, place), *(one.text for one in lines if one.place > place)]


def _state_of(lines: Sequence[Line]) -> bytes | None:
    """Return what the lines say of one place; None: they are records."""
    return str(lines[0].facts.get("tables", "?")).encode() if lines and lines[0].kind == STATE else None


def _later(one: Line) -> LoggedDefinition | Table | None:
    try:
        if one.kind == "definition":
            return definition_of(one.facts)
        return table_of_line(one) if one.kind == "table" else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return LoggedDefinition(None) if one.kind == "definition" else None


def _is_more(found: Table, known: Table | None) -> bool:
    """Return whether the known table is without something that a plan needs."""
    if known is None:
        return True
    lacks_keys = known.foreign_keys is None or any(key.prefixes is None for _name, key in known.keys)
    return lacks_keys and found != known
