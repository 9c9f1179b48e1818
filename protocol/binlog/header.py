"""The 19 bytes that every event starts with."""

from dataclasses import dataclass
from typing import Final

from protocol.binlog.event_type import event_type_name
from protocol.binlog.layout import HEADER, HEADER_SIZE
from protocol.errors import Malformed, Truncated
from protocol.kernel import codes

FLAG_IN_USE: Final = codes.FLAG_IN_USE
FLAG_ARTIFICIAL: Final = codes.FLAG_ARTIFICIAL
FLAG_IGNORABLE: Final = codes.FLAG_IGNORABLE


@dataclass(frozen=True, slots=True)
class EventHeader:
    """The common header. `log_pos` is the raw end_log_pos field: 32 bits that wrap, never used to order anything."""

    timestamp: int
    type: int
    server_id: int
    size: int
    log_pos: int
    flags: int

    @property
    def name(self) -> str:
        """The event type's name, `Unknown(n)` for an undocumented code."""
        return event_type_name(self.type)


def decode_header(data: bytes, offset: int = 0) -> EventHeader:
    """Decode the common event header that starts at `offset`.

    Layout (little-endian): timestamp u32 s | type u8 | server_id u32 | size u32 bytes | log_pos u32 | flags u16
    Raises: Truncated if fewer than 19 bytes remain; Malformed if size < 19.
    Source: MySQL 9.7 `Log_event_header`, MariaDB 11.8 `Log_event::write_header_to_memory`.
    """
    if len(data) - offset < HEADER_SIZE:
        raise Truncated(f"an event header needs {HEADER_SIZE} bytes, {max(0, len(data) - offset)} are there")
    header = EventHeader(*HEADER.unpack_from(data, offset))
    if header.size < HEADER_SIZE:
        raise Malformed(f"event length {header.size} is below the header's {HEADER_SIZE}")
    return header
