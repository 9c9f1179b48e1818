"""Net changes of rows whose values are in their own columns: no image is assembled or parsed.

Rows that are not plain are left to `net_changes`, which handles everything: partial images, values that are not as their column says.
"""

import json
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from protocol.columns.codes.column_codes import FORM_BYTES, FORM_NUMBER, FORM_TEXT
from relay.feed.rows.lake_columns import (
    BYTES,
    DELETED,
    DOCUMENT,
    LABEL,
    NUMBER,
    NUMBER_COLUMN,
    SEQUENCE,
    TEXT,
    TIME,
    LakeColumn,
)
from relay.feed.rows.net_changes import TableRows, identifier, together, typed

SHAPE: Final = "shape"
_WRONG: Final = NUMBER_COLUMN
_FORMS: Final = {
    NUMBER: (FORM_NUMBER, FORM_TEXT),  # A DECIMAL is a text
    TEXT: (FORM_TEXT,),
    LABEL: (FORM_TEXT,),
    TIME: (FORM_TEXT,),
    BYTES: (FORM_BYTES,),
    DOCUMENT: (),
}
Positions = Mapping[str, int]
"""This type maps the name of a column to its number in the table."""


def value_changes(connection: duckdb.DuckDBPyConnection, changes: pa.Table, rows: TableRows) -> pa.Table | None:
    """Return what `net_changes` returns for changes in order with columns `shape`, `whole`, `odd`, `b0`, `a0` …; None if they are not plain."""
    if not changes.num_rows:
        return None
    positions = _positions(changes, rows.columns)
    if positions is None:
        return None
    if pc.max(changes.column("odd")).as_py() or not pc.min(changes.column("whole")).as_py():
        return None
    operations = changes.column("operation")
    inserts_only = pc.all(pc.equal(operations, "insert")).as_py()
    key = [positions[one.name] for one in rows.key_columns]
    columns: dict[str, Any] = {
        "i": pa.array(array("q", range(changes.num_rows)), pa.int64()),
        "sequence": changes.column("sequence"),
        "is_delete": pc.equal(operations, "delete"),
        "is_insert": pc.equal(operations, "insert"),
    }
    for one in rows.columns:
        columns[f"a{positions[one.name]}"] = _typed_column(changes.column(f"a{positions[one.name]}"), one)
    for one in rows.key_columns:
        name = f"b{positions[one.name]}"
        if not inserts_only:
            columns[name] = _typed_column(changes.column(name), one)
        for text in (f"a{positions[one.name]}", name) if pa.types.is_floating(one.arrow) else ():
            if text in columns:  # 0 and -0 are one key
                columns[text] = pc.replace_substring_regex(columns[text], "^-0([.]0)?$", "0")
    connection.register("plain", pa.table(columns))
    try:
        return _net(connection, rows, positions, key, inserts_only=inserts_only)
    finally:
        connection.unregister("plain")
        connection.execute("DROP TABLE IF EXISTS last_spots")


def _positions(changes: pa.Table, columns: Sequence[LakeColumn]) -> Positions | None:
    """Return the positions of the kept columns; None if not all changes have the same, or they are unexpected."""
    shapes = {
        None if number is None else chunk.dictionary[number].as_py()
        for chunk in changes.column(SHAPE).chunks
        for number in pc.unique(chunk.indices).to_pylist()
    }
    shape = shapes.pop() if len(shapes) == 1 else None
    if shape is None:
        return None
    found = {name: (number, form) for number, (name, form) in enumerate(json.loads(shape))}
    for one in columns:
        if one.name not in found or found[one.name][1] not in _FORMS[one.kind]:
            return None
    return {one.name: found[one.name][0] for one in columns}


def _typed_column(column: Any, one: LakeColumn) -> Any:
    return column if one.kind == BYTES else column.cast(pa.string())


def _net(
    connection: duckdb.DuckDBPyConnection, rows: TableRows, positions: Positions, key: list[int], *, inserts_only: bool
) -> pa.Table | None:
    names = ", ".join(f"k{n}" for n in range(len(key)))
    after = ", ".join(f"a{at} AS k{n}" for n, at in enumerate(key))
    before = ", ".join(f"b{at} AS k{n}" for n, at in enumerate(key))
    moved = " OR ".join(f"a{at} IS DISTINCT FROM b{at}" for at in key)
    # A row's after-image counts at 2 i + 1, its before-image at 2 i: the last of a key counts.
    spots = f"SELECT {after}, 2 * i + 1 AS spot FROM plain WHERE NOT is_delete"
    if not inserts_only:
        spots += (
            f" UNION ALL SELECT {before}, 2 * i AS spot FROM plain WHERE is_delete OR (NOT is_insert AND ({moved}))"
        )
    connection.execute(
        f"CREATE TEMP TABLE last_spots AS SELECT {names}, max(spot) AS spot FROM ({spots}) GROUP BY {names}"
    )
    lacking = " OR ".join(f"k{n} IS NULL" for n in range(len(key)))
    if connection.execute(f"SELECT 1 FROM last_spots WHERE {lacking} LIMIT 1").fetchall():
        return None
    live = ", ".join(f"{_typed(one, f'p.a{positions[one.name]}')} AS {identifier(one.name)}" for one in rows.columns)
    times = [one for one in rows.columns if one.kind == TIME]
    wrong = " + ".join(
        f"CAST(p.a{positions[one.name]} IS NOT NULL AND {_typed(one, f'p.a{positions[one.name]}')} IS NULL AS INTEGER)"
        for one in times
    )
    alive = connection.sql(
        f"SELECT {live}, p.sequence AS {SEQUENCE}, {wrong or '0'} AS {_WRONG} FROM plain p "
        "SEMI JOIN (SELECT spot // 2 AS i FROM last_spots WHERE spot % 2 = 1) w ON p.i = w.i"
    ).to_arrow_table()
    invalid = pc.sum(alive.column(_WRONG)).as_py()
    if invalid and (rows.null_dates is None or not all(map(rows.keeps_as_null, times))):
        return None
    if invalid and rows.null_dates is not None:
        rows.null_dates.count += invalid
    alive = alive.drop_columns([_WRONG]).append_column(DELETED, pa.repeat(pa.scalar(False), alive.num_rows))
    typed_key = ", ".join(
        f"{_typed(one, f'w.k{n}')} AS {identifier(one.name)}" for n, one in enumerate(rows.key_columns)
    )
    gone = connection.sql(
        f"SELECT {typed_key}, p.sequence AS {SEQUENCE} FROM last_spots w JOIN plain p ON p.i = w.spot // 2 WHERE w.spot % 2 = 0"
    ).to_arrow_table()
    gone = gone.append_column(DELETED, pa.repeat(pa.scalar(True), gone.num_rows))
    return together(alive, gone, rows)


def _typed(column: LakeColumn, text: str) -> str:
    """Return the SQL of a column's value from the form in which it was read."""
    if column.kind == BYTES:
        return text
    if column.kind in (TEXT, LABEL):
        return f"CASE WHEN contains({text}, '\\') THEN json_extract_string('\"' || {text} || '\"', '$') ELSE {text} END"
    return typed(column, text, text)
