"""NAME.sum and NAME.sum2: a CRC32 of each 16 KiB of an archived file whose events have no checksums.

A record is 12 bytes, little endian: length u32 of the block in bytes (less than 16 KiB only for the file's last one) | sum u32, its
CRC32 | check u32, the CRC32 of (block number u64, length, sum). Record N, at offset 12 N, is of the block at 16384 N, the magic
included. The sums are computed from what was received and cannot be recomputed from a file that was changed: so there are two of
them, in the same directory, because a copy of an archive includes NAME*. If a record of one is damaged the other's is used.
"""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from relay.archive.storage.files import SUM_SUFFIXES

BLOCK_BYTES: Final = 16 << 10
RECORD_SIZE: Final = 12
_RECORD: Final = struct.Struct("<III")
_CHECKED: Final = struct.Struct("<QII")


class BlockSum(NamedTuple):
    """A block as it was when it was received: its size in bytes, and their CRC32."""

    length_bytes: int
    sum: int

    def encode(self, number: int) -> bytes:
        """Return the record, as that of block `number`."""
        return _RECORD.pack(*self, crc32(_CHECKED.pack(number, *self)))


def decode_sums(data: bytes | memoryview, first: int) -> list[BlockSum | None]:
    """Return the whole records in `data`, the first one of block `first`; None for a damaged one."""
    whole = memoryview(data)[: len(data) // RECORD_SIZE * RECORD_SIZE]
    pack = _CHECKED.pack
    return [
        BlockSum(length, value) if crc32(pack(number, length, value)) == check and length <= BLOCK_BYTES else None
        for number, (length, value, check) in enumerate(_RECORD.iter_unpack(whole), first)
    ]


def encode_sums(sums: Sequence[BlockSum | None], first: int) -> bytes:
    """Return records for the blocks from `first` on; twelve zeroes, which are no record, for a missing sum."""
    return b"".join(
        bytes(RECORD_SIZE) if block is None else block.encode(number) for number, block in enumerate(sums, first)
    )


def sum_paths(path: Path) -> tuple[Path, Path]:
    """Return the paths of NAME.sum and NAME.sum2 for NAME."""
    return path.with_name(path.name + SUM_SUFFIXES[0]), path.with_name(path.name + SUM_SUFFIXES[1])


def count_blocks(end: int) -> int:
    """Return the number of blocks of a file of `end` bytes."""
    return -(-end // BLOCK_BYTES)
