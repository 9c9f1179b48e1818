"""The net effect of a stretch of one table's changes: for each key its last row, or that it was deleted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import pyarrow as pa

from protocol.errors import RelayError
from relay.feed.rows.document_numbers import inexact_number_of
from relay.feed.rows.feed_stop import table_stop
from relay.feed.rows.invalid_dates import NullDates
from relay.feed.rows.lake_columns import BYTES, DELETED, DOCUMENT, LABEL, SEQUENCE, TEXT, TIME, LakeColumn
from relay.feed.rows.row_numbers import row_numbers

CHANGES: Final = pa.schema(
    [
        ("sequence", pa.int64()),
        ("row", pa.int64()),
        ("operation", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
    ]
)
_SHOWN_DIGITS: Final = 80
_NULL_ADVICE: Final = ' `invalid_dates = "null"` writes such dates as NULL.'
_NO_TEXT: Final = '{"base64":'
_MANY_DIGITS: Final = "[0-9](\\.?[0-9]){15,}"
"""This pattern finds images that may have a number with more digits than a DOUBLE keeps; the digits may be those of a text."""
_IN_QUOTES: Final = r'"(?:[^"\\]|\\.)*"'
_LONG_NUMBER: Final = r"[0-9]{20,}|[0-9]{8,}\.|\.[0-9]{8,}|[0-9][eE]"
"""Every number with more than 15 digits that is no integer of 64 bits matches this pattern: one side of its point has eight digits or more."""
_IMAGES_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class TableRows:
    """The form in which the rows of one table are kept. `name` (SCHEMA.TABLE) and `place` (of what is applied) are for messages.

    `null_dates` counts invalid dates that are written as NULL; None if they are not. Those of the key never are.
    """

    name: str
    columns: Sequence[LakeColumn]
    key: Sequence[str]
    place: str = ""
    null_dates: NullDates | None = None

    def keeps_as_null(self, column: LakeColumn) -> bool:
        """Return whether invalid dates of a column are written as NULL."""
        return self.null_dates is not None and column.kind == TIME and column.name not in self.key

    @property
    def key_columns(self) -> list[LakeColumn]:
        """The key's columns in its order."""
        by_name = {one.name: one for one in self.columns}
        return [by_name[name] for name in self.key]


class ImagesNotWhole(RelayError):
    """The error that some image has not all columns: MINIMAL, NOBLOB."""


