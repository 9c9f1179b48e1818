"""Format_description and its forerunner Start_v3: the layout of the rest of the file."""

from dataclasses import dataclass
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields
from protocol.binlog.header import EventHeader, decode_header
from protocol.binlog.layout import HEADER_SIZE
from protocol.errors import Malformed, Truncated
from protocol.sql.server_version import version_numbers

CHECKSUM_NONE: Final = 0
CHECKSUM_CRC32: Final = 1

# MySQL from this version on puts the checksum algorithm and four checksum bytes at the end of the event; so does every MariaDB that
# has events of its own.
_MYSQL_WITH_CHECKSUM: Final = (5, 6, 1)

# Post-header lengths that Start_v3 implies, types 1 to 14.
# Source: MySQL 5.1 `Format_description_log_event` ctor, case 3.
_V3_POST_HEADERS: Final = bytes([56, 11, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0])


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """The layout of a binlog's events.

    `created` is in s since the epoch, 0 if the server cleared it. `post_header_lengths[type - 1]` are in bytes. `checksum` is as
    written, 0 none, 1 CRC32; `has_checksum_field`: the server is new enough to write it.
    """

    binlog_version: int
    server_version: str
    created: int
    header_length: int
    post_header_lengths: bytes
    checksum: int
    has_checksum_field: bool

    @property
    def flavour(self) -> str:
        """The kind of server that wrote the file, `mariadb` or `mysql`: see `is_of_mariadb`."""
        return "mariadb" if is_of_mariadb(len(self.post_header_lengths)) else "mysql"

    @property
    def checksum_bytes(self) -> int:
        """The number of checksum bytes that end every event but this one."""
        return 4 if self.checksum == CHECKSUM_CRC32 else 0

    def post_header_length(self, event_type: int) -> int:
        """Return the bytes of the fixed part of a body; 0 for types that the file does not list."""
        return self.post_header_lengths[event_type - 1] if 0 < event_type <= len(self.post_header_lengths) else 0


def is_of_mariadb(listed: int) -> bool:
    """Return whether a format description with so many bytes after its header length is MariaDB's, which lists its own types.

    Those begin at 160 (Annotate_rows, since MariaDB 5.3); MySQL's end below 50. The version shows nothing: MariaDB may be started
    with any (`--version`).
    """
    return listed >= EventType.ANNOTATE_ROWS


def has_checksum_field(server_version: str, listed: int) -> bool:
    """Return whether a format description ends with algorithm u8 and checksum u32. For `listed` see `is_of_mariadb`."""
    return is_of_mariadb(listed) or version_numbers(server_version) >= _MYSQL_WITH_CHECKSUM


def decode_format_description(body: bytes) -> FormatDescription:
    """Decode a Format_description event; `body` is all of it after the header, its checksum bytes included.

    Layout: binlog_version u16 | server_version 50 bytes, zero padded | created u32 s | header_length u8 | post-header length u8 for
    each type from 1 | from MySQL 5.6.1 and MariaDB 5.3 on: algorithm u8, checksum u32 (there even when the algorithm is 0).
    Raises: Truncated; Malformed for a header length below 19 or an undefined checksum algorithm.
    """
    fields = Fields(body)
    binlog_version, server_version, created = _start_fields(fields)
    header_length = fields.u8()
    if header_length < HEADER_SIZE:
        raise Malformed(f"a common header of {header_length} bytes; servers since 4.0 write {HEADER_SIZE}")
    aware = has_checksum_field(server_version, fields.remaining)
    checksum = CHECKSUM_NONE
    if aware:
        lengths = fields.take(max(0, fields.remaining - 5))
        checksum = fields.u8()
        fields.skip(4)
        if checksum not in (CHECKSUM_NONE, CHECKSUM_CRC32):
            raise Malformed(f"checksum algorithm {checksum}; 0 (none) and 1 (CRC32) exist")
    else:
        lengths = fields.rest()
    return FormatDescription(binlog_version, server_version, created, header_length, lengths, checksum, aware)


def decode_start_v3(body: bytes) -> FormatDescription:
    """Decode a Start_v3 event, which heads the binlogs of MySQL 4.0 and 4.1.

    Layout: binlog_version u16 | server_version 50 bytes, zero padded | created u32 s. Trailing bytes are ignored.
    """
    binlog_version, server_version, created = _start_fields(Fields(body))
    return FormatDescription(
        binlog_version, server_version, created, HEADER_SIZE, _V3_POST_HEADERS, CHECKSUM_NONE, False
    )


def decode_first_event(event: bytes) -> tuple[EventHeader, FormatDescription]:
    """Decode the event that a file begins with, a Format_description or a Start_v3; bytes after it are ignored.

    Raises: Truncated if it is not all in `event`; Malformed, also if it is another event.
    """
    header = decode_header(event)
    if header.type not in (EventType.FORMAT_DESCRIPTION, EventType.START_V3):
        raise Malformed(f"the first event is of type {header.type}, not a format description (15)")
    if header.size > len(event):
        raise Truncated(f"the format description announces {header.size} bytes, {len(event)} are here")
    body = event[HEADER_SIZE : header.size]
    return header, decode_start_v3(body) if header.type == EventType.START_V3 else decode_format_description(body)


def _start_fields(fields: Fields) -> tuple[int, str, int]:
    binlog_version = fields.u16()
    server_version = fields.take(50).split(b"\0", 1)[0].decode("utf-8", "backslashreplace")
    return binlog_version, server_version, fields.u32()
