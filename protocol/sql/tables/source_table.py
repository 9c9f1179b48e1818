"""A table of the source: its columns, keys and options, from any origin."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

TableName = tuple[str, str]
"""(schema, table)."""
UNKNOWN_CHARSET: Final = "?"
"""The value in place of a column's unknown character set."""

CASCADE: Final = "CASCADE"
SET_NULL: Final = "SET NULL"
RESTRICT: Final = "RESTRICT"
"""The rule of a foreign key without one, by the name that servers before MySQL 8.0 have for it."""

WIDE_CHARSETS: Final = frozenset(("ucs2", "utf16", "utf16le", "utf32"))
"""Character sets in which ASCII is not one byte a character."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `type` is as in SHOW CREATE TABLE: `int(10) unsigned`, `enum('a','b')`. Missing texts are empty.

    `collation` is that of texts; empty if it is not known. `utf8_…` and `utf8mb3_…` are the same.
    `default` is in the form of `default_text`, `5`, `CURRENT_TIMESTAMP`, an expression in brackets; a text that looks like something
    else in quotation marks; None: there is none, or NULL.
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
        """True if its value is computed from other columns."""
        extra = self.extra.upper()
        return "GENERATED" in extra.replace("DEFAULT_GENERATED", "") or "VIRTUAL" in extra or "PERSISTENT" in extra

    @property
    def stored(self) -> bool:
        """True if its values are stored: all are but those of VIRTUAL generated columns."""
        return not self.generated or "VIRTUAL" not in self.extra.upper()


@dataclass(frozen=True, slots=True)
class Key:
    """An index of a table. In `columns`, '' is no column, but an expression.

    `prefixes` are how many characters (bytes, of bytes) of each column are in the key, None: all of it. None altogether: not known.
    """

    columns: tuple[str, ...]
    unique: bool = False
    prefixes: tuple[int | None, ...] | None = None
    generated: bool | None = field(default=None, compare=False)
    """True if a foreign key brought it, so that it is dropped when another key serves it. None: not known."""

    @property
    def parts(self) -> tuple[tuple[str, int | None], ...] | None:
        """Columns with their prefixes; None: these are not known."""
        return None if self.prefixes is None else tuple(zip(self.columns, self.prefixes, strict=True))

    @property
    def has_expression(self) -> bool:
        """True if a part of it is no column."""
        return "" in self.columns


def whole_key(columns: Sequence[str], unique: bool = False) -> Key:
    """Return a key of whole columns."""
    return Key(tuple(columns), unique, (None,) * len(columns), False)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key: columns whose values exist in `table` of `schema`. `referenced` is empty for that table's primary key.

    `on_delete`, `on_update` are RESTRICT, NO ACTION (which InnoDB takes for the same), CASCADE, SET NULL, SET DEFAULT.
    """

    columns: tuple[str, ...]
    schema: str
    table: str
    referenced: tuple[str, ...]
    on_delete: str = RESTRICT
    on_update: str = RESTRICT


CharsetDefault = tuple[str, str]
"""(character set, collation) of columns that name none; '' is not known."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the source. `keys` are by name; PRIMARY is the primary key.

    `charset`, `collation` are for columns that name none; empty: not known. `foreign_keys` are by name; None: not known. `type` is
    SEQUENCE or SYSTEM VERSIONED, as the source reports it; empty: neither, or it was not asked.
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
        """The primary key's columns; empty if there is none."""
        return next((key.columns for name, key in self.keys if name == "PRIMARY"), ())

    @property
    def has_unique_key(self) -> bool:
        """True if some key makes every row findable: a primary key, or a unique one whose columns are never NULL."""
        never_null = {column.name for column in self.columns if not column.nullable}
        return any(name == "PRIMARY" or (key.unique and never_null.issuperset(key.columns)) for name, key in self.keys)

    @property
    def parents(self) -> frozenset[TableName]:
        """The tables that its foreign keys, as far as they are known, refer to, in lower case."""
        return frozenset((key.schema.lower(), key.table.lower()) for _name, key in self.foreign_keys or ())
