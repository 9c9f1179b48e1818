"""A binlog's index blocks as bytes: they are stored beside an archived file, to find a transaction without reading the file.

Rows of five i64, little endian, are written one block after another:

    [0, -2, length, 0, 0] and 64 bytes of key, filled up to two rows    the next source of this file, from 0
    [start, source, first, last, serial]                                a run of the block
    [start, -1, anonymous, stop, timestamp u32 | check u32]             the block ends

The check is the CRC32 of all bytes before it, from the first row on, plus _CHECK_ADDED: if a plain CRC32 followed them, all
bytes would have the same CRC32, and a block could be missing. So the last check covers every row. Bytes that are torn off at
the end are not detected.
A file whose transactions have one source takes about 80 bytes for each 64 KiB.
"""

import struct
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Final

from protocol.errors import Malformed
from protocol.gtid.file_gtids import IndexBlock, Run
from protocol.gtid.gtid_set import GtidSet

_ROW: Final = struct.Struct("<qqQQq")
_END_ROW: Final = struct.Struct("<qqqqI")
"""The row that ends a block, without its check."""
ROW_BYTES: Final = _ROW.size
_CHECK_BYTES: Final = 4
_CHECK_ADDED: Final = 0xA282EAD8
_KEY_ROWS: Final = 2
_KEY: Final = -2
_END: Final = -1
_PASSED: Final = -3
_MAX_KEY_BYTES: Final = 48
# Where the transactions of many sources alternate, checking each run takes longer than walking over the file.
_MANY_RUNS: Final = 16
_MASK: Final = 2**64 - 1
_U32: Final = 2**32 - 1


def _check(crc: int) -> bytes:
    return (crc + _CHECK_ADDED & _U32).to_bytes(_CHECK_BYTES, "little")


def _is_checked(data: bytes) -> bool:
    """Return whether these bytes, which end with a block, are as they were written."""
    return data[-_CHECK_BYTES:] == _check(zlib.crc32(memoryview(data)[:-_CHECK_BYTES]))


def last_start(data: bytes) -> int | None:
    """Return the start of the last block, from all bytes of an index; None if the index is torn, damaged or empty.

    This is far cheaper than a `BlockIndex`.
    """
    if not data or len(data) % ROW_BYTES or not _is_checked(data):
        return None
    start, mark, _anonymous, _stop, _timestamp = _END_ROW.unpack_from(data, len(data) - ROW_BYTES)
    return int(start) if mark == _END else None


class BlockIndexWriter:
    """Encodes the bytes that are appended for each block of one file.

    `written` is the index of the file so far, of which the first `whole_size` bytes are kept and continued.
    """

    def __init__(self, written: bytes = b"") -> None:
        self._sources: dict[bytes, int] = {}
        self._crc = 0
        """The CRC32 of all bytes so far."""
        if written:
            index = BlockIndex(written)
            for key in index.keys:
                self._sources[key] = len(self._sources)
            self._crc = zlib.crc32(memoryview(written)[: index.whole_size])

    def encode(self, block: IndexBlock) -> bytes:
        """Return the rows of one block."""
        parts = []
        for run in block.runs:
            source = self._sources.get(run.key)
            if source is None:
                source = self._sources[run.key] = len(self._sources)
                parts.append(_ROW.pack(0, _KEY, len(run.key), 0, 0) + run.key.ljust(_KEY_ROWS * _ROW.size, b"\0"))
            parts.append(_ROW.pack(block.start, source, run.first, run.last, run.serial))
        parts.append(_END_ROW.pack(block.start, _END, block.anonymous, block.stop, block.timestamp))
        rows = b"".join(parts)
        crc = zlib.crc32(rows, self._crc)
        check = _check(crc)
        self._crc = zlib.crc32(check, crc)
        return rows + check


