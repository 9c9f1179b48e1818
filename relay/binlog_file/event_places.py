"""The places of events, by their headers alone: nothing is checked, and little is read."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.binlog.layout import HEADER, HEADER_SIZE
from relay.binlog_file.file_bytes import FileBytes, read_bytes

_PIECE_BYTES: Final = 64 << 10


class EventFields(NamedTuple):
    """A header's fields, as in `layout.HEADER`."""

    timestamp: int
    type: int
    server_id: int
    size: int
    log_pos: int
    flags: int


def event_headers(
    source: FileBytes, start: int, stop: int, piece_bytes: int = _PIECE_BYTES
) -> Iterator[tuple[int, EventFields]]:
    """Yield offset and header of each event that starts in [start, stop); `start` is an event's start.

    It ends early where there is no event: where a header is not whole or its size below a header's. Raises: OSError.
    """
    unpack = HEADER.unpack_from
    piece, base = b"", start
    while start < stop:
        at = start - base
        if at + HEADER_SIZE > len(piece):
            piece = read_bytes(source, start, min(piece_bytes, max(stop - start, HEADER_SIZE)))
            base, at = start, 0
            if len(piece) < HEADER_SIZE:
                return
        fields = EventFields._make(unpack(piece, at))
        if fields.size < HEADER_SIZE:
            return
        yield start, fields
        start += fields.size


def count_events(source: FileBytes, start: int, stop: int) -> tuple[int, int]:
    """Return how many events start in [start, stop), and where the last of them ends, as `event_headers` does."""
    count, end = 0, start
    for at, fields in event_headers(source, start, stop):
        count += 1
        end = at + fields.size
    return count, end


def event_around(source: FileBytes, start: int, offset: int, limit: int) -> tuple[int, int]:
    """Return the range [start, end) of the event that contains `offset` (or starts there), found from the event at `start`.

    `limit` is the end of what may be read. Raises: ValueError if the bytes at `start` are not a chain of events; OSError.
    """
    end = start
    for at, fields in event_headers(source, start, min(offset + 1, limit)):
        end = at + fields.size
        if end > limit:
            raise ValueError(f"the event at offset {at} announces {fields.size} bytes")
        if offset < end:
            return at, end
    raise ValueError(f"no event header fits at offset {end}")
