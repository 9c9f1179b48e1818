"""What is known about one archived binlog, and about the source it came from."""

import struct
from dataclasses import dataclass
from typing import Final

from protocol.binlog.format_description import decode_format_description
from protocol.errors import Malformed, Truncated
from protocol.position import binlog_number

FIRST_EVENT: Final = 4
"""Offset of a file's first event, behind the magic."""
_HEADER = struct.Struct("<IBIIIH")
_FORMAT_DESCRIPTION_TYPE: Final = 15
_BODY_BYTES: Final = 57
"""Of a format description that lists no type."""


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


def describe_new_file(name: str, first_event: bytes) -> ArchivedFile:
    """An unsealed `ArchivedFile` with `end` 4, from the format description that starts `first_event`.

    Raises: Truncated, Malformed (also for a bad `name`).
    """
    number = binlog_number(name)
    if len(first_event) < _HEADER.size + _BODY_BYTES:
        raise Truncated(f"{name}: {len(first_event)} bytes at its head are too few for a format description")
    timestamp, kind, server_id, size, _, _ = _HEADER.unpack_from(first_event)
    if kind != _FORMAT_DESCRIPTION_TYPE:
        raise Malformed(f"{name}: the first event is of type {kind}, not a format description (15)")
    if size < _HEADER.size + _BODY_BYTES or size > len(first_event):
        raise Truncated(f"{name}: the format description announces {size} bytes, {len(first_event)} are here")
    described = decode_format_description(first_event[_HEADER.size : size])
    if described.binlog_version != 4:
        raise Malformed(
            f"{name}: binlog version {described.binlog_version}; only version 4 (MySQL 5.0 and later) is archived"
        )
    return ArchivedFile(
        name=name,
        number=number,
        end=FIRST_EVENT,
        sealed=False,
        created=timestamp,
        server_version=described.server_version,
        server_id=server_id,
        checksum=described.checksum,
        flavour=described.flavour,
        first_timestamp=timestamp,
        last_timestamp=timestamp,
    )
