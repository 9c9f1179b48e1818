"""What the head of a file says, for "What was read" and for the chain of files."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import decode_format_description, decode_start_v3
from protocol.errors import ProtocolError
from relay.archive.storage.archived_file import FIRST_EVENT
from relay.audit.plan.series_files import AuditedFile
from relay.audit.plan.splits import MAGIC
from relay.audit.plan.store import Store

_HEADER_BYTES: Final = 19
_LONGEST_HEAD: Final = 4096


@dataclass(frozen=True, slots=True)
class FileHead:
    """A file, and its first event. `bytes`: as far as it is read; `begun`, `version`, `server_id`, `flavour` ("mysql" or
    "mariadb"): None where unreadable."""

    file: AuditedFile
    bytes: int
    begun: datetime | None = None
    version: str | None = None
    server_id: int | None = None
    checksum: bool = False
    flavour: str | None = None

    @property
    def name(self) -> str:
        """The file's name."""
        return self.file.name

    @property
    def generation(self) -> str:
        """The directory of a later source in an archive, like g0002; "" for the first one's files."""
        return self.file.generation

    @property
    def base(self) -> str:
        """The file's name as its source has it."""
        return self.file.name.rpartition("/")[2]


def read_head(store: Store, file: AuditedFile) -> FileHead:
    """Reads the file's first event; what is wrong with it is left to the reader of all events."""
    try:
        reader = store.open(file.path)
    except OSError:
        return FileHead(file, 0)
    try:
        size = reader.size if file.end is None else file.end
        data = bytearray(_LONGEST_HEAD)
        have = reader.read_into(memoryview(data), 0)
        head = bytes(data[:have])
    except OSError:
        return FileHead(file, 0)
    finally:
        reader.close()
    event = head[FIRST_EVENT:]
    if head[:FIRST_EVENT] != MAGIC or len(event) < _HEADER_BYTES:
        return FileHead(file, size)
    timestamp = int.from_bytes(event[:4], "little")
    server_id = int.from_bytes(event[5:9], "little")
    body = event[_HEADER_BYTES : int.from_bytes(event[9:13], "little")]
    begun = datetime.fromtimestamp(timestamp, UTC) if timestamp else None
    try:
        if event[4] == EventType.START_V3:
            described = decode_start_v3(body)
        elif event[4] == EventType.FORMAT_DESCRIPTION:
            described = decode_format_description(body)
        else:
            return FileHead(file, size, begun, None, server_id)
    except ProtocolError:
        return FileHead(file, size, begun, None, server_id)
    has_checksums = bool(described.checksum_bytes)
    return FileHead(file, size, begun, described.server_version, server_id, has_checksums, described.flavour)
