"""What becomes of a table by CREATE and ALTER: the order in which servers take the clauses of a statement."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from relay.schema_history.tables.column_types import as_binary, with_charset
from relay.schema_history.tables.ddl_statement import (
    FIRST,
    AddColumn,
    AddForeignKey,
    AddKey,
    ChangeColumn,
    Clause,
    ColumnDefinition,
    CreateTable,
    DropColumn,
    DropForeignKey,
    DropKey,
    ForeignKeyDefinition,
    KeyDefinition,
    RenameColumn,
    RenameKey,
    SetCharset,
    SetDefault,
    SetEngine,
)
from relay.schema_history.tables.ddl_tokens import NotSure
from relay.schema_history.tables.source_table import UNKNOWN_CHARSET, WIDE_CHARSETS, Column, ForeignKey, Key, Table

_PERHAPS_WIDE: Final = WIDE_CHARSETS | {UNKNOWN_CHARSET}


def table_of(made: CreateTable, charset: str) -> Table:
    """The table that a CREATE makes; `charset`: of columns that say none, '' if nobody knows. Raises: NotSure."""
    if not made.columns:
        raise NotSure("a table without columns")
    keys = _Keys((), ())
    columns = [with_charset(one.column, charset) for one in made.columns]
    if len({column.name.lower() for column in columns}) != len(columns):
        raise NotSure("a column that is there twice")
    for definition in made.columns:
        keys.add_of_column(definition)
    for key in made.keys:
        keys.add(key)
    for foreign in made.foreign_keys:
        keys.add_foreign(foreign)
    return keys.table(Table(made.name[0], made.name[1], made.engine, charset=charset), columns)


def alter_table(table: Table, clauses: Iterable[Clause], database_charset: str) -> Table:
    """The table behind an ALTER with these clauses. Raises: NotSure for one that does not fit the table."""
    alteration = _Alteration(table, database_charset)
    for clause in clauses:
        alteration.take(clause)
    return alteration.done()


class _Alteration:
    """Source of the order: `mysql_prepare_alter_table` of MySQL 5.6 and 9.7 and of MariaDB 10.11.

    First the columns that were there, in their order, without those that are dropped; one that is changed is
    put in the place of the old one. Then what is new is added and what moves is moved, in the order of the clauses.
    """

    def __init__(self, table: Table, database_charset: str) -> None:
        self._table = table
        self._database_charset = database_charset
        self._charset = table.charset
        self._converts = False
        self._charsets: set[str] = set()
        self._old = {column.name.lower(): column for column in table.columns}
        self._dropped: set[str] = set()
        self._changed: dict[str, ColumnDefinition] = {}
        self._later: list[ColumnDefinition] = []
        self._uncertain: set[str] = set()
        self._keys = _Keys(table.keys, table.foreign_keys)
        self._new_keys: list[AddKey | AddForeignKey | ColumnDefinition] = []

    def take(self, clause: Clause) -> None:
        """A clause."""
        match clause:
            case AddColumn(definition, if_not_exists):
                self._add(definition, if_not_exists)
            case ChangeColumn(old, definition, if_exists):
                self._change(old, definition, if_exists)
            case RenameColumn(old, new, if_exists):
                column = self._old.get(old.lower())
                if column is not None:
                    self._change(old, ColumnDefinition(replace(column, name=new)), if_exists)
                elif not if_exists:
                    raise NotSure(f"the column {old}")
            case DropColumn(name, if_exists):
                if name.lower() in self._old:
                    self._dropped.add(name.lower())
                elif not if_exists:
                    raise NotSure(f"the column {name}")
            case SetDefault(name, default):
                column = self._old.get(name.lower())
                if column is None:
                    raise NotSure(f"the column {name}")
                self._old[name.lower()] = replace(column, default=default)
            case AddKey() | AddForeignKey():
                self._new_keys.append(clause)
            case DropKey(name, or_constraint):
                self._keys.drop(name, or_constraint=or_constraint)
            case RenameKey(old, new):
                self._keys.rename(old, new)
            case DropForeignKey(name):
                self._keys.drop_foreign(name)
            case SetCharset(option, converts):
                self._charset = self._database_charset if option.default else option.charset or self._charset
                self._converts = self._converts or converts
                self._charsets.add(self._charset)
                if converts and not self._charset:
                    raise NotSure("it is converted to a character set that nobody knows")
            case SetEngine(engine):
                self._table = replace(self._table, engine=engine)

    def _add(self, definition: ColumnDefinition, if_not_exists: bool) -> None:
        name = definition.column.name.lower()
        # MariaDB looks at the table as it was, also for what is dropped, and at the clauses before this one
        if if_not_exists and (name in self._old or any(one.column.name.lower() == name for one in self._in_order())):
            return
        self._later.append(definition)
        self._new_keys.append(definition)

    def _change(self, old: str, definition: ColumnDefinition, if_exists: bool) -> None:
        name = old.lower()
        if name not in self._old:
            if if_exists:
                return
            raise NotSure(f"the column {old}")
        if name in self._changed:
            raise NotSure(f"the column {old} is changed twice")
        self._changed[name] = definition
        self._new_keys.append(definition)

    def done(self) -> Table:
        """The table."""
        if len(self._charsets) > 1 and self._converts:
            # DEFAULT CHARACTER SET and CONVERT TO another: servers differ in which of the two counts for what
            self._charset = UNKNOWN_CHARSET
        columns: list[Column] = []
        for name in self._old:
            if name in self._dropped:
                if name in self._changed:
                    raise NotSure("a column that is changed and dropped")
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
            if converted == columns and self._charset != self._table.charset:
                self._charset = ""  # where no column changes, MySQL 5.6 leaves the table's own set as it was
            columns = converted
        if not columns or len({column.name.lower() for column in columns}) != len(columns):
            raise NotSure("columns that cannot be")
        self._keys.rename_columns({name: one.column.name for name, one in self._changed.items()})
        for new in self._new_keys:
            if isinstance(new, AddKey):
                self._keys.add(new.definition, if_not_exists=new.if_not_exists)
            elif isinstance(new, AddForeignKey):
                self._keys.add_foreign(new.definition)
            else:
                self._keys.add_of_column(new)
        charset = "" if self._charset == UNKNOWN_CHARSET else self._charset
        return self._keys.table(replace(self._table, charset=charset), columns)

    def _in_order(self) -> list[ColumnDefinition]:
        """The definitions of the statement."""
        return [one for one in self._new_keys if isinstance(one, ColumnDefinition)]

    def _finished(self, column: Column) -> Column:
        if self._converts and column.charset not in ("", UNKNOWN_CHARSET):
            known = self._old.get(column.name.lower())
            if known is None or known.charset != column.charset:
                # servers differ in whether it keeps its own
                self._uncertain.add(column.name)
        return with_charset(column, self._charset)

    def _converted(self, column: Column) -> Column:
        if not column.charset:
            return column
        if column.type.startswith(("enum", "set")) and (
            not column.type.isascii() or not _PERHAPS_WIDE.isdisjoint((column.charset, self._charset))
        ):
            # Some servers take the texts' bytes as if they were of the other set. Without texts, values are numbers.
            return replace(column, type=column.type.partition("(")[0], charset=self._charset, collation="")
        if self._charset == "binary":
            if column.type.startswith(("enum", "set")) or column.name in self._uncertain:
                raise NotSure("what becomes of a text that is converted to bytes")
            return replace(column, type=as_binary(column.type), charset="", collation="")
        charset = UNKNOWN_CHARSET if column.name in self._uncertain else self._charset
        return replace(column, charset=charset, collation="")


def _place(columns: list[Column], name: str) -> int:
    for number, column in enumerate(columns):
        if column.name.lower() == name.lower():
            return number
    raise NotSure(f"the column {name}")


class _Keys:
    """The keys of a table while it is altered."""

    def __init__(self, keys: tuple[tuple[str, Key], ...], foreign: tuple[tuple[str, ForeignKey], ...]) -> None:
        self._keys = dict(keys)
        self._foreign = dict(foreign)

    def add_of_column(self, definition: ColumnDefinition) -> None:
        """The key that a column's own definition says."""
        name = definition.column.name
        if definition.primary:
            self._keys["PRIMARY"] = Key((name,), True)
        if definition.unique:
            self.add(KeyDefinition("", Key((name,), True)))

    def add(self, definition: KeyDefinition, *, if_not_exists: bool = False) -> None:
        """A key; one without a name is called after its first column."""
        if if_not_exists and self._named(definition.name) is not None:
            return
        self._keys[definition.name or self._made_up(definition.key.columns[0])] = definition.key

    def add_foreign(self, definition: ForeignKeyDefinition) -> None:
        """A foreign key, and the index that it needs."""
        name = definition.name or f"{definition.key.table}_ibfk_{len(self._foreign) + 1}"
        self._foreign[name] = definition.key
        columns = tuple(column.lower() for column in definition.key.columns)
        for key in self._keys.values():
            if tuple(column.lower() for column in key.columns[: len(columns)]) == columns:
                return
        self.add(KeyDefinition(definition.index, Key(definition.key.columns)))

    def drop(self, name: str, *, or_constraint: bool) -> None:
        """A key."""
        known = self._named(name)
        if known is not None:
            del self._keys[known]
        elif or_constraint:
            self.drop_foreign(name)

    def drop_foreign(self, name: str) -> None:
        """A foreign key; its index stays."""
        for known in [one for one in self._foreign if one.lower() == name.lower()]:
            del self._foreign[known]

    def rename(self, old: str, new: str) -> None:
        """A key."""
        known = self._named(old)
        if known is not None:
            self._keys[new] = self._keys.pop(known)

    def drop_column(self, name: str) -> None:
        """A column is gone: so it is from the keys, and one that has no other."""
        for key, value in list(self._keys.items()):
            left = tuple(column for column in value.columns if column.lower() != name)
            if not left:
                del self._keys[key]
            elif len(left) < len(value.columns):
                self._keys[key] = Key(left, value.unique)

    def rename_columns(self, names: dict[str, str]) -> None:
        """Columns are called otherwise: lower-case names to new ones."""
        for key, value in self._keys.items():
            self._keys[key] = Key(tuple(names.get(column.lower(), column) for column in value.columns), value.unique)
        for key, foreign in self._foreign.items():
            columns = tuple(names.get(column.lower(), column) for column in foreign.columns)
            self._foreign[key] = replace(foreign, columns=columns)

    def table(self, table: Table, columns: list[Column]) -> Table:
        """The table with these columns and the keys, whose columns are called as the table calls them."""
        called = {column.name.lower(): column.name for column in columns}
        keys = tuple(
            sorted(
                (name, Key(tuple(called.get(one.lower(), one) for one in key.columns), key.unique))
                for name, key in self._keys.items()
            )
        )
        primary = {column for name, key in keys if name == "PRIMARY" for column in key.columns}
        made = tuple(replace(column, nullable=False) if column.name in primary else column for column in columns)
        return replace(table, columns=made, keys=keys, foreign_keys=tuple(sorted(self._foreign.items())))

    def _named(self, name: str) -> str | None:
        return next((known for known in self._keys if known.lower() == name.lower()), None)

    def _made_up(self, column: str) -> str:
        name, number = column or "functional_index", 2
        while self._named(name) is not None:
            name, number = f"{column}_{number}", number + 1
        return name
