"""Events in another place of another file: their end positions and checksums made right, the relay's markers taken off."""

import struct
import zlib
from collections.abc import Callable
from typing import Final

from protocol.binlog.layout import CHECKSUM_SIZE, FLAGS, LOG_POS
from protocol.kernel.codes import U32_MAX

_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")
_MARKERS: Final = 0x3C00
_KEPT: Final = 0xFFFF & ~_MARKERS


class MovedEvents:
    """Takes events one after the other, whole or in parts, and gives their bytes as they stand from `position` on in the new file.

    What is given to it was checked: it makes a checksum for whatever it is given. `write` gets the bytes, good until it returns.
    """

    def __init__(self, position: int, *, checksum: bool, write: Callable[[memoryview], object]) -> None:
        self.position = position
        self._write = write
        self._trailer = CHECKSUM_SIZE if checksum else 0
        self._left = 0
        """Bytes that are still to come of the event that was begun."""
        self._crc = 0
        self._sum = b""

    @property
    def left(self) -> int:
        """Bytes that are still to come of the event that was begun."""
        return self._left

    def begin(self, view: memoryview, offset: int, size: int) -> None:
        """An event of `size` bytes that stood at `offset`; `view` has its head at least, and is changed."""
        (end,) = _U32.unpack_from(view, LOG_POS.start)
        (flags,) = _U16.unpack_from(view, FLAGS.start)
        here = self.position
        # Servers before 5.6 write other things into it inside of transactions, and 0 means none.
        moved = end and here != offset and end == (offset + size) & U32_MAX
        if moved:
            _U32.pack_into(view, LOG_POS.start, (here + size) & U32_MAX)
        if flags & _MARKERS:
            _U16.pack_into(view, FLAGS.start, flags & _KEPT)
        self._crc = 0
        self._left = size
        self._sum = b""
        if len(view) == size:
            # Most events: in one go.
            if self._trailer:
                _U32.pack_into(view, size - CHECKSUM_SIZE, zlib.crc32(view[: size - CHECKSUM_SIZE]))
            self._left = 0
            self.position = here + size
            self._write(view)
            return
        self.go_on(view)

    def go_on(self, view: memoryview) -> None:
        """More of the event that was begun; `view` is changed."""
        covered = max(0, min(len(view), self._left - self._trailer))
        if covered:
            self._crc = zlib.crc32(view[:covered], self._crc)
        if covered < len(view):
            # Its checksum may be cut anywhere.
            if not self._sum:
                self._sum = _U32.pack(self._crc)
            at = self._trailer - (self._left - covered)
            view[covered:] = self._sum[at : at + len(view) - covered]
        self._left -= len(view)
        self.position += len(view)
        self._write(view)
