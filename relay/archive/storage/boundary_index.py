"""NAME.idx: a sparse index of transaction boundaries, read with single preads and never as a whole.

A record is 24 bytes, little endian: offset u64 of an event's start | group_start u64 (== offset at a transaction boundary, else the
start of the group that is open there) | timestamp u32 s | flags u32 (bit 0: at a boundary). There is one per >= 64 KiB of file; the
first is for offset 4. After a group that has records inside, the next event's start gets one too: so the first record with a greater
group_start is that group's end.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from relay.archive.storage.files import IDX_SUFFIX, FileLayer

RECORD: Final = struct.Struct("<QQII")
RECORD_SIZE: Final = RECORD.size
AT_BOUNDARY: Final = 1


@dataclass(frozen=True, slots=True)
class IndexRecord:
    """One record of NAME.idx."""

    offset: int
    group_start: int
    timestamp: int
    flags: int

    @property
    def at_boundary(self) -> bool:
        """True if no group is open at `offset`."""
        return self.flags & AT_BOUNDARY != 0

    @property
    def plausible(self) -> bool:
        """True if these values can be a record at all."""
        if self.at_boundary:
            return self.group_start == self.offset >= FIRST_EVENT
        return FIRST_EVENT <= self.group_start < self.offset


class BoundaryIndex:
    """Look-ups in an open NAME.idx. Only whole records count; a torn one at the end is not seen."""

    def __init__(self, layer: FileLayer, fd: int) -> None:
        self._layer = layer
        self._fd = fd
        self.count = layer.size(fd) // RECORD_SIZE

    def record(self, number: int) -> IndexRecord:
        """Return record `number`, from 0. Raises: IndexError."""
        data = self._layer.pread(self._fd, RECORD_SIZE, number * RECORD_SIZE)
        if number < 0 or len(data) < RECORD_SIZE:
            raise IndexError(number)
        return IndexRecord(*RECORD.unpack(data))

    def last_at_or_before(self, offset: int) -> int:
        """Return the number of the last record whose offset is <= `offset`; -1 if there is none."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.record(middle).offset <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def first_after_group(self, group_start: int, number: int) -> IndexRecord | None:
        """Return the first record from `number` on with a greater group_start: where that group has ended. None: at the tail."""
        low, high = number, self.count
        while low < high:
            middle = (low + high) // 2
            if self.record(middle).group_start <= group_start:
                low = middle + 1
            else:
                high = middle
        return self.record(low) if low < self.count else None

    def first_fault(self, *, growing: bool = False) -> str | None:
        """Return what is wrong with the index by itself (order, values), or None. It reads all of it in pieces.

        A torn record at the end is a fault unless the file is `growing`.
        """
        size = self._layer.size(self._fd)
        if growing:
            size -= size % RECORD_SIZE
        if size % RECORD_SIZE:
            return f"{size} bytes are not a whole number of {RECORD_SIZE}-byte records"
        previous = -1
        group = 0
        for start in range(0, size, RECORD_SIZE * 4096):
            for raw in RECORD.iter_unpack(self._layer.pread(self._fd, min(RECORD_SIZE * 4096, size - start), start)):
                entry = IndexRecord(*raw)
                if previous < 0 and entry.offset != FIRST_EVENT:
                    return f"the first record is for offset {entry.offset}, not {FIRST_EVENT}"
                if entry.offset <= previous or entry.group_start < group or not entry.plausible:
                    return f"the record for offset {entry.offset} cannot follow the one for {previous}"
                previous, group = entry.offset, entry.group_start
        return None


def records_before(layer: FileLayer, fd: int, offset: int) -> int:
    """Return the size in bytes of the leading part of an index whose records are for offsets below `offset`."""
    index = BoundaryIndex(layer, fd)
    return (index.last_at_or_before(offset - 1) + 1) * RECORD_SIZE


def index_path(path: Path) -> Path:
    """Return the path of NAME.idx for NAME."""
    return path.with_name(path.name + IDX_SUFFIX)
