"""NAME.sum and NAME.sum2 of the file that grows, computed from the bytes that were received. For the writer thread."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from protocol.binlog.layout import MAGIC
from protocol.kernel.crc import crc32
from relay.archive.storage.archive_errors import NOT_OF_A_FILE
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import Buffer, FileLayer, write_all
from relay.archive.sums.block_sum import BLOCK_BYTES, RECORD_SIZE, BlockSum, encode_sums, sum_paths
from relay.archive.sums.newest_block import NewestBlock
from relay.archive.sums.sum_files import read_sums, sums_on_disk

_Block = tuple[int, BlockSum]
"""A block's number, and what is known of it so far."""


class WrittenRun(Protocol):
    """The attributes of a `Run` that are used here."""

    @property
    def data(self) -> Buffer:
        """Its bytes."""

    @property
    def boundary(self) -> int:
        """The offset of the newest transaction boundary, <= position."""

    @property
    def position(self) -> int:
        """The offset in the file where it ends."""


class SumRecorder:
    """Follows one file. What `take` took counts from `written` on; until then `cut_back` takes it back."""

    def __init__(self, layer: FileLayer, name: str, fds: Sequence[int], newest: NewestBlock, block: _Block) -> None:
        """block: the one at whose end `fds` are, at the end of a transaction."""
        self._layer = layer
        self._name = name
        self._fds = fds
        self._newest = newest
        self._at = block
        """The block that is written, up to the last byte."""
        self._boundary = self._next_boundary = block
        """The block in which the last whole transaction ends, up to there."""
        self._is_synced = False

    @classmethod
    def create(cls, layer: FileLayer, path: Path, newest: NewestBlock) -> "SumRecorder":
        """Create one for a new file, which has its magic. Raises: OSError."""
        fds: list[int] = []
        try:
            fds.extend(layer.create(place) for place in sum_paths(path))
        except OSError:
            _close(layer, fds)
            raise
        return cls(layer, path.name, fds, newest, (0, BlockSum(len(MAGIC), crc32(MAGIC, 0, len(MAGIC)))))

    @classmethod
    def resume(cls, layer: FileLayer, path: Path, file: ArchivedFile, newest: NewestBlock) -> "SumRecorder":
        """Create one for a file that recovery has left whole up to `file.end`. Missing records are computed from the disk, which
        recovery trusts too. Raises: OSError; EOFError."""
        number, length = divmod(file.end, BLOCK_BYTES)
        sums = read_sums(layer, path)
        last = sums[number] if length and number < len(sums) else None
        if (written := newest.of(path.name)) is not None and written[0] == number:
            last = written[1]
        if last is not None and last.length_bytes != length:
            last = None
        whole = [None if block is None or block.length_bytes < BLOCK_BYTES else block for block in sums[:number]]
        # A crash leaves holes in these files as in any other.
        first = whole.index(None) if None in whole else len(whole)
        made = sums_on_disk(layer, path, first, number * BLOCK_BYTES)
        whole += [None] * (number - len(whole))
        sums = [known or block for known, block in zip(whole, [*whole[:first], *made], strict=True)]
        if length:
            sums += [last] if last is not None else sums_on_disk(layer, path, number, file.end)
        records = encode_sums(sums, 0)
        fds: list[int] = []
        try:
            for place in sum_paths(path):
                fd = _open(layer, place)
                fds.append(fd)
                if layer.pread(fd, len(records), 0) != records:
                    write_all(layer, fd, [records], 0, len(records))
                layer.truncate(fd, len(records))
        except OSError:
            _close(layer, fds)
            raise
        block = sums[number] if length else None
        recorder = cls(layer, path.name, fds, newest, (number, block or BlockSum(0, 0)))
        newest.put(path.name, *recorder._boundary)
        return recorder

    def take(self, batch: Sequence[WrittenRun]) -> None:
        """Take the next bytes of the file, and note them. Raises: OSError."""
        first = self._at[0]
        ended: list[BlockSum | None] = []
        for run in batch:
            data = run.data
            whole = run.boundary - run.position + len(data)
            if whole >= 0:
                self._add(data, 0, whole, ended)
                self._next_boundary = self._at
            self._add(data, max(0, whole), len(data), ended)
        if self._at[1].length_bytes:
            ended.append(self._at[1])
        self._put(encode_sums(ended, first), first)
        self._is_synced = False

    def _add(self, data: Buffer, start: int, stop: int, ended: list[BlockSum | None]) -> None:
        number, (length, value) = self._at
        while start < stop:
            upto = min(stop, start + BLOCK_BYTES - length)
            value = crc32(data, start, upto, value)
            length += upto - start
            start = upto
            if length == BLOCK_BYTES:
                ended.append(BlockSum(length, value))
                number += 1
                length = value = 0
        self._at = number, BlockSum(length, value)

    def _put(self, records: bytes, number: int) -> None:
        if records:
            for fd in self._fds:
                write_all(self._layer, fd, [records], number * RECORD_SIZE, len(records))

    def written(self) -> None:
        """Note that what was taken is in the file, and is about to be published."""
        self._boundary = self._next_boundary
        self._newest.put(self._name, *self._boundary)

    def cut_back(self) -> None:
        """Take back what comes after the last whole transaction. Raises: OSError."""
        self._at = self._next_boundary = self._boundary
        self._newest.put(self._name, *self._boundary)
        number, block = self._boundary
        count = number + (block.length_bytes > 0)
        for fd in self._fds:
            self._layer.truncate(fd, count * RECORD_SIZE)
        if block.length_bytes:
            self._put(block.encode(number), number)
        self._is_synced = False

    def finish(self) -> None:
        """End the file where it was written to, for ever."""
        self._boundary = self._next_boundary = self._at
        self._newest.forget()

    def sync(self) -> None:
        """Put what was recorded on stable storage before returning. Not only for the writer thread. Raises: OSError."""
        if not self._is_synced:
            self._is_synced = True
            try:
                for fd in self._fds:
                    self._layer.sync_data(fd)
            except OSError:
                self._is_synced = False
                raise

    def close(self) -> None:
        """Close both files."""
        _close(self._layer, self._fds)


def _open(layer: FileLayer, place: Path) -> int:
    """Open a file of sums for writing; one that may not be opened is replaced: its contents were read, or cannot be."""
    try:
        return layer.open_alone(place)
    except OSError as error:
        if error.errno in NOT_OF_A_FILE:
            raise
        layer.unlink(place)
        return layer.create(place)


def _close(layer: FileLayer, fds: Sequence[int]) -> None:
    for fd in fds:
        layer.close(fd)
