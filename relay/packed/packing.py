"""A plain binlog becomes a packed one."""

import hashlib
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import zstandard

from relay.packed.byte_source import ByteSource, read_exactly
from relay.packed.encryption import FileCipher
from relay.packed.frame_cuts import FRAME_BYTES
from relay.packed.frame_table import SKIPPABLE_HEAD, encode_seek_table, skippable
from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import OF_NOBODY, OfArchive, PackedFacts
from relay.packed.packed_file import DIGESTS_MAGIC, FACTS_MAGIC, frame_digest
from relay.packed.packing_room import PackingRoom

LEVEL: Final = 3
"""zstd's level; docs/TIERS.md has the measurements."""
_CHECKSUM_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class PackOptions:
    """`level`: zstd's. `frame_bytes`: plain bytes of a frame, for `frame_cuts`. `room`: of the disk, for packed files that are
    written there; None: it is not checked."""

    level: int = LEVEL
    frame_bytes: int = FRAME_BYTES
    room: PackingRoom | None = None


def pack(
    source: ByteSource,
    sink: Callable[[bytes], object],
    file: str,
    cuts: Sequence[int],
    options: PackOptions = PackOptions(),
    *,
    keys: KeyRing | None = None,
    stop: Callable[[], bool] = lambda: False,
    of: OfArchive = OF_NOBODY,
) -> PackedFacts | None:
    """Give the packed file to `sink`, piece by piece, in order. `file`: the binlog's name; `of`: its archive. None: `stop()` came
    true first.

    `cuts`: where frames end, from `frame_cuts`; the last is how many bytes of `source` are packed. `keys`: it is encrypted with the
    active one, if there is one. Blocking; releases the interpreter for most of the time. Raises: EOFError (the source is shorter);
    what `source` and `sink` raise.
    """
    cipher = FileCipher.new(keys, file, of) if keys is not None and keys.active is not None else None
    compressor = zstandard.ZstdCompressor(level=options.level, write_checksum=True, write_content_size=True)
    sha, crc, start = hashlib.sha256(), 0, 0
    entries: list[tuple[int, int, int]] = []
    digests = bytearray()
    if cipher is not None:
        sink(cipher.head)
    for index, cut in enumerate(cuts):
        if stop():
            return None
        plain = read_exactly(source, start, cut - start)
        if len(plain) != cut - start:
            raise EOFError(f"{file} ends at {start + len(plain)}, not at {cuts[-1]}")
        sha.update(plain)
        crc = zlib.crc32(plain, crc)
        stored = compressor.compress(plain)
        checksum = int.from_bytes(stored[-_CHECKSUM_BYTES:], "little")
        if cipher is not None:
            stored = cipher.encrypt_frame(index, stored)
        else:
            digests += frame_digest(stored)
        sink(stored)
        entries.append((len(stored), len(plain), checksum))
        start = cut
    facts = PackedFacts(file, start, f"crc32:{crc:08x}", sha.hexdigest(), int(time.time()), options.level, *of)
    if cipher is None:
        summed, said = skippable(DIGESTS_MAGIC, bytes(digests)), skippable(FACTS_MAGIC, facts.encode())
        sink(summed)
        sink(said)
        sink(encode_seek_table([*entries, (len(summed), 0, 0), (len(said), 0, 0)]))
    else:
        said = facts.encode()
        table = cipher.encrypt_table(len(said).to_bytes(SKIPPABLE_HEAD, "little") + said + encode_seek_table(entries))
        sink(table)
        sink(cipher.tail(len(table)))
    return facts
