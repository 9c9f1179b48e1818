"""What a definition does to a lake's table: columns added, widened, renamed; or that it cannot be followed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from protocol.binlog.schema.column_description import column_texts
from relay.feed.lake.lake_table import ColumnsChange
from relay.feed.rows.feed_stop import table_stop
from relay.feed.rows.lake_columns import (
    BYTES,
    LABEL,
    ROW,
    TEXT,
    LakeColumn,
    lake_columns,
    lake_key,
    lake_schema,
    parsed_type,
)
from relay.feed.rows.partial_images import default_value
from relay.feed.rows.stored_default import UNKNOWN
from relay.feed.statements.logged_changes import FedDefinition, shown
from relay.schema_history.tables.altered_table import column_origins
from relay.schema_history.tables.ddl_tokens import NotSure
from relay.schema_history.tables.source_table import Column, Table

_ORDER: Final = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "integer": 4, "bigint": 5}
_TEXT_ORDER: Final = {"char": 0, "varchar": 0, "tinytext": 1, "text": 2, "mediumtext": 3, "longtext": 4}
_BYTES_ORDER: Final = {"varbinary": 0, "tinyblob": 1, "blob": 2, "mediumblob": 3, "longblob": 4}
_UNICODE: Final = frozenset(("utf8mb4", "utf16", "utf16le", "utf32"))


@dataclass(slots=True)
class _Made:
    renamed: dict[str, str] = field(default_factory=dict)
    filled: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, pa.DataType] = field(default_factory=dict)


def alteration(
    definition: FedDefinition,
    before: Table,
    after: Table,
    lake: pa.Schema,
    place: str,
    *,
    empty: bool,
    has_zero: Callable[[str], bool] = lambda _name: True,
) -> ColumnsChange:
    """The change of the lake's columns that an ALTER TABLE means. `empty`: the lake's table has no rows.

    has_zero: whether some row of the lake has 0 in a column. Names of columns are the same in any case.

    Raises: FeedStop, where its rows would no longer be the source's.
    """
    name = f"{after.schema}.{after.name}"
    columns = lake_columns(after, place)
    has_key = bool(lake_key(after))
    if empty:
        return ColumnsChange(_emptied(columns, lake, has_key=has_key), emptied=True)
    old = {one.name.lower(): one for one in before.columns}
    try:
        origins = column_origins(before, definition.clauses)
    except NotSure as error:
        text = f"It does not fit the table's columns ({error}): {shown(definition.text, 120)}."
        raise table_stop("definition_unknown", place, name, text) from None
    made = _Made()
    for one in columns:
        lower = one.name.lower()
        former = old.get(origins.former.get(lower, lower)) if lower not in origins.added else None
        if former is None or not former.stored:
            _add(one, definition, lake, made, place)
            continue
        if former.name != one.name and lake.get_field_index(former.name) >= 0:
            made.renamed[one.name] = former.name
        if lower in origins.defined and (former.generated or one.source.generated):
            raise table_stop(
                "column_changed",
                place,
                name,
                f"Column {one.name} is computed, by another expression perhaps than before: the binlog does not tell its new values.",
            )
        counts = _counts(one.source) and not _counts(former) and not definition.keeps_zero
        if counts and lake.get_field_index(former.name) >= 0 and has_zero(former.name):
            raise table_stop(
                "column_changed",
                place,
                name,
                f"Column {one.name} counts from here on (AUTO_INCREMENT): rows that had 0 in it have a number now, and the binlog does not tell which.",
            )
        if not is_kept(former, one.source, definition.strict):
            raise table_stop(
                "column_changed",
                place,
                name,
                f"Column {one.name} was {_told(former)} and is {_told(one.source)} now: the source changed the values of rows "
                "without telling which.",
            )
        made.fields[one.name] = one.arrow
    new_names = {former: new for new, former in made.renamed.items()}
    fields = []
    for kept in lake:
        if kept.name in made.renamed and kept.name not in new_names:
            continue  # of a column that was dropped, whose name another one has now
        new = new_names.get(kept.name, kept.name)
        fields.append(pa.field(new, made.fields.pop(new, kept.type)))
    fields += [pa.field(column, kind) for column, kind in made.fields.items()]
    schema = pa.schema(fields)
    lost = not has_key and bool(lake_key(before))
    if lost and lake.get_field_index(ROW) < 0:
        schema = schema.append(pa.field(ROW, pa.int64()))
    return ColumnsChange(schema, made.renamed, made.filled, numbered=lost)


def _emptied(columns: list[LakeColumn], lake: pa.Schema, *, has_key: bool) -> pa.Schema:
    """The columns that there are now, and those that were dropped."""
    made = lake_schema(columns, has_key=has_key)
    known = {one.lower() for one in made.names}
    return pa.schema([*made, *(one for one in lake if one.name.lower() not in known)])


def _told(column: Column) -> str:
    charset = f" CHARACTER SET {column.charset}" if column.charset else ""
    return f"{column.type}{charset}{'' if column.nullable else ' NOT NULL'}"


def _counts(column: Column) -> bool:
    return "auto_increment" in column.extra.lower()


def recreated(columns: list[LakeColumn], *, has_key: bool) -> ColumnsChange:
    """A table that was made anew."""
    return ColumnsChange(lake_schema(columns, has_key=has_key), emptied=True)


def _add(one: LakeColumn, definition: FedDefinition, lake: pa.Schema, made: _Made, place: str) -> None:
    value = _filling(one)
    if value is UNKNOWN:
        raise table_stop(
            "column_added",
            place,
            ".".join(definition.key),
            f"Column {one.name} ({one.source.type}) came to it, and rows that there were have values in it which the binlog "
            "does not tell.",
        )
    made.fields[one.name] = one.arrow
    alike = [other for other in lake.names if other.lower() == one.name.lower()]
    if alike and alike[0] != one.name:
        made.renamed[one.name] = alike[0]
    if value is not None or alike:
        made.filled[one.name] = value


def _filling(one: LakeColumn) -> Any:
    """What a column that was added is in the rows that there were, in Arrow's terms; UNKNOWN: nobody knows."""
    source = one.source
    if source.generated or "auto_increment" in source.extra.lower():
        return UNKNOWN
    found = default_value(one)
    if found is not UNKNOWN:
        return in_arrow(one, found)
    if source.default is not None or source.nullable:
        return UNKNOWN
    if pa.types.is_integer(one.arrow) or pa.types.is_floating(one.arrow):
        return 0
    if pa.types.is_decimal(one.arrow):
        return Decimal(0)
    base = parsed_type(source)[0]
    if one.kind == TEXT and base in _TEXT_ORDER:
        return ""
    if one.kind == LABEL:
        return column_texts(source.type)[0] if base == "enum" else ""
    return b"" if one.kind == BYTES and base in _BYTES_ORDER else UNKNOWN


