"""Files of a Delta table that a commit adds: written as rows come, each of at most some megabytes, with Delta's statistics of a file."""

import json
import time
import uuid
from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.fs import PyFileSystem

_GROUP_BYTES: Final = 8 << 20
"""So many bytes of rows in memory become one group of a file."""
_TEXT_LENGTH: Final = 32
"""The number of characters that the statistics contain of longer texts."""
_LAST: Final = "\U0010ffff"
EXACT_DIGITS: Final = 15
"""Whole numbers of so many digits are exact as doubles, as which delta-rs (1.6) writes the minimum and maximum of a DECIMAL."""


class DeltaFiles:
    """The files that a commit removes, and the files of new rows, until `finish` is called."""

    def __init__(self, table: DeltaTable, schema: pa.Schema, file_bytes: int) -> None:
        self._gone: list[RemoveAction] = []
        self._made: list[tuple[str, int, dict[str, str | None], _Spans]] = []
        self._partition: dict[str, str | None] = {}
        self._files = PyFileSystem(DeltaStorageHandler.from_table(table._table, table._storage_options))
        self._schema = schema
        self._file_bytes = file_bytes
        self._held: list[pa.Table] = []
        self._size = 0
        self._open: tuple[str, Any, pq.ParquetWriter] | None = None
        self._spans = _Spans(schema)

    def remove(self, path: str, size: int) -> None:
        """Remove a file from the table."""
        self._gone.append(RemoveAction(path, True, int(time.time() * 1000), size, {}))

    def into(self, partition: dict[str, str | None]) -> None:
        """Let the next rows belong to files of this partition: {column: value as text}."""
        if partition != self._partition:
            self.finish()
            self._partition = partition

    def write(self, rows: Iterable[pa.Table]) -> None:
        """Write more rows, with the columns of the schema."""
        for table in rows:
            self._held.append(table)
            self._size += table.nbytes
            if self._size >= _GROUP_BYTES:
                self._write()

    def finish(self) -> None:
        """Complete the last file."""
        self._write()
        self._close()

    @property
    def inexact(self) -> frozenset[str]:
        """The columns with a value whose double may be another number."""
        return frozenset(name for _path, _size, _partition, spans in self._made for name in spans.inexact)

    def actions(self, told: Collection[str]) -> list[AddAction | RemoveAction]:
        """Return the actions of a commit. The files contain the minimum and maximum of the columns in `told`."""
        now = int(time.time() * 1000)
        made = [
            AddAction(path, size, partition, now, True, spans.told(told)) for path, size, partition, spans in self._made
        ]
        return [*self._gone, *made]

    def _write(self) -> None:
        table = pa.concat_tables(self._held) if self._held else self._schema.empty_table()
        self._held, self._size = [], 0
        if not table.num_rows:
            return
        if self._open is None:
            path = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
            stream = self._files.open_output_stream(path)
            self._open = path, stream, pq.ParquetWriter(stream, self._schema, compression="snappy")
        self._open[2].write_table(table, row_group_size=table.num_rows)
        self._spans.add(table)
        if self._open[1].tell() >= self._file_bytes:
            self._close()

    def _close(self) -> None:
        if self._open is None:
            return
        path, stream, writer = self._open
        writer.close()
        size = stream.tell()
        stream.close()
        self._made.append((path, size, self._partition, self._spans))
        self._open, self._spans = None, _Spans(self._schema)


class _Spans:
    """The number of rows of a file, and the ranges of those columns for which all files have statistics."""

    def __init__(self, schema: pa.Schema) -> None:
        self._rows = 0
        self._nulls = dict.fromkeys(schema.names, 0)
        self._least: dict[str, Any] = {}
        self._most: dict[str, Any] = {}
        self._names = [one.name for one in schema if has_span(one.type)]

    def add(self, table: pa.Table) -> None:
        self._rows += table.num_rows
        for name in table.column_names:
            self._nulls[name] += table.column(name).null_count
        for name in self._names:
            span = pc.min_max(table.column(name)).as_py()
            low, high = span["min"], span["max"]
            if low is None:
                continue
            self._least[name] = min(self._least.get(name, low), low)
            self._most[name] = max(self._most.get(name, high), high)

    @property
    def inexact(self) -> list[str]:
        return [name for name in self._least if not is_exact(self._least[name]) or not is_exact(self._most[name])]

    def told(self, names: Collection[str]) -> str:
        known = [name for name in self._names if name in names and name in self._least]
        return json.dumps(
            {
                "numRecords": self._rows,
                "minValues": {name: _least_told(self._least[name]) for name in known},
                "maxValues": {name: _most_told(self._most[name]) for name in known},
                "nullCount": self._nulls,
            },
            ensure_ascii=False,
        )


def has_span(kind: pa.DataType) -> bool:
    """Return whether each file may contain the minimum and maximum of such a column: delta-rs (1.6) considers a column empty if some file has none.
    Whole DECIMALs qualify as long as all their values are exact as doubles."""
    exact = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_date, pa.types.is_timestamp)
    return any(one(kind) for one in exact) or is_whole_decimal(kind)


def is_whole_decimal(kind: pa.DataType) -> bool:
    """Return whether a type is DECIMAL(n, 0), which BIGINT UNSIGNED is, too."""
    return bool(pa.types.is_decimal(kind)) and kind.scale == 0


def inexact_columns(rows: pa.Table) -> frozenset[str]:
    """Return the columns of whole DECIMALs that have a value whose double may be another number."""
    found = set()
    for one in rows.schema:
        if is_whole_decimal(one.type):
            span = pc.min_max(rows.column(one.name)).as_py()
            if not (is_exact(span["min"]) and is_exact(span["max"])):
                found.add(one.name)
    return frozenset(found)


def is_exact(value: Any) -> bool:
    """Return whether a DECIMAL is exact as a double."""
    return not isinstance(value, Decimal) or abs(value) < 10**EXACT_DIGITS


def _least_told(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_TEXT_LENGTH]
    return -0.0 if isinstance(value, float) and not value else _json_value(value)


def _most_told(value: Any) -> Any:
    if isinstance(value, str):
        # No text with this prefix is larger than the prefix with the last character appended, except those that have this character there, too.
        short = len(value) <= _TEXT_LENGTH or value[_TEXT_LENGTH] == _LAST
        return value if short else value[:_TEXT_LENGTH] + _LAST
    return 0.0 if isinstance(value, float) and not value else _json_value(value)


def _json_value(value: Any) -> Any:
    """Return a value for JSON, with times rounded down to the millisecond: readers add one to the largest."""
    if isinstance(value, Decimal):
        return int(value)
    if not isinstance(value, datetime):
        return value.isoformat() if isinstance(value, date) else value
    if value.tzinfo is None:
        return value.isoformat(sep=" ", timespec="milliseconds")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
