"""The facts about one archived binlog, and about its source."""

import zlib
from dataclasses import dataclass

from protocol.binlog.format_description import decode_first_event
from protocol.binlog.layout import CHECKSUM_SIZE, FIRST_EVENT
from protocol.errors import Malformed
from protocol.position import binlog_number
from relay.archive.storage.storage_location import StorageLocation, Tier


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """The identity of the archive's source. `flavour` is "mysql" or "mariadb"; `server_uuid` is None if it has none."""

    flavour: str
    version: str
    server_id: int
    server_uuid: str | None


@dataclass(slots=True, eq=False)
class ArchivedFile:
    """One file of the archive. Only the archive assigns its fields, on the event loop; others read."""

    name: str
    number: int
    end: int
    """The offset up to which readers may read: the file's size when sealed, else the published end."""
    sealed: bool
    created: int
    server_version: str
    server_id: int
    checksum: int
    flavour: str
    """Like the four fields before it, from the format description; `checksum` is 0 for none, 1 for CRC32."""
    first_timestamp: int = 0
    last_timestamp: int = 0
    """Like `first_timestamp`, an event's time in seconds."""
    events: int = 0
    groups: int = 0
    """The number of transactions."""
    cut: bool = False
    """True if the source's crash cut the last group."""
    damaged: bool = False
    """True if bytes from `end` on cannot be trusted and are not served."""
    digest: str | None = None
    place: StorageLocation | None = None
    """The place of the packed file; None: it is on the disk as it was received."""

    @property
    def stored_bytes(self) -> int:
        """The bytes that it takes at its place."""
        return self.end if self.place is None else self.place.stored_bytes

    @property
    def tier(self) -> Tier:
        """The tier that it is in."""
        return Tier.HOT if self.place is None else self.place.tier

    @property
    def size_bytes(self) -> int:
        """The bytes that readers may read, the magic included."""
        return self.end


def describe_new_file(name: str, first_event: bytes) -> ArchivedFile:
    """Return an unsealed `ArchivedFile` with `end` 4, from the format description that starts `first_event`.

    Raises: Truncated, Malformed (also for a bad `name`).
    """
    number = binlog_number(name)
    try:
        header, described = decode_first_event(first_event)
    except Malformed as error:
        raise type(error)(f"{name}: {error}") from None
    if described.binlog_version != 4:
        version = described.binlog_version
        raise Malformed(f"{name}: binlog version {version}; only version 4 (MySQL 5.0 and later) is archived")
    return ArchivedFile(
        name=name,
        number=number,
        end=FIRST_EVENT,
        sealed=False,
        created=header.timestamp,
        server_version=described.server_version,
        server_id=header.server_id,
        checksum=described.checksum,
        flavour=described.flavour,
        first_timestamp=header.timestamp,
        last_timestamp=header.timestamp,
    )


def describe_archived_file(name: str, first_event: bytes) -> ArchivedFile:
    """Do as `describe_new_file`, for a file of the archive, whose format description has a checksum if servers of its version write
    one.

    The byte of it which says whether the other events have any is covered by nothing else. Raises: Truncated, Malformed.
    """
    file = describe_new_file(name, first_event)
    header, described = decode_first_event(first_event)
    stored = first_event[header.size - CHECKSUM_SIZE : header.size]
    reckoned = zlib.crc32(first_event[: header.size - CHECKSUM_SIZE])
    if described.has_checksum_field and reckoned != int.from_bytes(stored, "little"):
        raise Malformed(f"{name}: the checksum of its format description is wrong")
    return file
