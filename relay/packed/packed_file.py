"""The frame table of a packed binlog, and its frames as plain bytes.

    NAME.zst       frames | a skippable frame with the binlog's facts | the seek table of zstd's seekable format
    NAME.zst.enc   as `relay.packed.encryption` says

Stock `zstd -d NAME.zst` gives the binlog.
"""

import threading
from typing import Final

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
from relay.packed.packed_facts import NewerFormat, PackedFacts

FACTS_MAGIC: Final = 0x184D2A5D
TAIL_READ: Final = 64 << 10
"""So much of the end is read at once: the table of a GiB in frames of 512 KiB and its facts are 25 KiB."""
_MORE_READ: Final = 8 << 10
_CHECKSUM_BYTES: Final = 4

_of_thread = threading.local()


class PackedFile:
    """What is known of a packed file without its frames. Made by `open`. Thread-safe, and bound to no source."""

    def __init__(
        self, facts: PackedFacts, frames: FrameTable, cipher: FileCipher | None, stored_size: int, file: str
    ) -> None:
        self.facts = facts
        self.frames = frames
        self.stored_size = stored_size
        """Bytes of the packed file."""
        self._cipher = cipher
        self._file = file

    @classmethod
    def open(
        cls, source: ByteSource, file: str, keys: KeyRing | None = None, *, must_be_encrypted: bool = False
    ) -> "PackedFile":
        """Reads the end of `source`, mostly at once. `file`: the binlog that should be in it. must_be_encrypted: an encrypted one was
        stored; without a key anybody can make one that is not.

        Blocking. Raises: PackedDamaged, PackedUnknown, KeyMissing, KeyWrong; what `source` raises.
        """
        size = source.size
        if size < TAIL_SIZE:
            raise PackedDamaged(f"it has {size} bytes only", file=file, offset=0)
        tail = _Tail(source, size, file)
        if tail.last(len(TAIL_MAGIC))[:-1] == TAIL_MAGIC[:-1]:
            facts, entries, cipher, start = _open_encrypted(tail, file, keys)
            behind = tail.begin
        elif must_be_encrypted:
            what = "it is not encrypted, and what was stored there was: somebody put another file in its place"
            raise PackedDamaged(what, file=file, offset=0)
        else:
            facts, entries = _open_plain(tail, file)
            cipher, start, behind = None, 0, tail.begin
        frames = FrameTable(entries, start)
        if frames.stored_stop != behind:
            what = f"its frames end at {frames.stored_stop} by its table, and at {behind} by its size"
            raise PackedDamaged(what, file=file, offset=min(frames.stored_stop, behind))
        if frames.plain_size != facts.plain_size:
            what = f"its table tells of {frames.plain_size} bytes, its facts of {facts.plain_size}"
            raise PackedDamaged(what, file=file, offset=behind)
        if facts.file != file:
            raise PackedDamaged(f"the binlog in it is {facts.file}", file=file, offset=behind)
        return cls(facts, frames, cipher, size, file)

    @property
    def plain_size(self) -> int:
        """Bytes of the binlog."""
        return self.frames.plain_size

    @property
    def key_id(self) -> str | None:
        """Of the key that it is encrypted with; None: it is not."""
        return None if self._cipher is None else self._cipher.key_id

    def frame_at(self, plain_offset: int) -> Frame:
        """The frame with the binlog's byte at that offset. Raises: IndexError."""
        return self.frames[self.frames.index_at(plain_offset)]

    def stored_range(self, index: int) -> tuple[int, int]:
        """[start, stop) of a frame in the packed file."""
        frame = self.frames[index]
        return frame.stored_start, frame.stored_stop

    def decode(self, index: int, stored: bytes) -> bytes:
        """The binlog's bytes of a frame from its stored ones. Gives the interpreter up meanwhile. Raises: PackedDamaged."""
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
    """The end of a packed file, taken apart from behind."""

    def __init__(self, source: ByteSource, size: int, file: str) -> None:
        self._source = source
        self._file = file
        self._start = max(0, size - TAIL_READ)
        self._data = self._read(self._start, size - self._start)
        self.begin = size
        """Where what was taken begins."""

    def last(self, count: int) -> bytes:
        """The `count` bytes before `begin`. Raises: PackedDamaged."""
        start = self.begin - count
        if start < 0:
            raise PackedDamaged("it is shorter than its end says", file=self._file, offset=0)
        if start < self._start:
            # A little more than asked for: the facts are before the table.
            from_here = max(0, start - _MORE_READ)
            self._data = self._read(from_here, self._start - from_here) + self._data
            self._start = from_here
        return self._data[start - self._start : self.begin - self._start]

    def take(self, count: int) -> bytes:
        """As `last`, and steps over them."""
        found = self.last(count)
        self.begin -= count
        return found

    def _read(self, offset: int, count: int) -> bytes:
        data = read_exactly(self._source, offset, count)
        if len(data) != count:
            what = f"{len(data)} bytes came where {count} should be"
            raise PackedDamaged(what, file=self._file, offset=offset + len(data))
        return data


def _open_plain(tail: _Tail, file: str) -> tuple[PackedFacts, list[tuple[int, int, int]]]:
    try:
        entries = decode_seek_table(tail.take(seek_table_size(tail.last(FOOTER_SIZE))))
        if not entries or entries[-1][1]:
            raise PackedUnknown("it is a zstd file that binlog-relay did not make", file=file)
        facts = PackedFacts.decode(skippable_payload(tail.take(entries.pop()[0]), FACTS_MAGIC))
    except NewerFormat as error:
        raise PackedUnknown(str(error), file=file, advice="Start the newer binlog-relay.") from None
    except ValueError as error:
        raise PackedDamaged(str(error), file=file, offset=tail.begin) from None
    return facts, entries


def _open_encrypted(
    tail: _Tail, file: str, keys: KeyRing | None
) -> tuple[PackedFacts, list[tuple[int, int, int]], FileCipher, int]:
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
    except NewerFormat as error:
        raise PackedUnknown(str(error), file=file, advice="Start the newer binlog-relay.") from None
    except ValueError as error:
        raise PackedDamaged(str(error), file=file, offset=tail.begin) from None
    if any(stored <= TAG_BYTES for stored, _plain, _sum in entries):
        raise PackedDamaged("its frame table has a frame that cannot be", file=file, offset=tail.begin)
    return facts, entries, cipher, head_size_on_disk(head_size)


def _decompressor() -> zstandard.ZstdDecompressor:
    # One must not be used by two threads at once; to make one for each frame costs as much as a small frame.
    found: zstandard.ZstdDecompressor | None = getattr(_of_thread, "decompressor", None)
    if found is None:
        found = _of_thread.decompressor = zstandard.ZstdDecompressor()
    return found
