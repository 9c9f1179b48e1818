"""The effect of a definition on a lake's table: columns added, widened, renamed; or that it cannot be followed."""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.altered_table import ColumnOrigins, column_origins
from protocol.sql.tables.source_table import Column, Table
from relay.feed.lake.lake_table import ColumnsChange
from relay.feed.rows.feed_stop import table_stop
from relay.feed.rows.lake_columns import (
    ROW,
    LakeColumn,
    lake_columns,
    lake_key,
    lake_schema,
    parsed_type,
)
from relay.feed.rows.minimal_row_images import default_value
from relay.feed.rows.stored_default import UNKNOWN
from relay.feed.statements.kept_values import INTEGER_ORDER, computes_alike, is_kept
from relay.feed.statements.logged_changes import DdlChange, shown

_COPIES: Final = re.compile(r"\b(?:COPY|PARTITION\w*|CHECK|FOREIGN|REFERENCES|ORDER)\b", re.IGNORECASE)
_ENGINE: Final = re.compile(r"\bENGINE\b", re.IGNORECASE)


@dataclass(slots=True)
class _Made:
    renamed: dict[str, str] = field(default_factory=dict)
    filled: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, pa.DataType] = field(default_factory=dict)


def alteration(
    definition: DdlChange,
    before: Table,
    after: Table,
    lake: pa.Schema,
    place: str,
    *,
    empty: bool,
    has_zero: Callable[[str], bool] = lambda _name: True,
) -> ColumnsChange:
    """Return the change of the lake's columns for an ALTER TABLE. `empty` says that the lake's table has no rows.

    `has_zero` returns whether some row of the lake has 0 in a column. Names of columns are case-insensitive.

    Raises: FeedStop if its rows would no longer be the source's.
    """
    name = f"{after.schema}.{after.name}"
    columns = lake_columns(after, place)
    has_key = bool(lake_key(after))
    if empty:
        return ColumnsChange(_emptied(columns, lake, has_key=has_key), emptied=True)
    old = {one.name.lower(): one for one in before.columns}
    try:
        origins = column_origins(before, definition.clauses)
    except UnsupportedSyntax as error:
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
        # NULL becomes a number even if NO_AUTO_VALUE_ON_ZERO keeps 0.
        keeps = definition.keeps_zero and not former.nullable
        counts = _counts(one.source) and not _counts(former) and not keeps
        if counts and lake.get_field_index(former.name) >= 0 and has_zero(former.name):
            raise table_stop(
                "column_changed",
                place,
                name,
                f"Column {one.name} counts from here on (AUTO_INCREMENT): rows that had 0 or NULL in it have a number now, and the binlog does not tell which.",
            )
        converted = lower not in origins.defined
        if not is_kept(former, one.source, definition.strict, pads=definition.pads, converted=converted):
            raise table_stop(
                "column_changed",
                place,
                name,
                f"Column {one.name} was {_told(former)} and is {_told(one.source)} now: the source changed the values of rows "
                "without telling which.",
            )
        made.fields[one.name] = one.arrow
    _check_computed(definition, before, after, origins, place)
    new_names = {former: new for new, former in made.renamed.items()}
    fields = []
    for kept in lake:
        if kept.name in made.renamed and kept.name not in new_names:
            continue  # It belongs to a dropped column whose name another one has now
        new = new_names.get(kept.name, kept.name)
        fields.append(pa.field(new, made.fields.pop(new, kept.type)))
    fields += [pa.field(column, kind) for column, kind in made.fields.items()]
    schema = pa.schema(fields)
    lost = not has_key and bool(lake_key(before))
    if lost and lake.get_field_index(ROW) < 0:
        schema = schema.append(pa.field(ROW, pa.int64()))
    return ColumnsChange(schema, made.renamed, made.filled, numbered=lost)


def _check_computed(definition: DdlChange, before: Table, after: Table, origins: ColumnOrigins, place: str) -> None:
    """Check stored computed columns, which are recomputed if the statement rebuilds the table, whether it names them or not.

    Raises: FeedStop if the values from which they are computed may differ.
    """
    old = {one.name.lower(): one for one in before.columns}
    former = {one.name: old.get(origins.former.get(one.name.lower(), one.name.lower())) for one in after.columns}
    computed = [one.name for one in after.columns if one.generated and one.stored and former[one.name] is not None]
    copied = computed and _is_copied(definition, before, after, former)
    for one in after.columns:
        others = [name for name in computed if name != one.name]
        why = others and (
            _other_input(one, former[one.name], old, origins)
            or (copied and _read_otherwise(definition, former[one.name]))
        )
        if why:
            raise table_stop(
                "column_changed",
                place,
                f"{after.schema}.{after.name}",
                f"Column {others[0]} is computed and stored, and column {why}: where {others[0]} is computed from it, its values may "
                "be others, and the binlog does not tell them.",
            )


