"""Table_map and row events of a MariaDB source, made by hand for tests of the rules."""

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from protocol.binlog.table_map import MapColumn
from protocol.wire import lenenc_bytes, lenenc_int
from relay.view.rules.mariadb.rows.mariadb_tables import MariadbTables
from relay.view.stops.stop_reason import StopReason, Untranslatable

INT: Final = MapColumn(3)
BIGINT: Final = MapColumn(8)
TABLE_ID: Final = (1 << 40) + 7
WRITE_V1: Final = 23
UPDATE_V1: Final = 24
DELETE_V1: Final = 25


def varchar(most: int) -> MapColumn:
    """Return VARCHAR of so many bytes."""
    return MapColumn(15, struct.pack("<H", most))


def text(prefix: int = 2) -> MapColumn:
    """Return TEXT or BLOB whose length has so many bytes."""
    return MapColumn(252, bytes((prefix,)))


def source_map(
    *columns: MapColumn, name: str = "t", optional: bytes = b"", nullable: bytes | None = None, table_id: int = TABLE_ID
) -> bytes:
    """Return the body of a Table_map of d.`name`."""
    return b"".join((
        table_id.to_bytes(6, "little"), b"\x01\x00",
        lenenc_bytes(b"d"), b"\0", lenenc_bytes(name.encode()), b"\0",
        lenenc_int(len(columns)), bytes(column.type for column in columns),
        lenenc_bytes(b"".join(column.metadata for column in columns)),
        b"\xff" * -(-len(columns) // 8) if nullable is None else nullable,
        optional,
    ))  # fmt: skip


def all_columns(count: int) -> bytes:
    """Return the bits of an image that has every column."""
    return ((1 << count) - 1).to_bytes((count + 7) // 8, "little")


def source_rows(count: int, *images: bytes, present: Sequence[bytes] | None = None) -> bytes:
    """Return the body of a row event of version 1 of a table with `count` columns; an image begins with its NULL bits."""
    bits = [all_columns(count)] if present is None else present
    return TABLE_ID.to_bytes(6, "little") + b"\x01\x00" + lenenc_int(count) + b"".join((*bits, *images))


def optional_field(kind: int, value: bytes) -> bytes:
    """Return one field of the optional metadata."""
    return bytes((kind,)) + lenenc_bytes(value)


def names_field(*names: str) -> bytes:
    """Return the names of all columns (binlog_row_metadata = FULL)."""
    return optional_field(4, b"".join(lenenc_bytes(name.encode()) for name in names))


def known_tables(collation_of: Callable[[int], int] = lambda collation: collation, **settings: Any) -> MariadbTables:
    """Return tables of which nothing is known yet."""
    return MariadbTables(collation_of, **settings)


def stop_reason(act: Callable[[], object]) -> StopReason:
    """Return why a view stops there."""
    try:
        act()
    except Untranslatable as stopped:
        return stopped.reason
    raise AssertionError("nothing stopped")
