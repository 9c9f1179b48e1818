"""NAME.sum and NAME.sum2 as a whole: reading them as one, creating them from the file, repairing them."""

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.kernel.codes import BOUNDARY_MASK
from protocol.kernel.crc import crc32
from relay.archive.storage.archive_errors import NOT_OF_A_FILE
from relay.archive.storage.files import FileLayer, StoredFile, replace_file
from relay.archive.sums.block_sum import (
    BLOCK_BYTES,
    RECORD_SIZE,
    BlockSum,
    count_blocks,
    decode_sums,
    encode_sums,
    sum_paths,
)
from relay.binlog_file.event_places import event_headers
from relay.binlog_file.file_bytes import read_bytes
from relay.binlog_file.head import read_start

_PIECE_BYTES: Final = 64 * BLOCK_BYTES
_HOLE: Final = bytes(512)
"""A sector that never reached the disk."""
_LOOK_AT: Final = 1000
"""The interval in events: a transaction has a marker at its begin and its end."""


def read_sums(layer: FileLayer, path: Path) -> list[BlockSum | None]:
    """Return what the two files say of the binlog at `path`, by block; None if neither has a sound record. Raises: OSError."""
    one, other = (decode_sums(content, 0) for content in _contents(layer, path))
    return [mine or others for mine, others in zip_longest(one, other)]


def are_equal(layer: FileLayer, path: Path) -> bool:
    """Return whether both files have the same bytes, as those of a complete binlog do. Raises: OSError."""
    one, other = _contents(layer, path)
    return one == other


def are_complete(layer: FileLayer, path: Path, end: int) -> bool:
    """Return whether both are as long as those of a file of `end` bytes. It reads neither."""
    try:
        return all(layer.size_of(place) == count_blocks(end) * RECORD_SIZE for place in sum_paths(path))
    except OSError:
        return False


def store_sums(layer: FileLayer, path: Path, sums: Sequence[BlockSum | None]) -> None:
    """Put these in both files of a complete binlog, durably, if they are not there. Raises: OSError."""
    wanted = encode_sums(sums, 0)
    for place, content in zip(sum_paths(path), _contents(layer, path), strict=True):
        if content != wanted:
            replace_file(layer, place, wanted)


def make_sums(layer: FileLayer, path: Path, end: int) -> None:
    """Rebuild both from a complete file of `end` bytes that is known to be what was archived. Raises: OSError; EOFError."""
    store_sums(layer, path, sums_on_disk(layer, path, 0, end))


def sums_on_disk(layer: FileLayer, path: Path, first: int, end: int) -> list[BlockSum | None]:
    """Return the sums of the blocks from number `first` up to offset `end`, as they are on the disk. Raises: OSError; EOFError."""
    sums: list[BlockSum | None] = []
    with StoredFile.open(layer, path) as stored:
        for piece in whole_blocks(stored, first * BLOCK_BYTES, end, path.name):
            for start in range(0, len(piece), BLOCK_BYTES):
                stop = min(len(piece), start + BLOCK_BYTES)
                sums.append(BlockSum(stop - start, crc32(piece, start, stop)))
    return sums


def known_end(layer: FileLayer, path: Path, start: int, size: int) -> int:
    """Return the offset up to which a file of `size` bytes, which grew when its relay ended, is what was received, according to the
    records, but not less than `start`. Raises: OSError.

    A block that a power failure left a hole in is good up to the hole: bytes that had been synced are before it. Of one that was
    changed otherwise nothing is believed.
    """
    first = start // BLOCK_BYTES
    with StoredFile.open(layer, path) as stored:
        for number, block in enumerate(read_sums(layer, path)[first:], first):
            if block is not None and _agrees(stored, number, block, size) is False:
                begin = number * BLOCK_BYTES
                hole = read_bytes(stored, begin, block.length_bytes).find(_HOLE)
                # The file's beginning was synced before the file had its name.
                head = read_start(stored).event if number == 0 else b""
                return min(size, max(begin + max(0, hole), start, FIRST_EVENT + len(head)))
    return size


def forget_of_another(layer: FileLayer, path: Path, size: int) -> None:
    """Remove the files of sums if they are those of another binlog: an operator has put the source's own in its place.

    No block matches them then, and no event has the markers that the relay adds. Raises: OSError.
    """
    with StoredFile.open(layer, path) as stored:
        for number, block in enumerate(read_sums(layer, path)):
            if block is not None and _agrees(stored, number, block, size):
                return
        if any(
            fields.flags & BOUNDARY_MASK for _, fields in islice(event_headers(stored, FIRST_EVENT, size), _LOOK_AT)
        ):
            return
    for place in sum_paths(path):
        layer.unlink(place)


def _agrees(stored: StoredFile, number: int, block: BlockSum, size: int) -> bool | None:
    """Return whether a block is what was received; None: not all of it is there."""
    if number * BLOCK_BYTES + block.length_bytes > size:
        return None
    data = read_bytes(stored, number * BLOCK_BYTES, block.length_bytes)
    return crc32(data, 0, len(data)) == block.sum


def whole_blocks(stored: StoredFile, start: int, end: int, name: str) -> Iterator[memoryview]:
    """Yield [start, end) in pieces of whole blocks, except for the last one. A piece is valid until the next is requested.

    Raises: OSError; EOFError if the file `name` ends before.
    """
    buffer = memoryview(bytearray(_PIECE_BYTES))
    while start < end:
        wanted = min(len(buffer), end - start)
        have = 0
        while have < wanted:
            got = stored.read_into(buffer[have:wanted], start + have)
            if not got:
                raise EOFError(f"{name} ends at {start + have}, not at {end}")
            have += got
        yield buffer[:wanted]
        start += wanted


def _contents(layer: FileLayer, path: Path) -> list[bytes]:
    found = []
    for place in sum_paths(path):
        try:
            with StoredFile.open(layer, place) as stored:
                found.append(stored.read_all())
        except OSError as error:
            if error.errno in NOT_OF_A_FILE:
                raise
            found.append(b"")  # as one that is damaged all over
    return found
