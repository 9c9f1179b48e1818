"""What a relay recorded of its source's tables, for readers of its archive: names for columns that the binlog leaves unnamed."""

import hashlib
from typing import Final

from protocol.binlog.schema.column_description import ColumnDescription, encode_columns
from protocol.errors import Malformed
from relay.archive.storage.files import SCHEMA_NAME
from relay.audit.plan.store import Store
from relay.binlog_file.file_bytes import read_bytes
from relay.schema_history.schema_record import RecordedSchema, Table

_KEPT: Final = 4
# Spark's workers live for many tasks; each archive's file is parsed once in a worker, and again when it was written to.
_parsed: dict[str, tuple[bytes, RecordedSchema]] = {}


def recorded_schema(store: Store, directory: str) -> RecordedSchema:
    """The recorded schema of the archive (or of one generation of it) in `directory`; an empty one where there is none.

    Raises: OSError.
    """
    path = store.join(directory, SCHEMA_NAME)
    if not store.is_file(path):
        return RecordedSchema()
    reader = store.open(path)
    try:
        data = read_bytes(reader, 0, reader.size)
    finally:
        reader.close()
    digest = hashlib.blake2b(data, digest_size=16).digest()
    known = _parsed.get(path)
    if known is not None and known[0] == digest:
        return known[1]
    schema = RecordedSchema.parse(data)
    while len(_parsed) >= _KEPT:
        del _parsed[next(iter(_parsed))]
    _parsed[path] = (digest, schema)
    return schema


class Describer:
    """Answers the kernel's questions about tables of one file."""

    def __init__(self, schema: RecordedSchema, file: str) -> None:
        self._schema = schema
        self._file = file

    def describe(self, schema: bytes, table: bytes, types: bytes, position: int) -> bytes | None:
        """The columns of a table, `types` of them, as the Table_map at `position` meant them; None: not known.

        What servers add to a table and do not show, at its end, stays @N.
        """
        try:
            found = self._schema.table(schema.decode(), table.decode(), self._file, position)
        except (Malformed, UnicodeDecodeError):
            return None
        if found is None or not 0 < len(found.columns) <= len(types):
            return None
        hidden = [ColumnDescription(f"@{number + 1}", "") for number in range(len(found.columns), len(types))]
        packed: bytes = encode_columns([*described(found), *hidden])
        return packed


def described(table: Table) -> list[ColumnDescription]:
    """A table's columns as the kernel wants them."""
    return [ColumnDescription(column.name, column.type, column.charset or None) for column in table.columns]
