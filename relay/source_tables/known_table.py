"""A table of the source as the book knows it: from its definitions, or from the relay's records."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from protocol.sql.engines import has_transactions, takes_foreign_keys
from protocol.sql.tables.source_table import Column, ForeignKey, Table, TableName
from relay.source_tables.table_facts import facts_of, table_of_facts

TableKind = Literal["table", "sequence"]
SEQUENCE: Final = "SEQUENCE"
VERSIONED: Final = "SYSTEM VERSIONED"
"""The value of `Table.type` in information_schema of a MariaDB."""
UNKNOWN_ENGINE: Final = "?"
"""The engine of a table that exists with an unknown engine."""


class KnownTable(NamedTuple):
    """A known table. `table` has no columns if these are not known. For a MariaDB's view its columns have the order and the names of
    the replicas, with the types of the source's definition: `json`, `uuid`, `vector(3)`, `time(3)`; its keys are the source's.

    `is_plain`: none of the columns that are not known differs on the replicas. `is_recorded`: the table is from before the archive, and
    the source reported it: the replicas' columns are not known, so rows are read by their own Table_maps. `default_engine` is that of
    the server that created it, if the statement names no engine. `since_create`: the archive contains its CREATE TABLE, so all its
    triggers are known. `references_known`: no table from before the archive can refer to it. `temporary`: it belongs to one session.
    """

    table: Table
    is_plain: bool = False
    is_recorded: bool = False
    default_engine: str = ""
    since_create: bool = False
    references_known: bool = False
    temporary: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns in their order; empty: not known."""
        return self.table.columns

    @property
    def engine(self) -> str:
        """The engine that the statement names; "": it names none."""
        return self.table.engine

    @property
    def kind(self) -> TableKind:
        """The kind of the table; replicas do not get the rows of a sequence."""
        return "sequence" if self.table.type == SEQUENCE else "table"

    @property
    def is_versioned(self) -> bool:
        """True if it has system versioning."""
        return self.table.type == VERSIONED

    @property
    def has_engine(self) -> bool:
        """True if a statement determines its engine: an ALTER of a table from before the archive may not."""
        return self.since_create or bool(self.engine)

    @property
    def keeps_rollbacks(self) -> bool | None:
        """True if the source's table keeps what is rolled back; None: not known."""
        transactions = has_transactions(self.engine or self.default_engine)
        return None if transactions is None else not transactions

    @property
    def foreign_keys(self) -> list[ForeignKey]:
        """Those that its engine enforces, as far as they are known."""
        return [key for _name, key in self.table.foreign_keys or ()] if takes_foreign_keys(self.engine) else []

    def is_same(self, other: "KnownTable | None") -> bool:
        """Return whether the two are equal, also in what `Table` does not compare."""
        return (
            self == other
            and self.table.type == other.table.type
            and [key.generated for _name, key in self.table.keys] == [key.generated for _name, key in other.table.keys]
        )

    def kept(self) -> list[Any]:
        """Return it for JSON, equal for equal tables; `known_table_of` is the inverse."""
        generated = {name: key.generated for name, key in self.table.keys if key.generated is not None}
        return [facts_of(self.table), generated, *self[1:]]


def known_table_of(kept: Sequence[Any]) -> KnownTable:
    """Return the table that `KnownTable.kept` describes. Raises: ValueError, KeyError, TypeError, AttributeError."""
    facts, generated, *flags = kept
    table = table_of_facts(facts)
    keys = tuple((name, replace(key, generated=generated.get(name))) for name, key in table.keys)
    return KnownTable(replace(table, keys=keys), *flags)


def sequence(name: TableName) -> KnownTable:
    """Return the table that CREATE SEQUENCE creates."""
    return KnownTable(Table(*name, type=SEQUENCE))


def recorded(table: Table) -> KnownTable:
    """Return a table from before the archive, as the source reported it, with all its triggers (none) and all that refers to it."""
    if table.type == SEQUENCE:
        table = Table(table.schema, table.name, type=SEQUENCE)
    return KnownTable(table, is_recorded=True, since_create=True, references_known=True)
