"""Changes with partial images (MINIMAL, NOBLOB), completed with the rows that the lake has."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb
import pyarrow as pa

from protocol.sql.tables.default_text import literal_text
from relay.feed.rows.feed_stop import table_stop
from relay.feed.rows.lake_columns import DELETED, DOCUMENT, NUMBER_COLUMN, SEQUENCE, LakeColumn
from relay.feed.rows.net_changes import TableRows, check_texts, identifier, literal, pointers, together, typed
from relay.feed.rows.row_numbers import row_numbers
from relay.feed.rows.stored_default import UNKNOWN, implicit_value, stored_default

_FUNCTIONS: Final = (
    "current_timestamp", "now(", "localtime", "uuid", "curdate", "curtime", "nextval", "next value", "current_user", "current_role"
)  # fmt: skip
RowKey = tuple[str, ...]
"""This type contains the key's values as JSON texts, in the key's order."""


@dataclass(slots=True)
class _Fate:
    """The outcome for a key: the row that the lake has of `base` (None: none of it is used) with `values` set, or it is deleted."""

    base: RowKey | None
    values: dict[str, Any] = field(default_factory=dict)
    sequence: int = 0
    gone: bool = False
    moved: bool = False


CurrentRows = Callable[[pa.Table], pa.Table]
"""This function maps keys (typed columns) to the rows that the lake has of them, with all columns."""


def completed_changes(
    connection: duckdb.DuckDBPyConnection,
    changes: pa.Table,
    rows: TableRows,
    current: CurrentRows,
    *,
    unknown: list[RowKey] | None = None,
) -> pa.Table:
    """Return what `net_changes` returns. With `unknown`, rows that are missing from the lake are left to a running snapshot, and rows that got
    another key, which it may have passed, are added to the list.

    Raises: FeedStop if a row is missing from the lake, or a default is unknown.
    """
    fates = _fates(changes, rows)
    live = [(key, fate) for key, fate in fates.items() if not fate.gone]
    gone = [(key, fate) for key, fate in fates.items() if fate.gone]
    found = _whole(connection, live, rows, current)
    there = set(found.column(NUMBER_COLUMN).to_pylist())
    missing = [one for number, one in enumerate(live) if number not in there]
    if missing and unknown is None:
        raise table_stop(
            "row_missing",
            rows.place,
            rows.name,
            f"{len(missing)} rows were changed that the lake has not, and the binlog has only their changed columns.",
        )
    moved = [(key, fate) for key, fate in missing if fate.moved]
    for key, fate in moved:
        fate.base = key  # the snapshot may have read it under its new key
    more = _whole(connection, moved, rows, current)
    if unknown is not None:
        there = set(more.column(NUMBER_COLUMN).to_pylist())
        unknown += [key for number, (key, _fate) in enumerate(moved) if number not in there]
    found = pa.concat_tables([found, more]) if more.num_rows else found
    return together(found, _gone(connection, gone, rows), rows)


def _fates(changes: pa.Table, rows: TableRows) -> dict[RowKey, _Fate]:
    fates: dict[RowKey, _Fate] = {}
    stored = {one.name for one in rows.columns}
    for change in changes.to_pylist():
        before = json.loads(change["before"]) if change["before"] is not None else None
        after = json.loads(change["after"]) if change["after"] is not None else None
        sequence = int(change["sequence"])
        if before is None and after is not None:
            whole = {
                one.name: after[one.name] if one.name in after else left_out_value(one, rows) for one in rows.columns
            }
            fates[_key(whole, rows)] = _Fate(None, whole, sequence)
        elif before is not None and after is None:
            fates[_key(before, rows)] = _Fate(None, {}, sequence, gone=True)
        elif before is not None and after is not None:
            old = _key(before, rows)
            new = _key({**{name: before.get(name) for name in rows.key}, **after}, rows)
            known = fates.get(old)
            fate = _Fate(known.base, known.values, sequence) if known is not None and not known.gone else _Fate(old)
            fate.sequence = sequence
            # The values of a before-image are as good as those of the lake.
            fate.values = {**before, **fate.values, **after}
            if stored.issubset(fate.values):
                fate.base = None  # Nothing of the lake is used
            if new != old:
                fate.moved = True
                fates[old] = _Fate(None, {}, sequence, gone=True)
            fates[new] = fate
    return fates


def _key(image: Mapping[str, Any], rows: TableRows) -> RowKey:
    missing = [name for name in rows.key if image.get(name) is None]
    if missing:
        raise table_stop(
            "key_missing",
            rows.place,
            rows.name,
            f"An image has no {', '.join(missing)}, by which rows are found.",
        )
    return tuple(json.dumps(_as_key(image[one.name], one), ensure_ascii=False) for one in rows.key_columns)


def _as_key(value: Any, column: LakeColumn) -> Any:
    """Return a FLOAT or DOUBLE as the lake has it, however it is written: 0 and -0 are one key."""
    return pa.scalar(float(value), column.arrow).as_py() + 0.0 if pa.types.is_floating(column.arrow) else value


def left_out_value(column: LakeColumn, rows: TableRows) -> Any:
    """Return the value of a column that an INSERT or REPLACE left out, as JSON has it."""
    found = default_value(column)
    if found is UNKNOWN:
        raise table_stop(
            "default_unknown",
            rows.place,
            rows.name,
            f"An INSERT or REPLACE left column {column.name} out, and its default is not known.",
        )
    return found


def default_value(column: LakeColumn) -> Any:
    """Return a column's default, or its type's if it has none, as JSON has a value; UNKNOWN if it is no constant, or what the server stores for it is
    not known."""
    source = column.source
    if source.generated or "auto_increment" in source.extra.lower():
        return UNKNOWN
    text = source.default
    if text is None or text.strip().upper() == "NULL":
        return None if source.nullable else implicit_value(column) if text is None else UNKNOWN
    literal = literal_text(text)
    if "DEFAULT_GENERATED" in source.extra.upper():
        return UNKNOWN
    if literal is not None:
        return stored_default(column, literal, quoted=True)
    return UNKNOWN if any(word in text.lower() for word in _FUNCTIONS) else stored_default(column, text, quoted=False)


def _typed_keys(connection: duckdb.DuckDBPyConnection, keys: list[RowKey], rows: TableRows) -> pa.Table:
    """Return keys in the lake's types, in order, with their number in `n`."""
    listed = pa.table(
        {
            "n": row_numbers(len(keys)),
            "image": pa.array([_image(key, rows) for key in keys], pa.string()),
        }
    )
    connection.register("listed", listed)
    try:
        columns = rows.key_columns
        values = ", ".join(
            f"{typed(one, f'v[{n + 1}]', f'v[{n + 1}]')} AS {identifier(one.name)}" for n, one in enumerate(columns)
        )
        found = connection.sql(
            f"SELECT n AS {NUMBER_COLUMN}, {values} FROM (SELECT n, json_extract_string(image, {pointers(columns)}) AS v FROM listed) ORDER BY {NUMBER_COLUMN}"
        ).to_arrow_table()
    finally:
        connection.unregister("listed")
    schema = pa.schema([(NUMBER_COLUMN, pa.int64()), *((one.name, one.arrow) for one in columns)])
    return pa.Table.from_arrays([found.column(f.name).cast(f.type) for f in schema], schema=schema)


