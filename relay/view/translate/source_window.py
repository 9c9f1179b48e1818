"""What of the source's file is in memory, and what is read beside it."""

import zlib
from collections.abc import Callable, Iterator
from typing import Final

from protocol.binlog.layout import CHECKSUM_SIZE, HEADER_SIZE, event_size
from protocol.kernel import codes
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.view.stops.stop_reason import StopReason
from relay.view.stops.view_stop import ViewStopped
from relay.view.translate.source_groups import ReadInto

_LONGEST_HEAD: Final = 64 << 20
"""Bytes of an event at a file's head: a Previous_gtids can be long."""


class SourceWindow:
    """buffer[lo:hi] is the file from `offset` on, not beyond `end`, a place between two groups. Blocking.

    trailer: bytes of checksum behind an event. Raises of all that reads: ArchiveDamaged, OSError.
    """

    def __init__(self, name: str, read_into: ReadInto, offset: int, buffer_bytes: int) -> None:
        self._name = name
        self._read_into = read_into
        self.offset = offset
        self.end = 0
        self.trailer = 0
        self.buffer = bytearray(buffer_bytes)
        self.lo = self.hi = 0
        self._view = memoryview(self.buffer)
        self._beside: bytearray | None = None

    @property
    def count(self) -> int:
        """Bytes that are there."""
        return self.hi - self.lo

    @property
    def is_whole(self) -> bool:
        """Whether all up to `end` is there, and there is room for more."""
        return self.count < len(self.buffer) and self.offset + self.count >= self.end

    def more(self) -> bool:
        """Reads behind what is there; whether anything came."""
        if self.lo:
            left = self.count
            self._view[:left] = bytes(self._view[self.lo : self.hi])
            self.lo, self.hi = 0, left
        room = min(len(self.buffer) - self.hi, self.end - self.offset - self.hi)
        if room <= 0:
            return False
        got = self._read_into(self._view[self.hi : self.hi + room], self.offset + self.hi)
        if not got:
            raise self._cut(self.offset + self.hi)
        self.hi += got
        return True

    def stopped(self, reason: StopReason, start: int | None = None, stop: int | None = None) -> ViewStopped:
        """Return the exception of a stop before what is at `start`, None: the offset, and ends at `stop`; None: that is unknown."""
        start = self.offset if start is None else start
        return ViewStopped(self._name, start, start if stop is None else stop, reason)

    def advance(self, to: int) -> None:
        """Goes on at this place in the buffer."""
        self.offset += to - self.lo
        self.lo = to

    def drop(self, size: int) -> None:
        """Goes on behind `size` bytes, which may be more than are there."""
        if self.count >= size:
            self.advance(self.lo + size)
        else:
            self.offset += size
            self.lo = self.hi = 0

    def pieces(self, start: int, stop: int, used: Callable[[], int]) -> Iterator[tuple[bytearray, int, int, int]]:
        """(buffer, from, to, offset of its first byte) over [start, stop) of the file; `used` says up to where in the buffer each was
        used, and what is left comes again with more."""
        base = self.offset - self.lo
        if base + self.lo <= start < base + self.hi:
            # Mostly enough, also where `stop` is the end of the file and only the next group is looked for.
            yield self.buffer, start - base, min(stop - base, self.hi), base
            if stop <= base + self.hi:
                return
            start = base + used()
        if self._beside is None:
            self._beside = bytearray(len(self.buffer))
        view = memoryview(self._beside)
        at, kept = start, 0
        while at < stop:
            room = min(len(view) - kept, stop - at)
            got = self._read_into(view[kept : kept + room], at)
            if not got:
                raise self._cut(at)
            at += got
            count = kept + got
            yield self._beside, 0, count, at - count
            kept = count - used()
            view[:kept] = bytes(view[used() : count])

    def body(self, size: int) -> bytes:
        """Of the event of `size` bytes that is next, all of which is there."""
        return bytes(self._view[self.lo + HEADER_SIZE : self.lo + size - self.trailer])

    def bytes_in(self, start: int, stop: int) -> bytes:
        """Of the file, [start, stop), which is small."""
        return self._read_exactly(start, stop - start)

    def read_event(self, offset: int) -> bytes:
        """A whole event, which is small, with its checksum, which is right."""
        head = self._read_exactly(offset, HEADER_SIZE)
        size = event_size(head)
        if not HEADER_SIZE <= size <= _LONGEST_HEAD:
            raise self.wrong(codes.BAD_LENGTH, offset)
        event = head + self._read_exactly(offset + HEADER_SIZE, size - HEADER_SIZE)
        self.compare(event, offset)
        return event

    def kind_at(self, offset: int) -> int:
        """The type of the event at an offset."""
        return self._read_exactly(offset, HEADER_SIZE)[codes.EVENT_TYPE_AT]

    def compare(self, event: bytes, offset: int) -> None:
        """With its checksum. Raises: ArchiveDamaged."""
        if self.trailer and zlib.crc32(event[:-CHECKSUM_SIZE]) != int.from_bytes(event[-CHECKSUM_SIZE:], "little"):
            raise self.wrong(codes.BAD_CRC, offset)

    def _read_exactly(self, offset: int, count: int) -> bytes:
        data = bytearray(max(0, count))
        view = memoryview(data)
        got = 0
        while got < count:
            more = self._read_into(view[got:], offset + got)
            if not more:
                raise self._cut(offset + got)
            got += more
        return bytes(data)

    def wrong(self, status: int, offset: int) -> ArchiveDamaged:
        """What the kernel found at `offset`: BAD_CRC, or BAD_LENGTH."""
        if status == codes.BAD_CRC:
            return self.damaged(offset, f"the checksum of the event at {offset} is wrong")
        return self.damaged(offset, f"at {offset} there is no event: its length cannot be")

    def damaged(self, offset: int, what: str) -> ArchiveDamaged:
        """The source's file is not what was archived."""
        return ArchiveDamaged(what, file=self._name, offset=offset, boundary=self.offset)

    def _cut(self, offset: int) -> ArchiveDamaged:
        return self.damaged(offset, "the file ends inside what was archived")
