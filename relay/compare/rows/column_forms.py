"""A column's value in forms that servers of all versions compute alike: for checksums, for keys, for people and for statements."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from relay.compare.rows.table_shape import ShapeColumn
from relay.upstream.schema.answer_text import quoted_name

_TEXTS_APART: Final = frozenset(("tinytext", "text", "mediumtext", "longtext"))
_BYTES_APART: Final = frozenset(("tinyblob", "blob", "mediumblob", "longblob", "vector"))


_ADDRESS_BYTES: Final = {"uuid": 16, "inet6": 16, "inet4": 4}


class ValueKind(Enum):
    """What a column's values are."""

    NUMBER = "number"
    REAL = "real"
    COUNTED = "counted"
    MOMENT = "moment"
    TEXT = "text"
    BYTES = "bytes"
    SHAPE = "shape"
    DOCUMENT = "document"
    OTHER = "other"


_KINDS: Final = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year"), ValueKind.NUMBER),
    **dict.fromkeys(("float", "double", "real"), ValueKind.REAL),
    **dict.fromkeys(("enum", "set", "bit"), ValueKind.COUNTED),
    **dict.fromkeys(("date", "datetime", "timestamp", "time"), ValueKind.MOMENT),
    **dict.fromkeys(("char", "varchar", *_TEXTS_APART), ValueKind.TEXT),
    **dict.fromkeys(("binary", "varbinary", *_BYTES_APART), ValueKind.BYTES),
    **dict.fromkeys(("geometry", "point", "linestring", "polygon", "multipoint"), ValueKind.SHAPE),
    **dict.fromkeys(("multilinestring", "multipolygon", "geometrycollection", "geomcollection"), ValueKind.SHAPE),
    **dict.fromkeys(("uuid", "inet6", "inet4"), ValueKind.BYTES),  # of MariaDB; a view makes them BINARY
    "json": ValueKind.DOCUMENT,
}


def same_charset(one: str, other: str) -> bool:
    """Return whether both are the same character set: that of three bytes has two names."""
    return modern_charset(one) == modern_charset(other)


def modern_charset(name: str) -> str:
    """Return the name of a character set, or of a collation, as new servers have it."""
    return f"utf8mb3{name[4:]}" if name == "utf8" or name.startswith("utf8_") else name


