"""Rows of the source by SELECT, as a lake keeps them: the same values as its binlog has."""

import base64
import contextlib
import json
import struct
from collections.abc import Generator, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pymysql
import pymysql.cursors

from protocol.errors import ErrorCode
from protocol.sql.tables.source_table import TableName
from relay.feed.feed_config import FeedSource
from relay.feed.rows.document_numbers import inexact_number
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.rows.lake_columns import BYTES, DOCUMENT, ROW, SEQUENCE, TIME, LakeColumn, parsed_type
from relay.feed.rows.net_changes import TableRows
from relay.feed.rows.row_numbers import row_numbers
from relay.upstream.blocking.blocking_login import BROKEN, BlockingLogin
from relay.upstream.schema.answer_text import quoted_name
from relay.upstream.source.answer_bound import ORDINARY, ROWS, AnswerBound
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.source.source_tls import SourceTls

_FLOAT: Final = struct.Struct("f")
_LARGEST_FLOAT: Final = 3.4028235e38
_DECIMALS: Final = frozenset(("decimal", "numeric", "dec", "fixed"))
_SHAPE_HEAD: Final = 4
_SHOWN_CHARACTERS: Final = 60
"""The number of characters of a statement that an error shows."""
_SHOWN_ERROR: Final = 200
_A_SNAPSHOT: Final = "a row of the source"
_NO_SOURCE: Final = "No server does. Check host and port of [feed.source], and what stands between it and the feed."
_TRIES: Final = 20
_KEYS_AT_ONCE: Final = 200
_ROWS_AT_ONCE: Final = 50_000
_BYTES_AT_ONCE: Final = 32 << 20
_NUMBER_BYTES: Final = 8
_FIRST_ROWS: Final = 1_000
"""So many rows are read of a table whose row size is not known yet."""
_GAVE_WAY: Final = (ErrorCode.ER_LOCK_WAIT_TIMEOUT, ErrorCode.ER_LOCK_DEADLOCK)
"""Lock wait timeout, deadlock."""
_NO_TABLE: Final = (ErrorCode.ER_BAD_DB_ERROR, ErrorCode.ER_NO_SUCH_TABLE)
"""Unknown database, no such table."""


def quoted(name: str) -> str:
    """Return a name in backticks, for a statement that takes values."""
    return quoted_name(name).replace("%", "%%")


