"""A table of the source: its columns, keys and options, whoever told of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

TableName = tuple[str, str]
"""(schema, table)."""
UNKNOWN_CHARSET: Final = "?"
"""In place of a column's character set: it has one, and nobody knows which."""

CASCADE: Final = "CASCADE"
SET_NULL: Final = "SET NULL"
RESTRICT: Final = "RESTRICT"
"""What a foreign key does that says nothing else, by the name that servers before MySQL 8.0 have for it."""

WIDE_CHARSETS: Final = frozenset(("ucs2", "utf16", "utf16le", "utf32"))
"""Character sets in which ASCII is not one byte a character."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `type` as in SHOW CREATE TABLE: `int(10) unsigned`, `enum('a','b')`. Texts are empty where there is none.

    `collation`: of texts; empty where it is not known. `utf8_…` and `utf8mb3_…` are the same.
    `default`: as `default_text` has it, `5`, `CURRENT_TIMESTAMP`, an expression in brackets; a text that looks like something else in
    quotation marks; None: there is none, or NULL.
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

    @property
    def stored(self) -> bool:
        """Whether its values are stored: all are but those of VIRTUAL generated columns."""
        return not self.generated or "VIRTUAL" not in self.extra.upper()


@dataclass(frozen=True, slots=True)
class Key:
    """An index of a table. `columns`: one that is called '' is no column, but an expression.

    `prefixes`: how many characters (bytes, of bytes) of each column are in the key, None: all of it. None altogether: not known.
    """

    columns: tuple[str, ...]
    unique: bool = False
    prefixes: tuple[int | None, ...] | None = None
    generated: bool | None = field(default=None, compare=False)
    """Whether a foreign key brought it, so that it goes when another key does for it. None: not known."""

    @property
    def parts(self) -> tuple[tuple[str, int | None], ...] | None:
        """Columns with their prefixes; None: these are not known."""
        return None if self.prefixes is None else tuple(zip(self.columns, self.prefixes, strict=True))

    @property
    def has_expression(self) -> bool:
        """Whether a part of it is no column."""
        return "" in self.columns


def whole_key(columns: Sequence[str], unique: bool = False) -> Key:
    """A key of whole columns."""
    return Key(tuple(columns), unique, (None,) * len(columns), False)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns whose values stand in `table` of `schema`. `referenced`: empty for that table's primary key.

    `on_delete`, `on_update`: RESTRICT, NO ACTION (which InnoDB takes for the same), CASCADE, SET NULL, SET DEFAULT.
    """

    columns: tuple[str, ...]
    schema: str
    table: str
    referenced: tuple[str, ...]
    on_delete: str = RESTRICT
    on_update: str = RESTRICT


CharsetDefault = tuple[str, str]
"""(character set, collation) of what says none; '' is not known."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the source. `keys`: by name; PRIMARY is the primary key.

    `charset`, `collation`: of columns that say none; empty: not known. `foreign_keys`: by name; None: not known. `type`: SEQUENCE or
    SYSTEM VERSIONED, as the source says when it is asked; empty: neither, or nobody asked.
    """

    schema: str
    name: str
    engine: str = ""
    columns: tuple[Column, ...] = ()
    keys: tuple[tuple[str, Key], ...] = ()
    charset: str = ""
    foreign_keys: tuple[tuple[str, ForeignKey], ...] | None = None
    collation: str = ""
    type: str = field(default="", compare=False)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The primary key's columns; nothing where there is none."""
        return next((key.columns for name, key in self.keys if name == "PRIMARY"), ())

    @property
    def has_unique_key(self) -> bool:
        """Whether some key makes every row findable: a primary key, or a unique one whose columns are never NULL."""
        never_null = {column.name for column in self.columns if not column.nullable}
        return any(name == "PRIMARY" or (key.unique and never_null.issuperset(key.columns)) for name, key in self.keys)

    @property
    def parents(self) -> frozenset[TableName]:
        """The tables that its foreign keys, as far as they are known, refer to, in lower case."""
        return frozenset((key.schema.lower(), key.table.lower()) for _name, key in self.foreign_keys or ())