@dataclass(frozen=True, slots=True)
class PairedColumn:
    """A column here, as its counterpart `there` demands it: both sides make the same form of equal values."""

    here: ShapeColumn
    there: ShapeColumn

    @property
    def name(self) -> str:
        """Its name in a statement."""
        return quoted_name(self.here.name)

    @property
    def kind(self) -> ValueKind:
        """What both sides' values are; OTHER if that is not the same, or of a type that only one product has: then as texts."""
        here, there = (_KINDS.get(one.base, ValueKind.OTHER) for one in (self.here, self.there))
        if here is not there or (here is ValueKind.COUNTED and self.here.type != self.there.type):
            return ValueKind.OTHER
        return here

    @property
    def may_be_null(self) -> bool:
        """True if either side may hold NULL."""
        return self.here.nullable or self.there.nullable

    # --- checksums ---------------------------------------------------------------------------------------------------

    def hashed(self) -> str:
        """Return the form in a row's checksum. Long values go in as their own checksum: a row of them exceeds max_allowed_packet."""
        kind, name = self.kind, self.name
        if kind is ValueKind.NUMBER:
            return f"{name} + 0" if "zerofill" in self.here.type + self.there.type else name
        if kind is ValueKind.REAL:
            return f"{name} + 0e0"  # all digits, and no minus before 0
        if kind is ValueKind.COUNTED:
            return f"CAST({name} AS UNSIGNED)"
        if kind is ValueKind.MOMENT:
            return name
        if kind is ValueKind.TEXT:
            return _digest(self._text()) if self._is_apart else f"CAST({self._text()} AS BINARY)"
        if kind is ValueKind.BYTES and not self._is_apart:
            return self._bytes()
        if kind in (ValueKind.BYTES, ValueKind.SHAPE):
            return _digest(f"CAST({name} AS BINARY)" if self.here.base == "vector" or kind is ValueKind.SHAPE else name)
        return _digest(self._as_text())

    def hashed_length(self) -> str | None:
        """Return the form's length, which tells where the next one begins; None: it contains no separator."""
        if self.kind is ValueKind.TEXT and not self._is_apart:
            return f"LENGTH({self._text()})"
        if self.kind is ValueKind.BYTES and not self._is_apart:
            return f"LENGTH({self._bytes()})"
        return None

    @property
    def _is_apart(self) -> bool:
        return bool({self.here.base, self.there.base} & (_TEXTS_APART | _BYTES_APART))

    def _bytes(self) -> str:
        size = _ADDRESS_BYTES.get(self.here.base)
        return self.name if size is None else f"CAST({self.name} AS BINARY({size}))"

    def _text(self) -> str:
        """Return a text in its own character set, or where the sides differ in one that has all."""
        if same_charset(self.here.charset, self.there.charset):
            return self.name
        return f"CONVERT({self.name} USING utf8mb4)"

    def _as_text(self) -> str:
        return f"CONVERT(CAST({self.name} AS CHAR) USING utf8mb4)"

    # --- values ------------------------------------------------------------------------------------------------------

    def fetched(self) -> str:
        """Return the form in which nothing is lost on the way here."""
        kind, name = self.kind, self.name
        if kind is ValueKind.NUMBER:
            return f"{name} + 0"
        if kind is ValueKind.REAL:
            return f"{name} + 0e0"
        if kind is ValueKind.COUNTED:
            return f"CAST({name} AS UNSIGNED)"
        if kind is ValueKind.MOMENT:
            return f"CAST({name} AS CHAR)"
        if kind is ValueKind.TEXT:
            return f"HEX({self._text()})"
        if kind in (ValueKind.BYTES, ValueKind.SHAPE):
            return f"HEX({self._bytes()})"
        return f"HEX({self._as_text()})"

    def told(self, value: Any) -> Any:
        """Return a fetched value so that equal ones are equal, and as people read it."""
        if value is None or self.kind in (ValueKind.NUMBER, ValueKind.COUNTED, ValueKind.MOMENT):
            return value
        if self.kind is ValueKind.REAL:
            return float(value)
        raw = bytes.fromhex(value)
        if self.kind in (ValueKind.BYTES, ValueKind.SHAPE):
            return f"0x{raw.hex()}"
        text = raw.decode("utf-8", "backslashreplace")
        if self.kind is ValueKind.OTHER and "json" in (self.here.base, self.there.base):
            return _document(text)
        return text

    def literal(self, value: Any) -> str:
        """Return a value that was fetched at either side, for a statement here."""
        kind = self.kind
        if value is None:
            return "NULL"
        if kind is ValueKind.REAL:
            text = repr(float(value))
            return text if "e" in text else f"{text}e0"
        if kind in (ValueKind.NUMBER, ValueKind.COUNTED):
            return format(value, "f") if isinstance(value, Decimal) else str(int(value))
        if kind is ValueKind.MOMENT:
            return f"'{value}'"
        if self.here.base in _ADDRESS_BYTES and kind is ValueKind.BYTES:
            return f"CAST(X'{value}' AS {self.here.base.upper()})"
        if kind in (ValueKind.BYTES, ValueKind.SHAPE):
            return f"X'{value}'"
        if kind is ValueKind.TEXT and same_charset(self.here.charset, self.there.charset):
            return f"_{self.here.charset} X'{value}'"
        return f"_utf8mb4 X'{value}'"

    def compared_literal(self, value: Any) -> str:
        """Return a key's value for a condition here, so that the index serves it."""
        text = self.literal(value)
        if self.kind is not ValueKind.TEXT:
            return text
        if not same_charset(self.here.charset, self.there.charset):
            text = f"CONVERT({text} USING {self.here.charset})"
        return f"{text} COLLATE {self.here.collation}"

    @property
    def ordered(self) -> str:
        """The column as a key is ordered by it: a SET would be a DOUBLE, which cannot represent all of 64 members."""
        return f"CAST({self.name} AS UNSIGNED)" if self.here.base == "set" else self.name


def row_hash(columns: Sequence[PairedColumn]) -> str:
    """Return the expression of a row's checksum, in hexadecimal. Different rows are different texts: lengths and NULLs are in it."""
    parts = [one.hashed() for one in columns]
    parts += [length for one in columns if (length := one.hashed_length()) is not None]
    parts += [f"ISNULL({one.name})" for one in columns if one.may_be_null]
    return _digest(f"CONCAT_WS('#', {', '.join(parts)})")


def hash_number(hashed: str) -> str:
    """Return the expression of a row's checksum as a number, of which sums are exact and do not depend on the order of rows."""
    return f"CAST(CONV(LEFT({hashed}, 15), 16, 10) AS UNSIGNED)"


def _digest(expression: str) -> str:
    # MySQL 9.7 has no MD5 and no SHA1, and CRC32 finds no values that change places.
    return f"SHA2({expression}, 256)"


def _document(text: str) -> Any:
    """Return a JSON document without regard to blanks and the order of keys; a text that is none as it is."""
    try:
        return json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)
    except ValueError:
        return text
