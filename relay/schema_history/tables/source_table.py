"""A table of the source: its columns, keys and options, whoever told of them."""

from dataclasses import dataclass
from typing import Final

TableName = tuple[str, str]
"""(schema, table)."""
UNKNOWN_CHARSET: Final = "?"
"""In place of a column's character set: it has one, and nobody knows which."""

WIDE_CHARSETS: Final = frozenset(("ucs2", "utf16", "utf16le", "utf32"))
"""Character sets in which ASCII is not one byte a character."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `type` as in SHOW CREATE TABLE: `int(10) unsigned`, `enum('a','b')`. Texts are empty where there is none.

    `default`: as information_schema.COLUMNS or the statement has it, `5`, `CURRENT_TIMESTAMP`; None: there is none, or NULL.
    """

    name: str
    type: str
    charset: str = ""
    collation: str = ""
    nullable: bool = True
    extra: str = ""
    default: str | None = None

    @property
    def generated(self) -> bool:
        """Whether its value is computed from other columns."""
        extra = self.extra.upper()
        return "GENERATED" in extra.replace("DEFAULT_GENERATED", "") or "VIRTUAL" in extra or "PERSISTENT" in extra


@dataclass(frozen=True, slots=True)
class Key:
    """An index of a table."""

    columns: tuple[str, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns whose values stand in `table` of `schema`."""

    columns: tuple[str, ...]
    schema: str
    table: str
    referenced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the source. `keys`: by name; PRIMARY is the primary key. `charset`: of columns that say none; empty: not known."""

    schema: str
    name: str
    engine: str = ""
    columns: tuple[Column, ...] = ()
    keys: tuple[tuple[str, Key], ...] = ()
    charset: str = ""
    foreign_keys: tuple[tuple[str, ForeignKey], ...] = ()

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The primary key's columns; nothing where there is none."""
        return next((key.columns for name, key in self.keys if name == "PRIMARY"), ())

    @property
    def has_unique_key(self) -> bool:
        """Whether some key makes every row findable: a primary key, or a unique one whose columns are never NULL."""
        never_null = {column.name for column in self.columns if not column.nullable}
        return any(name == "PRIMARY" or (key.unique and never_null.issuperset(key.columns)) for name, key in self.keys)
