"""The frame table of a packed binlog, and its frames as plain bytes.

    NAME.zst       frames | a skippable frame with a digest of each | one with the binlog's facts | zstd's own seek table
    NAME.zst.enc   as `relay.packed.encryption` describes

Stock `zstd -d NAME.zst` returns the binlog. The bytes after the frames are "the end": its digest determines that of each frame, by
the digests in it, or because frames that it accepts cannot be created without the key.
"""

import hashlib
import threading
from typing import Final, NamedTuple

import zstandard

from relay.packed.byte_source import ByteSource, read_exactly
from relay.packed.encryption import TAG_BYTES, TAIL_MAGIC, TAIL_SIZE, FileCipher, head_size_on_disk, split_tail
from relay.packed.frame_table import (
    FOOTER_SIZE,
    SKIPPABLE_HEAD,
    Frame,
    FrameTable,
    decode_seek_table,
    seek_table_size,
    skippable_payload,
)
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import PackedDamaged, PackedUnknown
from relay.packed.packed_facts import OfArchive, OtherFormat, PackedFacts

FACTS_MAGIC: Final = 0x184D2A5D
DIGESTS_MAGIC: Final = 0x184D2A5C
DIGEST_BYTES: Final = 20
"""The digest's size for each frame that is not encrypted: a part of SHA-256."""
MOST_END_BYTES: Final = 64 << 20
"""A larger end is not read, whatever size it states: frames of some 400 GB of a binlog."""
TAIL_READ: Final = 64 << 10
"""So much of the end is read at once: the table of a GiB in frames of 512 KiB and its facts are 25 KiB."""
_MORE_READ: Final = 8 << 10
_CHECKSUM_BYTES: Final = 4

_of_thread = threading.local()


def frame_digest(stored: bytes) -> bytes:
    """Return the digest that is stored for a frame that is not encrypted."""
    return hashlib.sha256(stored).digest()[:DIGEST_BYTES]


