"""The keys of a table as the write sets read them: the places of their values in a row, their comparison, and the rows they name."""

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from protocol.dependencies import write_set_codes as codes
from protocol.sql.engines import names_of_engines, takes_foreign_keys
from protocol.sql.tables.source_table import Column, ForeignKey, Key, Table, TableName
from relay.schema_history.table_agreement import columns_fit, type_parts
from relay.view.dependencies.text_comparison import same_collation, text_form

_RAW: Final = frozenset(
    (
        "tinyint",
        "smallint",
        "mediumint",
        "int",
        "bigint",
        "bit",
        "year",
        "date",
        "time",
        "datetime",
        "timestamp",
        "enum",
        "set",
    )
)
_REAL: Final = frozenset(("float", "double"))
_BYTES: Final = frozenset(("binary", "varbinary", "blob"))
_TEXTS: Final = frozenset(("char", "varchar", "text"))
_TWO_FORMATS: Final = frozenset(("time", "datetime", "timestamp"))
"""The types whose columns from before MySQL 5.6 have other bytes."""
_CASCADES: Final = frozenset(("CASCADE", "SET NULL", "SET DEFAULT"))
_DEFAULT_ENGINE: Final = ""
_APART: Final = {_DEFAULT_ENGINE} | names_of_engines(lambda engine: engine.only_keys_connect_rows)
_ASCENDING: Final = "FTS_DOC_ID"
"""The column name for which InnoDB takes rows of a table with a FULLTEXT key in ascending order only."""
_NO_PREFIX: Final = 0


class KnownTables(Protocol):
    """The source's tables at one place of its binlogs."""

    def table(self, name: TableName) -> Table | None:
        """Return the table; None: it is not known."""

    @property
    def knows_all_references(self) -> bool:
        """True if the foreign keys of all known tables are known: otherwise another table may refer to any table."""

    def children(self, name: TableName) -> Iterable[tuple[Table, ForeignKey]]:
        """Return the foreign keys of all known tables that refer to this one, whether it is known or not."""


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table's plan: `numbers` are for `WriteSets.add_plan`, counted under 0; `why_serial` names the reason why no transaction may run
    in parallel with one that changes the table; "": one may."""

    numbers: "array[int]"
    why_serial: str = ""


def plan_of(
    name: TableName, types: bytes, arguments: Sequence[tuple[int, int]] | None, known: KnownTables
) -> TablePlan:
    """Return the plan of a table whose Table_map has these types. Uncertain facts make rows wait for more, never for less."""
    table = known.table(name)
    if table is None:
        return serial_plan("table_unknown")
    if len(table.columns) != len(types) or not columns_fit(table.columns, types, arguments):
        return serial_plan("definition_differs")
    if table.engine.lower() not in _APART:
        return serial_plan("engine")
    if any(column.name.upper() == _ASCENDING for column in table.columns):
        return serial_plan("rows_in_order")
    if not _is_certain(table, known, set()):
        return serial_plan("foreign_keys_unknown")
    plan = _Plan(table, known.knows_all_references)
    for _name, key in table.keys:
        if key.unique or _name == "PRIMARY":
            plan.add_unique(key)
    for _name, foreign in table.foreign_keys or ():
        parent = known.table((foreign.schema, foreign.table))
        assert parent is not None
        plan.add_foreign(foreign, parent)
    for child, foreign in known.children(name):
        plan.add_referenced(foreign, child)
    if len(plan.keys) > codes.MOST_TABLE_KEYS:
        return serial_plan("too_many_keys")
    return TablePlan(plan.numbers())


def serial_plan(why: str) -> TablePlan:
    """Return the plan of a table that no transaction may run in parallel with."""
    return TablePlan(array("q", [codes.PLAN_SERIAL, 0, 0, 0]), why)


def _is_certain(table: Table, known: KnownTables, seen: set[TableName]) -> bool:
    """Return whether all its foreign keys are known, and those of all tables that it depends on: a table whose foreign keys are unknown
    may lose rows without a word in the binlog, and this one the rows that refer to them."""
    key = (table.schema, table.name)
    if key in seen:
        return True
    seen.add(key)
    if not takes_foreign_keys(table.engine):
        return True
    if table.foreign_keys is None:
        return False
    for _name, foreign in table.foreign_keys:
        parent = known.table((foreign.schema, foreign.table))
        if (
            parent is None
            or len(_referenced(foreign, parent)) != len(foreign.columns)
            or not _is_certain(parent, known, seen)
        ):
            return False
    return True


def _referenced(foreign: ForeignKey, parent: Table) -> tuple[str, ...]:
    return foreign.referenced or parent.primary_key


@dataclass(slots=True)
class _PlannedKey:
    """A key of the plan. `parts` are (column, form, prefix)."""

    number: int
    class_number: int
    flags: int
    parts: tuple[tuple[int, int, int], ...]


@dataclass(slots=True)
class _Plan:
    """A plan being built. `knows_references`: all foreign keys to the table are known; if not, each key may have one that cascades."""

    table: Table
    knows_references: bool
    flags: int = 0
    keys: list[_PlannedKey] = field(default_factory=list)

    def add_unique(self, key: Key) -> None:
        """Add a unique key of the table."""
        flags = codes.KEY_NAMES_ROW
        if not self.knows_references:
            flags |= codes.KEY_CASCADES_UPDATE
            self.flags |= codes.PLAN_CASCADES_DELETE
        if key.parts is None or key.has_expression:
            # Its values cannot be read: all rows of the key count as one.
            self._add(_name_of(self.table, key.columns, ()), flags, [])
            return
        parts = sorted((name.lower(), prefix or 0) for name, prefix in key.parts)
        planned = [(self._place(name), self._form(name), prefix) for name, prefix in parts]
        number = _name_of(self.table, (name for name, _prefix in parts), (prefix for _name, prefix in parts))
        self._add(number, flags, planned)

    def add_foreign(self, foreign: ForeignKey, parent: Table) -> None:
        """Add a foreign key of the table: its values name rows of the parent."""
        self._add_shared(foreign, parent, self.table, foreign.columns, codes.KEY_READS)

    def add_referenced(self, foreign: ForeignKey, child: Table) -> None:
        """Add a foreign key of another table, or of this one, that names rows of the table."""
        flags = codes.KEY_CASCADES_UPDATE if foreign.on_update.upper() in _CASCADES else 0
        if foreign.on_delete.upper() in _CASCADES:
            self.flags |= codes.PLAN_CASCADES_DELETE
        self._add_shared(foreign, self.table, child, _referenced(foreign, self.table), flags)

    def _add_shared(self, foreign: ForeignKey, parent: Table, child: Table, mine: Sequence[str], flags: int) -> None:
        """Add a key whose values get the same numbers on both sides: in the order of the parent's columns, compared alike."""
        pairs = sorted(zip((one.lower() for one in _referenced(foreign, parent)), foreign.columns, mine, strict=False))
        parts = []
        for referenced, of_child, own in pairs:
            there, here = _column(parent, referenced), _column(child, of_child)
            form = codes.FORM_NONE
            if there is not None and here is not None and _compare_alike(there, here):
                form = column_form(there)
            parts.append((self._place(own), form, _NO_PREFIX))
        number = _name_of(parent, (referenced for referenced, _child, _own in pairs), [_NO_PREFIX] * len(pairs))
        self._add(number, flags, parts)

    def _add(self, name: str, flags: int, parts: list[tuple[int, int, int]]) -> None:
        if any(place < 0 for place, _form, _prefix in parts):
            parts = []
        number = _number(name)
        self.keys.append(_PlannedKey(number, _number(f"{name} any"), flags, tuple(parts)))

    def _place(self, name: str) -> int:
        for place, column in enumerate(self.table.columns):
            if column.name.lower() == name.lower():
                return place
        return -1

    def _form(self, name: str) -> int:
        column = _column(self.table, name)
        return codes.FORM_NONE if column is None else column_form(column)

    def numbers(self) -> "array[int]":
        """Return the numbers that `WriteSets.add_plan` takes."""
        plan = array(
            "q", [self.flags, _number(f"{self.table.schema}.{self.table.name} rows".lower()), len(self.keys), 0]
        )
        for key in self.keys:
            plan.extend([key.number, key.class_number, key.flags, len(key.parts)])
            for part in key.parts:
                plan.extend(part)
        return plan


