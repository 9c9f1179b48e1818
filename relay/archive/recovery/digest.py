"""Digests of sealed files, computed by one thread that yields to everything else."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from protocol.kernel.crc import crc32
from relay.archive.storage.files import FileLayer, StoredFile
from relay.binlog_file.file_bytes import pieces
from relay.process.background import tell_fault


class FileDigest:
    """The digest of bytes that come piece by piece. `size`: how many came."""

    def __init__(self) -> None:
        self.size = 0
        self._value = 0

    def take(self, piece: memoryview) -> None:
        """The next bytes of the file."""
        self._value = crc32(piece, 0, len(piece), self._value)
        self.size += len(piece)

    @property
    def text(self) -> str:
        """`crc32:%08x` of all that came."""
        return f"crc32:{self._value:08x}"


def file_digest(layer: FileLayer, path: Path, end: int, stop: Callable[[], bool] = lambda: False) -> str | None:
    """`crc32:%08x` of the file's first `end` bytes; None if `stop()` came true first. Raises: OSError, EOFError."""
    digest = FileDigest()
    with StoredFile.open(layer, path) as stored:
        for piece in pieces(stored, 0, end):
            if stop():
                return None
            digest.take(piece)
    if digest.size < end:
        raise EOFError(f"{path.name} ends at {digest.size}, not at {end}")
    return digest.text


class DigestThread:
    """Takes files one by one; reports (name, digest) or (name, error), both in its own thread."""

    def __init__(
        self,
        layer: FileLayer,
        on_digest: Callable[[str, str], None],
        on_error: Callable[[str, Exception], None],
    ) -> None:
        self._layer = layer
        self._on_digest = on_digest
        self._on_error = on_error
        self._queue: SimpleQueue[tuple[Path, int] | None] = SimpleQueue()
        self._stopping = False
        self._thread = threading.Thread(target=self._main, name="archive-digest", daemon=True)

    def start(self) -> None:
        """Starts the thread; call once."""
        self._thread.start()

    def add(self, path: Path, end: int) -> None:
        """Queues a sealed file. Any thread."""
        self._queue.put((path, end))

    def stop(self) -> None:
        """Ends the thread within one read. Files left get their digest after the next open."""
        self._stopping = True
        self._queue.put(None)
        self._thread.join()

    def _main(self) -> None:
        # On Linux a priority belongs to the thread; elsewhere setting it would slow the whole process.
        if hasattr(os, "setpriority") and hasattr(os, "posix_fallocate"):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        while (item := self._queue.get()) is not None:
            path, end = item
            try:
                digest = file_digest(self._layer, path, end, lambda: self._stopping)
            except Exception as error:
                if not isinstance(error, OSError | EOFError):
                    tell_fault("digest_failed", error, file=path.name)
                self._on_error(path.name, error)
                continue
            if digest is None:
                return
            self._on_digest(path.name, digest)
