"""The tree of a statement that defines tables or databases: its content, before the table's previous state is known.

Places are [start, stop) in the text of the statement. They have no part in comparisons and are not printed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.references_clause import ReferencesClause
from protocol.sql.tables.source_table import CharsetDefault, Column, ForeignKey, Key, TableName

FIRST: Final = ""
"""The value in place of the column after which another is put."""


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column's definition. `column.charset` is the statement's, UNKNOWN_CHARSET if it takes its table's; empty: it is no text.

    `column.collation` is empty if it takes its table's or is not known; `_bin` is that of the table's character set. `after` is the
    column after which it is put, FIRST, or None. `primary` and `unique` are its own key. `references` is its REFERENCES clause.
    """

    column: Column
    after: str | None = None
    primary: bool = False
    unique: bool = False
    references: ForeignKey | None = None


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """A key's definition. `name` is empty if the server makes one up."""

    name: str
    key: Key


@dataclass(frozen=True, slots=True)
class ForeignKeyDefinition:
    """A foreign key's definition. `name` is empty if the server makes one up. `certain`: the server takes it for a foreign key.

    `index` is the name of the index that it brings, if none exists.
    """

    name: str
    index: str
    key: ForeignKey
    certain: bool = True


@dataclass(slots=True)
class CharsetOption:
    """A default character set. `charset` None: none is named; `default`: that of the outer object.

    `collation` is empty if it is not known. `collated`: COLLATE names it.
    """

    charset: str | None = None
    default: bool = False
    collation: str = ""
    collated: bool = False

    def resolved(self, outer: CharsetDefault, own: CharsetDefault) -> CharsetDefault:
        """Return the set of new columns. `outer` is the outer object's; `own` applies if none is named."""
        if self.default:
            return outer
        charset, collation = (self.charset, self.collation) if self.charset else own
        return (charset, "") if self.collated and not self.collation else (charset, collation)


@dataclass(slots=True)
class Unknown:
    """A part of a statement that the reader does not know.

    `words`: its keywords outside of brackets, in upper case; none of them in what can hold no part of a definition, as a query.
    `is_read`: the part has its place in the tree, and only its effect on the columns and keys is not known, as of system versioning.
    """

    start: int
    stop: int
    why: str
    words: set[str]
    is_read: bool = False


class TableOption(NamedTuple):
    """An option of a table. `name` is in upper case, such as `ENGINE`, `TYPE` (the same in old servers) or `DATA DIRECTORY`.

    `value` is where its value, or the bracket around it, begins. `text` is the value, a name or a string without quotation marks.
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
    """FOREIGN KEY, or REFERENCES after a column. `name` is CONSTRAINT's, or empty."""

    name: str
    references: ReferencesClause


class CheckClause(NamedTuple):
    """[CONSTRAINT [name]] CHECK (…) [[NOT] ENFORCED]. `of_column`: it is in the definition of a column. `condition`: its bracket."""

    start: int
    stop: int
    of_column: bool
    condition: int


class Attribute(NamedTuple):
    """A clause of a column's or a key's definition. `name`: its keywords in upper case. `value`: where its value begins, or `stop`."""

    name: str
    start: int
    value: int
    stop: int


class KeyPart(NamedTuple):
    """A column of a key; one of an expression is called ''. `prefix` None: all of it. `stop`: where the name ends."""

    name: str
    prefix: int | None
    stop: int


class WrittenKey(NamedTuple):
    """A key or a constraint that is a definition of its own.

    `kind`: PRIMARY, UNIQUE, FULLTEXT, SPATIAL, VECTOR, FOREIGN, CHECK, PERIOD, or empty for a plain one. `name`: empty where the
    server makes one up; it begins at `named` (-1: none). `closed`: the bracket after its columns. `exists`: IF NOT EXISTS.
    """

    kind: str
    name: str
    named: int
    parts: tuple[KeyPart, ...] = ()
    closed: int = -1
    exists: Attribute | None = None
    references: ReferencesClause | None = None


class Element(NamedTuple):
    """A column or a key with all its attributes, without the comma. `type_at` is where the type of a column begins, -1 for a key."""

    start: int
    stop: int
    type_at: int = -1


class ElementList(NamedTuple):
    """Columns and keys, with the brackets around them."""

    start: int
    stop: int
    elements: tuple[Element, ...]


class Action(NamedTuple):
    """An action of ALTER TABLE, without the comma. `listed` are the elements of ADD (…)."""

    start: int
    stop: int
    listed: ElementList | None = None


class RowAction(NamedTuple):
    """An action of ALTER TABLE on all rows of a partition or of the table, which no binlog contains.

    `verb` is DROP, TRUNCATE, EXCHANGE, DISCARD or IMPORT. `other` is the table that EXCHANGE names.
    """

    verb: str
    other: TableName | None = None


@dataclass(slots=True, kw_only=True)
class WrittenParts:
    """The parts of a CREATE TABLE or ALTER TABLE with their places, as far as they are known.

    `elements` are the columns and keys that it defines, of CHANGE and MODIFY too. `foreign_keys` are those of FOREIGN KEY, `inline`
    those of REFERENCES after a column, which servers before 9.0 read and forget. `partitioned`: it contains PARTITION BY. `queried`:
    SELECT or another query follows, which adds columns that it does not name.
    """

    unknown: list[Unknown] = field(default_factory=list)
    options: list[TableOption] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)
    foreign_keys: list[WrittenForeignKey] = field(default_factory=list)
    inline: list[WrittenForeignKey] = field(default_factory=list)
    checks: list[CheckClause] = field(default_factory=list)
    keys: list[WrittenKey] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)
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
        """Return the table's last option of this name."""
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
    """DROP KEY, DROP PRIMARY KEY; with `or_constraint` DROP CONSTRAINT, which may be no key."""

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
    """[DEFAULT] CHARACTER SET of later columns; `converts`: CONVERT TO, of all columns."""

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
    """ALTER TABLE. `rename` is its new name. `ignores`: ALTER IGNORE."""

    name: TableName
    if_exists: bool = False
    clauses: list[Clause] = field(default_factory=list)
    rename: TableName | None = None
    ignores: bool = field(default=False, compare=False, repr=False)
    written: WrittenParts = field(default_factory=WrittenParts, compare=False, repr=False)

    @property
    def is_temporary(self) -> bool:
        """False: an ALTER TABLE does not contain it."""
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
        """True if it adds a column with AUTO_INCREMENT, which numbers the rows of the table."""
        return any(
            "auto_increment" in one.definition.column.extra for one in self.clauses if isinstance(one, AddColumn)
        )


TableDefinition = CreateTable | AlterTable


def needs(definition: TableDefinition, *words: str) -> None:
    """Check that no clause that begins with one of these words may be in an unknown part. Raises: UnsupportedSyntax."""
    for one in definition.written.unknown:
        if not one.words.isdisjoint(words):
            raise UnsupportedSyntax(one.why)


def needs_everything(definition: TableDefinition) -> None:
    """Check that no part is unknown. Raises: UnsupportedSyntax."""
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
    """It defines another object: no table's columns change by it."""


Statement = (
    CreateTable | AlterTable | DropTables | RenameTables | CreateDatabase | AlterDatabase | DropDatabase | NoTable
)
