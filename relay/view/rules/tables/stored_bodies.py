"""Triggers, functions and procedures defined in the archive: the changes inside them when a statement runs."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final, NamedTuple

from protocol.sql.tables.source_table import TableName
from relay.source_tables.names import in_lower_case
from relay.source_tables.programs import FIRES, FUNCTION, VIEW, BodyChange, KnownProgram, RoutineBody

_ON_DUPLICATE: Final = frozenset(("INSERT", "UPDATE", ""))


class StoredBody(NamedTuple):
    """A body; `told` is its name for people, such as `the trigger d.tr`."""

    told: str
    body: RoutineBody


class InnerChange(NamedTuple):
    """A change that is made inside a body."""

    change: BodyChange
    inside: StoredBody


class BodiesFound(NamedTuple):
    """`tables`, in lower case, have triggers among those found. `functions`: functions are among them."""

    tables: tuple[TableName, ...]
    functions: bool


class StoredBodies:
    """The bodies, by names without regard to case. `tables_of` returns the tables behind names that may be views'."""

    def __init__(
        self,
        programs: Iterable[KnownProgram],
        tables_of: Callable[[Iterable[TableName]], Iterable[TableName]] = tuple,
    ) -> None:
        self._tables_of = tables_of
        self._all: list[StoredBody] = []
        self._by_table: dict[TableName, list[tuple[str, StoredBody]]] = {}
        self._called: dict[TableName, list[StoredBody]] = {}
        self._told_functions: list[str] = []
        functions = set()
        for program in programs:
            if program.name[0] == VIEW:
                continue
            stored = StoredBody(program.title, program.body)
            self._all.append(stored)
            of_name = in_lower_case(program.set_off_with)
            if program.table is not None:
                self._by_table.setdefault(of_name, []).append((program.event, stored))
                continue
            self._called.setdefault(of_name, []).append(stored)
            if program.name[0] == FUNCTION:
                self._told_functions.append(stored.told)
                functions.add(of_name[1])
        self.functions = frozenset(functions)
        """The functions' names without schemas, in lower case."""
        self.any_on_update = any(event in FIRES["UPDATE"] for some in self._by_table.values() for event, _ in some)
        """True if UPDATE of some table fires a trigger."""

    def __bool__(self) -> bool:
        return bool(self._all)

    def has_update_trigger(self, table: TableName) -> bool:
        """Return whether UPDATE of the table fires one."""
        return any(event in FIRES["UPDATE"] for event, _body in self._by_table.get(in_lower_case(table), ()))

    def leading_to(self, wanted: Callable[[BodyChange], bool]) -> "BodiesFound":
        """Return the triggers and functions in which, or inside bodies that they run, such a change is made."""
        open_ends = [one.told for one in self._all if any(map(wanted, one.body.changes))]
        found: set[str] = set()
        while open_ends:
            told = open_ends.pop()
            if told not in found:
                found.add(told)
                open_ends += self._set_off_by.get(told, ())
        tables = (table for table, bodies in self._by_table.items() if any(one.told in found for _event, one in bodies))
        return BodiesFound(tuple(tables), any(told in found for told in self._told_functions))

    @cached_property
    def _set_off_by(self) -> dict[str, list[str]]:
        """Return for each body those that run it directly."""
        made: dict[str, list[str]] = {}
        for one in self._all:
            for inside in self._inside(one.body.changes, one.body.calls):
                made.setdefault(inside.told, []).append(one.told)
        return made

    def reached(self, changes: Iterable[BodyChange], calls: Iterable[TableName]) -> list[InnerChange]:
        """Return all changes inside bodies that these changes and calls run, to any depth."""
        found: list[InnerChange] = []
        seen: set[str] = set()
        open_ends = self._inside(changes, calls)
        while open_ends:
            one = open_ends.pop()
            if one.told in seen:
                continue
            seen.add(one.told)
            found += (InnerChange(change, one) for change in one.body.changes)
            open_ends += self._inside(one.body.changes, one.body.calls)
        return found

    def _inside(self, changes: Iterable[BodyChange], calls: Iterable[TableName]) -> list[StoredBody]:
        found = [body for name in calls for body in self._called.get(in_lower_case(name), ())]
        for change in changes:
            events = _ON_DUPLICATE if change.on_duplicate else FIRES[change.verb]
            for table in self._tables_of(change.tables):
                found += (body for event, body in self._by_table.get(in_lower_case(table), ()) if event in events)
        return found
