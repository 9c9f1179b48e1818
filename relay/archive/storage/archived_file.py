"""What is known about one archived binlog, and about the source it came from."""

import struct
from dataclasses import dataclass
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import flavour_of
from protocol.binlog.layout import FIRST_EVENT, HEADER
from protocol.errors import Malformed, Truncated
from protocol.position import binlog_number

_BODY = struct.Struct("<H50sIB")
_CHECKSUM_SINCE_MYSQL: Final = (5, 6, 1)
_CHECKSUM_SINCE_MARIADB: Final = (5, 3, 0)


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """Who the archive's bytes come from. `flavour` is "mysql" or "mariadb"; `server_uuid` is None where it has none."""

    flavour: str
    version: str
    server_id: int
    server_uuid: str | None


@dataclass(slots=True, eq=False)
class ArchivedFile:
    """One file of the archive. Only the archive assigns its fields, on the event loop; others read.

    `end` is the offset up to which readers may read: the file's size when sealed, else the published end.
    `created`, `server_version`, `server_id`, `checksum` (0 none, 1 CRC32), `flavour` are the format description's.
    `first_timestamp`, `last_timestamp` are event times in seconds. `groups` counts transactions.
    `cut`: the source's crash cut the last group. `damaged`: bytes from `end` on cannot be trusted and are not served.
    """

    name: str
    number: int
    end: int
    sealed: bool
    created: int
    server_version: str
    server_id: int
    checksum: int
    flavour: str
    first_timestamp: int = 0
    last_timestamp: int = 0
    events: int = 0
    groups: int = 0
    cut: bool = False
    damaged: bool = False
    digest: str | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes that readers may read, the magic included."""
        return self.end


def _version_triple(version: str) -> tuple[int, int, int]:
    parts = []
    for piece in version.split(".")[:3]:
        digits = ""
        for char in piece:
            if not char.isdigit():
                break
            digits += char
        parts.append(int(digits or 0))
    while len(parts) < 3:
        parts.append(0)
    return (parts[0], parts[1], parts[2])


def describe_new_file(name: str, first_event: bytes) -> ArchivedFile:
    """An unsealed `ArchivedFile` with `end` 4, from the format description that starts `first_event`.

    Layout after the 19-byte header: binlog version u16 | server version 50 bytes | created u32 | header length u8 |
    post-header lengths | checksum algorithm u8 | CRC32 u32, the last two since MySQL 5.6.1 and MariaDB 5.3.
    Raises: Truncated, Malformed (also for a bad `name`). Source: MySQL 8.4 source docs, "Format_description_event".
    """
    number = binlog_number(name)
    if len(first_event) < HEADER.size + _BODY.size:
        raise Truncated(f"{name}: {len(first_event)} bytes at its head are too few for a format description")
    timestamp, kind, server_id, size, _, _ = HEADER.unpack_from(first_event)
    if kind != EventType.FORMAT_DESCRIPTION:
        raise Malformed(f"{name}: the first event is of type {kind}, not a format description (15)")
    if size < HEADER.size + _BODY.size or size > len(first_event):
        raise Truncated(f"{name}: the format description announces {size} bytes, {len(first_event)} are here")
    binlog_version, raw_version, _, _ = _BODY.unpack_from(first_event, HEADER.size)
    if binlog_version != 4:
        raise Malformed(f"{name}: binlog version {binlog_version}; only version 4 (MySQL 5.0 and later) is archived")
    version = raw_version.split(b"\0", 1)[0].decode("latin-1")
    flavour = flavour_of(version)
    since = _CHECKSUM_SINCE_MARIADB if flavour == "mariadb" else _CHECKSUM_SINCE_MYSQL
    checksum = first_event[size - 5] if _version_triple(version) >= since else 0
    return ArchivedFile(
        name=name,
        number=number,
        end=FIRST_EVENT,
        sealed=False,
        created=timestamp,
        server_version=version,
        server_id=server_id,
        checksum=1 if checksum == 1 else 0,
        flavour=flavour,
        first_timestamp=timestamp,
        last_timestamp=timestamp,
    )
