"""Events in another place of another file, with corrected end positions and checksums, and without the relay's markers."""

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
    """A converter that takes consecutive events, whole or in parts, and gives their bytes as they are from `position` on in the new
    file.

    Its input must be checked: it makes a checksum for whatever it is given. `write` gets the bytes, valid until it returns.
    """

    def __init__(self, position: int, *, checksum: bool, write: Callable[[memoryview], object]) -> None:
        self.position = position
        self._write = write
        self._trailer = CHECKSUM_SIZE if checksum else 0
        self._left = 0
        """The number of bytes that are still expected of the current event."""
        self._crc = 0
        self._sum = b""

    @property
    def left(self) -> int:
        """The number of bytes that are still expected of the current event."""
        return self._left

    def begin(self, view: memoryview, offset: int, size: int) -> None:
        """Begin an event of `size` bytes that was at `offset`; `view` has at least its head, and is changed."""
        (end,) = _U32.unpack_from(view, LOG_POS.start)
        (flags,) = _U16.unpack_from(view, FLAGS.start)
        here = self.position
        # Servers before 5.6 write other values into it inside transactions, and 0 means none.
        moved = end and here != offset and end == (offset + size) & U32_MAX
        if moved:
            _U32.pack_into(view, LOG_POS.start, (here + size) & U32_MAX)
        if flags & _MARKERS:
            _U16.pack_into(view, FLAGS.start, flags & _KEPT)
        self._crc = 0
        self._left = size
        self._sum = b""
        if len(view) == size:
            # Most events are written at once.
            if self._trailer:
                _U32.pack_into(view, size - CHECKSUM_SIZE, zlib.crc32(view[: size - CHECKSUM_SIZE]))
            self._left = 0
            self.position = here + size
            self._write(view)
            return
        self.go_on(view)

    def go_on(self, view: memoryview) -> None:
        """Continue the current event; `view` is changed."""
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