def column_form(column: Column) -> int:
    """Return how the values of a column are compared: FORM_ of write_set_codes.py."""
    kind, _argument, _unsigned = type_parts(column.type)
    if not column.stored:
        return codes.FORM_NONE  # the binlog's value of it is not certain
    if kind in _RAW:
        return codes.FORM_RAW
    if kind in _REAL:
        return codes.FORM_REAL
    if kind == "decimal":
        return codes.FORM_DECIMAL
    if kind in _BYTES:
        return codes.FORM_BINARY
    return text_form(column) if kind in _TEXTS else codes.FORM_NONE


def _compare_alike(one: Column, other: Column) -> bool:
    """Return whether equal values of both have the same bytes, or letters, in a row."""
    form = column_form(one)
    if form != column_form(other):
        return False
    if form in (codes.FORM_FOLDED, codes.FORM_EXACT):
        return same_collation(one, other)
    if form == codes.FORM_BINARY:
        return True
    first, second = type_parts(one.type), type_parts(other.type)
    if first[0] in _TWO_FORMATS:
        return False
    return first[0] == second[0] and (form == codes.FORM_REAL or first[1] == second[1])


def _column(table: Table, name: str) -> Column | None:
    return next((column for column in table.columns if column.name.lower() == name.lower()), None)


def _name_of(table: Table, columns: Iterable[str], prefixes: Iterable[int]) -> str:
    return f"{table.schema}.{table.name}.{[*columns]}{[*prefixes]}".lower()


def _number(name: str) -> int:
    """Return 63 bits computed from a name, the same everywhere; not 0."""
    return (
        int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1 or 1
    )
