"""The rule for each column of a MariaDB table: its type in the Table_map, and the conversion of its values."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, Literal, NamedTuple

from protocol.binlog.table_map import MapColumn
from protocol.columns.codes import column_codes as codes
from protocol.errors import Malformed
from protocol.sql.tables.source_table import Column, TableName
from relay.schema_history.table_agreement import type_parts
from relay.view.rules.mariadb.rows.old_temporal import MOST_DIGITS, datetime_bytes, time_bytes, timestamp_bytes
from relay.view.stops import definition_stops

JsonPolicy = Literal["longtext", "binary"]
_MOST_SCALE: Final = 30
_LENGTH_BYTES: Final = 4
_FIRST_WITH_VECTOR: Final = (9, 0)
_FLOAT_BYTES: Final = 4
_WIDEST: Final = 8
"""The most bytes of a number, an ENUM, a SET, a BIT."""
_FIXED: Final = {
    codes.FIELD_TINY: 1, codes.FIELD_SHORT: 2, codes.FIELD_LONG: 4, codes.FIELD_LONGLONG: 8, codes.FIELD_INT24: 3,
    codes.FIELD_DATE: 3, codes.FIELD_YEAR: 1, codes.FIELD_NEWDATE: 3,
}  # fmt: skip
_TEMPORAL_WHOLE: Final = {codes.FIELD_TIMESTAMP2: 4, codes.FIELD_DATETIME2: 5, codes.FIELD_TIME2: 3}
_REALS: Final = frozenset((codes.FIELD_FLOAT, codes.FIELD_DOUBLE))
_SAME: Final = frozenset((
    *_FIXED, *_TEMPORAL_WHOLE, *_REALS, codes.FIELD_BIT, codes.FIELD_VARCHAR, codes.FIELD_BLOB, codes.FIELD_GEOMETRY,
    codes.FIELD_STRING,
))  # fmt: skip
_OLD_NAMES: Final = {codes.FIELD_TIMESTAMP: "TIMESTAMP", codes.FIELD_DATETIME: "DATETIME", codes.FIELD_TIME: "TIME"}
_OF_TODAY: Final = {
    codes.FIELD_TIMESTAMP: codes.FIELD_TIMESTAMP2,
    codes.FIELD_DATETIME: codes.FIELD_DATETIME2,
    codes.FIELD_TIME: codes.FIELD_TIME2,
}
_OLD_BYTES: Final = {
    codes.FIELD_TIMESTAMP: timestamp_bytes,
    codes.FIELD_DATETIME: datetime_bytes,
    codes.FIELD_TIME: time_bytes,
}
_DIGIT_GROUP: Final = 9
_GROUP_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


class Change(IntEnum):
    """The conversion of a value."""

    NONE = 0
    OLD_TIME = 1
    OLD_DATETIME = 2
    OLD_TIMESTAMP = 3
    UNPACK = 4
    VECTOR = 5
    JSON = 6


_OLD_CHANGES: Final = {
    codes.FIELD_TIMESTAMP: Change.OLD_TIMESTAMP,
    codes.FIELD_DATETIME: Change.OLD_DATETIME,
    codes.FIELD_TIME: Change.OLD_TIME,
}


class ColumnRule(NamedTuple):
    """The rule of one column. `after` is its entry in the target's Table_map.

    A value has `size` bytes, or, with a prefix, as many as the number in the first `prefix` bytes says. `new_prefix` is that of the
    converted value, if it has one. `digits` are those of a time's fraction. `most` limits a value without its prefix, in bytes.
    `dimension` is that of a VECTOR; 0: it is none.
    """

    after: MapColumn
    change: Change = Change.NONE
    size: int = 0
    prefix: int = 0
    new_prefix: int = 0
    digits: int = 0
    most: int = 0
    dimension: int = 0


class TargetChoice(NamedTuple):
    """The choices of a view: its target version, and what JSON columns become."""

    version: tuple[int, int] = (9, 7)
    json: JsonPolicy = "longtext"


def column_rules(
    name: TableName, columns: Sequence[MapColumn], definitions: Sequence[Column] | None, choice: TargetChoice
) -> list[ColumnRule]:
    """Return the rules of a table's columns. `definitions` are those of the first of them, in their order; None: not known.

    Raises: Untranslatable; Malformed for metadata that no server writes.
    """
    known = definitions or ()
    return [
        _rule(name, number, column, known[number - 1] if number <= len(known) else None, choice)
        for number, column in enumerate(columns, 1)
    ]


def _rule(
    name: TableName, number: int, column: MapColumn, definition: Column | None, choice: TargetChoice
) -> ColumnRule:
    kind = column.type
    told, argument, _ = type_parts(definition.type) if definition is not None else ("", "", False)
    if kind in _OLD_NAMES:
        return _old_temporal(name, number, kind, told, argument)
    if kind == codes.FIELD_NEWDECIMAL:
        return _decimal(name, number, column)
    if kind == codes.FIELD_VARCHAR and told == "vector" and choice.version >= _FIRST_WITH_VECTOR:
        return _vector(column)
    if kind == codes.FIELD_BLOB and told == "json" and choice.json == "binary":
        after = MapColumn(codes.FIELD_JSON, bytes((_LENGTH_BYTES,)))
        most = (1 << 8 * _LENGTH_BYTES) - 1
        return ColumnRule(after, Change.JSON, prefix=_blob_prefix(column), new_prefix=_LENGTH_BYTES, most=most)
    if kind in (codes.FIELD_VARCHAR_COMPRESSED, codes.FIELD_BLOB_COMPRESSED):
        return _compressed(column)
    if kind not in _SAME:
        raise definition_stops.column_type_of_mariadb(number, name, kind)
    size, prefix = _extent(column)
    return ColumnRule(column, size=size, prefix=prefix)


def _extent(column: MapColumn) -> tuple[int, int]:
    """Return the bytes of an unchanged value, or of its length. Raises: Malformed."""
    kind = column.type
    if kind in _TEMPORAL_WHOLE:
        return _TEMPORAL_WHOLE[kind] + (_bounded(column.number, MOST_DIGITS) + 1) // 2, 0
    if kind in (codes.FIELD_BLOB, codes.FIELD_GEOMETRY):
        return 0, _blob_prefix(column)
    if kind == codes.FIELD_VARCHAR:
        return 0, _prefix(column.number)
    if kind == codes.FIELD_STRING and column.real_type == codes.FIELD_STRING:
        return 0, _prefix(column.string_bytes)
    if kind == codes.FIELD_STRING:
        return _bounded(column.metadata[1], _WIDEST), 0
    if kind == codes.FIELD_BIT:
        bits, whole = column.metadata
        return _bounded(whole + (1 if bits else 0), _WIDEST), 0
    if kind in _REALS:
        return _bounded(column.number, _WIDEST), 0
    return _FIXED[kind], 0


def _compressed(column: MapColumn) -> ColumnRule:
    if column.type == codes.FIELD_BLOB_COMPRESSED:
        prefix = _blob_prefix(column)
        after = MapColumn(codes.FIELD_BLOB, column.metadata)
        return ColumnRule(after, Change.UNPACK, prefix=prefix, new_prefix=prefix, most=(1 << 8 * prefix) - 1)
    most = column.number - 1
    if most < 0:
        raise Malformed("a compressed VARCHAR of no length")
    after = MapColumn(codes.FIELD_VARCHAR, most.to_bytes(2, "little"))
    return ColumnRule(after, Change.UNPACK, prefix=_prefix(column.number), new_prefix=_prefix(most), most=most)


def _vector(column: MapColumn) -> ColumnRule:
    after = MapColumn(codes.FIELD_VECTOR, bytes((_LENGTH_BYTES,)))
    most = column.number
    return ColumnRule(
        after, Change.VECTOR, prefix=_prefix(most), new_prefix=_LENGTH_BYTES, most=most, dimension=most // _FLOAT_BYTES
    )


def _decimal(name: TableName, number: int, column: MapColumn) -> ColumnRule:
    precision, scale = column.metadata
    if scale > _MOST_SCALE:
        raise definition_stops.decimal_scale(name, number, precision, scale)
    if not 0 < precision <= 65 or scale > precision:
        raise Malformed(f"a DECIMAL({precision},{scale})")
    return ColumnRule(column, size=_digit_bytes(precision - scale) + _digit_bytes(scale))


def _digit_bytes(digits: int) -> int:
    return digits // _DIGIT_GROUP * 4 + _GROUP_BYTES[digits % _DIGIT_GROUP]


def _old_temporal(name: TableName, number: int, kind: int, told: str, argument: str) -> ColumnRule:
    if told != _OLD_NAMES[kind].lower() or not (argument or "0").strip().isdecimal():
        raise definition_stops.old_temporal(name, number, _OLD_NAMES[kind])
    digits = _bounded(int(argument or 0), MOST_DIGITS)
    after = MapColumn(_OF_TODAY[kind], bytes((digits,)))
    return ColumnRule(after, _OLD_CHANGES[kind], size=_OLD_BYTES[kind](digits), digits=digits)


def _bounded(told: int, most: int) -> int:
    if told > most:
        raise Malformed(f"metadata that say {told}, where servers have at most {most}")
    return told


def _prefix(most: int) -> int:
    """Return the bytes of the length of a value that has so many at most."""
    return 2 if most > 255 else 1


def _blob_prefix(column: MapColumn) -> int:
    """Return the bytes of the length of a BLOB, by its metadata."""
    if not column.number:
        raise Malformed("a BLOB whose length has no bytes")
    return _bounded(column.number, _LENGTH_BYTES)
