"""A relay's record of its source's tables, for readers of its archive: it names columns that the binlog leaves unnamed."""

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from protocol.binlog.schema.column_description import ColumnDescription, column_texts, encode_columns
from protocol.columns.codes.column_codes import NAMED_BY_DDL, NAMED_BY_RECORD
from protocol.errors import Malformed
from protocol.position import binlog_number
from protocol.sql.tables.column_types import is_lossy
from protocol.sql.tables.source_table import WIDE_CHARSETS, Column, Table
from relay.archive.storage.files import SCHEMA_NAME
from relay.binlog_file.file_bytes import read_bytes
from relay.binlog_tables.plan.definition_spans import definition_spans, looked_through
from relay.binlog_tables.plan.store import Store
from relay.schema_history.schema_facts import Place
from relay.schema_history.schema_record import Line, RecordedSchema, parse_lines
from relay.schema_history.table_agreement import columns_fit

_T = TypeVar("_T")
_KEPT: Final = 4


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The content of a schema file whose bytes have this digest."""

    digest: bytes
    lines: list[Line]
    schema: RecordedSchema


@dataclass(frozen=True, slots=True)
class _Told:
    """The schema by this file and the statements in the binlogs up to `upto`; `files` is the number of binlogs that were scanned."""

    digest: bytes
    upto: Place
    files: int
    schema: RecordedSchema


# Spark's workers live for many tasks; each archive's file is parsed once in a worker, and again when it was written to.
_parsed: dict[str, _Parsed] = {}
_told: dict[str, _Told] = {}
_telling: Final = threading.Lock()


def recorded_schema(store: Store, directory: str) -> RecordedSchema:
    """Return the recorded schema of the archive (or of one generation of it) in `directory`; an empty one if there is none.

    Raises: OSError.
    """
    return _read(store, directory).schema


def reported_schema(store: Store, directory: str, file: str, stop: int | None) -> RecordedSchema:
    """Return the schema up to `stop` (None: the end) in a binlog of a directory: what is recorded there, and what the statements in its
    binlogs say.

    Unrecorded statements are looked for in the binlogs, once in a process. Raises: OSError.
    """
    with _telling:
        return _told_schema(store, directory, file, stop)


def _told_schema(store: Store, directory: str, file: str, stop: int | None) -> RecordedSchema:
    parsed = _read(store, directory)
    path = store.join(directory, file)
    series = path.rpartition(".")[0]
    known = _told.get(series)
    if known is not None and known.digest != parsed.digest:
        known = None
    if known is not None and stop is not None and _is_before(file, stop, known.upto) and looked_through(store, path):
        return known.schema
    # Twice as many files as before are scanned, so that the statements are not replayed for each of many files.
    further = known.files if known is not None else 0
    spans, upto = definition_spans(store, directory, file, stop, parsed.schema.texts_known, further)
    schema = RecordedSchema(parsed.lines, spans)
    _keep(_told, series, _Told(parsed.digest, upto, len(spans), schema))
    return schema


def _is_before(file: str, stop: int, place: Place) -> bool:
    try:
        return (binlog_number(file), stop) <= place
    except Malformed:
        return False


def _read(store: Store, directory: str) -> _Parsed:
    """Return the schema file of a directory; if there is none, that of an empty one."""
    path = store.join(directory, SCHEMA_NAME)
    data = recorded_bytes(store, directory)
    digest = hashlib.blake2b(data, digest_size=16).digest()
    known = _parsed.get(path)
    if known is not None and known.digest == digest:
        return known
    lines = list(parse_lines(data))
    made = _Parsed(digest, lines, RecordedSchema(lines))
    _keep(_parsed, path, made)
    return made


def recorded_bytes(store: Store, directory: str) -> bytes:
    """Return the lines that the relay recorded of the source's tables, of a generation's directory; empty if none. Raises: OSError."""
    path = store.join(directory, SCHEMA_NAME)
    if not store.is_file(path):
        return b""
    reader = store.open(path)
    try:
        return read_bytes(reader, 0, reader.size)
    finally:
        reader.close()


def _keep(kept: dict[str, _T], path: str, value: _T) -> None:
    kept.pop(path, None)
    while len(kept) >= _KEPT:
        del kept[next(iter(kept))]
    kept[path] = value


class Description:
    """A description of a table's columns: packed for the kernel, with the origin of their names."""

    def __init__(self, packed: bytes, named_by: int) -> None:
        self.packed = packed
        self.named_by = named_by


class Describer:
    """A source of answers to the kernel's questions about tables of one file."""

    def __init__(self, read: Callable[[], RecordedSchema], file: str) -> None:
        self._read = read
        self._schema: RecordedSchema | None = None
        self._file = file

    def describe(
        self, schema: bytes, table: bytes, types: bytes, arguments: Sequence[tuple[int, int]], position: int
    ) -> Description | None:
        """Return the columns of a table, `types` of them, as the Table_map at `position` meant them; None if unknown.

        Columns that servers add to a table and do not show, at its end, stay @N.
        """
        try:
            names = schema.decode(), table.decode()
        except UnicodeDecodeError:
            return None
        if self._schema is None:
            self._schema = self._read()
        try:
            told = (
                (self._schema.recorded(*names, self._file, position), NAMED_BY_RECORD),
                (self._schema.worked_out(*names, self._file, position), NAMED_BY_DDL),
            )
        except Malformed:
            return None
        for found, named_by in told:
            strict = arguments if named_by == NAMED_BY_DDL else None
            if found is not None and columns_fit(found.columns, types, strict):
                hidden = [ColumnDescription(f"@{number + 1}", "") for number in range(len(found.columns), len(types))]
                return Description(encode_columns([*described(found), *hidden]), named_by)
        return None


def described(table: Table) -> list[ColumnDescription]:
    """Return a table's columns as the kernel needs them."""
    return [ColumnDescription(column.name, _described_type(column), column.charset or None) for column in table.columns]


def _described_type(column: Column) -> str:
    """Return its type; without the texts of an ENUM or SET if the queried server may have lost part of them.

    MySQL 5.6 shows '' in character sets of two bytes, and question marks after a conversion.
    """
    if not column.type.startswith(("enum(", "set(")):
        return column.type
    texts = column_texts(column.type)
    lost = column.charset in WIDE_CHARSETS and len(set(texts)) < len(texts)
    return column.type.partition("(")[0] if lost or is_lossy(column) else column.type
