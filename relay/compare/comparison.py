"""A whole comparison: definitions and programs, then table after table, then the numbers that tables give next."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from protocol.sql.tables.source_table import TableName
from relay.compare.compare_state import CompareState
from relay.compare.definitions.definition_facts import Alike, Facts, ObjectName, changed_facts, name_of, table_facts
from relay.compare.definitions.definition_repair import DefinitionRepair
from relay.compare.definitions.program_facts import PROGRAMS, program_facts
from relay.compare.rows.differences import Difference, Differences, TableOutcome, What
from relay.compare.rows.key_ranges import Key
from relay.compare.rows.keyless_table import KeylessTable
from relay.compare.rows.load_limits import LoadBrake, LoadLimits
from relay.compare.rows.repair_script import RepairScript
from relay.compare.rows.settling import SettlingRounds
from relay.compare.rows.table_shape import ComparedTables, TableShape, compared_schemas, next_numbers, table_shapes
from relay.compare.rows.table_side import table_sides
from relay.compare.rows.table_walk import Compared, SummedRange, TableWalk
from relay.compare.servers.compared_servers import BothServers

_PARTS: Final = ("column", "key", "foreign key", "partition")
AUTO_INCREMENT: Final = "auto_increment"
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What is compared, and how. `ignored` are kinds and facts, such as auto_increment, definer, comment."""

    wanted: ComparedTables = field(default_factory=ComparedTables)
    ignored: frozenset[str] = frozenset()
    limits: LoadLimits = field(default_factory=LoadLimits)
    most_differences: int = 10_000