def _other_input(one: Column, former: Column | None, old: dict[str, Column], origins: ColumnOrigins) -> str:
    """Return what changes the values of columns that are computed from this one; '' if nothing does."""
    lower = one.name.lower()
    if former is None or lower in origins.added:
        return f"{one.name} is another column now" if lower in old else ""
    if former.name.lower() != lower and lower in old:
        return f"{one.name} is another column now"
    if lower in origins.defined and (one.generated or former.generated):
        return f"{one.name} is computed, by another expression perhaps than before"
    return "" if computes_alike(former, one) else f"{one.name} was {_told(former)} and is {_told(one)} now"


def _is_copied(definition: DdlChange, before: Table, after: Table, former: Mapping[str, Column | None]) -> bool:
    """Return whether a server may read and rewrite all rows, by the modes and the time zone of the statement's session.

    It does not for columns with a constant default that are added, dropped, moved or renamed, for other defaults, and for indexes.
    """
    pairs = [(former[one.name], one) for one in after.columns]
    return bool(
        _COPIES.search(definition.text) is not None
        or (before.engine and after.engine and before.engine.lower() != after.engine.lower())
        or (not before.engine and _ENGINE.search(definition.text) is not None)
        or before.primary_key != after.primary_key
        or any((new.default or "").startswith("(") if old is None else _facts(old) != _facts(new) for old, new in pairs)
    )


def _facts(column: Column) -> tuple[object, ...]:
    """Return the facts in which a change of the rows shows, whatever the source of the column: int(11) of a server is int of a
    statement."""
    base, inside, unsigned = parsed_type(column)
    sized = "" if base in INTEGER_ORDER else inside.replace(" ", "")
    return (
        base,
        sized,
        unsigned,
        column.charset.replace("utf8mb3", "utf8"),
        column.nullable,
        column.stored,
        _counts(column),
    )


def _read_otherwise(definition: DdlChange, former: Column | None) -> str:
    """Return why values that are read in the statement's session may differ from those when the row was written; '' if they do not."""
    base = "" if former is None or former.generated else parsed_type(former)[0]
    if former is not None and base == "timestamp":
        return f"{former.name} is a TIMESTAMP, which the statement reads in the time zone of its session"
    if former is not None and base == "char" and definition.pads:
        return f"{former.name} is a CHAR, which the statement reads with PAD_CHAR_TO_FULL_LENGTH"
    return ""


def _emptied(columns: list[LakeColumn], lake: pa.Schema, *, has_key: bool) -> pa.Schema:
    """Return the current columns, and those that were dropped."""
    made = lake_schema(columns, has_key=has_key)
    known = {one.lower() for one in made.names}
    return pa.schema([*made, *(one for one in lake if one.name.lower() not in known)])


def _told(column: Column) -> str:
    charset = f" CHARACTER SET {column.charset}" if column.charset else ""
    charset += f" COLLATE {column.collation}" if column.charset and column.collation else ""
    return f"{column.type}{charset}{'' if column.nullable else ' NOT NULL'}"


def _counts(column: Column) -> bool:
    return "auto_increment" in column.extra.lower()


def recreated(columns: list[LakeColumn], *, has_key: bool) -> ColumnsChange:
    """Return the change for a recreated table."""
    return ColumnsChange(lake_schema(columns, has_key=has_key), emptied=True)


def _add(one: LakeColumn, definition: DdlChange, lake: pa.Schema, made: _Made, place: str) -> None:
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
    """Return the value of an added column in the existing rows, in Arrow's terms; UNKNOWN if it is not known."""
    found = default_value(one)
    return UNKNOWN if found is UNKNOWN else in_arrow(one, found)


def in_arrow(one: LakeColumn, value: Any) -> Any:
    """Return a value as JSON has it in the terms of the lake's type; UNKNOWN if it has none."""
    if value is None:
        return None
    try:
        if pa.types.is_decimal(one.arrow):
            return Decimal(str(value))
        if pa.types.is_binary(one.arrow):
            return base64.b64decode(value["base64"])
        if pa.types.is_date(one.arrow) or pa.types.is_timestamp(one.arrow):
            if str(value).startswith("0000"):
                return UNKNOWN
            return pa.scalar(str(value).replace(" ", "T"), pa.string()).cast(one.arrow).as_py()
        return value
    except (ArithmeticError, ValueError, pa.ArrowInvalid):
        return UNKNOWN
