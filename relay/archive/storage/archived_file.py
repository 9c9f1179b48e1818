"""The facts about one archived binlog, and about its source."""

import zlib
from dataclasses import dataclass

from protocol.binlog.format_description import decode_first_event
from protocol.binlog.layout import CHECKSUM_SIZE, FIRST_EVENT
from protocol.errors import Malformed
from protocol.position import binlog_number
from relay.archive.storage.file_place import FilePlace, Tier


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """The identity of the archive's source. `flavour` is "mysql" or "mariadb"; `server_uuid` is None if it has none."""

    flavour: str
    version: str
    server_id: int
    server_uuid: str | None


@dataclass(slots=True, eq=False)
class ArchivedFile:
    """One file of the archive. Only the archive assigns its fields, on the event loop; others read.

    `end` is the offset up to which readers may read: the file's size when sealed, else the published end. `created`,
    `server_version`, `server_id`, `checksum` (0 none, 1 CRC32), `flavour` are the format description's. `first_timestamp`,
    `last_timestamp` are event times in seconds. `groups` counts transactions. `place`: the place of the packed file; None: it is on
    the disk as it was received. `cut`: the source's crash cut the last group. `damaged`: bytes from `end` on cannot be trusted and
    are not served.
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
    place: FilePlace | None = None

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
