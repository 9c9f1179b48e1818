"""The packed copy of a binlog: written, synced, read back from the disk, compared."""

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from protocol.errors import RelayError
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.archive.storage.boundary_index import RECORD, IndexRecord
from relay.archive.storage.files import FileLayer, StoredFile, write_all
from relay.packed.byte_source import ByteSource
from relay.packed.frame_cuts import frame_cuts
from relay.packed.key_ring import KeyRing
from relay.packed.packed_content import packed_content
from relay.packed.packed_errors import PackedError
from relay.packed.packed_facts import OF_NOBODY, OfArchive
from relay.packed.packing import PackOptions, pack

_DISK: Final = "Look at the disk."


class CopyFailed(RelayError):
    """A binlog was not copied or moved: it is where it was. `what`: half a sentence.

    of_binlog: it is not what was archived, or cannot be read; else the copy alone is at fault. damage: the damage of the file on the
    disk; None: unknown.
    """

    def __init__(
        self, what: str, advice: str = "", *, of_binlog: bool = True, damage: ArchiveDamaged | None = None
    ) -> None:
        super().__init__(what, advice)
        self.of_binlog = of_binlog
        self.damage = damage


class CopyStopped(RelayError):
    """The copy was not wanted any more."""


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """The bytes from `start` to `end` of a binlog, as the packed file `file`. digest: `crc32:…` of them, if it is known. pauses_s:
    the longest time in which a process that packs pauses while the relay is busy; None: to the end. of: the archive that it is packed
    for."""

    file: str
    end: int
    digest: str | None
    options: PackOptions
    pauses_s: float | None = None
    start: int = 0
    of: OfArchive = OF_NOBODY


@dataclass(frozen=True, slots=True)
class CopyFiles:
    """Descriptors: the binlog, NAME.idx or -1 if there is none, and the new file, for reading and writing."""

    plain: int
    index: int
    packed: int


@dataclass(frozen=True, slots=True)
class PackedCopy:
    """plain_digest: `crc32:…` of the binlog; packed_digest, end_digest: `sha256:…` of the packed file, and of its end.

    paused_s: for how long it paused for others.
    """

    plain_digest: str
    packed_digest: str
    stored_bytes: int
    end_digest: str = ""
    paused_s: float = 0.0


def write_copy(
    layer: FileLayer, files: CopyFiles, order: CopyOrder, keys: KeyRing | None, stop: Callable[[], bool]
) -> PackedCopy:
    """Write the copy. stop: called between two frames. Blocking. Raises: CopyFailed, CopyStopped, OSError."""
    copy = _write(layer, files, order, keys, stop)
    if order.digest is not None and copy.plain_digest != order.digest:
        what = f"its digest is {copy.plain_digest}; {order.digest} was noted when it was sealed"
        raise CopyFailed(what, "Run `archive verify --deep`.")
    layer.sync_data(files.packed)
    # The copy is read back from the disk, not from what was just written to memory.
    with contextlib.suppress(OSError, AttributeError):
        os.posix_fadvise(files.packed, 0, 0, os.POSIX_FADV_DONTNEED)
    return replace(copy, end_digest=_read_back(layer, files.packed, order.file, keys, copy, stop))


def _write(
    layer: FileLayer, files: CopyFiles, order: CopyOrder, keys: KeyRing | None, stop: Callable[[], bool]
) -> PackedCopy:
    cuts = frame_cuts(_places(layer, files.index), order.end - order.start, order.options.frame_bytes)
    sha, size = hashlib.sha256(), 0

    def sink(piece: bytes) -> None:
        nonlocal size
        write_all(layer, files.packed, [piece], size, len(piece))
        sha.update(piece)
        size += len(piece)

    source = _ReadableFrom(StoredFile(layer, files.plain), order.start)
    try:
        facts = pack(source, sink, order.file, cuts, order.options, keys=keys, stop=stop, of=order.of)
    except EOFError as error:
        raise CopyFailed(str(error), "Run `archive verify`.") from error
    if facts is None:
        raise CopyStopped
    return PackedCopy(facts.digest, f"sha256:{sha.hexdigest()}", size)


class _ReadableFrom:
    """A binlog from `start` on, whose bytes the disk may refuse: that is a fault of this file, and not of the written one."""

    def __init__(self, source: ByteSource, start: int) -> None:
        self._source = source
        self._start = start

    @property
    def size(self) -> int:
        return self._source.size - self._start

    def read(self, offset: int, count: int) -> bytes:
        try:
            return self._source.read(self._start + offset, count)
        except OSError as error:
            what = f"the disk does not give its bytes behind {self._start + offset}: {error.strerror or error}"
            raise CopyFailed(what, "Run `archive verify --deep`, then `archive repair`.") from error


def _places(layer: FileLayer, index: int) -> list[tuple[int, bool]]:
    """Return the starts of events, from NAME.idx; without one, frames end anywhere."""
    if index < 0:
        return []
    data = StoredFile(layer, index).read_all()
    whole = data[: len(data) // RECORD.size * RECORD.size]
    records = (IndexRecord(*raw) for raw in RECORD.iter_unpack(whole))
    return [(record.offset, record.at_boundary) for record in records if record.plausible]


def _read_back(
    layer: FileLayer, fd: int, file: str, keys: KeyRing | None, copy: PackedCopy, stop: Callable[[], bool]
) -> str:
    """Return the digest of its end."""

    def begins(_offset: int) -> None:
        if stop():
            raise CopyStopped

    must = keys is not None and keys.active is not None
    try:
        found = packed_content(StoredFile(layer, fd), file, keys, begins=begins, must_be_encrypted=must)
    except PackedError as error:
        raise CopyFailed(f"what was packed cannot be read back: {error.text}", _DISK, of_binlog=False) from error
    if found is None or (found.digest, found.stored_digest) != (copy.plain_digest, copy.packed_digest):
        raise CopyFailed("what was packed is read back as other bytes", _DISK, of_binlog=False)
    return found.end_digest