class SourceRows:
    """A read-only connection to the source."""

    def __init__(self, source: FeedSource) -> None:
        where = f"{source.host}:{source.port}"
        try:
            self._connection = BlockingLogin(
                where=where,
                tls=SourceTls.of(source, "feed.source"),
                password=source.password_of(),
                host=source.host,
                port=source.port,
                user=source.user,
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=10,
                read_timeout=600,
            )
        except UpstreamError as error:
            raise FeedStop("source_unreachable", where, f"{error.what}.", error.advice) from None
        except pymysql.err.MySQLError as error:
            raise FeedStop(
                "source_unreachable",
                where,
                f"The source said: {error.args[-1]}.",
                "Correct [feed.source], or give the account SELECT and REPLICATION CLIENT.",
            ) from None
        except BROKEN as error:
            raise FeedStop(
                "source_unreachable", where, f"It answers with what cannot be: {_shown_error(error)}.", _NO_SOURCE
            ) from None
        self._cursor = self._connection.cursor()
        self._fitting: dict[TableName, int] = {}
        """For each table, so many rows of the size of those that were read last take _BYTES_AT_ONCE."""
        self._run("SET SESSION time_zone = '+00:00', sql_mode = ''")
        self._run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def __enter__(self) -> "SourceRows":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(pymysql.err.Error):
            self._connection.close()

    @contextlib.contextmanager
    def _asked(self, statement: str, bound: AnswerBound = ORDINARY) -> Iterator[None]:
        """Wrap a question and the processing of its answer. Raises: FeedStop for anything else that the source answers."""
        self._connection.asks(repr(statement[:_SHOWN_CHARACTERS]), bound)
        try:
            yield
        except pymysql.err.MySQLError as error:
            raise _refused(statement, error) from None
        except UpstreamError as error:
            self._connection.give_up()
            raise FeedStop("source_refused", "the source", f"{error.what}.", error.advice) from None
        except BROKEN as error:
            self._connection.give_up()
            text = f"It answered {statement[:_SHOWN_CHARACTERS]!r}… with what cannot be: {_shown_error(error)}."
            raise FeedStop("source_refused", "the source", text, _NO_SOURCE) from None

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        with self._asked(statement):
            self._cursor.execute(statement, ())
            return list(self._cursor.fetchall())

    def _read(self, statement: str, values: Sequence[Any], most_bytes: int | None = None) -> list[tuple[Any, ...]]:
        """Return rows, and retry if this statement was chosen to yield to a writer. Reading ends with the row that reaches `most_bytes`."""
        for tries in range(_TRIES + 1):
            with self._asked(statement, ROWS):
                try:
                    with self._connection.cursor(pymysql.cursors.SSCursor) as cursor:
                        cursor.execute(statement, tuple(values))
                        return next(_portions(cursor, None, most_bytes), [])
                except pymysql.err.MySQLError as error:
                    if tries == _TRIES or error.args[0] not in _GAVE_WAY:
                        raise
        return []

    def server_id(self) -> int:
        """Return the server's id."""
        statement = "SELECT @@server_id"
        rows = self._run(statement)
        with self._asked(statement):
            return int(rows[0][0])

    def has_table(self, key: TableName) -> bool:
        """Return whether there is such a table. Raises: FeedStop if the account may not see it."""
        with self._asked("SELECT 1"):
            try:
                self._cursor.execute(f"SELECT 1 FROM {quoted(key[0])}.{quoted(key[1])} LIMIT 0", ())
            except pymysql.err.MySQLError as error:
                if error.args[0] in _NO_TABLE:
                    return False
                raise
        return True

    def end(self) -> tuple[str, int]:
        """Return file and offset of the newest binlog's end."""
        for statement in ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"):
            with self._asked(statement):
                try:
                    self._cursor.execute(statement)
                    row = self._cursor.fetchone()
                except pymysql.err.ProgrammingError:
                    continue
                if row is not None:
                    return str(row[0]), int(row[1])
        raise FeedStop(
            "source_without_binlog", "the source", "It writes no binlog.", "Name the source that the relay follows."
        )

    def chunk(
        self, key: TableName, rows: TableRows, after: Sequence[Any] | None, count: int, *, locked: bool = True
    ) -> tuple[pa.Table, list[Any] | None]:
        """Return the next rows after the key `after`, `count` or as many as take some _BYTES_AT_ONCE, and the last one's key (None: there are no
        more).

        With `locked` they are read with shared locks, which wait for the transactions that have changed them: what is in the binlog by now is seen
        then.
        """
        columns = ", ".join(_shown(one) for one in rows.columns)
        order = [_ordered(one) for one in rows.key_columns]
        where, values = _behind(order, rows.key_columns, after)
        lock = " LOCK IN SHARE MODE" if locked else ""
        keys = ", ".join(_shown_key(one) for one in rows.key_columns)
        limit = min(count, self._fitting.get(key, _FIRST_ROWS))
        found = self._read(
            f"SELECT {columns}, {keys} FROM {quoted(key[0])}.{quoted(key[1])}{where} ORDER BY {', '.join(order)} LIMIT {limit}{lock}",
            values,
            _BYTES_AT_ONCE,
        )
        width = len(rows.columns)
        size = sum(map(_bytes_of, found))
        with self._asked("SELECT"):
            table = lake_table_of([row[:width] for row in found], rows)
        more = len(found) == limit or size >= _BYTES_AT_ONCE
        if found:
            self._fitting[key] = max(1, _BYTES_AT_ONCE * len(found) // max(size, 1))
        return table, [_kept_key(one) for one in found[-1][width:]] if more else None

    def all_rows(
        self, key: TableName, rows: TableRows, most: int | None = None, *, locked: bool = False
    ) -> Generator[pa.Table, None, None]:
        """Yield the table, some rows at a time, as one SELECT returns them."""
        columns = ", ".join(_shown(one) for one in rows.columns)
        limit = f" LIMIT {most}" if most is not None else ""
        lock = " LOCK IN SHARE MODE" if locked else ""
        statement = f"SELECT {columns} FROM {quoted(key[0])}.{quoted(key[1])}{limit}{lock}"
        with self._asked(statement, ROWS), self._connection.cursor(pymysql.cursors.SSCursor) as cursor:
            cursor.execute(statement, ())
            for found in _portions(cursor, _ROWS_AT_ONCE, _BYTES_AT_ONCE):
                yield lake_table_of(found, rows)

    def rows_by_key(self, key: TableName, rows: TableRows, keys: Sequence[Sequence[Any]]) -> pa.Table:
        """Return the rows that have one of these keys, with shared locks."""
        columns = ", ".join(_shown(one) for one in rows.columns)
        same = " AND ".join(f"{quoted(name)} = %s" for name in rows.key)
        found: list[Any] = []
        for first in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[first : first + _KEYS_AT_ONCE]
            where = " OR ".join([f"({same})"] * len(some))
            found += self._read(
                f"SELECT {columns} FROM {quoted(key[0])}.{quoted(key[1])} WHERE {where} LOCK IN SHARE MODE",
                [_compared(value, of) for one in some for value, of in zip(one, rows.key_columns, strict=True)],
            )
        with self._asked("SELECT"):
            return lake_table_of(found, rows)


def _portions(
    cursor: pymysql.cursors.SSCursor, most_rows: int | None, most_bytes: int | None
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield a statement's rows in portions of at most so many rows or about so many bytes."""
    found: list[tuple[Any, ...]] = []
    size = 0
    for row in iter(cursor.fetchone, None):
        found.append(row)
        size += _bytes_of(row)
        if len(found) == most_rows or (most_bytes is not None and size >= most_bytes):
            yield found
            found, size = [], 0
    if found:
        yield found


def _bytes_of(row: Sequence[Any]) -> int:
    """Return about how many bytes it takes on the wire."""
    return sum(len(one) if isinstance(one, str | bytes) else _NUMBER_BYTES for one in row)


def _shown_error(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:_SHOWN_ERROR]}"


def _refused(statement: str, error: pymysql.err.MySQLError) -> FeedStop:
    return FeedStop(
        "source_refused",
        "the source",
        f"It said to {statement[:_SHOWN_CHARACTERS]!r}…: {error.args[-1]}.",
        "The account of [feed.source] needs SELECT on the tables and REPLICATION CLIENT.",
    )


def _behind(order: Sequence[str], columns: Sequence[LakeColumn], after: Sequence[Any] | None) -> tuple[str, list[Any]]:
    """Return the WHERE of rows after a key, in a form whose index every server uses: (a > x) OR (a = x AND b > y)."""
    if after is None:
        return "", []
    keys = [_compared(value, of) for value, of in zip(after, columns, strict=True)]
    parts, values = [], []
    for number, name in enumerate(order):
        same = [f"{one} = %s" for one in order[:number]]
        parts.append("(" + " AND ".join([*same, f"{name} > %s"]) + ")")
        values += keys[: number + 1]
    least = f"{order[0]} >= %s AND " if len(order) > 1 else ""
    return f" WHERE {least}({' OR '.join(parts)})", (keys[:1] if least else []) + values


def _kept_key(value: Any) -> Any:
    """Return a key's value as JSON has it, for the table's properties."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Decimal):
        return {"number": str(value)}
    return value


def _as_value(kept: Any) -> Any:
    if isinstance(kept, dict):
        return base64.b64decode(kept["base64"]) if "base64" in kept else Decimal(kept["number"])
    return kept


def _compared(kept: Any, of: LakeColumn) -> Any:
    """Return a key's value as the server compares it without loss.

    A FLOAT has all the digits that it has for the server, which compares it as a DOUBLE: 1.2345678 is 1.2345677614212036. A DECIMAL is a number:
    older servers compare it with a text as a DOUBLE, too, for which neighbours of more than 15 digits are equal.
    """
    value = _as_value(kept)
    if pa.types.is_float32(of.arrow):
        return _FLOAT.unpack(_FLOAT.pack(value))[0]
    if parsed_type(of.source)[0] in _DECIMALS and isinstance(value, str):
        return Decimal(value)
    return value


def _ordered(one: LakeColumn) -> str:
    """Return a key's column as rows are ordered and compared by it: a SET would be a DOUBLE, which cannot represent all of 64 members."""
    name = quoted(one.name)
    return f"CAST({name} AS UNSIGNED)" if parsed_type(one.source)[0] == "set" else name


def _shown_key(one: LakeColumn) -> str:
    """Return a key's column in terms that give the same order as the column itself: ENUM and SET are ordered by their numbers."""
    base = parsed_type(one.source)[0]
    if one.kind == TIME or base == "time":
        return f"CAST({quoted(one.name)} AS CHAR)"
    if base == "set":
        return _ordered(one)
    return f"{quoted(one.name)} + 0" if base in ("enum", "bit") else _shown(one)


def _shown(one: LakeColumn) -> str:
    """Return a column so that SELECT returns all of its value."""
    name = quoted(one.name)
    base = one.source.type.split("(")[0].split(" ")[0].lower()
    if base in ("float", "bit"):
        return f"{name} + 0e0" if base == "float" else f"{name} + 0"
    if base == "vector":
        return f"CAST({name} AS BINARY)"  # PyMySQL takes it for a text
    if one.kind == TIME or base in ("time", "decimal", "json"):
        return f"CAST({name} AS CHAR)"
    return name


def lake_table_of(found: Sequence[Sequence[Any]], rows: TableRows) -> pa.Table:
    """Return the result of SELECT in the lake's types, without _sequence. Raises: FeedStop for a value that the lake cannot keep."""
    arrays = []
    for number, one in enumerate(rows.columns):
        values = [_value(row[number], one, rows) for row in found]
        if one.kind == TIME or pa.types.is_decimal(one.arrow):
            arrays.append(_parsed(values, one, rows))
        else:
            arrays.append(pa.array(values, one.arrow))
    return pa.Table.from_arrays(arrays, schema=pa.schema([pa.field(one.name, one.arrow) for one in rows.columns]))


def _parsed(values: list[Any], one: LakeColumn, rows: TableRows) -> pa.Array:
    if pa.types.is_decimal(one.arrow):
        return pa.array([None if value is None else Decimal(str(value)) for value in values], one.arrow)
    texts = pa.array([None if value is None else str(value).replace(" ", "T") for value in values], pa.string())
    invalid = [] if _are_dates(texts) else [text for text in pc.unique(texts).to_pylist() if not _is_date(text)]
    if invalid and (rows.null_dates is None or not rows.keeps_as_null(one)):
        raise FeedStop(
            "value_has_no_type",
            _A_SNAPSHOT,
            f"Column {one.name} ({one.source.type}) has a value that a lake's {one.arrow} cannot hold: {invalid[0]}.",
            'Set `invalid_dates = "null"`, which writes such dates of columns outside of the key as NULL, or leave the table out with `exclude`.',
            rows.name,
        )
    if invalid and rows.null_dates is not None:
        wrong = pc.is_in(texts, pa.array(invalid, pa.string()))
        rows.null_dates.count += pc.sum(wrong).as_py() or 0
        texts = pc.if_else(wrong, pa.scalar(None, pa.string()), texts)
    return texts.cast(pa.timestamp("us")).cast(one.arrow) if pa.types.is_timestamp(one.arrow) else texts.cast(one.arrow)


def _are_dates(texts: pa.Array) -> bool:
    """Return whether a lake can hold all of these dates. The year 0000, which some libraries know, is in no binlog that is fed."""
    if pc.any(pc.starts_with(texts, "0000")).as_py():
        return False
    try:
        texts.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return False
    return True


def _is_date(text: str | None) -> bool:
    """Return whether a lake can hold a date, with its time or without."""
    return text is None or _are_dates(pa.array([text], pa.string()))


def _value(value: Any, one: LakeColumn, rows: TableRows) -> Any:
    if value is None:
        return None
    if one.kind == DOCUMENT:
        return _document(value, one, rows)
    if one.kind == BYTES:
        return value if isinstance(value, bytes) else str(value).encode()
    if isinstance(value, bytes) and pa.types.is_string(one.arrow):
        return value.decode()
    if pa.types.is_integer(one.arrow):
        return int(value)
    if pa.types.is_floating(one.arrow):
        return float(value) + 0.0  # -0 is 0, as it is in images
    return str(value) if pa.types.is_string(one.arrow) else value


def _document(value: Any, one: LakeColumn, rows: TableRows) -> str:
    base = one.source.type.split("(")[0].lower()
    if base == "json":
        _check_numbers(str(value), one, rows)
        return str(value)
    raw = value if isinstance(value, bytes) else bytes(value)
    if base == "vector":
        numbers = struct.unpack(f"<{len(raw) // 4}f", raw)
        return "[" + ",".join(json.dumps(_short(number)).removesuffix(".0") for number in numbers) + "]"
    srid = int.from_bytes(raw[:_SHAPE_HEAD], "little")
    return json.dumps({"srid": srid, "wkb": base64.b64encode(raw[_SHAPE_HEAD:]).decode()}, separators=(",", ":"))


def _check_numbers(document: str, one: LakeColumn, rows: TableRows) -> None:
    """Raise FeedStop if a number has more digits than a lake's documents keep."""
    number = inexact_number(document)
    if number is not None:
        raise FeedStop(
            "document_number",
            _A_SNAPSHOT,
            f"Column {one.name} has a JSON document with a number of more than 17 digits: {number[:80]}.",
            "Correct the value at the source, or leave the table out with `exclude`.",
            rows.name,
        )


def _short(number: float) -> float:
    """Return the number with the fewest digits that reads back as the same FLOAT."""
    for digits in range(1, 10):
        short = float(f"{number:.{digits}g}")
        # Rounded to few digits the largest FLOATs are none.
        if abs(short) <= _LARGEST_FLOAT and _FLOAT.pack(short) == _FLOAT.pack(number):
            return short
    return number


def normalised(connection: duckdb.DuckDBPyConnection, table: pa.Table, columns: Sequence[LakeColumn]) -> pa.Table:
    """Return JSON documents as the feed writes them: without blanks, numbers as DuckDB prints them."""
    documents = [one.name for one in columns if one.kind == DOCUMENT]
    for name in documents:
        texts = pa.table({"i": row_numbers(table.num_rows), "d": table.column(name)})
        connection.register("documents", texts)
        try:
            found = connection.sql("SELECT CAST(json(d) AS VARCHAR) AS d FROM documents ORDER BY i").to_arrow_table()
        finally:
            connection.unregister("documents")
        table = table.set_column(table.column_names.index(name), name, found.column("d").cast(pa.string()))
    return table


def with_sequence(table: pa.Table, sequence: int) -> pa.Table:
    """Return the rows with the sequence of their place."""
    return table.append_column(SEQUENCE, pa.array([sequence] * table.num_rows, pa.int64()))


def with_numbers(rows: pa.Table, count: int) -> pa.Table:
    """Return the rows with their own names, after `count` others: from -1 down, as those of changes are 0 and more."""
    numbers = pa.array(range(-count - 1, -count - 1 - rows.num_rows, -1), pa.int64())
    return rows.append_column(ROW, numbers)
