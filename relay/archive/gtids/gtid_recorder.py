"""NAME.gtx and the GTID facts of one archived file, while it is written and when it is read again.

NAME.gtx is derived from the file's bytes alone, so a part of it that may be torn is simply rebuilt: of an index that is continued,
only those blocks are believed that end where the file is known to be on stable storage.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.gtid.block_index import BlockIndex, BlockIndexWriter, last_start
from protocol.gtid.file_gtids import FileGtidCollector, IndexBlock
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import GTX_SUFFIX, Buffer, FileLayer, StoredFile, replace_file, write_all
from relay.archive.storage.gtid_facts import GtidFacts, GtidNews, GtidValue
from relay.binlog_file.file_bytes import pieces
from relay.binlog_file.gtids_before import gtids_before

_SMALL_BYTES: Final = 16 << 10


def gtx_path(path: Path) -> Path:
    """Return the path of NAME.gtx for NAME."""
    return path.with_name(path.name + GTX_SUFFIX)


class GtidRecorder:
    """Follows the file that grows. For the writer thread."""

    def __init__(
        self, layer: FileLayer, fd: int, size: int, collector: FileGtidCollector, index: BlockIndexWriter
    ) -> None:
        self._layer = layer
        self._fd = fd
        self._size = size
        self._collector = collector
        self._index = index
        self._synced_size = -1
        self._reported_serial = collector.transactions
        self._head_reported = collector.head_complete
        self.problem: str | None = None
        """The reason why the file's GTIDs cannot be read; nothing is recorded from then on."""

    @classmethod
    def create(cls, layer: FileLayer, path: Path, file: ArchivedFile) -> "GtidRecorder":
        """Create one for a new file. Raises: OSError."""
        collector = FileGtidCollector(file.flavour, checksum=file.checksum == 1)
        return cls(layer, layer.create(gtx_path(path)), 0, collector, BlockIndexWriter())

    @classmethod
    def resume(cls, layer: FileLayer, path: Path, file: ArchivedFile) -> "GtidRecorder":
        """Create one for a file that recovery has left whole up to `file.end`. Raises: OSError."""
        try:
            collector, blocks = collect(layer, path, file, file.end)
            collector.before  # noqa: B018 - a head that cannot be read is reported here, not at the end of the file
        except Malformed as error:
            recorder = cls.create(layer, path, file)
            recorder.problem = str(error)
            return recorder
        index = BlockIndexWriter()
        data = b"".join(map(index.encode, blocks))
        fd = layer.create(gtx_path(path))
        write_all(layer, fd, [data], 0, len(data))
        return cls(layer, fd, len(data), collector, index)

    def take(self, batch: Sequence[Buffer]) -> GtidNews | None:
        """Take the next bytes of the file, and note in NAME.gtx what ended; None: nothing new, also if the file's GTIDs could not be
        read before. Raises: OSError."""
        if self.problem is not None:
            return None
        collector = self._collector
        try:
            # Each call releases the interpreter and must get it back, which costs more than copying small buffers.
            if len(batch) > 1 and sum(map(len, batch)) <= len(batch) * _SMALL_BYTES:
                batch = (b"".join(batch),)
            for data in batch:
                collector.take(data)
            head = None
            if not self._head_reported and collector.head_complete:
                head = collector.before
                self._head_reported = True
        except Malformed as error:
            self.problem = str(error)
            return GtidNews(None, (), collector.anonymous, readable=False)
        ended = collector.take_blocks()
        if ended:
            self._write(ended)
        if collector.transactions == self._reported_serial and head is None:
            return None
        opened = collector.open_block()
        if opened is not None:
            ended.append(opened)
        reported = self._reported_serial
        self._synced_size = -1
        self._reported_serial = collector.transactions
        runs = tuple(run for block in ended for run in block.runs if run.serial > reported)
        return GtidNews(head, runs, collector.anonymous)

    def _write(self, blocks: list[IndexBlock]) -> None:
        data = b"".join(map(self._index.encode, blocks))
        if data:
            write_all(self._layer, self._fd, [data], self._size, len(data))
            self._size += len(data)

    def cut_back(self, boundary: int) -> None:
        """Take back the bytes after this end of a transaction."""
        self._collector.begin(boundary)

    def sync(self) -> None:
        """Put what was recorded on stable storage before returning. Not only for the writer thread. Raises: OSError."""
        size = self._size
        if size != self._synced_size:
            self._layer.sync_data(self._fd)
            self._synced_size = size

    def finish(self) -> None:
        """End the file here, for ever or until the relay starts again. Raises: OSError."""
        if self.problem is None:
            self._collector.finish()
            self._write(self._collector.take_blocks())

    def close(self) -> None:
        """Close NAME.gtx."""
        self._layer.close(self._fd)

    @property
    def before(self) -> GtidValue | None:
        """The state that the file's head names."""
        return self._collector.before if self._head_reported and self.problem is None else None

    @property
    def facts(self) -> GtidFacts:
        """All GTID facts of the file so far."""
        if self.problem is not None:
            return GtidFacts(None, None, self._collector.anonymous)
        return GtidFacts(self.before, self._collector.inside(), self._collector.anonymous)


