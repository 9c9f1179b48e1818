"""The first event of a file of a series: its source, version and time."""

from dataclasses import dataclass
from datetime import UTC, datetime

from protocol.binlog.format_description import decode_first_event
from protocol.binlog.layout import HEADER, HEADER_SIZE
from protocol.errors import ProtocolError
from relay.binlog_file.broken import wrong_magic
from relay.binlog_file.head import read_start
from relay.binlog_tables.plan.series_files import SeriesFile
from relay.binlog_tables.plan.store import Store


@dataclass(frozen=True, slots=True)
class SeriesHead:
    """A file with the facts of its first event. `bytes` is how much of it is read; `begun`, `version`, `server_id` and `flavour`
    ("mysql" or "mariadb") are None if unreadable."""

    file: SeriesFile
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


def read_head(store: Store, file: SeriesFile) -> SeriesHead:
    """Read the file's first event; problems are left to the reader of all events."""
    try:
        reader = store.open(file.path)
    except OSError:
        return SeriesHead(file, 0)
    try:
        size = reader.size if file.end is None else file.end
        start = read_start(reader)
    except OSError:
        return SeriesHead(file, 0)
    finally:
        reader.close()
    if wrong_magic(start.magic) is not None or len(start.event) < HEADER_SIZE:
        return SeriesHead(file, size)
    try:
        header, described = decode_first_event(start.event)
    except ProtocolError:
        timestamp, _, server_id, _, _, _ = HEADER.unpack_from(start.event)
        return SeriesHead(file, size, _time(timestamp), None, server_id)
    return SeriesHead(
        file,
        size,
        _time(header.timestamp),
        described.server_version,
        header.server_id,
        bool(described.checksum_bytes),
        described.flavour,
    )


def _time(timestamp: int) -> datetime | None:
    return datetime.fromtimestamp(timestamp, UTC) if timestamp else None
