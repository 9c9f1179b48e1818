"""A MariaDB binlog with its Table_maps and rows as the rules make them: for readers of MySQL's binlogs."""

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.binlog.compression import MOST_HELD_BYTES, unpack_compressed
from protocol.binlog.event_type import EventType
from protocol.binlog.layout import HEADER, HEADER_SIZE
from relay.view.rules.mariadb.rows.mariadb_tables import ConvertedTable, MariadbTables
from relay.view.rules.mariadb.rows.row_images import ROW_EVENTS

_MAGIC: Final = b"\xfebin"
_CRC: Final = 4
_LEFT_OUT: Final = frozenset(
    (
        EventType.GTID_LIST, EventType.BINLOG_CHECKPOINT, EventType.ANNOTATE_ROWS, EventType.STOP, EventType.ROTATE,
    )
)  # fmt: skip
_STANDALONE: Final = 1
_BEGIN: Final = bytes(14) + b"BEGIN"
_POST_LENGTHS: Final = bytes.fromhex(
    "000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000"
)


class MariadbEvent(NamedTuple):
    """An event of a file without its checksum. `header` is its 19 bytes."""

    type: int
    header: bytes
    body: bytes


def mariadb_events(data: bytes) -> Iterator[MariadbEvent]:
    """Yield the events of a file with checksums."""
    at = len(_MAGIC)
    while at < len(data):
        header = HEADER.unpack_from(data, at)
        size = header[3]
        yield MariadbEvent(header[1], data[at : at + HEADER_SIZE], data[at + HEADER_SIZE : at + size - _CRC])
        at += size


def as_mysql(data: bytes, tables: MariadbTables) -> bytes:
    """Return the file for a reader of MySQL's binlogs."""
    made = bytearray(_MAGIC)
    converted: dict[bytes, ConvertedTable] = {}

    def put(event: MariadbEvent, kind: int, body: bytes) -> None:
        timestamp, _, server_id, _, _, flags = HEADER.unpack(event.header)
        size = HEADER_SIZE + len(body) + _CRC
        head = HEADER.pack(timestamp, kind, server_id, size, len(made) + size, flags)
        made.extend(head + body + struct.pack("<I", zlib.crc32(head + body)))

    for event in mariadb_events(data):
        table_id = event.body[:6]
        if event.type == EventType.FORMAT_DESCRIPTION:
            head = struct.pack("<H50sI", 4, b"9.7.4", 0) + b"\x13" + _POST_LENGTHS + b"\x01"
            put(event, event.type, head)
        elif event.type == EventType.TABLE_MAP:
            converted[table_id] = tables.convert_map(event.body)
            if (body := converted[table_id].map_body) is not None:
                put(event, event.type, body)
        elif event.type in ROW_EVENTS:
            if converted[table_id].map_body is not None:
                put(event, *converted[table_id].rows(event.type, event.body))
        elif event.type == EventType.MARIADB_GTID:
            if not event.body[12] & _STANDALONE:
                put(event, EventType.QUERY, _BEGIN)
        elif event.type == EventType.QUERY_COMPRESSED:
            text = 13 + int.from_bytes(event.body[11:13], "little") + event.body[8] + 1
            put(event, EventType.QUERY, event.body[:text] + unpack_compressed(event.body[text:], MOST_HELD_BYTES))
        elif event.type not in _LEFT_OUT:
            put(event, event.type, event.body)
    return bytes(made)
