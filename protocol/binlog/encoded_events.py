"""Events that a source makes for one replica and stores nowhere, and the patches of the one it sends twice.

All numbers are little-endian. The common header: timestamp u32 | type u8 | server_id u32 | length u32 | end_log_pos u32 | flags u16.
A checksum is CRC32 of all bytes before it, u32, at the end. docs/PROTOCOL.md#positions-of-a-replica and docs/PROTOCOL.md#heartbeats
describe how replicas interpret these events.
"""

import contextlib
import struct
import zlib
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import has_checksum_field
from protocol.binlog.header import FLAG_ARTIFICIAL, FLAG_IN_USE
from protocol.binlog.layout import (
    CHECKSUM_SIZE,
    CREATED_AT,
    FLAGS,
    HEADER,
    HEADER_SIZE,
    LOG_POS,
    POST_LENGTHS_AT,
    SERVER_VERSION,
    TYPE_AT,
    event_size,
)
from protocol.errors import Malformed, Truncated
from protocol.gtid.mariadb import GtidList, encode_gtid_list
from protocol.kernel import codes
from protocol.position import Position, binlog_number
from protocol.wire import lenenc_int

MAX_WIRE_POSITION: Final = codes.U32_MAX
_MARKER_BITS: Final = 0x3C00


def _event(kind: EventType, server_id: int, end_log_pos: int, flags: int, body: bytes, with_checksum: bool) -> bytes:
    size = HEADER_SIZE + len(body) + (CHECKSUM_SIZE if with_checksum else 0)
    event = HEADER.pack(0, kind, server_id, size, end_log_pos, flags) + body
    return event + struct.pack("<I", zlib.crc32(event)) if with_checksum else event


def rotate_event(position: Position, server_id: int, *, with_checksum: bool) -> bytes:
    """Return the artificial Rotate that names the file and offset of the events that follow.

    Body: offset u64 | file name. Timestamp and end_log_pos 0, flags 0x20. Source: MySQL 5.6 `rpl_master.cc (fake_rotate_event)`. A
    CRC for a replica that expects none becomes part of the file name there.
    """
    body = struct.pack("<Q", position.offset) + position.file.encode()
    return _event(EventType.ROTATE, server_id, 0, FLAG_ARTIFICIAL, body, with_checksum)


def heartbeat_event(position: Position, server_id: int, *, with_checksum: bool) -> bytes:
    """Return a heartbeat, version 1: end_log_pos is the replica's position, the body its file name.

    `position.offset` must fit the wire's 32 bits (raises ValueError): a wrapped one would stop the replica.
    Source: MySQL 5.6 `rpl_master.cc (send_heartbeat_event)`.
    """
    if position.offset > MAX_WIRE_POSITION:
        raise ValueError(f"{position} does not fit a heartbeat")
    return _event(EventType.HEARTBEAT, server_id, position.offset, 0, position.file.encode(), with_checksum)


def heartbeat_v2_event(position: Position, server_id: int, *, with_checksum: bool) -> bytes:
    """Return a heartbeat, version 2, whose position has 64 bits; for replicas that asked for it (MySQL 8.0.26 and newer).

    Body: (type packed, length packed, value)*: 1 file name, 2 position packed, 0 end. Source: MySQL 9.7
    `rpl_binlog_sender.cc (send_heartbeat_event_v2)`.
    """
    name, offset = position.file.encode(), lenenc_int(position.offset)
    body = b"\1" + lenenc_int(len(name)) + name + b"\2" + lenenc_int(len(offset)) + offset + b"\0"
    return _event(EventType.HEARTBEAT_V2, server_id, 0, 0, body, with_checksum)


def gtid_list_event(gtid_list: GtidList, offset: int, server_id: int, *, with_checksum: bool) -> bytes:
    """Return an artificial Gtid_list: the newest group of each domain at `offset`, after a MariaDB replica's own groups were skipped.

    Flags 0x20, end_log_pos the offset (its low 32 bits). Checked on MariaDB 10.11.
    """
    body = encode_gtid_list(gtid_list)
    return _event(EventType.GTID_LIST, server_id, offset & MAX_WIRE_POSITION, FLAG_ARTIFICIAL, body, with_checksum)


