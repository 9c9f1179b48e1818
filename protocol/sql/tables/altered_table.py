"""The effects of CREATE and ALTER on a table: the order in which servers apply the clauses of a statement."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.altered_keys import AlteredKeys
from protocol.sql.tables.column_types import as_binary, with_charset
from protocol.sql.tables.ddl_statement import (
    FIRST,
    AddColumn,
    AddForeignKey,
    AddKey,
    ChangeColumn,
    Clause,
    ColumnDefinition,
    CreateTable,
    DropCheck,
    DropColumn,
    DropForeignKey,
    DropKey,
    ForeignKeyDefinition,
    RenameColumn,
    RenameKey,
    SetCharset,
    SetDefault,
    SetEngine,
)
from protocol.sql.tables.default_text import default_of_type
from protocol.sql.tables.source_table import (
    UNKNOWN_CHARSET,
    WIDE_CHARSETS,
    CharsetDefault,
    Column,
    Table,
)

_PERHAPS_WIDE: Final = WIDE_CHARSETS | {UNKNOWN_CHARSET}


def table_of(made: CreateTable, charset: str, collation: str = "") -> Table:
    """Return the table that a CREATE makes; `charset`, `collation` are for columns that name none, '' if unknown.

    Raises: UnsupportedSyntax.
    """
    if not made.columns:
        raise UnsupportedSyntax("a table without columns")
    empty = Table(made.name[0], made.name[1], made.engine, charset=charset, foreign_keys=(), collation=collation)
    keys = AlteredKeys(empty)
    columns = [with_charset(one.column, (charset, collation)) for one in made.columns]
    if len({column.name.lower() for column in columns}) != len(columns):
        raise UnsupportedSyntax("a column that is there twice")
    for definition in made.columns:
        keys.add_of_column(definition)
    for key in made.keys:
        if isinstance(key, ForeignKeyDefinition):
            keys.add_foreign(key)
        else:
            keys.add(key)
    return keys.table(empty, columns)


def alter_table(table: Table, clauses: Iterable[Clause], database_default: CharsetDefault) -> Table:
    """Return the table after an ALTER with these clauses. Raises: UnsupportedSyntax for one that does not fit the table."""
    alteration = _Alteration(table, database_default)
    for clause in clauses:
        alteration.take(clause)
    return alteration.done()


@dataclass(frozen=True, slots=True)
class ColumnOrigins:
    """The origins of an altered table's columns; names are in lower case.

    `former` {new: old} contains those that CHANGE, MODIFY and RENAME COLUMN name, `added` the new ones, `defined` those of CHANGE and
    MODIFY. All others are unchanged.
    """

    former: Mapping[str, str]
    added: frozenset[str]
    defined: frozenset[str]


def column_origins(table: Table, clauses: Iterable[Clause]) -> ColumnOrigins:
    """Return the origins for an ALTER with these clauses. Raises: UnsupportedSyntax for one that does not fit the table."""
    alteration = _Alteration(table, ("", ""))
    for clause in clauses:
        if isinstance(clause, AddColumn | ChangeColumn | RenameColumn):
            alteration.take(clause)
    return alteration.origins()


class _Alteration:
    """An alteration in the order of `mysql_prepare_alter_table` of MySQL 5.6 and 9.7 and of MariaDB 10.11.

    First come the existing columns, in their order, without the dropped ones; a changed column takes the place of the old one. Then
    new columns are added and moved ones are moved, in the order of the clauses.
    """

    def __init__(self, table: Table, database_default: CharsetDefault) -> None:
        self._table = table
        self._database_default = database_default
        self._charset, self._collation = table.charset, table.collation
        self._converts = False
        self._charsets: set[CharsetDefault] = set()
        self._renamed: list[Column] = []
        """Columns that change nothing but their names."""
        self._collated: set[str] = set()
        """The columns that the statement defines with a collation, lower case."""
        self._old = {column.name.lower(): column for column in table.columns}
        self._dropped: set[str] = set()
        self._changed: dict[str, ColumnDefinition] = {}
        self._later: list[ColumnDefinition] = []
        self._uncertain: set[str] = set()
        self._keys = AlteredKeys(table)
        self._new_keys: list[AddKey | AddForeignKey | ColumnDefinition] = []

    def take(self, clause: Clause) -> None:
        """Take a clause."""
        match clause:
            case AddColumn(definition, if_not_exists):
                self._add(definition, if_not_exists)
            case ChangeColumn(old, definition, if_exists):
                self._change(old, definition, if_exists)
            case RenameColumn(old, new, if_exists):
                column = self._old.get(old.lower())
                if column is not None:
                    self._renamed.append(replace(column, name=new))
                    self._change(old, ColumnDefinition(self._renamed[-1]), if_exists)
                elif not if_exists:
                    raise UnsupportedSyntax(f"the column {old}")
            case DropColumn(name, if_exists):
                if name.lower() in self._old:
                    self._dropped.add(name.lower())
                elif not if_exists:
                    raise UnsupportedSyntax(f"the column {name}")
            case SetDefault(name, default, if_exists):
                column = self._old.get(name.lower())
                if column is not None:
                    self._old[name.lower()] = replace(column, default=default_of_type(column.type, default))
                elif not if_exists:
                    raise UnsupportedSyntax(f"the column {name}")
            case AddKey() | AddForeignKey():
                self._new_keys.append(clause)
            case DropKey(name, or_constraint):
                self._keys.drop(name, or_constraint=or_constraint)
            case RenameKey(old, new):
                self._keys.rename(old, new)
            case DropCheck():
                pass
            case DropForeignKey(name):
                self._keys.drop_foreign(name)
            case SetCharset(option, converts):
                own = (self._charset, self._collation)
                self._charset, self._collation = option.resolved(self._database_default, own)
                self._converts = self._converts or converts
                self._charsets.add((self._charset, self._collation))
                if converts and not self._charset:
                    raise UnsupportedSyntax("it is converted to an unknown character set")
            case SetEngine(engine):
                self._table = replace(self._table, engine=engine)

    def _add(self, definition: ColumnDefinition, if_not_exists: bool) -> None:
        name = definition.column.name.lower()
        # MariaDB considers the table before the statement, also for dropped columns, and the clauses before this one
        if if_not_exists and (name in self._old or any(one.column.name.lower() == name for one in self._in_order())):
            return
        self._later.append(definition)
        self._new_keys.append(definition)

    def _change(self, old: str, definition: ColumnDefinition, if_exists: bool) -> None:
        name = old.lower()
        if name not in self._old:
            if if_exists:
                return
            raise UnsupportedSyntax(f"the column {old}")
        if name in self._changed:
            raise UnsupportedSyntax(f"the column {old} is changed twice")
        self._changed[name] = definition
        self._new_keys.append(definition)

    def origins(self) -> ColumnOrigins:
        """Return the origins of the columns."""
        return ColumnOrigins(
            {one.column.name.lower(): old for old, one in self._changed.items()},
            frozenset(one.column.name.lower() for one in self._later),
            frozenset(one.column.name.lower() for one in self._changed.values() if one.column not in self._renamed),
        )

    def done(self) -> Table:
        """Return the altered table."""
        if len(self._charsets) > 1 and self._converts:
            # DEFAULT CHARACTER SET and CONVERT TO another: servers differ in which of the two applies
            known = {charset for charset, _collation in self._charsets}
            self._charset, self._collation = (UNKNOWN_CHARSET if len(known) > 1 else self._charset), ""
        columns: list[Column] = []
        for name in self._old:
            if name in self._dropped:
                if name in self._changed:
                    raise UnsupportedSyntax("a column that is changed and dropped")
                self._keys.drop_column(name)
            elif name not in self._changed:
                columns.append(self._old[name])
            else:
                columns.append(self._finished(self._changed[name].column))
        moved = [one for one in self._in_order() if one.after is not None or one in self._later]
        for definition in moved:
            column = self._finished(definition.column)
            if definition in self._changed.values():
                columns = [one for one in columns if one.name != column.name]
            if definition.after is None:
                columns.append(column)
            elif definition.after == FIRST:
                columns.insert(0, column)
            else:
                columns.insert(_place(columns, definition.after) + 1, column)
        if self._converts:
            converted = [self._converted(column) for column in columns]
            if self._unchanged(columns, converted):
                # where no column changes, MySQL 5.6 leaves the table's own set as it was
                self._charset = "" if self._charset != self._table.charset else self._charset
                self._collation = self._collation if self._collation == self._table.collation else ""
            columns = converted
        if not columns or len({column.name.lower() for column in columns}) != len(columns):
            raise UnsupportedSyntax("columns that cannot be")
        for name, one in self._changed.items():
            if one.column not in self._renamed:
                self._keys.change_column(self._old[name], one.column)
        self._keys.rename_columns({name: one.column.name for name, one in self._changed.items()})
        for new in self._new_keys:
            if isinstance(new, AddKey):
                self._keys.add(new.definition, if_not_exists=new.if_not_exists)
            elif isinstance(new, AddForeignKey):
                self._keys.add_foreign(new.definition)
            else:
                self._keys.add_of_column(new)
        charset = "" if self._charset == UNKNOWN_CHARSET else self._charset
        collation = self._collation if charset else ""
        return self._keys.table(replace(self._table, charset=charset, collation=collation), columns)

    def _unchanged(self, columns: list[Column], converted: list[Column]) -> bool:
        """Return whether a conversion may have changed no column."""
        return [(one.type, one.charset) for one in columns] == [(one.type, one.charset) for one in converted] and all(
            not one.collation or not other.collation or one.collation == other.collation
            for one, other in zip(columns, converted, strict=True)
        )

    def _in_order(self) -> list[ColumnDefinition]:
        """Return the definitions of the statement."""
        return [one for one in self._new_keys if isinstance(one, ColumnDefinition)]

    def _finished(self, column: Column) -> Column:
        if column in self._renamed:
            if self._converts and column.charset not in ("", UNKNOWN_CHARSET):
                self._uncertain.add(column.name)
            return column
        if column.collation or column.charset not in ("", UNKNOWN_CHARSET):
            self._collated.add(column.name.lower())
        if self._converts and column.charset not in ("", UNKNOWN_CHARSET):
            known = self._old.get(column.name.lower())
            if known is None or known.charset != column.charset:
                # servers differ in whether it keeps its own
                self._uncertain.add(column.name)
        return with_charset(column, (self._charset, self._collation))

    def _converted(self, column: Column) -> Column:
        if not column.charset:
            return column
        collation = "" if column.name.lower() in self._collated else self._collation
        if column.type.startswith(("enum", "set")) and (
            not column.type.isascii() or not _PERHAPS_WIDE.isdisjoint((column.charset, self._charset))
        ):
            # Some servers take the texts' bytes as if they were of the other set. Without texts, values are numbers.
            return replace(column, type=column.type.partition("(")[0], charset=self._charset, collation=collation)
        if self._charset == "binary":
            if column.type.startswith(("enum", "set")) or column.name in self._uncertain:
                raise UnsupportedSyntax("what becomes of a text that is converted to bytes")
            return replace(column, type=as_binary(column.type), charset="", collation="")
        charset = UNKNOWN_CHARSET if column.name in self._uncertain else self._charset
        return replace(column, charset=charset, collation=collation if charset != UNKNOWN_CHARSET else "")


def _place(columns: list[Column], name: str) -> int:
    for number, column in enumerate(columns):
        if column.name.lower() == name.lower():
            return number
    raise UnsupportedSyntax(f"the column {name}")