class ServerComparison:
    """The comparison of two servers."""

    def __init__(
        self, servers: BothServers, request: Request, findings: Differences, state: CompareState, script: RepairScript
    ) -> None:
        self._servers, self._request = servers, request
        self._findings, self._state, self._script = findings, state, script
        self._alike = Alike(servers.any_engine, servers.source.is_mariadb == servers.target.is_mariadb)
        self._rounds = SettlingRounds(servers.source.end, servers.place)
        self._repair = DefinitionRepair(servers.source)
        self._brake = LoadBrake(request.limits, servers.target)
        self._shapes: tuple[dict[TableName, TableShape], dict[TableName, TableShape]] = ({}, {})
        self.rows = 0

    def find_tables(self) -> int:
        """Learn the tables of both servers; return how many bytes those of the source have. Raises: CompareStop."""
        self._shapes = (self._read_shapes(source=True), self._read_shapes(source=False))
        return sum(shape.size_bytes for shape in self._shapes[0].values())

    def run(self, progress: Progress) -> None:
        """Compare everything. Raises: CompareStop."""
        began = time.monotonic()
        if not self._alike.one_product:
            self._findings.note(
                "Texts of views and of expressions are not compared between MariaDB and MySQL, which write them otherwise."
            )
        if not self._state.definitions_done:
            self._compare_definitions()
            self._state.definitions_done = True
            self._save()
        tables = [name for name in self._shapes[0] if name in self._shapes[1]]
        for name in sorted(tables):
            self._compare_table(name, progress)
        if AUTO_INCREMENT not in self._request.ignored:
            self._compare_next_numbers(tables)
        self._findings.summary(len(tables), self.rows, time.monotonic() - began, str(self._servers.source.end()))

    # --- definitions -------------------------------------------------------------------------------------------------

    def _read_shapes(self, *, source: bool) -> dict[TableName, TableShape]:
        server = self._servers.source if source else self._servers.target
        return table_shapes(server, compared_schemas(server), self._request.wanted)

    def _facts(self, *, source: bool) -> dict[ObjectName, Facts]:
        server = self._servers.source if source else self._servers.target
        shapes = self._read_shapes(source=source)
        wanted = self._request.wanted
        return table_facts(server, shapes, wanted) | program_facts(server, compared_schemas(server), wanted)

    def _compare_definitions(self) -> None:
        ours, theirs = self._facts(source=True), self._facts(source=False)
        names = [name for name in sorted({*ours, *theirs}) if self._differ(ours.get(name), theirs.get(name))]
        if not names:
            return

        def read(source: bool) -> Callable[[Sequence[ObjectName]], Sequence[_SameFacts]]:
            return lambda some: [
                _SameFacts(facts.get(one), self._alike, source)
                for facts in (self._facts(source=source),)
                for one in some
            ]

        settled = self._rounds.settle(names, read(True), read(False))
        for name, (one, other) in settled.different.items():
            self._found_definition(name, one.facts, other.facts, {*ours, *theirs} - ({*ours} & {*theirs}))
        for kind, own in settled.unsettled:
            self._findings.found(Difference(kind, own, "unsettled"))

    def _differ(self, one: Facts | None, other: Facts | None) -> bool:
        return (one is None) != (other is None) or bool(changed_facts(one, other, self._alike))

    def _found_definition(
        self, name: ObjectName, one: Facts | None, other: Facts | None, on_one_side: set[ObjectName]
    ) -> None:
        kind, own = name
        table = self._table_of(name)
        if kind in self._request.ignored or (kind in _PARTS and ("table", name_of(table)) in on_one_side):
            return
        what: What = "missing" if other is None else "extra" if one is None else "different"
        changed = changed_facts(one, other, self._alike)
        values = {fact: pair for fact, pair in changed.items() if fact not in self._request.ignored}
        if what == "different" and not values:
            return
        self._findings.found(Difference(kind, own, what, values=values))
        for statement in self._repair.statements(name, table, one, other) if self._script.is_wanted else ():
            self._script.add(statement)

    def _table_of(self, name: ObjectName) -> TableName:
        """Return the table that a part is of; of a table or a program its own name."""
        kind, own = name
        if kind in PROGRAMS or kind == "table":
            schema = next((one for one in self._schemas() if own.startswith(f"{one}.")), own.partition(".")[0])
            return schema, own[len(schema) + 1 :]
        known = [key for shapes in self._shapes for key in shapes if own.startswith(f"{name_of(key)}.")]
        return max(known, key=lambda key: len(name_of(key)), default=("", own))

    def _schemas(self) -> list[str]:
        servers = (self._servers.source, self._servers.target)
        found = {name for server in servers for name in compared_schemas(server)}
        return sorted(found, key=len, reverse=True)

    # --- rows --------------------------------------------------------------------------------------------------------

    def _compare_table(self, name: TableName, progress: Progress) -> None:
        shape = self._shapes[0][name]
        sides = table_sides(shape, self._shapes[1][name])
        state = self._state.of(name_of(name))
        outcome = state.outcome or TableOutcome(name_of(name))
        state.outcome = outcome
        if state.done:
            self.rows += outcome.rows
            progress(shape.size_bytes)
            return
        servers = self._servers
        use = Compared(
            *(servers.source, servers.reader, servers.target, servers.place, self._rounds, self._brake),
            *(self._findings, self._script, self._request.most_differences),
        )
        told = 0

        def done(after: Key | None, chunk: SummedRange) -> None:
            nonlocal told
            state.after = after
            size = min(shape.size_bytes - told, chunk.rows * shape.size_bytes // max(shape.rows, 1))
            told += size
            progress(size)
            if self._state.is_due:
                self._save()

        if sides[0].key:
            TableWalk(sides, use, outcome).run(state.after, done)
        else:
            KeylessTable(sides, use, outcome).run()
        progress(shape.size_bytes - told)
        state.done, state.after = True, None
        self.rows += outcome.rows
        self._findings.table_done(outcome, str(servers.source.end()))
        self._save()

    def save(self) -> None:
        """Keep how far it is, for the next run. Raises: OSError."""
        self._save()

    def _save(self) -> None:
        self._script.flush()
        self._state.different, self._state.unknown = self._findings.different, self._findings.unknown
        self._state.write()

    # --- numbers -----------------------------------------------------------------------------------------------------

    def _compare_next_numbers(self, tables: Sequence[TableName]) -> None:
        ours, theirs = self._next_numbers(source=True), self._next_numbers(source=False)
        names = [name for name in tables if ours.get(name) != theirs.get(name)]
        if not names:
            return
        settled = self._rounds.settle(
            names,
            lambda some: [numbers.get(one) for numbers in (self._next_numbers(source=True),) for one in some],
            lambda some: [numbers.get(one) for numbers in (self._next_numbers(source=False),) for one in some],
        )
        for name, (one, other) in settled.different.items():
            self._findings.found(
                Difference(AUTO_INCREMENT, name_of(name), "different", values={"AUTO_INCREMENT": (one, other)})
            )
            if one is not None:
                self._script.add(self._repair.auto_increment(self._shapes[1][name], one))
        for name in settled.unsettled:
            self._findings.found(Difference(AUTO_INCREMENT, name_of(name), "unsettled"))

    def _next_numbers(self, *, source: bool) -> dict[TableName, int]:
        server = self._servers.source if source else self._servers.target
        return next_numbers(server, sorted({key[0] for key in self._shapes[0]}), self._request.wanted)


class _SameFacts:
    """Facts of one object: two are equal if they mean the same."""

    def __init__(self, facts: Facts | None, alike: Alike, of_source: bool) -> None:
        self.facts, self._alike, self._of_source = facts, alike, of_source

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _SameFacts) or (self.facts is None) != (other.facts is None):
            return False
        one, two = (self.facts, other.facts) if self._of_source else (other.facts, self.facts)
        return not changed_facts(one, two, self._alike)

    __hash__ = None  # type: ignore[assignment]
