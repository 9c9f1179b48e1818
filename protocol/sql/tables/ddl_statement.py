"""What a statement that defines tables or databases says, before it is known to what it is said."""

from dataclasses import dataclass, field
from typing import Final

from protocol.sql.tables.source_table import CharsetDefault, Column, ForeignKey, Key, TableName

FIRST: Final = ""
"""In place of the column that another is put behind."""


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """`column.charset`: as the statement says it for this column, UNKNOWN_CHARSET where it takes its table's; empty: it is no text.

    `column.collation`: empty where it takes its table's or is not known; `_bin` is that of the table's character set.
    `after`: the column that it is put behind, FIRST, or None. `primary`, `unique`: its own key. `references`: what
    REFERENCES says.
    """

    column: Column
    after: str | None = None
    primary: bool = False
    unique: bool = False
    references: ForeignKey | None = None


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """`name`: empty where the server makes one up."""

    name: str
    key: Key


@dataclass(frozen=True, slots=True)
class ForeignKeyDefinition:
    """`name`: empty where the server makes one up. `index`: the name of the index that it brings, if none is there.

    `certain`: whether the server takes it for a foreign key.
    """

    name: str
    index: str
    key: ForeignKey
    certain: bool = True


@dataclass(slots=True)
class CharsetOption:
    """What is said of a default character set. `charset` None: nothing; `default`: that of what it is in.

    `collation`: empty where it is not known. `collated`: COLLATE says it.
    """

    charset: str | None = None
    default: bool = False
    collation: str = ""
    collated: bool = False

    def resolved(self, outer: CharsetDefault, own: CharsetDefault) -> CharsetDefault:
        """What new columns have. `outer`: of what it is in; `own`: where nothing is said."""
        if self.default:
            return outer
        charset, collation = (self.charset, self.collation) if self.charset else own
        return (charset, "") if self.collated and not self.collation else (charset, collation)


@dataclass(slots=True)
class CreateTable:
    """CREATE TABLE with columns of its own, or LIKE another."""

    name: TableName
    temporary: bool = False
    or_replace: bool = False
    if_not_exists: bool = False
    columns: list[ColumnDefinition] = field(default_factory=list)
    keys: list[KeyDefinition | ForeignKeyDefinition] = field(default_factory=list)
    charset: CharsetOption = field(default_factory=CharsetOption)
    engine: str = ""
    like: TableName | None = None


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN."""

    definition: ColumnDefinition
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE and MODIFY COLUMN."""

    old: str
    definition: ColumnDefinition
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN."""

    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN … SET or DROP DEFAULT."""

    name: str
    default: str | None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddKey:
    """ADD KEY."""

    definition: KeyDefinition
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropKey:
    """DROP KEY, DROP PRIMARY KEY; with `or_constraint` DROP CONSTRAINT, which may be something else."""

    name: str
    or_constraint: bool = False


@dataclass(frozen=True, slots=True)
class RenameKey:
    """RENAME KEY."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    """ADD FOREIGN KEY."""

    definition: ForeignKeyDefinition


@dataclass(frozen=True, slots=True)
class DropForeignKey:
    """DROP FOREIGN KEY."""

    name: str


@dataclass(frozen=True, slots=True)
class SetCharset:
    """[DEFAULT] CHARACTER SET: of columns that come later. `converts`: CONVERT TO, of all columns."""

    charset: CharsetOption
    converts: bool = False


@dataclass(frozen=True, slots=True)
class SetEngine:
    """ENGINE."""

    engine: str


Clause = (
    AddColumn
    | ChangeColumn
    | RenameColumn
    | DropColumn
    | SetDefault
    | AddKey
    | DropKey
    | RenameKey
    | AddForeignKey
    | DropForeignKey
    | SetCharset
    | SetEngine
)


@dataclass(slots=True)
class AlterTable:
    """ALTER TABLE. `rename`: what it is called then."""

    name: TableName
    if_exists: bool = False
    clauses: list[Clause] = field(default_factory=list)
    rename: TableName | None = None


@dataclass(frozen=True, slots=True)
class DropTables:
    """DROP TABLE."""

    names: tuple[TableName, ...]
    temporary: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTables:
    """RENAME TABLE, one pair after the other."""

    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """CREATE DATABASE."""

    name: str
    charset: CharsetOption
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    """ALTER DATABASE."""

    name: str
    charset: CharsetOption


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """DROP DATABASE."""

    name: str


@dataclass(frozen=True, slots=True)
class NoTable:
    """It defines something else: no table's columns change by it."""


Statement = (
    CreateTable | AlterTable | DropTables | RenameTables | CreateDatabase | AlterDatabase | DropDatabase | NoTable
)
