"""Parts of the file that grows: objects NAME.part-START-STOP.zst, each a packed stretch of the binlog, until it is there as a whole."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from protocol.position import is_binlog_name
from relay.packed.byte_source import BytesInMemory
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import PackedDamaged
from relay.packed.packed_facts import ENCRYPTED_SUFFIX, OF_NOBODY, PACKED_SUFFIX, OfArchive, is_encrypted_name
from relay.packed.packed_reader import PackedReader
from relay.packed.packing import PackOptions
from relay.packing_process.packed_copy import CopyOrder

MOST_PART_BYTES: Final = 8 << 20
_MOST_READ_BYTES: Final = 8 * MOST_PART_BYTES
MOST_STORED_PART: Final = _MOST_READ_BYTES + (1 << 20)
"""The most bytes of a part's object that are read."""
_NAME: Final = re.compile(r"(.+)\.part-([0-9]{1,19})-([0-9]{1,19})(\.zst|\.zst\.enc)")


class MirrorPart(NamedTuple):
    """[start, stop) of the binlog `file`, in the object `key`."""

    file: str
    start: int
    stop: int
    key: str


def part_of(key: str) -> MirrorPart | None:
    """Return the part in the object with that key; None: it is no part."""
    match = _NAME.fullmatch(key.rpartition("/")[2])
    if match is None or not is_binlog_name(match[1]) or int(match[2]) >= int(match[3]):
        return None
    return MirrorPart(match[1], int(match[2]), int(match[3]), key)


def part_key(folder: str, file: str, start: int, stop: int, *, encrypted: bool) -> str:
    """Return the key of a part. folder: of the generation, with a slash at its end, or empty."""
    return f"{folder}{file}.part-{start}-{stop}{ENCRYPTED_SUFFIX if encrypted else PACKED_SUFFIX}"


def merged_start(parts: Iterable[MirrorPart], covered: int, end: int) -> int:
    """Return the start of the next part that ends at `end`: it takes in the last parts while these are not much larger than it.

    So a file has a few small parts at any time, and each byte is uploaded a few times at most. covered: where the parts end.
    """
    start = covered
    for part in sorted(parts, key=lambda part: part.start, reverse=True):
        if end - part.start > MOST_PART_BYTES or part.stop - part.start > 2 * (end - start):
            break
        start = part.start
    return start


def covered_to(parts: Sequence[MirrorPart]) -> int:
    """Return the offset up to which a binlog is there, from its first byte on."""
    covered = 0
    for part in sorted(parts, key=lambda part: part.start):
        if part.start > covered:
            break
        covered = max(covered, part.stop)
    return covered


def part_order(file: str, start: int, stop: int, of: OfArchive = OF_NOBODY) -> CopyOrder:
    """Return the order to pack a part. of: its archive."""
    # The mirror waits for it: what comes after it is lost with the disk.
    return CopyOrder(_inner_name(file, start), stop, None, PackOptions(), pauses_s=0.0, start=start, of=of)


def unpacked_part(data: bytes, part: MirrorPart, keys: KeyRing | None) -> bytes:
    """Return the binlog's bytes, as many as the part's name says. Raises: PackedError."""
    return opened_part(data, part, keys).read_all()


def opened_part(data: bytes, part: MirrorPart, keys: KeyRing | None) -> PackedReader:
    """Return a reader that identifies its archive, and gives the binlog's bytes, as many as the part's name says. Raises:
    PackedError."""
    source, must = BytesInMemory(data), is_encrypted_name(part.key)
    reader = PackedReader.open(source, _inner_name(part.file, part.start), keys, must_be_encrypted=must)
    # Before anything is unpacked: a small object may say that it has gigabytes.
    if reader.packed.plain_size != part.stop - part.start or reader.packed.plain_size > _MOST_READ_BYTES:
        what = f"{part.key} has {reader.packed.plain_size} bytes of the binlog; by its name it has {part.stop - part.start}"
        raise PackedDamaged(what, file=part.file)
    return reader


def _inner_name(file: str, start: int) -> str:
    """Return the name inside the packed stretch: it reveals a part in the place of another one."""
    return f"{file}.part-{start}"
