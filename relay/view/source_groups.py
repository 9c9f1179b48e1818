"""Groups of the source that need a rule, read from its file: their events, and an event's body where a rule asks for it."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from protocol.binlog.layout import HEADER, HEADER_SIZE
from protocol.kernel import codes
from relay.view.rules.group import GroupEvent, SourceGroup

_MOST_EVENTS: Final = 20_000
"""Of a group that rules see whole."""
_PIECE_BYTES: Final = 1 << 20
_STATEMENT_BYTES: Final = 4096
_PLAIN: Final = re.compile(rb"(?:\s|/\*(?![!M]).*?\*/)*(?:INSERT|REPLACE|UPDATE|DELETE)\b", re.IGNORECASE | re.DOTALL)

ReadInto = Callable[[memoryview, int], int]
"""Reads the source's file into a view, from an offset on; returns how many bytes, 0 at the end. Blocking."""


class GroupReader:
    """Of one file. Blocking; every byte that it gives was compared with its checksum before, by the kernel's scan."""

    def __init__(
        self, name: str, read_into: ReadInto, post_lengths: bytes, server_version: str, trailer: int, look_at: bytes
    ) -> None:
        """trailer: bytes of checksum behind each event. look_at: types that are never left out, see `GroupRules`."""
        self._name = name
        self._read_into = read_into
        self._post_lengths = post_lengths
        self._server_version = server_version
        self._trailer = trailer
        self._look_at = look_at

    def group(self, start: int, stop: int) -> SourceGroup:
        """The group in [start, stop). Raises: OSError; ArchiveDamaged."""
        events: list[GroupEvent] = []
        for event in self._events(start, stop):
            events.append(event)
            if len(events) > _MOST_EVENTS:
                events = self._notable(start, stop)
                break
        is_whole = sum(event.length for event in events) == stop - start
        return SourceGroup(
            self._name, start, stop, events, is_whole, self.body, self._post_lengths, self._server_version
        )

    def body(self, event: GroupEvent) -> bytes:
        """Behind the header, without the checksum."""
        return self._read(event.offset + HEADER_SIZE, event.length - HEADER_SIZE - self._trailer)

    def _read(self, offset: int, count: int) -> bytes:
        data = bytearray(count)
        view = memoryview(data)
        got = 0
        while got < count:
            more = self._read_into(view[got:], offset + got)
            if not more:
                raise EOFError(f"{self._name} ends at {offset + got}, inside what was archived")
            got += more
        return bytes(data)

    def _events(self, start: int, stop: int) -> Iterator[GroupEvent]:
        piece, at = b"", start
        base = start
        while at < stop:
            if at + HEADER_SIZE > base + len(piece):
                base = at
                piece = self._read(at, min(_PIECE_BYTES, stop - at))
            timestamp, kind, server_id, size, _, flags = HEADER.unpack_from(piece, at - base)
            yield GroupEvent(at, size, kind, flags, timestamp, server_id)
            at += max(size, HEADER_SIZE)

    def _notable(self, start: int, stop: int) -> list[GroupEvent]:
        """The first and last event, and those that may need a rule."""
        found: list[GroupEvent] = []
        for event in self._events(start, stop):
            if event.offset == start or event.offset + event.length == stop or self._is_notable(event):
                found.append(event)
        return found

    def _is_notable(self, event: GroupEvent) -> bool:
        if self._look_at[event.type]:
            return True
        if event.type != codes.QUERY_EVENT:
            return False
        count = min(event.length - HEADER_SIZE - self._trailer, codes.INFERENCE_HEAD)
        head = self._read(event.offset + HEADER_SIZE, count)
        if any(head[codes.QUERY_ERROR_AT : codes.QUERY_STATUS_LENGTH_AT]):
            return True
        variables = int.from_bytes(head[codes.QUERY_STATUS_LENGTH_AT : codes.QUERY_STATUS_LENGTH_AT + 2], "little")
        text = codes.QUERY_POST + variables + head[codes.QUERY_SCHEMA_LENGTH_AT] + 1
        return not _PLAIN.match(head, text, text + _STATEMENT_BYTES)
