"""The beginning of a binlog: its magic and its first event, which says how the others are read."""

from dataclasses import dataclass
from typing import Final

from protocol.binlog.layout import FIRST_EVENT, HEADER_SIZE, MAGIC, event_size
from relay.binlog_file.file_bytes import FileBytes, read_bytes

LONGEST_FORMAT: Final = 1 << 16
"""The most bytes of a first event that are read; those of all servers have a few hundred."""
_USUAL_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class BinlogStart:
    """A file's first bytes. `magic`: four, if the file has so many. `event`: the first event, header included.

    The event is shorter than it announces if the file ends in it or it announces more than LONGEST_FORMAT.
    """

    magic: bytes
    event: bytes

    @property
    def is_whole(self) -> bool:
        """True if all of the first event is here."""
        return len(self.event) >= HEADER_SIZE and event_size(self.event) == len(self.event)


def read_start(source: FileBytes) -> BinlogStart:
    """Return the beginning of the file. Raises: OSError."""
    data = read_bytes(source, 0, _USUAL_BYTES)
    size = min(max(event_size(data, FIRST_EVENT), HEADER_SIZE), LONGEST_FORMAT)
    missing = FIRST_EVENT + size - len(data)
    if missing > 0 and len(data) == _USUAL_BYTES:
        data += read_bytes(source, len(data), missing)
    return BinlogStart(data[: len(MAGIC)], data[FIRST_EVENT : FIRST_EVENT + size])
