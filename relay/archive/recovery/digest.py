"""Digests of sealed files, computed by one thread that yields to everything else."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from protocol.binlog.layout import FIRST_EVENT
from protocol.kernel.crc import crc32
from protocol.kernel.event_check import EventCheck
from relay.archive.read.checked_bytes import damaged
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer, StoredFile
from relay.archive.sums.block_check import block_damage, check_blocks
from relay.archive.sums.sum_files import are_complete, store_sums
from relay.binlog_file.file_bytes import pieces
from relay.process.background import tell_fault
from relay.process.slow_thread import take_least_priority

_MAKING_RATE: Final = 64 << 20
"""The bytes a second that are read to compute sums for files that have none."""


class FileDigest:
    """The digest of bytes that come piece by piece. `size`: how many came."""

    def __init__(self) -> None:
        self.size = 0
        self._value = 0

    def take(self, piece: memoryview) -> None:
        """Add the next bytes of the file."""
        self._value = crc32(piece, 0, len(piece), self._value)
        self.size += len(piece)

    @property
    def text(self) -> str:
        """The digest of all bytes so far, as `crc32:%08x`."""
        return f"crc32:{self._value:08x}"


def checked_digest(layer: FileLayer, path: Path, file: ArchivedFile, stop: Callable[[], bool]) -> str | None:
    """Return the `file_digest` of bytes that are what was archived as far as their own checksums tell: a digest of changed bytes
    would call them right ever after. Raises: ArchiveDamaged; as `file_digest`."""
    check = EventCheck()
    check.begin(FIRST_EVENT, file.checksum)
    digest = FileDigest()
    left = b""
    with StoredFile.open(layer, path) as stored:
        digest.take(memoryview(stored.read(0, FIRST_EVENT)))
        for piece in pieces(stored, FIRST_EVENT, file.end):
            if stop():
                return None
            digest.take(piece)
            data = left + bytes(piece) if left else piece
            begin = check.position
            if check.look(data, 0, len(data)):
                raise damaged(file.name, check, check.whole_to)
            left = bytes(data[check.position - begin :])
    if digest.size < file.end:
        raise EOFError(f"{path.name} ends at {digest.size}, not at {file.end}")
    if check.sound_to != file.end:
        raise damaged(file.name, check, check.whole_to)
    return digest.text


def file_digest(layer: FileLayer, path: Path, end: int, stop: Callable[[], bool] = lambda: False) -> str | None:
    """Return `crc32:%08x` of the file's first `end` bytes; None if `stop()` came true first. Raises: OSError, EOFError."""
    digest = FileDigest()
    with StoredFile.open(layer, path) as stored:
        for piece in pieces(stored, 0, end):
            if stop():
                return None
            digest.take(piece)
    if digest.size < end:
        raise EOFError(f"{path.name} ends at {digest.size}, not at {end}")
    return digest.text


class _Sealed(NamedTuple):
    path: Path
    file: ArchivedFile
    is_lacking: bool
    """True if a sum was found to be damaged, whatever the sizes of the two files say."""


class DigestThread:
    """Takes files one by one; reports (name, digest) or (name, error), both in its own thread.

    Blocks of files without checksums are compared on the way, and their missing sums are created if the digest agrees; an
    ArchiveDamaged is reported if they are not what was received.
    """

    def __init__(
        self,
        layer: FileLayer,
        on_digest: Callable[[str, str], None],
        on_error: Callable[[str, Exception], None],
    ) -> None:
        self._layer = layer
        self._on_digest = on_digest
        self._on_error = on_error
        self._queue: SimpleQueue[_Sealed | None] = SimpleQueue()
        self._stopping = False
        self._thread = threading.Thread(target=self._main, name="archive-digest", daemon=True)

    def start(self) -> None:
        """Start the thread; call once."""
        self._thread.start()

    def add(self, path: Path, file: ArchivedFile, *, sums_lack: bool = False) -> None:
        """Queue a sealed file. sums_lack: some of its sums were found to be damaged. Any thread."""
        self._queue.put(_Sealed(path, file, sums_lack))

    def stop(self) -> None:
        """End the thread within one read. The files that are left get their digest after the next open."""
        self._stopping = True
        self._queue.put(None)
        self._thread.join()

    def _main(self) -> None:
        take_least_priority()
        while (item := self._queue.get()) is not None:
            try:
                digest = self._look(item)
            except Exception as error:
                if not isinstance(error, OSError | EOFError | ArchiveDamaged):
                    tell_fault("digest_failed", error, file=item.path.name)
                self._on_error(item.path.name, error)
                continue
            if digest is None:
                return
            if digest != item.file.digest:
                self._on_digest(item.path.name, digest)

    def _look(self, item: _Sealed) -> str | None:
        """Return the digest; None: stopped. Raises: ArchiveDamaged; OSError; EOFError."""
        file, path = item.file, item.path
        if file.checksum:
            return checked_digest(self._layer, path, file, lambda: self._stopping)
        if not item.is_lacking and file.digest is not None and are_complete(self._layer, path, file.end):
            return file.digest
        digest = FileDigest()

        def take(piece: memoryview) -> None:
            digest.take(piece)
            if file.digest is not None:  # of an older archive: all of its files may be waiting for this
                time.sleep(len(piece) / _MAKING_RATE)

        found = check_blocks(self._layer, path, file.end, on_bytes=take, stop=lambda: self._stopping)
        if found is None:
            return None
        if found.differing:
            raise block_damage(self._layer, path, found.differing[0])
        if found.lacking and file.digest is not None and digest.text != file.digest:
            what = f"its digest is {digest.text}; {file.digest} was noted when it was sealed"
            raise ArchiveDamaged(what, file=path.name, offset=FIRST_EVENT, boundary=FIRST_EVENT)
        store_sums(self._layer, path, found.sums)
        return digest.text
