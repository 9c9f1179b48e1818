"""A table as the definitions of the archive tell it: what its rows must look like, and what replicas have."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from protocol.sql.tables.source_table import Column, Key, Table, TableName
from relay.schema_history.schema_record import Line, table_facts, table_of_line
from relay.schema_history.table_agreement import type_parts

TableKind = Literal["table", "sequence"]
_LONG_TYPES: Final = frozenset(("text", "blob", "json", "geometry"))
_STRING_TYPES: Final = frozenset(("char", "varchar", "binary", "varbinary"))
_SHORT_KEY: Final = 250
"""Characters that a key of any engine has room for."""


class KnownTable(NamedTuple):
    """table: its columns in the order and with the names that replicas have behind the view's statements, with the types that
    the source's definition names: `json`, `uuid`, `vector(3)`, `time(3)`; no columns: not known. Its keys are the source's. kind: a
    sequence has rows that replicas do not get. is_versioned: WITH SYSTEM VERSIONING. is_plain: of columns that are not known, none is
    another on the replicas. is_recorded: it is from before the archive, and the source told of it: replicas have a copy of which nobody
    here knows what was made of its columns, so rows are taken as their own maps say.
    """

    table: Table
    kind: TableKind = "table"
    is_versioned: bool = False
    is_plain: bool = False
    is_recorded: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """In their order; empty: not known."""
        return self.table.columns

    @property
    def most_hidden_columns(self) -> int:
        """How many columns its rows may have behind all others: the hash of each UNIQUE key that is too long to be one of its own."""
        return sum(key.unique and self._may_be_hashed(key) for name, key in self.table.keys if name != "PRIMARY")

    def _may_be_hashed(self, key: Key) -> bool:
        columns = {column.name.lower(): column for column in self.columns}
        length = 0
        for name in key.columns:
            kind, argument, _ = type_parts(columns[name.lower()].type) if name.lower() in columns else ("", "", False)
            if kind in _LONG_TYPES:
                return True
            if kind in _STRING_TYPES and argument.isdecimal():
                length += int(argument)
        return length > _SHORT_KEY

    def encode(self) -> str:
        """One line of text, the same for the same table."""
        told = [self.kind, self.is_versioned, self.is_plain, json.loads(table_facts(self.table))]
        return json.dumps([*told, True] if self.is_recorded else told, ensure_ascii=False)


def decode_known_table(line: str) -> KnownTable:
    """The inverse of `KnownTable.encode`. Raises: ValueError, KeyError, TypeError."""
    kind, is_versioned, is_plain, facts, *recorded = json.loads(line)
    table = table_of_line(Line("table", (0, 0), facts, ""))
    return KnownTable(table, kind, is_versioned, is_plain, bool(recorded))


def sequence(name: TableName) -> KnownTable:
    """What CREATE SEQUENCE makes."""
    return KnownTable(Table(*name), "sequence")


def recorded(table: Table) -> KnownTable:
    """One from before the archive, as the source said."""
    if table.type == "SEQUENCE":
        return sequence((table.schema, table.name))._replace(is_recorded=True)
    return KnownTable(table, is_versioned=table.type == "SYSTEM VERSIONED", is_recorded=True)


def as_replicas_have(source: Table, replica: Sequence[Column]) -> Table:
    """The source's table with the columns that the replica's definition has: those of the same names with the source's types, but
    `json` where the replica has that; others as they are (row_start and row_end of a versioned table)."""
    own = {column.name.lower(): column for column in source.columns}
    columns = []
    for column in replica:
        told = own.get(column.name.lower(), column)
        columns.append(column if type_parts(column.type)[0] == "json" else told)
    return replace(source, columns=tuple(columns))