def _image(key: RowKey, rows: TableRows) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in zip(rows.key, key, strict=True)) + "}"


def _gone(connection: duckdb.DuckDBPyConnection, gone: list[tuple[RowKey, _Fate]], rows: TableRows) -> pa.Table:
    keys = _typed_keys(connection, [key for key, _fate in gone], rows)
    made = keys.append_column(SEQUENCE, pa.array([fate.sequence for _key, fate in gone], pa.int64()))
    return made.append_column(DELETED, pa.array([True] * len(gone), pa.bool_())).drop_columns([NUMBER_COLUMN])


def _whole(
    connection: duckdb.DuckDBPyConnection, live: list[tuple[RowKey, _Fate]], rows: TableRows, current: CurrentRows
) -> pa.Table:
    """Return the live rows with all columns, and their numbers; rows whose base is missing from the lake are left out."""
    based = [(number, fate.base) for number, (_key, fate) in enumerate(live) if fate.base is not None]
    keys = _typed_keys(connection, [base for _number, base in based], rows)
    lake = current(keys.drop_columns([NUMBER_COLUMN]))
    numbered = keys.set_column(0, NUMBER_COLUMN, pa.array([number for number, _base in based], pa.int64()))
    images = pa.table(
        {
            "n": row_numbers(len(live)),
            "sequence": pa.array([fate.sequence for _key, fate in live], pa.int64()),
            "based": pa.array([fate.base is not None for _key, fate in live], pa.bool_()),
            "image": pa.array([json.dumps(fate.values, ensure_ascii=False) for _key, fate in live], pa.string()),
        }
    )
    for name, table in (("images", images), ("bases", without_zones(numbered)), ("lake", without_zones(lake))):
        connection.register(name, table)
    try:
        plain = [one for one in rows.columns if one.kind != DOCUMENT]
        documents = [one for one in rows.columns if one.kind == DOCUMENT]
        j = f"json_extract(image, {pointers(documents)})" if documents else "NULL"
        connection.execute(
            f"CREATE TEMP TABLE texts AS SELECT n, sequence, based, image, json_keys(image) AS has, "
            f"json_extract_string(image, {pointers(plain)}) AS v, {j} AS j FROM images"
        )
        check_texts(connection, rows)
        at = {one.name: (f"t.v[{n + 1}]", "") for n, one in enumerate(plain)}
        at |= {one.name: ("", f"nullif(t.j[{n + 1}], 'null'::JSON)") for n, one in enumerate(documents)}
        values = ", ".join(
            f"CASE WHEN list_contains(t.has, {literal(one.name)}) THEN {typed(one, *at[one.name])} "
            f"ELSE l.{identifier(one.name)} END AS {identifier(one.name)}"
            for one in rows.columns
        )
        same = " AND ".join(f"l.{identifier(name)} = b.{identifier(name)}" for name in rows.key)
        return connection.sql(
            f"SELECT {values}, t.sequence AS {SEQUENCE}, false AS {DELETED}, t.n AS {NUMBER_COLUMN} FROM texts t LEFT JOIN bases b ON b.{NUMBER_COLUMN} = t.n "
            f"LEFT JOIN lake l ON {same} WHERE NOT t.based OR l.{SEQUENCE} IS NOT NULL"
        ).to_arrow_table()
    finally:
        for name in ("images", "bases", "lake"):
            connection.unregister(name)
        connection.execute("DROP TABLE IF EXISTS texts")


def without_zones(table: pa.Table) -> pa.Table:
    """Return the same with times as DuckDB compares them without its time zones: naive, in UTC."""
    for number, one in enumerate(table.schema):
        if pa.types.is_timestamp(one.type) and one.type.tz is not None:
            naive = pa.timestamp("us")
            table = table.set_column(number, one.with_type(naive), table.column(number).cast(naive))
    return table