class PackedFile:
    """The facts about a packed file without its frames. `open` creates it. Thread-safe, and bound to no source."""

    def __init__(
        self,
        ended: "_PackedEnd",
        frames: FrameTable,
        cipher: FileCipher | None,
        stored_size: int,
        file: str,
        end_digest: str,
    ) -> None:
        self.facts = ended.facts
        self.frames = frames
        self.stored_size = stored_size
        """The size of the packed file in bytes."""
        self.end_digest = end_digest
        """The digest `sha256:…` of what follows the frames."""
        self._digests = ended.digests
        self._cipher = cipher
        self._file = file

    @classmethod
    def open(
        cls,
        source: ByteSource,
        file: str,
        keys: KeyRing | None = None,
        *,
        must_be_encrypted: bool = False,
        end_digest: str = "",
        of: OfArchive | None = None,
    ) -> "PackedFile":
        """Read the end of `source`, mostly at once. `file`: the binlog that should be in it. must_be_encrypted: an encrypted one was
        stored; an unencrypted one can be created without a key. end_digest: of the file that was stored, as it was recorded; empty:
        it was not. of: archive and generation that it should be of; None: any.

        Blocking. Raises: PackedDamaged, PackedUnknown, KeyMissing, KeyWrong; what `source` raises.
        """
        size = source.size
        if size < TAIL_SIZE:
            raise PackedDamaged(f"it has {size} bytes only", file=file, offset=0)
        tail = _Tail(source, size, file)
        if tail.last(len(TAIL_MAGIC))[:-1] == TAIL_MAGIC[:-1]:
            ended, cipher, start = _open_encrypted(tail, file, keys)
            behind = tail.begin
        elif must_be_encrypted:
            what = "it is not encrypted, and what was stored there was: somebody put another file in its place"
            raise PackedDamaged(what, file=file, offset=0)
        else:
            ended = _open_plain(tail, file)
            cipher, start, behind = None, 0, tail.begin
        facts, frames = ended.facts, FrameTable(ended.entries, start)
        if frames.stored_stop != behind:
            what = f"its frames end at {frames.stored_stop} by its table, and at {behind} by its size"
            raise PackedDamaged(what, file=file, offset=min(frames.stored_stop, behind))
        if frames.plain_size != facts.plain_size:
            what = f"its table tells of {frames.plain_size} bytes, its facts of {facts.plain_size}"
            raise PackedDamaged(what, file=file, offset=behind)
        if facts.file != file:
            raise PackedDamaged(f"the binlog in it is {facts.file}", file=file, offset=behind)
        if of is not None and (facts.archive, facts.generation) != of[:2]:
            what = f"it is of generation {facts.generation} of the archive {facts.archive or 'of nobody'}, not of {of[1]} of {of[0]}"
            raise PackedDamaged(what, file=file, offset=behind)
        found = f"sha256:{hashlib.sha256(tail.behind()).hexdigest()}"
        if end_digest not in ("", found):
            what = "it is another packed file than the one that was noted: what stands behind its frames has another SHA-256"
            raise PackedDamaged(what, file=file, offset=behind)
        return cls(ended, frames, cipher, size, file, found)

    @property
    def plain_size(self) -> int:
        """The size of the binlog in bytes."""
        return self.frames.plain_size

    @property
    def key_id(self) -> str | None:
        """The id of the key that it is encrypted with; None: it is not."""
        return None if self._cipher is None else self._cipher.key_id

    def frame_at(self, plain_offset: int) -> Frame:
        """Return the frame with the binlog's byte at that offset. Raises: IndexError."""
        return self.frames[self.frames.index_at(plain_offset)]

    def stored_range(self, index: int) -> tuple[int, int]:
        """Return the range [start, stop) of a frame in the packed file."""
        frame = self.frames[index]
        return frame.stored_start, frame.stored_stop

    def decode(self, index: int, stored: bytes, *, from_own_disk: bool = False) -> bytes:
        """Return the binlog's bytes of a frame from its stored ones. It releases the interpreter meanwhile. Raises: PackedDamaged.

        from_own_disk: they were read where only the relay writes. There zstd's own checksum reveals damage; elsewhere a forged frame
        has a right one, too.
        """
        frame = self.frames[index]
        if len(stored) != frame.stored_size:
            what = f"frame {index} has {len(stored)} bytes, {frame.stored_size} were stored"
            raise PackedDamaged(what, file=self._file, offset=frame.stored_start)
        if self._cipher is not None:
            opened = self._cipher.decrypt_frame(index, stored)
            if opened is None:
                what = f"frame {index} is not what was encrypted there"
                raise PackedDamaged(what, file=self._file, offset=frame.stored_start)
            stored = opened
        elif (
            not from_own_disk
            and frame_digest(stored) != self._digests[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES]
        ):
            what = f"frame {index} is not what was packed there: its SHA-256 is another"
            raise PackedDamaged(what, file=self._file, offset=frame.stored_start)
        try:
            if (
                zstandard.frame_content_size(stored) != frame.plain_size
                or int.from_bytes(stored[-_CHECKSUM_BYTES:], "little") != frame.checksum
            ):
                raise zstandard.ZstdError("size or checksum is not the one in the table")
            # zstd compares the checksum with the bytes.
            plain: bytes = _decompressor().decompress(stored, allow_extra_data=False)
        except zstandard.ZstdError as error:
            what = f"frame {index} cannot be unpacked: {error}"
            raise PackedDamaged(what, file=self._file, offset=frame.stored_start) from None
        if len(plain) != frame.plain_size:
            what = f"frame {index} has {len(plain)} bytes unpacked, {frame.plain_size} were packed"
            raise PackedDamaged(what, file=self._file, offset=frame.stored_start)
        return plain


