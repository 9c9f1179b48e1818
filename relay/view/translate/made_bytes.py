"""The buffer for the view's bytes as they are built."""

import struct
import zlib
from collections.abc import Iterator

from protocol.binlog.layout import HEADER, HEADER_SIZE
from protocol.kernel import codes
from protocol.views.view_copy import ViewCopy
from relay.view.rules.group import New

MARKER_BITS = codes.BOUNDARY_MASK


class MadeBytes:
    """The next byte is written to out[at]. `trailer` is the size of the checksum after an event of the view.

    Writing in steps yields where `out` is full; `begin` sets another before the next step.
    """

    def __init__(self) -> None:
        self.out = bytearray()
        self.at = 0
        self.trailer = 0
        self._begun_at = 0

    def begin(self, out: bytearray, at: int) -> None:
        """Continue in `out` at `at`."""
        self.out, self.at = out, at
        self._begun_at = at

    @property
    def is_begun(self) -> bool:
        """True if anything was written since `begin`."""
        return self.at > self._begun_at

    @property
    def room(self) -> int:
        """The bytes that are left in `out`."""
        return len(self.out) - self.at

    def event(self, kernel: ViewCopy, new: New, marker: int, *, trailer: int | None = None) -> Iterator[None]:
        """Write an event at the kernel's position. `trailer` is for one with another checksum size than the file's events."""
        trailer = self.trailer if trailer is None else trailer
        size = HEADER_SIZE + len(new.body) + trailer
        flags = new.flags & ~MARKER_BITS | marker << codes.BOUNDARY_SHIFT
        end = kernel.position + size & codes.U32_MAX
        made = HEADER.pack(new.timestamp, new.type, new.server_id, size, end, flags) + new.body
        kernel.position += size
        return self._put(made + struct.pack("<I", zlib.crc32(made)) if trailer else made)

    def _put(self, data: bytes) -> Iterator[None]:
        at = 0
        while at < len(data):
            count = min(self.room, len(data) - at)
            if not count:
                yield
                continue
            self.out[self.at : self.at + count] = data[at : at + count]
            self.at += count
            at += count