class BlockIndex:
    """The blocks of one file, from their bytes. A look-up goes over all of them, which takes some milliseconds for a file of a GiB.

    `whole_size` counts the bytes up to the end of the last whole block. With `torn` the bytes may be those of a power cut; all
    that precedes the first wrong byte is used.
    Raises: Malformed for bytes that no `BlockIndexWriter` made, unless they are torn.
    """

    def __init__(self, data: bytes, *, torn: bool = False) -> None:
        if torn:
            data = data[: _sound_size(data)]
        self._rows = array("q")
        self._rows.frombytes(data[: len(data) // _ROW.size * _ROW.size])
        if array("q", [1]).tobytes()[0] == 0:  # pragma: no cover - a big-endian machine
            self._rows.byteswap()
        self.keys: list[bytes] = []
        self.whole_size = 0
        self._ends: list[int] = []
        """The row at which each block ends."""
        self._scan(data)
        if self.whole_size and not _is_checked(data[: self.whole_size]):
            raise Malformed("a stretch index whose check is wrong: bytes of it were changed")

    def _scan(self, data: bytes) -> None:
        kinds = self._rows[1::5]
        known = keys_whole = 0
        for at, kind in enumerate(kinds):
            if 0 <= kind < known or kind == _PASSED:
                continue
            if kind == _END:
                self._ends.append(at)
                keys_whole = known
            elif kind == _KEY:
                length = self._rows[at * 5 + 2]
                if at + _KEY_ROWS >= len(kinds):
                    break
                if not 8 <= length <= _MAX_KEY_BYTES:
                    raise Malformed(f"a source's key of {length} bytes in row {at} of a stretch index")
                start = (at + 1) * _ROW.size
                self.keys.append(data[start : start + length])
                known += 1
                # The bytes of a key must not be taken for a row.
                self._rows[at * 5 + 6] = self._rows[at * 5 + 11] = kinds[at + 1] = kinds[at + 2] = _PASSED
            else:
                raise Malformed(f"source {kind} of {known} in row {at} of a stretch index")
        if self._ends:
            self.whole_size = (self._ends[-1] + 1) * _ROW.size
        # A key whose first block is torn is written again with that block.
        del self.keys[keys_whole:]

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def stop(self) -> int:
        """The offset after the last block. Raises: IndexError without one."""
        return self._rows[self._ends[-1] * 5 + 3]

    @property
    def last_start(self) -> int:
        """The offset of the last block. Raises: IndexError without one."""
        return self._rows[self._ends[-1] * 5]

    def __iter__(self) -> Iterator[IndexBlock]:
        first = 0
        for end in self._ends:
            yield self._block(first, end)
            first = end + 1

    def _block(self, first: int, end: int) -> IndexBlock:
        rows = self._rows
        runs = []
        at = first
        while at < end:
            source = rows[at * 5 + 1]
            if source < 0:
                at += 1
                continue
            _start, _source, low, high, serial = rows[at * 5 : at * 5 + 5]
            runs.append(Run(self.keys[source], low & _MASK, high & _MASK, serial))
            at += 1
        start, _mark, anonymous, stop, timestamp = rows[end * 5 : end * 5 + 5]
        return IndexBlock(start, stop, timestamp & _U32, anonymous, tuple(runs))

    def find(self, key: bytes, number: int) -> IndexBlock | None:
        """Return the block in which this transaction starts, or None."""
        if key not in self.keys:
            return None
        wanted = self.keys.index(key)
        for at, (source, first, last) in enumerate(self._runs()):
            if source == wanted and first & _MASK <= number <= last & _MASK:
                return self._block_around(at)
        return None

    def first_missing(self, held: GtidSet) -> IndexBlock | None:
        """Return the first block of a MySQL file with a transaction that is not in `held` or has no GTID; None: no such block."""
        keys, has_run = self.keys, held.has_run
        for at, (source, first, last) in enumerate(self._runs()):
            if (source >= 0 and not has_run(keys[source], first, last)) or (source == _END and first):
                return self._block_around(at)
        return None

    def pieces_without(self, held: GtidSet, end: int, at_least: int) -> list[tuple[int, int]]:
        """Return pieces [start, stop) of a MySQL file, up to offset `end`, in which each transaction has a GTID that is not in `held`.

        Pieces of fewer than `at_least` bytes are omitted. A block with many runs is not examined, and is in no piece.
        """
        starts, sources, seconds, thirds = (self._rows[column::5] for column in range(4))
        keys, meets = self.keys, held.meets_run
        pieces: list[tuple[int, int]] = []
        first = start = stop = 0
        for row in self._ends:
            at, anonymous, behind = starts[row], seconds[row], thirds[row]
            if behind > end:
                break
            lacks_all = not anonymous and row - first <= _MANY_RUNS
            while lacks_all and first < row:
                source = sources[first]
                lacks_all = source < 0 or not meets(keys[source], seconds[first], thirds[first])
                first += 1
            first = row + 1
            if lacks_all and at == stop:
                stop = behind
                continue
            if stop - start >= at_least:
                pieces.append((start, stop))
            # A block that is not wanted is an empty piece, which nothing joins.
            start, stop = (at, behind) if lacks_all else (-1, -1)
        if stop - start >= at_least:
            pieces.append((start, stop))
        return pieces

    def first_reaching(self, awaited: Mapping[bytes, tuple[bytes, int]]) -> tuple[int, list[tuple[bytes, int]]]:
        """Return, for a MariaDB file, the start of the first block with a group that is sent or awaited; otherwise of the last block.

        `awaited` contains by domain (u32) the server (u32) and number of the group up to which nothing of the domain is sent.
        The second result contains the last number of each server before that place, in the order of the stream.
        """
        last: dict[bytes, int] = {}
        first_row = 0
        for at, (source, _low, high) in enumerate(self._runs()):
            if source == _END:
                if at == self._ends[-1]:
                    break
                for run in self._block(first_row, at).runs:
                    last.pop(run.key, None)
                    last[run.key] = run.last
                first_row = at + 1
                continue
            if source < 0:
                continue
            key = self.keys[source]
            waiting = awaited.get(key[:4])
            if waiting is None or (waiting[0] == key[4:8] and waiting[1] <= high & _MASK):
                return self._block_around(at).start, list(last.items())
        return self.last_start, list(last.items())

    def _runs(self) -> Iterator[tuple[int, int, int]]:
        """Yield source, first and last of each row; for a block's end they are its mark and `anonymous`."""
        rows = self._rows[: self.whole_size // 8]
        return zip(rows[1::5], rows[2::5], rows[3::5], strict=True)

    def _block_around(self, row: int) -> IndexBlock:
        place = bisect_left(self._ends, row)
        return self._block(self._ends[place - 1] + 1 if place else 0, self._ends[place])

    def transactions_before(self, offset: int) -> int:
        """Return how many transactions ended in the blocks that begin before `offset`, which is a block's start or the end."""
        ends, rows = self._ends, self._rows
        place = bisect_left(ends, offset, key=lambda end: rows[end * 5])
        before = range(ends[place - 1], -1, -1) if place else ()
        return next((rows[at * 5 + 4] for at in before if rows[at * 5 + 1] >= 0), 0)

    def at_time(self, timestamp: int) -> IndexBlock | None:
        """Return the last block up to which no first event is newer than `timestamp` (s); None if the first block's is newer."""
        place = -1
        for end in self._ends:
            if self._rows[end * 5 + 4] & _U32 > timestamp:
                break
            place = end
        return None if place < 0 else self._block_around(place)


def _sound_size(data: bytes) -> int:
    """Return the size up to which the blocks are as they were written."""
    view = memoryview(data)
    sound = crc = 0
    for end in range(ROW_BYTES, len(data) + 1, ROW_BYTES):
        # A run or a part of a key is rarely taken for an end: then the check decides.
        if int.from_bytes(view[end - ROW_BYTES + 8 : end - ROW_BYTES + 16], "little", signed=True) != _END:
            continue
        whole = zlib.crc32(view[sound : end - _CHECK_BYTES], crc)
        if view[end - _CHECK_BYTES : end] == _check(whole):
            crc = zlib.crc32(view[end - _CHECK_BYTES : end], whole)
            sound = end
    return sound