class _Tail:
    """The end of a packed file, taken apart from its last byte on."""

    def __init__(self, source: ByteSource, size: int, file: str) -> None:
        self._source = source
        self._file = file
        self._start = max(0, size - TAIL_READ)
        self._data = self._read(self._start, size - self._start)
        self.begin = size
        """The offset at which the taken bytes begin."""

    def last(self, count: int, more: int = _MORE_READ) -> bytes:
        """Return the `count` bytes before `begin`. more: so many before them are wanted next. Raises: PackedDamaged."""
        start = self.begin - count
        if start < 0:
            raise PackedDamaged("it is shorter than its end says", file=self._file, offset=0)
        if self._start + len(self._data) - start > MOST_END_BYTES:
            what = f"what should stand behind its frames has over {MOST_END_BYTES >> 20} MiB by its end"
            raise PackedDamaged(what, file=self._file, offset=start)
        if start < self._start:
            from_here = max(0, start - more)
            self._data = self._read(from_here, self._start - from_here) + self._data
            self._start = from_here
        return self._data[start - self._start : self.begin - self._start]

    def take(self, count: int, more: int = _MORE_READ) -> bytes:
        """Return the bytes of `last`, and step over them."""
        found = self.last(count, more)
        self.begin -= count
        return found

    def behind(self) -> bytes:
        """Return all from `begin` on."""
        return self._data[self.begin - self._start :]

    def _read(self, offset: int, count: int) -> bytes:
        data = read_exactly(self._source, offset, count)
        if len(data) != count:
            what = f"{len(data)} bytes came where {count} should be"
            raise PackedDamaged(what, file=self._file, offset=offset + len(data))
        return data


class _PackedEnd(NamedTuple):
    """The parts that follow the frames. digests: of each frame, one after the other; empty: they are encrypted."""

    facts: PackedFacts
    entries: list[tuple[int, int, int]]
    digests: bytes


def _open_plain(tail: _Tail, file: str) -> _PackedEnd:
    try:
        size = seek_table_size(tail.last(FOOTER_SIZE))
        # The facts are before the table, and before them the digests, which are no more than twice its size.
        entries = decode_seek_table(tail.take(size, _MORE_READ + 2 * size))
        if not entries or entries[-1][1]:
            raise PackedUnknown("it is a zstd file that binlog-relay did not make", file=file)
        facts = PackedFacts.decode(skippable_payload(tail.take(entries.pop()[0]), FACTS_MAGIC))
        if not entries or entries[-1][1]:
            raise ValueError("it has no digests of its frames")
        digests = skippable_payload(tail.take(entries.pop()[0]), DIGESTS_MAGIC)
        if len(digests) != len(entries) * DIGEST_BYTES:
            raise ValueError("it has not one digest for each of its frames")
    except OtherFormat as error:
        raise PackedUnknown(error.what, file=file, advice=error.advice) from None
    except ValueError as error:
        raise PackedDamaged(str(error), file=file, offset=tail.begin) from None
    return _PackedEnd(facts, entries, digests)


def _open_encrypted(tail: _Tail, file: str, keys: KeyRing | None) -> tuple[_PackedEnd, FileCipher, int]:
    head_size, table_size = split_tail(tail.last(TAIL_SIZE), tail.begin, file)
    tail.take(TAIL_SIZE)
    cipher = FileCipher.of_head(tail.take(head_size), keys, file)
    opened = cipher.decrypt_table(tail.take(table_size))
    if opened is None:
        raise PackedDamaged("its frame table is not what was encrypted", file=file, offset=tail.begin)
    size = int.from_bytes(opened[:SKIPPABLE_HEAD], "little")
    try:
        facts = PackedFacts.decode(opened[SKIPPABLE_HEAD : SKIPPABLE_HEAD + size])
        entries = decode_seek_table(opened[SKIPPABLE_HEAD + size :])
    except OtherFormat as error:
        raise PackedUnknown(error.what, file=file, advice=error.advice) from None
    except ValueError as error:
        raise PackedDamaged(str(error), file=file, offset=tail.begin) from None
    if any(stored <= TAG_BYTES for stored, _plain, _sum in entries):
        raise PackedDamaged("its frame table has a frame that cannot be", file=file, offset=tail.begin)
    return _PackedEnd(facts, entries, b""), cipher, head_size_on_disk(head_size)


def _decompressor() -> zstandard.ZstdDecompressor:
    # One must not be used by two threads at once; creating one for each frame costs as much as a small frame.
    found: zstandard.ZstdDecompressor | None = getattr(_of_thread, "decompressor", None)
    if found is None:
        found = _of_thread.decompressor = zstandard.ZstdDecompressor()
    return found
