"""The tree of a statement that defines tables or databases: it says what is written, before it is known of which table.

Places are [start, stop) in the text of the statement. They have no part in comparisons and are not printed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.references_clause import ReferencesClause
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
class Unknown:
    """A part of a statement that the reader does not know.

    `words`: its keywords outside of brackets, in upper case; none of them in what can hold no part of a definition, as a query.
    """

    start: int
    stop: int
    why: str
    words: set[str]


class TableOption(NamedTuple):
    """An option of a table. `name`: in upper case, as `ENGINE`, `TYPE` (the same in old servers) or `DATA DIRECTORY`.

    `value`: where its value begins, or the bracket around it. `text`: the value, a name or a string without quotation marks.
    """

    name: str
    start: int
    value: int
    stop: int
    text: str
    of_partition: bool = False

    @property
    def is_engine(self) -> bool:
        """True for ENGINE and TYPE."""
        return self.name in ("ENGINE", "TYPE")


class WrittenForeignKey(NamedTuple):
    """FOREIGN KEY, or REFERENCES after a column. `name`: as CONSTRAINT gives it, or empty."""

    name: str
    references: ReferencesClause


class CheckClause(NamedTuple):
    """[CONSTRAINT [name]] CHECK (…) [[NOT] ENFORCED]. `of_column`: it is in the definition of a column."""

    start: int
    stop: int
    of_column: bool


class Element(NamedTuple):
    """A column or a key with all that is said of it, without the comma. `type_at`: where the type of a column begins, -1 for a key."""

    start: int
    stop: int
    type_at: int = -1


class ElementList(NamedTuple):
    """Columns and keys, with the brackets around them."""

    start: int
    stop: int
    elements: tuple[Element, ...]


class Action(NamedTuple):
    """An action of ALTER TABLE, without the comma. `listed`: what ADD (…) adds."""

    start: int
    stop: int
    listed: ElementList | None = None


class RowAction(NamedTuple):
    """What ALTER TABLE does to all rows of a partition or of the table, which no binlog says.

    `verb`: DROP, TRUNCATE, EXCHANGE, DISCARD or IMPORT. `other`: the table that EXCHANGE names.
    """

    verb: str
    other: TableName | None = None


@dataclass(slots=True, kw_only=True)
class WrittenParts:
    """The parts of a CREATE TABLE or ALTER TABLE with their places, as far as they are known.

    `elements`: columns and keys that it defines, of CHANGE and MODIFY too. `foreign_keys`: by FOREIGN KEY. `inline`: by REFERENCES
    after a column, which servers before 9.0 read and forget. `partitioned`: it says PARTITION BY. `queried`: SELECT or another query
    follows, which gives columns that nobody names.
    """

    unknown: list[Unknown] = field(default_factory=list)
    options: list[TableOption] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)
    foreign_keys: list[WrittenForeignKey] = field(default_factory=list)
    inline: list[WrittenForeignKey] = field(default_factory=list)
    checks: list[CheckClause] = field(default_factory=list)
    listed: ElementList | None = None
    actions: list[Action] = field(default_factory=list)
    row_actions: list[RowAction] = field(default_factory=list)
    partitioned: bool = False
    queried: bool = False

    @property
    def engines(self) -> Iterable[TableOption]:
        """Each place that names an engine, of a partition too."""
        return [one for one in self.options if one.is_engine]

    def option(self, name: str) -> TableOption | None:
        """The last option of this name that the table has."""
        return next((one for one in reversed(self.options) if one.name == name and not one.of_partition), None)


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
    written: WrittenParts = field(default_factory=WrittenParts, compare=False, repr=False)

    @property
    def is_temporary(self) -> bool:
        """True where it is known to be about a temporary table."""
        return self.temporary


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
    """DROP KEY, DROP PRIMARY KEY; with `or_constraint` DROP CONSTRAINT, which may be something else than a key."""

    name: str
    or_constraint: bool = False


@dataclass(frozen=True, slots=True)
class DropCheck:
    """DROP CHECK."""

    name: str


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
    | DropCheck
    | RenameKey
    | AddForeignKey
    | DropForeignKey
    | SetCharset
    | SetEngine
)


@dataclass(slots=True)
class AlterTable:
    """ALTER TABLE. `rename`: its new name. `ignores`: ALTER IGNORE."""

    name: TableName
    if_exists: bool = False
    clauses: list[Clause] = field(default_factory=list)
    rename: TableName | None = None
    ignores: bool = field(default=False, compare=False, repr=False)
    written: WrittenParts = field(default_factory=WrittenParts, compare=False, repr=False)

    @property
    def is_temporary(self) -> bool:
        """False: an ALTER TABLE does not say it."""
        return False

    @property
    def engine(self) -> str:
        """The engine that it gives the table, or an empty text."""
        return next((one.engine for one in reversed(self.clauses) if isinstance(one, SetEngine)), "")

    @property
    def dropped_constraints(self) -> list[str]:
        """The names of foreign keys, and of what may be some, that it drops."""
        return [
            one.name
            for one in self.clauses
            if isinstance(one, DropForeignKey) or (isinstance(one, DropKey) and one.or_constraint)
        ]

    @property
    def numbers_rows(self) -> bool:
        """True where it adds a column with AUTO_INCREMENT, which numbers the rows of the table."""
        return any(
            "auto_increment" in one.definition.column.extra for one in self.clauses if isinstance(one, AddColumn)
        )


TableDefinition = CreateTable | AlterTable


def needs(definition: TableDefinition, *words: str) -> None:
    """Raises UnsupportedSyntax where a clause that begins with one of these words may be in a part that is not known."""
    for one in definition.written.unknown:
        if not one.words.isdisjoint(words):
            raise UnsupportedSyntax(one.why)


def needs_everything(definition: TableDefinition) -> None:
    """Raises UnsupportedSyntax where some part is not known."""
    for one in definition.written.unknown:
        raise UnsupportedSyntax(one.why)


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
