"""The sums of one archived file that is being read, and the reading of bytes that are compared with them."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from protocol.kernel.crc import crc32
from relay.archive.storage.archive_errors import NOT_OF_A_FILE, ArchiveDamaged
from relay.archive.storage.files import Buffer, FileLayer, StoredFile, write_all
from relay.archive.sums.block_sum import BLOCK_BYTES, RECORD_SIZE, BlockSum, decode_sums, sum_paths
from relay.archive.sums.newest_block import NewestBlock

_Read = Callable[[Sequence[Buffer], int], int]
"""Fills buffers with the bytes at an offset; returns how many bytes came."""
_NO_SUM: Final = "neither NAME.sum nor NAME.sum2 has a sound record"
_PAGE_RECORDS: Final = 512
_UNCOMPARED: Final = "is served without being compared"


class FileSums:
    """The sums of an open file. `cached` is for the event loop, all else may block.

    note(offset, text, lacks): called from any thread with a fault of the files of sums. lacks: neither has the sum of a block.
    """

    def __init__(
        self, layer: FileLayer, path: Path, newest: NewestBlock, note: Callable[[int, str, bool], None]
    ) -> None:
        self._layer = layer
        self._path = path
        self._newest = newest
        self._note = note
        self._fd = -1
        self._opening = threading.Lock()
        self._page: tuple[int, list[BlockSum | None]] = (0, [])
        """Sums from a block on, as they were read last, sound ones that do not change any more."""
        self._lacking: set[int] = set()
        """Blocks whose sums do not exist."""

    def begin(self) -> None:
        """Open the file of sums, if there is one. Raises: OSError if no file can be opened now."""
        with self._opening:
            for place in sum_paths(self._path):
                if self._fd < 0:
                    try:
                        self._fd = self._layer.open_read(place)
                    except OSError as error:
                        if error.errno in NOT_OF_A_FILE:
                            raise

    def close(self) -> None:
        """Close it."""
        if self._fd >= 0:
            self._layer.close(self._fd)

    def cached(self, first: int, count: int) -> Sequence[BlockSum | None] | None:
        """Return the expected sums of blocks, None for unknown ones; or None if they are not at hand and `read` must be called."""
        newest = self._newest.of(self._path.name)
        if newest is None or newest[0] >= first + count:
            known = self._remembered(first, count)
        elif newest[0] == first + count - 1:
            known = self._remembered(first, count - 1)
            known = None if known is None else [*known, newest[1]]
        else:
            known = None
        return self._one(first, count, self._layer.preadv_cached) if known is None else known

    def _remembered(self, first: int, count: int) -> Sequence[BlockSum | None] | None:
        """Return the sums of blocks that do not change any more. On the event loop."""
        if not count:
            return []
        start, sums = self._page
        if not start <= first <= first + count <= start + len(sums) and self._fd >= 0:
            data = bytearray(_PAGE_RECORDS * RECORD_SIZE)
            try:
                got = self._layer.preadv_cached(self._fd, [data], first * RECORD_SIZE)
            except OSError:
                return None
            newest = self._newest.of(self._path.name)
            found = decode_sums(memoryview(data)[:got], first)
            if newest is not None:
                del found[max(0, newest[0] - first) :]
            if None in found:
                del found[found.index(None) :]
            start, sums = self._page = first, found
        return sums[first - start : first - start + count] if first - start + count <= len(sums) else None

    def _one(
        self, first: int, count: int, read: Callable[[int, Sequence[Buffer], int], int]
    ) -> list[BlockSum | None] | None:
        """Return the sums of one of the files. None: not all of them are sound, or at hand."""
        newest = self._newest.of(self._path.name)
        data = bytearray(count * RECORD_SIZE)
        got = 0
        if self._fd >= 0:
            try:
                got = read(self._fd, [data], first * RECORD_SIZE)
            except OSError:
                return None
        sums = decode_sums(memoryview(data)[:got], first)
        sums += [None] * (count - len(sums))
        if newest is not None and 0 <= newest[0] - first < count:
            sums[newest[0] - first] = newest[1]
        if None in sums and not self._lacking.issuperset(n for n, known in enumerate(sums, first) if known is None):
            return None
        return sums

    def read(self, first: int, count: int) -> list[BlockSum | None]:
        """Do as `cached`, from both files; a record that only one of them has is restored in the other. Raises: OSError."""
        sums = self._one(first, count, self._layer.preadv)
        if sums is not None:
            return sums
        newest = self._newest.of(self._path.name)
        if self._fd < 0:
            self.begin()
        if self._fd < 0 and newest is None:
            if not self._lacking:
                self._note(-1, f"it has neither NAME.sum nor NAME.sum2, and {_UNCOMPARED}", True)
            self._lacking.update(range(first, first + count))
            return [None] * count
        found = [self._records(place, first, count) for place in sum_paths(self._path)]
        sums = [one or other for one, other in zip(*found, strict=True)]
        growing = len(sums)
        if newest is not None:
            growing = max(0, min(count, newest[0] - first))
            if 0 <= newest[0] - first < count:
                sums[newest[0] - first] = newest[1]
        for place, records in zip(sum_paths(self._path), found, strict=True):
            self._put_right(place, first, records[:growing], sums[:growing])
        for number, known in enumerate(sums, first):
            if known is None and number not in self._lacking:
                self._lacking.add(number)
                at = number * BLOCK_BYTES
                self._note(at, f"{_NO_SUM} of the block at {at}, which {_UNCOMPARED}", True)
        return sums

    def _records(self, place: Path, first: int, count: int) -> list[BlockSum | None]:
        sums: list[BlockSum | None] = []
        try:
            with StoredFile.open(self._layer, place) as stored:
                sums = decode_sums(stored.read(first * RECORD_SIZE, count * RECORD_SIZE), first)
        except OSError as error:
            if error.errno in NOT_OF_A_FILE:
                raise
        return sums + [None] * (count - len(sums))

    def _put_right(
        self, place: Path, first: int, found: Sequence[BlockSum | None], right: Sequence[BlockSum | None]
    ) -> None:
        wrong = [number for number, (had, block) in enumerate(zip(found, right, strict=True)) if had is None and block]
        if not wrong or not self._layer.exists(place):
            return
        text = f"the records of {len(wrong)} block(s) from {(first + wrong[0]) * BLOCK_BYTES} on were damaged in {place.name}"
        try:
            fd = self._layer.open_in_place(place)
            try:
                for number in wrong:
                    block = right[number]
                    assert block is not None
                    record = block.encode(first + number)
                    write_all(self._layer, fd, [record], (first + number) * RECORD_SIZE, RECORD_SIZE)
            finally:
                self._layer.close(fd)
        except OSError as error:
            self._note((first + wrong[0]) * BLOCK_BYTES, f"{text} and cannot be put right: {error.strerror}.", False)
            return
        self._note((first + wrong[0]) * BLOCK_BYTES, f"{text} and were put right from its copy.", False)


class BlockReader:
    """Reads any part of a file by reading whole blocks. One thread at a time."""

    def __init__(self) -> None:
        self._head = memoryview(bytearray(BLOCK_BYTES))
        self._tail = memoryview(bytearray(BLOCK_BYTES))
        self.wrong: tuple[int, str] | None = None
        """The offset of the first block that is not what was received, after `read`, and what is wrong."""

    def read(self, read: _Read, sums: Sequence[BlockSum | None], view: memoryview, offset: int) -> int:
        """Fill `view` from `offset` on; return how many bytes from there are what was received, or cannot be compared.

        sums: of the blocks that the part touches. Raises: OSError; BlockingIOError.
        """
        size = len(view)
        first = offset // BLOCK_BYTES
        begin, stop = first * BLOCK_BYTES, offset + size
        last = sums[-1]
        last_end = begin + (len(sums) - 1) * BLOCK_BYTES + (last.length_bytes if last is not None else 0)
        head, tail = self._head[: offset - begin], self._tail[: max(0, last_end - stop)]
        got_to = begin + read([head, view, tail], begin)
        self.wrong = None
        sound_to = at = begin
        for block in sums:
            if block is None:
                sound_to = min(at + BLOCK_BYTES, got_to)
                at += BLOCK_BYTES
                continue
            length, expected = block
            end = at + length
            if end > got_to:
                self.wrong = at, f"the file ends at {got_to}, inside what was archived"
                break
            if at >= offset and end <= stop:
                value = crc32(view, at - offset, end - offset)
            else:
                value = 0
                for part, start in ((head, begin), (view, offset), (tail, stop)):
                    low, high = max(at, start) - start, min(end, start + len(part)) - start
                    if low < high:
                        value = crc32(part, low, high, value)
            if value != expected:
                self.wrong = at, f"the {length} bytes from {at} on are not what was received"
                break
            sound_to = end
            at += BLOCK_BYTES
        return max(0, min(sound_to, stop) - offset)


def touched(offset: int, size: int) -> tuple[int, int]:
    """Return the blocks that contain `size` bytes at `offset`: the first one's number, and their count."""
    first = offset // BLOCK_BYTES
    return first, (offset + size - 1) // BLOCK_BYTES - first + 1


def damaged_block(name: str, wrong: tuple[int, str], boundary: int) -> ArchiveDamaged:
    """Return the damage that `BlockReader.wrong` reports of the file `name`, for a stream that has reached `boundary`."""
    at, what = wrong
    return ArchiveDamaged(what, file=name, offset=at, boundary=boundary)
