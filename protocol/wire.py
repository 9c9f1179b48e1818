"""Integers and strings of the MySQL protocol: a cursor that checks every read, and the writers."""

import struct
from typing import Final

from protocol.errors import Malformed, Truncated

_LENENC_NULL: Final = 0xFB
_LENENC_SIZES: Final[dict[int, int]] = {0xFC: 2, 0xFD: 3, 0xFE: 8}


class Cursor:
    """Reads one payload from front to back. A read that fails leaves the cursor where it was.

    Raises (every read): Truncated when fewer bytes remain than the read needs.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.offset = 0

    @property
    def remaining(self) -> int:
        """The number of bytes that were not read yet."""
        return len(self._data) - self.offset

    def take(self, size_bytes: int) -> bytes:
        """Read the next `size_bytes` bytes."""
        if size_bytes > self.remaining:
            raise Truncated(f"{size_bytes} bytes announced at {self.offset}, {self.remaining} left")
        taken = self._data[self.offset : self.offset + size_bytes]
        self.offset += size_bytes
        return taken

    def skip(self, size_bytes: int) -> None:
        """Skip `size_bytes` bytes."""
        self.take(size_bytes)

    def uint(self, size_bytes: int) -> int:
        """Read a little-endian unsigned integer of 1 to 8 bytes."""
        return int.from_bytes(self.take(size_bytes), "little")

    def lenenc_int(self) -> int:
        """Read a length-encoded integer. Raises: Malformed for the first bytes 0xFB (NULL) and 0xFF (error)."""
        start = self.offset
        first = self.uint(1)
        if first < _LENENC_NULL:
            return first
        try:
            if first not in _LENENC_SIZES:
                raise Malformed(f"byte 0x{first:02x} at {start} does not begin a length")
            return self.uint(_LENENC_SIZES[first])
        except Malformed:
            self.offset = start
            raise

    def lenenc_bytes(self) -> bytes:
        """Read a length-encoded string."""
        start = self.offset
        try:
            return self.take(self.lenenc_int())
        except Malformed:
            self.offset = start
            raise

    def short_bytes(self) -> bytes:
        """Read a string that follows its one-byte length."""
        start = self.offset
        try:
            return self.take(self.uint(1))
        except Malformed:
            self.offset = start
            raise

    def nul_bytes(self) -> bytes:
        """Read a string that ends at a zero byte, without it. Raises: Truncated when there is no zero byte."""
        stop = self._data.find(b"\0", self.offset)
        if stop < 0:
            raise Truncated(f"string at {self.offset} has no end")
        taken = self._data[self.offset : stop]
        self.offset = stop + 1
        return taken

    def rest(self) -> bytes:
        """Read all that remains, possibly nothing."""
        return self.take(self.remaining)


def lenenc_int(number: int) -> bytes:
    """Encode `number` (0 to 2**64 - 1) as a length-encoded integer."""
    if number < _LENENC_NULL:
        return bytes((number,))
    if number < 1 << 16:
        return b"\xfc" + number.to_bytes(2, "little")
    if number < 1 << 24:
        return b"\xfd" + number.to_bytes(3, "little")
    return b"\xfe" + struct.pack("<Q", number)


def lenenc_bytes(data: bytes) -> bytes:
    """Encode `data` as a length-encoded string."""
    return lenenc_int(len(data)) + data
