"""What a relay recorded of its source's tables, for readers of its archive: names for columns that the binlog leaves unnamed."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from protocol.binlog.schema.column_description import ColumnDescription, encode_columns
from protocol.columns.codes.column_codes import NAMED_BY_DDL, NAMED_BY_RECORD
from protocol.errors import Malformed
from relay.archive.storage.files import SCHEMA_NAME
from relay.audit.plan.definition_spans import definition_spans
from relay.audit.plan.store import Store
from relay.binlog_file.file_bytes import read_bytes
from relay.schema_history.schema_facts import DefinedSpan
from relay.schema_history.schema_record import RecordedSchema, parse_lines
from relay.schema_history.table_agreement import columns_fit
from relay.schema_history.tables.source_table import Table

_T = TypeVar("_T")
_KEPT: Final = 4
# Spark's workers live for many tasks; each archive's file is parsed once in a worker, and again when it was written to.
_parsed: dict[str, tuple[bytes, RecordedSchema]] = {}
_told: dict[str, tuple[bytes, tuple[DefinedSpan, ...], RecordedSchema]] = {}


def recorded_schema(store: Store, directory: str) -> RecordedSchema:
    """The recorded schema of the archive (or of one generation of it) in `directory`; an empty one where there is none.

    Raises: OSError.
    """
    path = store.join(directory, SCHEMA_NAME)
    data = _recorded_bytes(store, path)
    if not data:
        return RecordedSchema()
    digest = hashlib.blake2b(data, digest_size=16).digest()
    known = _parsed.get(path)
    if known is not None and known[0] == digest:
        return known[1]
    schema = RecordedSchema.parse(data)
    _keep(_parsed, path, (digest, schema))
    return schema


def told_schema(store: Store, directory: str, file: str, stop: int | None) -> RecordedSchema:
    """The schema up to `stop` (None: the end) in a binlog of a directory: what is recorded there, and what the statements in
    its binlogs say.

    Statements that nobody recorded are looked for in the binlogs, once in a process. Raises: OSError.
    """
    path = store.join(directory, SCHEMA_NAME)
    data = _recorded_bytes(store, path)
    lines = list(parse_lines(data))
    recorded = RecordedSchema(lines).texts_known if lines else []
    spans = tuple(definition_spans(store, directory, file, stop, recorded))
    digest = hashlib.blake2b(data, digest_size=16).digest()
    known = _told.get(path)
    if known is not None and known[0] == digest and known[1] == spans:
        return known[2]
    schema = RecordedSchema(lines, spans)
    _keep(_told, path, (digest, spans, schema))
    return schema


def _recorded_bytes(store: Store, path: str) -> bytes:
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
    """What is known of a table's columns: packed for the kernel, and who told it."""

    def __init__(self, packed: bytes, named_by: int) -> None:
        self.packed = packed
        self.named_by = named_by


class Describer:
    """Answers the kernel's questions about tables of one file."""

    def __init__(self, read: Callable[[], RecordedSchema], file: str) -> None:
        self._read = read
        self._schema: RecordedSchema | None = None
        self._file = file

    def describe(
        self, schema: bytes, table: bytes, types: bytes, arguments: Sequence[tuple[int, int]], position: int
    ) -> Description | None:
        """The columns of a table, `types` of them, as the Table_map at `position` meant them; None: not known.

        What servers add to a table and do not show, at its end, stays @N.
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
    """A table's columns as the kernel wants them."""
    return [ColumnDescription(column.name, column.type, column.charset or None) for column in table.columns]
