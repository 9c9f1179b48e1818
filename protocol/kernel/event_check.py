# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The check of archived events before they are sent: their lengths, their CRC32, and where transactions end.

The markers in the events' flags show where; they are covered by the CRC32, as all of an event is.
"""

import cython

from protocol.kernel.crc import EventSum

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, crc32_of, load16, load32, native_setup

native_setup()


class EventCheck:
    """Checks the bytes of one file in order, which may be cut anywhere. Offsets are the file's.

    `position` is where checked bytes end; before it less than an event's header may wait for the next call. `sound_to` is the end of
    the last event that is whole and right, `whole_to` that of the last whole transaction. `problem` is 0, or why the event at
    `sound_to` cannot be what was archived: BAD_LENGTH, BAD_CRC.
    """

    def __init__(self) -> None:
        self.checksum = 0
        self.position = 0
        self.sound_to = 0
        self.whole_to = 0
        self.problem = 0
        self.event = EventSum()  # the event that continues
        self.ends = False  # True if a transaction ends with it

    @property
    def in_event(self) -> bool:
        """True if an event was begun and has not ended at `position`."""
        return self.event.left > 0

    def begin(self, offset: int, checksum: int) -> None:
        """Expect the first byte of an event next, at `offset`. `checksum` is the file's: 0 none, 1 CRC32."""
        self.checksum = checksum
        self.position = offset
        self.sound_to = offset
        self.whole_to = offset
        self.problem = 0
        self.event.begin(0, 0)

    def look(self, src: Bytes, start: int, stop: int) -> int:
        """Check src[start:stop], which is at `position`; return `problem`. Nothing is checked after a problem.

        Raises: IndexError for a range outside src.
        """
        if start < 0 or stop < start or stop > len(src):
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(src)} bytes")
        if start == stop or self.problem:
            return self.problem
        if cython.compiled:
            with cython.nogil:
                self.walk(cython.address(src[0]), start, stop)
        else:
            self.walk(memoryview(src).cast("B"), start, stop)
        return self.problem

    def walk(self, p: Bytes, start: int, stop: int) -> None:
        base = self.position - start
        trailer = CHECKSUM_SIZE if self.checksum else 0
        r = start
        goes_on = self.event.left > 0
        while r < stop:
            if not goes_on:
                if stop - r < HEADER_SIZE:
                    break
                length = load32(p, r + EVENT_SIZE_AT)
                if length < HEADER_SIZE + trailer or length > MAX_EVENT:
                    self.problem = BAD_LENGTH
                    break
                boundary = (load16(p, r + FLAGS_AT) & BOUNDARY_MASK) >> BOUNDARY_SHIFT
                self.ends = boundary == END or boundary == SELF_CONTAINED
                if length <= stop - r:
                    if trailer and crc32_of(p, r, r + length - CHECKSUM_SIZE, 0) != load32(
                        p, r + length - CHECKSUM_SIZE
                    ):
                        self.problem = BAD_CRC
                        break
                    r += length
                    self.finish_event(base + r)
                    continue
                self.event.begin(length, trailer)
            r = self.event.take(p, r, stop)
            goes_on = self.event.left > 0
            if not goes_on:
                if not self.event.is_right():
                    self.problem = BAD_CRC
                    break
                self.finish_event(base + r)
        self.position = base + r

    def finish_event(self, end: int) -> None:
        self.sound_to = end
        if self.ends:
            self.whole_to = end
