"""All bytes of a packed file, read once and unpacked: what they are, whatever was recorded of them."""

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from relay.packed.byte_source import ByteSource, read_exactly
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import PackedDamaged
from relay.packed.packed_file import PackedFile

_PIECE: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class PackedContent:
    """stored_bytes, stored_digest, end_digest: of the packed file, as in `StorageLocation`. digest: of the binlog in it, as in the
    catalog; sha256: of the same bytes, `sha256:…`. key_id: of the key that it is encrypted with; None: it is not."""

    stored_bytes: int
    stored_digest: str
    plain_bytes: int
    digest: str
    key_id: str | None
    sha256: str
    end_digest: str


def packed_content(
    source: ByteSource,
    file: str,
    keys: KeyRing | None,
    stop: Callable[[], bool] = lambda: False,
    begins: Callable[[int], None] = lambda offset: None,
    *,
    must_be_encrypted: bool = False,
) -> PackedContent | None:
    """Read the packed file. file: the binlog that should be in it. begins: called with the offset in the binlog at which a frame
    begins, before it is unpacked.

    None: `stop()` came true first. Blocking. Raises: as `PackedFile.open` and `PackedFile.decode`; what `source` raises.
    """
    packed = PackedFile.open(source, file, keys, must_be_encrypted=must_be_encrypted)
    size, count = source.size, len(packed.frames)
    sha, plain_sha, crc, at, index = hashlib.sha256(), hashlib.sha256(), 0, 0, 0
    while at < size:
        if stop():
            return None
        # As many frames as are one piece; the head comes before them, the table after them.
        first, end = index, at
        while index < count and (index == first or packed.frames[index].stored_stop - at <= _PIECE):
            end = packed.frames[index].stored_stop
            index += 1
        if first == index:
            end = min(size, at + _PIECE)
        data = read_exactly(source, at, end - at)
        if len(data) != end - at:
            raise PackedDamaged(f"it ends at {at + len(data)}, not at {size}", file=file, offset=at + len(data))
        sha.update(data)
        for number in range(first, index):
            start, stop_at = packed.stored_range(number)
            begins(packed.frames[number].plain_start)
            plain = packed.decode(number, data[start - at : stop_at - at])
            crc = zlib.crc32(plain, crc)
            plain_sha.update(plain)
        at = end
    digests = f"sha256:{sha.hexdigest()}", f"sha256:{plain_sha.hexdigest()}"
    if digests[1] != f"sha256:{packed.facts.sha256}":
        what = "the binlog in it has another SHA-256 than it says"
        raise PackedDamaged(what, file=file, offset=packed.frames.stored_stop)
    return PackedContent(
        size, digests[0], packed.plain_size, f"crc32:{crc:08x}", packed.key_id, digests[1], packed.end_digest
    )
