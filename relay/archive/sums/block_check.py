"""All blocks of one archived file, compared with what was received: for the scrub, for `archive verify`, after sealing."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from protocol.kernel.crc import crc32
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.archive.storage.boundary_index import BoundaryIndex, index_path
from relay.archive.storage.files import FileLayer, StoredFile
from relay.archive.sums.block_sum import BLOCK_BYTES, BlockSum
from relay.archive.sums.sum_files import read_sums, whole_blocks
from relay.binlog_file.file_bytes import read_bytes

_MOST_BLOCKS: Final = 1000
"""The most blocks that are named: with more of them the file is lost."""


class BlockCheck:
    """Takes the bytes of one file in order, in pieces of any size.

    known: what is known of each block. differing, lacking: offsets of blocks that are not what was received, and of those that cannot
    be compared because neither file of sums has them; at most 1000 each. sums: of the blocks as they are.
    """

    def __init__(self, known: Sequence[BlockSum | None]) -> None:
        self.differing: list[int] = []
        self.lacking: list[int] = []
        self.sums: list[BlockSum] = []
        self._known = known
        self._length = 0
        self._value = 0

    def take(self, data: memoryview) -> None:
        """Add the next bytes of the file."""
        start = 0
        while start < len(data):
            stop = min(len(data), start + BLOCK_BYTES - self._length)
            self._value = crc32(data, start, stop, self._value)
            self._length += stop - start
            start = stop
            if self._length == BLOCK_BYTES:
                self._end_block()

    def finish(self, stored: StoredFile) -> None:
        """End the file, or the part of it that is checked. The last block of one that grows may have been recorded longer than that:
        the bytes after it are read, too. Raises: OSError."""
        if not self._length:
            return
        number = len(self.sums)
        expected = self._known[number] if number < len(self._known) else None
        if expected is not None and expected.length_bytes > self._length:
            at = number * BLOCK_BYTES + self._length
            self.take(memoryview(read_bytes(stored, at, expected.length_bytes - self._length)))
        if self._length:
            self._end_block()

    def _end_block(self) -> None:
        block = BlockSum(self._length, self._value)
        number = len(self.sums)
        expected = self._known[number] if number < len(self._known) else None
        if expected != block:
            offsets = self.lacking if expected is None else self.differing
            if len(offsets) < _MOST_BLOCKS:
                offsets.append(number * BLOCK_BYTES)
        self.sums.append(block)
        self._length = self._value = 0


def check_blocks(
    layer: FileLayer,
    path: Path,
    end: int,
    *,
    on_bytes: Callable[[memoryview], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> BlockCheck | None:
    """Compare the first `end` bytes of a file whose events have no checksums; None: `stop()` came true first. Blocking.

    `on_bytes` gets what is read, 1 MiB at most at once, and may wait. Raises: OSError; EOFError for a file that ends before.
    """
    check = BlockCheck(read_sums(layer, path))
    with StoredFile.open(layer, path) as stored:
        for piece in whole_blocks(stored, 0, end, path.name):
            if stop():
                return None
            check.take(piece)
            if on_bytes is not None:
                on_bytes(piece)
        check.finish(stored)
    return check


def block_damage(layer: FileLayer, path: Path, offset: int) -> ArchiveDamaged:
    """Return the damage of the block at `offset`, which is not what was received. Blocking: it looks for the last transaction before
    it in NAME.idx."""
    boundary = 0
    # Without an index, or with one that cannot be read, the damage is reported without it.
    with contextlib.suppress(OSError, IndexError):
        fd = layer.open_read(index_path(path))
        try:
            index = BoundaryIndex(layer, fd)
            number = index.last_at_or_before(offset)
            boundary = index.record(number).group_start if number >= 0 else 0
        finally:
            layer.close(fd)
    what = f"the block at {offset} is not what was received"
    return ArchiveDamaged(what, file=path.name, offset=offset, boundary=boundary)