def format_description_has_crc(event: bytes) -> bool:
    """Return whether this format description ends in a checksum, which it may for any algorithm."""
    version = event[SERVER_VERSION].split(b"\0", 1)[0].decode("latin-1")
    return has_checksum_field(version, len(event) - POST_LENGTHS_AT)


def patch_format_description(
    event: bytes, *, mid_file: bool, strip_markers: bool, clear_created: bool = False
) -> bytes:
    """Return the format description for one replica, with its CRC32 corrected.

    The in-use flag is cleared. `mid_file` (the stream continues at an offset other than 4): end_log_pos 0, or the replica would count
    its length; `created` 0, or the applier would roll back the transaction it is in. `clear_created`: only that.
    Raises: Truncated, Malformed if `event` is no whole format description.
    """
    if len(event) < POST_LENGTHS_AT:
        raise Truncated(f"a format description of {len(event)} bytes")
    if event[TYPE_AT] != EventType.FORMAT_DESCRIPTION or event_size(event) != len(event):
        raise Malformed(f"event type {event[TYPE_AT]} where the format description must be")
    patched = bytearray(event)
    flags = int.from_bytes(patched[FLAGS], "little") & ~FLAG_IN_USE
    if strip_markers:
        flags &= ~_MARKER_BITS
    struct.pack_into("<H", patched, FLAGS.start, flags)
    if mid_file:
        struct.pack_into("<I", patched, LOG_POS.start, 0)
    if mid_file or clear_created:
        struct.pack_into("<I", patched, CREATED_AT, 0)
    if format_description_has_crc(event):
        struct.pack_into("<I", patched, len(patched) - CHECKSUM_SIZE, zlib.crc32(patched[:-CHECKSUM_SIZE]))
    return bytes(patched)


def replica_position(tail: bytes, end: Position, *, with_checksum: bool) -> Position:
    """Return the position of a replica that was sent a file up to `end`, whose last bytes are `tail` (256 are enough).

    A Stop event is not counted by replicas: they are before it. A Rotate moves them to the file it names. After any other event they
    are at `end`. Source: MySQL 5.6 `rpl_slave.cc (queue_event)`.
    """
    crc = CHECKSUM_SIZE if with_checksum else 0
    if _ends_with(tail, HEADER_SIZE + crc, EventType.STOP, end.offset, with_checksum):
        return Position(end.file, end.offset - HEADER_SIZE - crc)
    size = rotate_size(tail, end, with_checksum=with_checksum)
    if size:
        body = tail[len(tail) - size + HEADER_SIZE : len(tail) - crc]
        return Position(body[8:].decode(), int.from_bytes(body[:8], "little"))
    return end


def rotate_size(tail: bytes, end: Position, *, with_checksum: bool) -> int:
    """Return the bytes of the Rotate that ends a file at `end`, after `tail` (256 bytes are enough); 0: it ends otherwise."""
    crc = CHECKSUM_SIZE if with_checksum else 0
    # The next file's name is as long as this one's, unless the number gets a digit more.
    for name_bytes in (len(end.file.encode()), len(end.file.encode()) + 1):
        size = HEADER_SIZE + 8 + name_bytes + crc
        if _ends_with(tail, size, EventType.ROTATE, end.offset, with_checksum):
            name = tail[len(tail) - crc - name_bytes : len(tail) - crc].decode("utf-8", "replace")
            with contextlib.suppress(Malformed):
                binlog_number(name)
                return size
    return 0


def _ends_with(tail: bytes, size: int, kind: EventType, end: int, with_checksum: bool) -> bool:
    """Return whether the last `size` bytes are an event of that type: its own length, its end_log_pos and its CRC32 agree."""
    if len(tail) < size:
        return False
    event = tail[len(tail) - size :]
    _, got_kind, _, got_size, end_log_pos, _ = HEADER.unpack_from(event)
    if (got_kind, got_size, end_log_pos) != (kind, size, end & MAX_WIRE_POSITION):
        return False
    return not with_checksum or zlib.crc32(event[:-CHECKSUM_SIZE]) == int.from_bytes(event[-CHECKSUM_SIZE:], "little")