def identifier(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def pointers(columns: Sequence[LakeColumn]) -> str:
    """Return the list of pointers that json_extract takes."""
    return "[" + ", ".join(literal(one.pointer) for one in columns) + "]"


def typed(column: LakeColumn, text: str, document: str) -> str:
    """Return the SQL of a column's value; `text` is the SQL of its text, `document` that of its JSON."""
    if column.kind == BYTES:
        return f"from_base64({text})"
    if column.kind == DOCUMENT:
        # In an object with other keys beside it, the key belongs to the client's document.
        inner = f"json_extract({document}, '/$json')"
        return f"CAST(CASE WHEN json_keys({document}) = ['$json'] THEN {inner} ELSE {document} END AS VARCHAR)"
    if column.kind in (TEXT, LABEL):
        return text
    if column.kind == TIME:
        return f"CASE WHEN {text}[1:4] <> '0000' THEN TRY_CAST({text} AS {column.sql_type}) END"
    if pa.types.is_floating(column.arrow):  # -0 is kept as 0, as images have it
        return f"(CAST({text} AS {column.sql_type}) + CAST(0 AS {column.sql_type}))"
    return f"CAST({text} AS {column.sql_type})"


def net_changes(connection: duckdb.DuckDBPyConnection, changes: pa.Table, rows: TableRows) -> pa.Table:
    """Return one row for each changed key: its columns, _sequence, and whether it is deleted. `changes` are CHANGES, in order.

    Raises: ImagesNotWhole; FeedStop for a value that the lake's type cannot hold.
    """
    if changes.num_rows == 0:
        return pa.table(
            {**{one.name: pa.array([], one.arrow) for one in rows.columns},
             SEQUENCE: pa.array([], pa.int64()), DELETED: pa.array([], pa.bool_())}
        )  # fmt: skip
    numbered = changes.append_column("i", row_numbers(changes.num_rows))
    connection.register("changes", numbered)
    try:
        return _net(connection, rows)
    finally:
        connection.unregister("changes")
        for name in ("keyed", "winners", "texts"):
            connection.execute(f"DROP TABLE IF EXISTS {name}")


def _net(connection: duckdb.DuckDBPyConnection, rows: TableRows) -> pa.Table:
    key = rows.key_columns
    count = len(key)
    before = ", ".join(f"b[{n + 1}] AS b{n}" for n in range(count))
    after = ", ".join(f"a[{n + 1}] AS a{n}" for n in range(count))
    connection.execute(
        f"CREATE TEMP TABLE keyed AS SELECT i, has_before, has_after, {before}, {after} FROM (SELECT i, "
        f"before IS NOT NULL AS has_before, after IS NOT NULL AS has_after, json_extract_string(before, {pointers(key)}) AS b, "
        f"json_extract_string(after, {pointers(key)}) AS a FROM changes)"
    )
    lacking = " OR ".join(f"(has_before AND b{n} IS NULL) OR (has_after AND a{n} IS NULL)" for n in range(count))
    if _first(connection, f"SELECT count(*) FROM keyed WHERE {lacking}"):
        raise ImagesNotWhole
    names = ", ".join(f"k{n}" for n in range(count))
    same = " AND ".join(f"a{n} = b{n}" for n in range(count))
    connection.execute(
        f"CREATE TEMP TABLE winners AS SELECT {names}, arg_max(i, spot) AS i, arg_max(live, spot) AS live FROM ("
        f"SELECT {', '.join(f'a{n} AS k{n}' for n in range(count))}, i, 2 * i + 1 AS spot, true AS live FROM keyed WHERE has_after "
        f"UNION ALL SELECT {', '.join(f'b{n} AS k{n}' for n in range(count))}, i, 2 * i AS spot, false AS live FROM keyed "
        f"WHERE has_before AND NOT (has_after AND {same})) GROUP BY {names}"
    )
    stored = "[" + ", ".join(literal(one.name) for one in rows.columns) + "]"
    if _first(
        connection,
        f"SELECT count(*) FROM winners w JOIN changes c ON c.i = w.i WHERE w.live AND NOT list_has_all(json_keys(c.after), {stored})",
    ):
        raise ImagesNotWhole
    documents = [one for one in rows.columns if one.kind == DOCUMENT]
    plain = [one for one in rows.columns if one.kind != DOCUMENT]
    connection.execute(
        f"CREATE TEMP TABLE texts AS SELECT c.sequence, c.after AS image, json_extract_string(c.after, {pointers(plain)}) AS v, "
        f"json_extract(c.after, {pointers(documents)}) AS j FROM winners w JOIN changes c ON c.i = w.i WHERE w.live"
        if documents
        else f"CREATE TEMP TABLE texts AS SELECT c.sequence, c.after AS image, json_extract_string(c.after, {pointers(plain)}) AS v "
        "FROM winners w JOIN changes c ON c.i = w.i WHERE w.live"
    )
    check_texts(connection, rows)
    places = {one.name: f"t.v[{n + 1}]" for n, one in enumerate(plain)}
    at = {one.name: f"nullif(t.j[{n + 1}], 'null'::JSON)" for n, one in enumerate(documents)}
    live = ", ".join(
        f"{typed(one, places.get(one.name, ''), at.get(one.name, ''))} AS {identifier(one.name)}"
        for one in rows.columns
    )
    alive = connection.sql(f"SELECT {live}, t.sequence AS {SEQUENCE}, false AS {DELETED} FROM texts t").to_arrow_table()
    gone = connection.sql(
        "SELECT "
        + ", ".join(f"{typed(one, f'w.k{n}', f'w.k{n}')} AS {identifier(one.name)}" for n, one in enumerate(key))
        + f", c.sequence AS {SEQUENCE}, true AS {DELETED} FROM winners w JOIN changes c ON c.i = w.i WHERE NOT w.live"
    ).to_arrow_table()
    return together(alive, gone, rows)


def touched_keys(connection: duckdb.DuckDBPyConnection, changes: pa.Table, rows: TableRows) -> pa.Table:
    """Return the keys that changes have before or after, in the lake's types. `changes` have before and after."""
    key = rows.key_columns
    connection.register("changes", changes)
    try:
        values = ", ".join(
            f"{typed(one, f't.k[{n + 1}]', f't.k[{n + 1}]')} AS {identifier(one.name)}" for n, one in enumerate(key)
        )
        found = connection.sql(
            f"SELECT DISTINCT {values} FROM (SELECT json_extract_string(before, {pointers(key)}) AS k FROM changes "
            f"WHERE before IS NOT NULL UNION ALL SELECT json_extract_string(after, {pointers(key)}) FROM changes "
            "WHERE after IS NOT NULL) t"
        ).to_arrow_table()
    finally:
        connection.unregister("changes")
    schema = pa.schema([pa.field(one.name, one.arrow) for one in key])
    return pa.Table.from_arrays([cast_column(found.column(one.name), one.type) for one in schema], schema=schema)


def together(alive: pa.Table, gone: pa.Table, rows: TableRows) -> pa.Table:
    """Return live rows and deleted keys in one table of the lake's types."""
    schema = pa.schema(
        [*(pa.field(one.name, one.arrow) for one in rows.columns), (SEQUENCE, pa.int64()), (DELETED, pa.bool_())]
    )
    parts = []
    for part in (alive, gone):
        if part.num_rows:
            arrays = [
                cast_column(part.column(field.name), field.type)
                if field.name in part.column_names
                else pa.nulls(part.num_rows, field.type)
                for field in schema
            ]
            parts.append(pa.Table.from_arrays(arrays, schema=schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def cast_column(column: Any, wanted: pa.DataType) -> Any:
    """Return a column in the lake's type; times without a zone are UTC."""
    return column if column.type == wanted else column.cast(wanted)


def check_texts(connection: duckdb.DuckDBPyConnection, rows: TableRows, counted: str = "") -> None:
    """Raise FeedStop if the lake's type cannot hold a value of the table `texts` (image, v, j), and count dates that are written as NULL."""
    # `counted` is the SQL of a condition: of images before and after a change only one counts.
    plain = [one for one in rows.columns if one.kind != DOCUMENT]
    wanted = {TIME: "value_has_no_type", TEXT: "text_not_in_charset"}
    for number, one in enumerate(plain):
        value = f"v[{number + 1}]"
        if one.kind == TIME:
            wrong = f"{value} IS NOT NULL AND ({value}[1:4] = '0000' OR TRY_CAST({value} AS {one.sql_type}) IS NULL)"
        elif one.kind in (TEXT, LABEL):
            wrong = f"{value} IS NOT NULL AND starts_with({value}, '{_NO_TEXT}') AND json_type(image, {literal(one.pointer)}) = 'OBJECT'"
        else:
            continue
        if rows.null_dates is not None and rows.keeps_as_null(one):
            rows.null_dates.count += _first(connection, f"SELECT count(*) FROM texts WHERE {wrong}{counted}")
            continue
        found = connection.execute(f"SELECT {value} FROM texts WHERE {wrong} LIMIT 1").fetchall()
        if found:
            raise table_stop(
                wanted.get(one.kind, "text_not_in_charset"),
                rows.place,
                rows.name,
                f"Column {one.name} ({one.source.type}) has a value that a lake's {one.arrow} cannot hold"
                + (f": {found[0][0]}." if one.kind == TIME else ".")
                + (_NULL_ADVICE if one.kind == TIME and one.name not in rows.key else ""),
            )
    documents = [one for one in rows.columns if one.kind == DOCUMENT]
    for number, one in enumerate(documents):
        text = f"CAST(j[{number + 1}] AS VARCHAR)"
        # In a value that a client could have written, the object has another key beside it, or is in $json.
        if connection.execute(
            f"SELECT 1 FROM texts WHERE (starts_with({text}, '{{\"$diffs\":') OR starts_with({text}, '{_NO_TEXT}')) "
            f"AND len(json_keys(j[{number + 1}])) = 1 LIMIT 1"
        ).fetchall():
            raise table_stop(
                "partial_document",
                rows.place,
                rows.name,
                f"Column {one.name} has a JSON document of which the binlog has only what changed, or that cannot be read. "
                "At the source: SET PERSIST binlog_row_value_options = ''.",
            )
        _check_numbers(connection, rows, one)


def _check_numbers(connection: duckdb.DuckDBPyConnection, rows: TableRows, column: LakeColumn) -> None:
    """Raise FeedStop if a document of a column has a number that the lake cannot keep."""
    found = connection.execute(
        f"SELECT image FROM texts WHERE regexp_matches(image, '{_MANY_DIGITS}') "
        f"AND regexp_matches(regexp_replace(image, '{_IN_QUOTES}', '', 'g'), '{_LONG_NUMBER}')"
    )
    while images := found.fetchmany(_IMAGES_AT_ONCE):
        for (image,) in images:
            number = inexact_number_of(image, column.name)
            if number is not None:
                raise table_stop(
                    "document_number",
                    rows.place,
                    rows.name,
                    f"Column {column.name} has a JSON document with a number of more than 17 digits: {number[:_SHOWN_DIGITS]}.",
                )


def _first(connection: duckdb.DuckDBPyConnection, query: str) -> Any:
    found = connection.execute(query).fetchall()
    return found[0][0] if found else None
