"""Offsets and sizes in a binlog and in the header of its events. The kernel's numbers are these (protocol/kernel/codes.py)."""

import struct
from typing import Final

from protocol.kernel import codes

MAGIC: Final = b"\xfebin"
"""The first bytes of a binlog."""
ENCRYPTED_MAGIC: Final = b"\xfdbin"
"""The first bytes of a binlog that MySQL encrypted at rest."""
FIRST_EVENT: Final = codes.FIRST_EVENT
"""The offset of a file's first event, after the magic."""
HEADER_SIZE: Final = codes.HEADER_SIZE
"""The bytes of an event's header."""
CHECKSUM_SIZE: Final = codes.CHECKSUM_SIZE
"""The bytes of the CRC32 at an event's end, where events have one."""

HEADER: Final = struct.Struct("<IBIIIH")
"""timestamp u32 s | type u8 | server_id u32 | size u32 bytes | log_pos u32 | flags u16, all of them little-endian."""
TIMESTAMP: Final = slice(0, codes.EVENT_TYPE_AT)
TYPE_AT: Final = codes.EVENT_TYPE_AT
SERVER_ID: Final = slice(codes.SERVER_ID_AT, codes.EVENT_SIZE_AT)
LOG_POS: Final = slice(codes.LOG_POS_AT, codes.FLAGS_AT)
FLAGS: Final = slice(codes.FLAGS_AT, HEADER_SIZE)
OF_ONE_CONNECTION: Final = 0x0004
"""The flag of a statement that used something of its connection alone, such as a temporary table, which may hide another."""

# A format description, from its header on: version u16 | server version 50 bytes | created u32 | header length u8 | lengths.
SERVER_VERSION: Final = slice(HEADER_SIZE + 2, HEADER_SIZE + 52)
CREATED_AT: Final = HEADER_SIZE + 52
POST_LENGTHS_AT: Final = HEADER_SIZE + codes.FORMAT_FIXED_SIZE


def event_size(data: bytes | bytearray | memoryview, at: int = 0) -> int:
    """Return the announced bytes of the event at `at`, its header included; 0 if `data` ends before its size."""
    field = data[at + codes.EVENT_SIZE_AT : at + codes.LOG_POS_AT]
    return int.from_bytes(field, "little") if len(field) == codes.LOG_POS_AT - codes.EVENT_SIZE_AT else 0


def is_event_size(size: int) -> bool:
    """Return whether an event can have `size` bytes."""
    return HEADER_SIZE <= size <= codes.MAX_EVENT
