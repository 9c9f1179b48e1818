"""Groups of the source that need a rule, read from its file: their events, and an event's body where a rule asks for it."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import HEADER, HEADER_SIZE
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.view.rules.group import GroupEvent, SourceGroup
from relay.view.stops import transaction_stops

_HELD_EVENTS: Final = 2_000
_HELD_BYTES: Final = 1 << 20
"""The longest group whose events are kept in memory; those of a longer one are reread at each iteration."""
_PIECE_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 64 << 20
"""The longest event that is translated: it is in memory, with the result beside it."""
_MOST_OF_TEXT: Final = 16 << 20
"""The longest event with a statement, which becomes words."""
_WITH_TEXT: Final = frozenset(
    (EventType.QUERY, EventType.EXECUTE_LOAD_QUERY, EventType.QUERY_COMPRESSED, EventType.ANNOTATE_ROWS)
)

ReadInto = Callable[[memoryview, int], int]
"""Reads the source's file into a view, from an offset on; returns how many bytes, 0 at the end. Blocking."""


class EventsOfFile:
    """The events in [start, stop), read from the file at each iteration."""

    def __init__(self, read: Callable[[int, int], Iterator[GroupEvent]], start: int, stop: int) -> None:
        self._read = read
        self._start = start
        self._stop = stop

    def __iter__(self) -> Iterator[GroupEvent]:
        """Iterate from the first event on."""
        return self._read(self._start, self._stop)


class GroupReader:
    """Reads groups of one file. Blocking; the kernel's scan compared all checksums before, and a body's is compared once more."""

    def __init__(self, name: str, read_into: ReadInto, post_lengths: bytes, server_version: str, trailer: int) -> None:
        """Set `trailer` to the bytes of checksum after each event."""
        self._name = name
        self._read_into = read_into
        self._post_lengths = post_lengths
        self._server_version = server_version
        self._trailer = trailer

    def group(self, start: int, stop: int) -> SourceGroup:
        """Return the group in [start, stop). Raises: OSError; ArchiveDamaged."""
        events: Iterable[GroupEvent] = EventsOfFile(self._events, start, stop)
        if stop - start <= _HELD_BYTES:
            held = list(islice(events, _HELD_EVENTS + 1))
            events = held if len(held) <= _HELD_EVENTS else events
        return SourceGroup(self._name, start, stop, events, self.body, self._post_lengths, self._server_version)

    def body(self, event: GroupEvent, most: int | None = None) -> bytes:
        """Return the body after the header, without the checksum. Raises: ArchiveDamaged if it differs from what was scanned before;
        OSError; Untranslatable for one that is too long for memory.

        The result gets a checksum of its own: a change in between could not be detected later. `most` limits the bytes for callers that
        only look at the beginning; nothing is compared then.
        """
        if most is not None:
            return self._read(event.offset + HEADER_SIZE, min(most, event.length - HEADER_SIZE - self._trailer))
        limit = _MOST_OF_TEXT if event.type in _WITH_TEXT else _MOST_BYTES
        if event.length > limit:
            raise transaction_stops.too_large(
                f"an event of it has {event.length} bytes, of which a view reads {limit >> 20} MiB"
            )
        data = self._read(event.offset, event.length)
        timestamp, kind, server_id, size, _, flags = HEADER.unpack_from(data)
        if (size, kind, flags, timestamp, server_id) != event[1:]:
            raise self._damaged(event.offset, f"at {event.offset} there is another event than was read before")
        stop = event.length - self._trailer
        if self._trailer and zlib.crc32(data[:stop]) != int.from_bytes(data[stop:], "little"):
            raise self._damaged(event.offset, f"the checksum of the event at {event.offset} is wrong")
        return data[HEADER_SIZE:stop]

    def _read(self, offset: int, count: int) -> bytes:
        data = bytearray(count)
        view = memoryview(data)
        got = 0
        while got < count:
            more = self._read_into(view[got:], offset + got)
            if not more:
                raise self._damaged(offset + got, "the file ends inside what was archived")
            got += more
        return bytes(data)

    def _damaged(self, offset: int, what: str) -> ArchiveDamaged:
        return ArchiveDamaged(what, file=self._name, offset=offset, boundary=offset)

    def _events(self, start: int, stop: int) -> Iterator[GroupEvent]:
        piece, at = b"", start
        base = start
        while at < stop:
            if at + HEADER_SIZE > base + len(piece):
                base = at
                piece = self._read(at, min(_PIECE_BYTES, stop - at))
            timestamp, kind, server_id, size, _, flags = HEADER.unpack_from(piece, at - base)
            if not HEADER_SIZE + self._trailer <= size <= stop - at:
                raise self._damaged(at, f"at {at} there is no event: its length cannot be")
            yield GroupEvent(at, size, kind, flags, timestamp, server_id)
            at += size
