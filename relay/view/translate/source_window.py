"""The part of the source's file that is in memory, and reads beside it."""

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
"""The longest event at a file's head in bytes: a Previous_gtids can be long."""


class SourceWindow:
    """buffer[lo:hi] is the file from `offset` on, not beyond `end`, a place between two groups. Blocking.

    `trailer` is the size of the checksum after an event. All methods that read raise ArchiveDamaged and OSError.
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
        """The number of bytes in the window."""
        return self.hi - self.lo

    @property
    def is_whole(self) -> bool:
        """True if everything up to `end` is in the window, and there is room for more."""
        return self.count < len(self.buffer) and self.offset + self.count >= self.end

    def more(self) -> bool:
        """Read after the window's end; return whether anything came."""
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
        """Continue at this place in the buffer."""
        self.offset += to - self.lo
        self.lo = to

    def drop(self, size: int) -> None:
        """Continue after `size` bytes, which may be more than the window contains."""
        if self.count >= size:
            self.advance(self.lo + size)
        else:
            self.offset += size
            self.lo = self.hi = 0

    def pieces(self, start: int, stop: int, used: Callable[[], int]) -> Iterator[tuple[bytearray, int, int, int]]:
        """Yield (buffer, from, to, offset of its first byte) over [start, stop) of the file; `used` returns up to where in the buffer
        each was used, and the rest is repeated with more."""
        base = self.offset - self.lo
        if base + self.lo <= start < base + self.hi:
            # This mostly suffices, also where `stop` is the end of the file and only the next group is searched.
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
        """Return the body of the next event of `size` bytes, which is in the window."""
        return bytes(self._view[self.lo + HEADER_SIZE : self.lo + size - self.trailer])

    def bytes_in(self, start: int, stop: int) -> bytes:
        """Return [start, stop) of the file, which is small."""
        return self._read_exactly(start, stop - start)

    def read_event(self, offset: int) -> bytes:
        """Return a whole event, which is small, with its correct checksum."""
        head = self._read_exactly(offset, HEADER_SIZE)
        size = event_size(head)
        if not HEADER_SIZE <= size <= _LONGEST_HEAD:
            raise self.wrong(codes.BAD_LENGTH, offset)
        event = head + self._read_exactly(offset + HEADER_SIZE, size - HEADER_SIZE)
        self.compare(event, offset)
        return event

    def kind_at(self, offset: int) -> int:
        """Return the type of the event at an offset."""
        return self._read_exactly(offset, HEADER_SIZE)[codes.EVENT_TYPE_AT]

    def compare(self, event: bytes, offset: int) -> None:
        """Compare an event with its checksum. Raises: ArchiveDamaged."""
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
        """Return the error for the kernel's status at `offset`: BAD_CRC, or BAD_LENGTH."""
        if status == codes.BAD_CRC:
            return self.damaged(offset, f"the checksum of the event at {offset} is wrong")
        return self.damaged(offset, f"at {offset} there is no event: its length cannot be")

    def damaged(self, offset: int, what: str) -> ArchiveDamaged:
        """Return the error for a source's file that is not what was archived."""
        return ArchiveDamaged(what, file=self._name, offset=offset, boundary=self.offset)

    def _cut(self, offset: int) -> ArchiveDamaged:
        return self.damaged(offset, "the file ends inside what was archived")
