"""The columns that names in a query mean: those of its tables, of queries in FROM, and of the queries around it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from protocol.sql.expressions.constructs import ANYTHING, NO_TABLES, Classes, Operand, joined
from protocol.sql.survey.value_class import ANY
from protocol.sql.tables.source_table import TableName

Rows = Sequence[tuple[str, Operand]]
"""What the columns of a query are, with their names in lower case; those of a table that is not known are one, of the unit `*`."""
_KINDS: Final = {
    **dict.fromkeys(("TINYTEXT", "MEDIUMTEXT", "LONGTEXT"), "TEXT"),
    **dict.fromkeys(("TINYBLOB", "MEDIUMBLOB", "LONGBLOB"), "BLOB"),
    **dict.fromkeys(
        (
            "POINT",
            "LINESTRING",
            "POLYGON",
            "MULTIPOINT",
            "MULTILINESTRING",
            "MULTIPOLYGON",
            "GEOMETRYCOLLECTION",
            "GEOMCOLLECTION",
        ),
        "GEOMETRY",
    ),
}


def kind_of_type(column_type: str) -> str:
    """Return the name that constructs have for a column's type, as in `store INT`."""
    kind = column_type.partition("(")[0].partition(" ")[0].upper()
    return _KINDS.get(kind, kind)


class KnownColumn(NamedTuple):
    """A column. `kind` is the first word of its type, in upper case."""

    classes: Classes
    kind: str
    nullable: bool = True
    has_default: bool = True
    """False for a column of NOT NULL for which an INSERT must give a value, or gets an implicit one."""
    charset: str = ""
    """The character set of a text, empty where it is not known."""


class KnownColumns(Protocol):
    """The columns of tables, as far as they are known."""

    def columns_of(self, name: TableName) -> Mapping[str, KnownColumn] | None:
        """Return a table's columns in their order, by names in lower case; None: they are not known."""


class ScopeTable(NamedTuple):
    """A table of a query, with `columns` by names in lower case; None: `unknown` are the tables that they belong to."""

    alias: str
    columns: Mapping[str, Operand] | None
    unknown: frozenset[TableName] = NO_TABLES
    name: TableName | None = None
    rows: Rows = ()
    """The columns of a query in FROM in their order, also those without a name and those of one name."""

    @property
    def all(self) -> Rows:
        """What `*` is of it."""
        if self.columns is None:
            return (("", ANYTHING._replace(unknown=self.unknown, unit="*")),)
        return self.rows or tuple(self.columns.items())


class ColumnScope:
    """The tables of a query, and the scope around it."""

    def __init__(self, outer: "ColumnScope | None" = None) -> None:
        self._outer = outer
        self.tables: list[ScopeTable] = []
        self.variables: dict[str, Operand] = {}
        """The parameters and variables of a program, in the outermost scope: their names come before those of columns."""
        self.star: Rows = ()
        """What `*` is of tables in FROM."""
        self.has_star = True
        """False if that is not known."""

    def column(self, name: str, qualifier: str = "") -> Operand:
        """Return the operand that a column is. Both names are in lower case."""
        outermost = self
        while outermost._outer is not None:
            outermost = outermost._outer
        if not qualifier and name in outermost.variables:
            return outermost.variables[name]
        scope: ColumnScope | None = self
        unknown = NO_TABLES
        while scope is not None:
            found = []
            for table in scope.tables:
                if qualifier and table.alias != qualifier:
                    continue
                if table.columns is None:
                    unknown |= table.unknown
                elif name in table.columns:
                    found.append(table.columns[name])
            if found:
                given = found[0] if len(found) == 1 else joined(found)
                return given._replace(is_literal=False, is_zero=False, below=0, made_by=frozenset())
            scope = scope._outer
        return Operand(ANY, unknown) if unknown else ANYTHING


def table_of_query(alias: str, rows: Rows) -> ScopeTable:
    """Return the table that a query is in FROM."""
    stars = [one.unknown for _name, one in rows if one.unit == "*"]
    if stars:
        return ScopeTable(alias, None, NO_TABLES.union(*stars))
    return ScopeTable(alias, {name: one for name, one in rows if name}, rows=rows)


def rows_of_join(left: Rows, right: Rows, names: Collection[str] | None) -> Rows:
    """Return what `*` is of two tables that USING joins by columns of these names, or NATURAL by all that both have: these once, in the
    order of the first table, before the others of both.
    """
    stars = [one.unknown for _name, one in (*left, *right) if one.unit == "*"]
    if stars:
        return (("", ANYTHING._replace(unknown=NO_TABLES.union(*stars), unit="*")),)
    others = {name: one for name, one in right if name and (names is None or name in names)}
    common = [(name, joined((one, others[name]))) for name, one in left if name in others]
    shared = {name for name, _one in common}
    return (*common, *(row for row in (*left, *right) if row[0] not in shared))


def operands_of(columns: Mapping[str, KnownColumn]) -> dict[str, Operand]:
    """Return the columns of a table as operands."""
    return {name: Operand(one.classes, kind=one.kind) for name, one in columns.items()}