def collect(
    layer: FileLayer,
    path: Path,
    file: ArchivedFile,
    trusted: int,
    on_progress: Callable[[int], None] | None = None,
) -> tuple[FileGtidCollector, list[IndexBlock]]:
    """Read `file` up to `file.end` as far as NAME.gtx does not cover it: its blocks up to offset `trusted` are used.

    Return a collector that has all of the file, and the blocks that ended. Raises: Malformed; OSError.
    """
    blocks = _known_blocks(layer, path, trusted) if trusted > FIRST_EVENT else []
    with StoredFile.open(layer, path) as stored:
        collector = FileGtidCollector(file.flavour, checksum=file.checksum == 1)
        at = FIRST_EVENT
        if blocks:
            before = gtids_before(stored, file.flavour, checksum=file.checksum == 1, stop=file.end)
            collector.go_on(before, blocks)
            at = blocks[-1].stop
        for data in pieces(stored, at, file.end):
            collector.take(data)
            if on_progress is not None:
                on_progress(len(data))
    return collector, [*blocks, *collector.take_blocks()]


def recover_gtids(
    layer: FileLayer,
    path: Path,
    file: ArchivedFile,
    trusted: int,
    on_progress: Callable[[int], None] | None = None,
) -> GtidFacts:
    """Complete NAME.gtx, as `collect` does; return the facts of the file up to `file.end`. Raises: Malformed; OSError."""
    collector, blocks = collect(layer, path, file, trusted, on_progress)
    if file.sealed:
        collector.finish()
        blocks.extend(collector.take_blocks())
    index = BlockIndexWriter()
    replace_file(layer, gtx_path(path), b"".join(map(index.encode, blocks)))
    return GtidFacts(collector.before, collector.inside(), collector.anonymous)


def read_index(layer: FileLayer, path: Path, *, torn: bool = False) -> BlockIndex | None:
    """Return NAME.gtx of the file at `path`, or None if there is none. torn: as for `BlockIndex`. Raises: Malformed; OSError."""
    try:
        with StoredFile.open(layer, gtx_path(path)) as stored:
            return BlockIndex(stored.read_all(), torn=torn)
    except FileNotFoundError:
        return None


def read_last_start(layer: FileLayer, path: Path) -> int | None:
    """Return where the last block of a complete file starts, by the end of its NAME.gtx; None: unknown.

    Raises: OSError.
    """
    try:
        with StoredFile.open(layer, gtx_path(path)) as stored:
            return last_start(stored.read_all())
    except FileNotFoundError:
        return None


def _known_blocks(layer: FileLayer, path: Path, trusted: int) -> list[IndexBlock]:
    """Return the blocks that end up to `trusted`, as far as NAME.gtx is sound."""
    index = read_index(layer, path, torn=True)
    return list(takewhile(lambda block: block.stop <= trusted, index or ()))