def in_arrow(one: LakeColumn, value: Any) -> Any:
    """A value as JSON has it in the terms of the lake's type; UNKNOWN where it has none."""
    if value is None:
        return None
    try:
        if pa.types.is_decimal(one.arrow):
            return Decimal(str(value))
        if pa.types.is_date(one.arrow) or pa.types.is_timestamp(one.arrow):
            if str(value).startswith("0000"):
                return UNKNOWN
            return pa.scalar(str(value).replace(" ", "T"), pa.string()).cast(one.arrow).as_py()
        return value
    except (ArithmeticError, ValueError, pa.ArrowInvalid):
        return UNKNOWN


def is_kept(old: Column, new: Column, strict: bool) -> bool:
    """Whether no value can be another after a column's change. `strict`: the statement fails where one would."""
    if old.nullable and not new.nullable and not strict:
        return False
    before, inside, unsigned = parsed_type(old)
    after, now, now_unsigned = parsed_type(new)
    if new.generated or old.generated:
        return old.type == new.type and old.extra == new.extra
    if (old.type, old.charset) == (new.type, new.charset):
        return True
    if before in _ORDER and after in _ORDER:
        if unsigned == now_unsigned:
            return _ORDER[before] <= _ORDER[after] or strict
        return (unsigned and _ORDER[before] < _ORDER[after]) or strict
    if before in _TEXT_ORDER and after in _TEXT_ORDER:
        if (before == "char") != (after == "char") and after == "char":
            return False
        if (
            old.charset != new.charset
            and new.charset not in _UNICODE
            and not (old.charset in ("utf8", "utf8mb3", "ascii") and new.charset in ("utf8", "utf8mb3"))
        ):
            return False
        if _TEXT_ORDER[before] != _TEXT_ORDER[after]:
            return _TEXT_ORDER[before] < _TEXT_ORDER[after] and (_TEXT_ORDER[after] > 1 or strict)
        return strict or _number(inside) <= _number(now)
    if before in _BYTES_ORDER and after in _BYTES_ORDER:
        if _BYTES_ORDER[before] != _BYTES_ORDER[after]:
            return _BYTES_ORDER[before] < _BYTES_ORDER[after] and (_BYTES_ORDER[after] > 1 or strict)
        return strict or _number(inside) <= _number(now)
    if before == after == "binary":
        return inside == now
    if before in ("decimal", "numeric") and after in ("decimal", "numeric"):
        digits, places = _digits(inside)
        more, further = _digits(now)
        return further >= places and more - further >= digits - places and unsigned >= now_unsigned and more <= 38
    if before == "float" and after == "double":
        return not now and unsigned >= now_unsigned
    if before == after and before in ("enum", "set"):
        texts, others = column_texts(old.type), column_texts(new.type)
        if before == "set":
            return list(others[: len(texts)]) == list(texts)
        return set(texts) <= set(others)
    if before == after and before in ("datetime", "timestamp", "time"):
        return _number(inside or "0") <= _number(now or "0")
    return before == after and inside == now and unsigned == now_unsigned


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0


def _digits(inside: str) -> tuple[int, int]:
    digits, _, places = (inside or "10,0").partition(",")
    return int(digits or 10), int(places or 0)
