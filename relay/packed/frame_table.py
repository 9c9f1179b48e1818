"""The plain bytes of each frame of a packed file, and the frame's place in the packed file.

As bytes it is the seek table of zstd's seekable format: entries of stored size, plain size and checksum (the low half of XXH64 of the
plain bytes), 12 bytes each, little endian, then their count, a byte 0x80 (entries have checksums) and a magic.
"""

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

_ENTRY: Final = struct.Struct("<III")
_FOOTER: Final = struct.Struct("<IBI")
FOOTER_SIZE: Final = _FOOTER.size
_SKIPPABLE: Final = struct.Struct("<II")
SKIPPABLE_HEAD: Final = _SKIPPABLE.size
SEEK_TABLE_MAGIC: Final = 0x184D2A5E
_SEEKABLE_MAGIC: Final = 0x8F92EAB1
_HAS_CHECKSUMS: Final = 0x80
_RESERVED: Final = 0x7C
LARGEST_FRAME: Final = 64 << 20
"""The most plain bytes of a frame that is read. The relay packs far smaller ones."""


class Frame(NamedTuple):
    """One frame. Offsets in bytes; `plain_*` in the binlog, `stored_*` in the packed file."""

    number: int
    plain_start: int
    plain_size: int
    stored_start: int
    stored_size: int
    checksum: int

    @property
    def plain_stop(self) -> int:
        """The offset after its last byte, in the binlog."""
        return self.plain_start + self.plain_size

    @property
    def stored_stop(self) -> int:
        """The offset after its last byte, in the packed file."""
        return self.stored_start + self.stored_size


class FrameTable:
    """All frames of a packed file that have plain bytes, in order. The table does not change."""

    def __init__(self, entries: Iterable[tuple[int, int, int]], stored_start: int = 0) -> None:
        """`entries`: stored size, plain size, checksum of each; `stored_start`: where the first is stored."""
        self._plain = array("Q", [0])
        self._stored = array("Q", [stored_start])
        self._sums = array("I")
        for stored_size, plain_size, checksum in entries:
            self._plain.append(self._plain[-1] + plain_size)
            self._stored.append(self._stored[-1] + stored_size)
            self._sums.append(checksum)

    def __len__(self) -> int:
        return len(self._sums)

    def __getitem__(self, index: int) -> Frame:
        if not 0 <= index < len(self._sums):
            raise IndexError(f"there are {len(self._sums)} frames, not {index}")
        plain, stored = self._plain[index], self._stored[index]
        return Frame(
            index, plain, self._plain[index + 1] - plain, stored, self._stored[index + 1] - stored, self._sums[index]
        )

    @property
    def plain_size(self) -> int:
        """The size of the binlog in bytes."""
        return self._plain[-1]

    @property
    def stored_stop(self) -> int:
        """The offset after the last frame, in the packed file."""
        return self._stored[-1]

    def index_at(self, plain_offset: int) -> int:
        """Return the index of the frame with the binlog's byte at that offset. Raises: IndexError if there is no such byte."""
        if not 0 <= plain_offset < self.plain_size:
            raise IndexError(f"the binlog has {self.plain_size} bytes, none at {plain_offset}")
        return bisect_right(self._plain, plain_offset) - 1

    def covering(self, start: int, stop: int) -> range:
        """Return the indexes of the frames with bytes of [start, stop) of the binlog, as far as it has such bytes."""
        stop = min(stop, self.plain_size)
        if start >= stop:
            return range(0)
        return range(self.index_at(start), self.index_at(stop - 1) + 1)


def encode_seek_table(entries: Iterable[tuple[int, int, int]]) -> bytes:
    """Return the table as a skippable frame of zstd's."""
    body = b"".join(_ENTRY.pack(*entry) for entry in entries)
    footer = _FOOTER.pack(len(body) // _ENTRY.size, _HAS_CHECKSUMS, _SEEKABLE_MAGIC)
    return skippable(SEEK_TABLE_MAGIC, body + footer)


def skippable(magic: int, payload: bytes) -> bytes:
    """Return a frame that zstd's decoders step over."""
    return _SKIPPABLE.pack(magic, len(payload)) + payload


def skippable_payload(data: bytes, magic: int) -> bytes:
    """Return the payload of the skippable frame that is all of `data`. Raises: ValueError."""
    if len(data) < SKIPPABLE_HEAD or _SKIPPABLE.unpack_from(data) != (magic, len(data) - SKIPPABLE_HEAD):
        raise ValueError("this is not the frame that should be here")
    return data[SKIPPABLE_HEAD:]


def seek_table_size(footer: bytes) -> int:
    """Return the size in bytes of the skippable frame that ends with `footer`. Raises: ValueError."""
    count, descriptor, magic = _FOOTER.unpack(footer)
    if magic != _SEEKABLE_MAGIC:
        raise ValueError("there is no seek table at its end")
    if descriptor & _RESERVED or not descriptor & _HAS_CHECKSUMS:
        raise ValueError(f"its seek table has the descriptor {descriptor:#x}, {_HAS_CHECKSUMS:#x} is wanted")
    return int(SKIPPABLE_HEAD + count * _ENTRY.size + FOOTER_SIZE)


def decode_seek_table(data: bytes) -> list[tuple[int, int, int]]:
    """Return the entries of the skippable frame that is all of `data`. Raises: ValueError."""
    if len(data) < SKIPPABLE_HEAD + FOOTER_SIZE or seek_table_size(data[-FOOTER_SIZE:]) != len(data):
        raise ValueError("the size of its seek table is wrong")
    body = skippable_payload(data, SEEK_TABLE_MAGIC)[:-FOOTER_SIZE]
    entries = list(_ENTRY.iter_unpack(body))
    if any(not stored or plain > LARGEST_FRAME for stored, plain, _sum in entries):
        raise ValueError("its seek table has a frame that cannot be")
    return entries
