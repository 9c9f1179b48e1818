"""The beginning of a view's file is recomputed here where its map does not say it: the files before it are rebuilt in memory.

A view is a cache. Its maps may be lost, cut or damaged, one or all of them: their content follows from the source's binlogs, starting
at the nearest file before whose map still has a record, or at the beginning of the view.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from protocol.position import binlog_number
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.generation import Generation
from relay.archive.storage.files import FileLayer
from relay.schema_history.initial_snapshot import InitialSnapshot
from relay.view.generations.view_generations import begun_with
from relay.view.rules.older_tables import TablesBefore
from relay.view.rules.settings import ViewSettings
from relay.view.stops.view_stop import ViewStopped
from relay.view.translation import BUFFER_BYTES, FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_disk import own_file
from relay.view.view_map import MapWriter, ViewMap
from relay.view.view_rules import rules_of


class SourceBinlog(Protocol):
    """An open binlog of the source."""

    @property
    def size(self) -> int:
        """Its size in bytes. Raises: OSError."""

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read at `offset`; return the number of bytes read, 0 only at the end. Raises: OSError; ArchiveDamaged."""

    def close(self) -> None:
        """Close the file."""


class ViewedFile(NamedTuple):
    """A file of a view. `path` is the view's file. `open_source` opens the source's; it returns None if that is purged. `is_cut`: the
    source's file may end inside a transaction. `skips` is as for `FileTranslation`. `before` knows tables from before the archive."""

    path: Path
    open_source: Callable[[], SourceBinlog | None]
    is_cut: bool
    skips: Mapping[int, int]
    before: TablesBefore | None = None


class FileBeginning:
    """Finds the beginning of the last of `files`, those of one generation of a view, without holes, oldest first. Blocking.

    `begun` is the beginning of the first one of these, if that is known. `own_gtids` is as for `FileTranslation`. `layer` rewrites lost
    maps, and a disk error at a file of the view is ViewDiskFailed; None: they are not rewritten, and it is OSError.
    """

    def __init__(
        self,
        files: Sequence[ViewedFile],
        settings: ViewSettings,
        begun: ViewCheckpoint | None,
        *,
        own_gtids: bool,
        layer: FileLayer | None = None,
    ) -> None:
        self._files = files
        self._settings = settings
        self._own_gtids = own_gtids
        self._layer = layer
        self._begun = begun
        self._index = len(files) - 1
        with self._own(files[-1]):
            self._at = ViewMap.read(files[-1].path).beginning()
        self.found: ViewCheckpoint | None = None
        """The beginning that was found; None: it cannot be found."""

    def step(self) -> bool:
        """Read a map or rebuild a file; return whether that was all. Raises: ViewDiskFailed; for the source OSError, ArchiveDamaged."""
        last = len(self._files) - 1
        if self._at is not None:
            if self._index == last:
                self.found = self._at
                return True
            self._at = self._behind(self._files[self._index], self._at)
            self._index += 1
            return self._at is None
        if self._index == 0:
            self._at = self._begun
            return self._at is None
        self._index -= 1
        file = self._files[self._index]
        with self._own(file):
            self._at = ViewMap.read(file.path).last()
        return False

    def _own(self, file: ViewedFile, *, is_written: bool = False) -> AbstractContextManager[None]:
        return own_file(file.path, self._layer, is_written=is_written) if self._layer is not None else nullcontext()

    def _behind(self, file: ViewedFile, begin: ViewCheckpoint) -> ViewCheckpoint | None:
        """Return where the file that follows begins; None: this one cannot be rebuilt any more."""
        source = file.open_source()
        if source is None:
            return None
        writer: MapWriter | None = None
        try:
            if self._layer is not None:
                with self._own(file, is_written=True):
                    writer = MapWriter(self._layer, file.path, begin)
            translation = FileTranslation(
                file.path.name,
                source.read_into,
                self._settings,
                rules_of(self._settings, file.before),
                begin,
                file.skips,
                own_gtids=self._own_gtids,
            )
            out, end = bytearray(BUFFER_BYTES), source.size
            while not translation.done:
                if not translation.fill(out, 0, end, sealed=True, ends_cut=file.is_cut) and not translation.done:
                    return None  # The source's file ends before the place at which the view's file was begun.
                if writer is not None and self._settings.dependencies == "serial":
                    with self._own(file, is_written=True):
                        writer.add(translation.marks)
                translation.marks.clear()
        except ViewStopped:
            return None
        finally:
            source.close()
            if writer is not None:
                writer.close()
        return translation.checkpoint().next_file()


def beginning_of(search: FileBeginning) -> ViewCheckpoint | None:
    """Do all steps at once."""
    while not search.step():
        pass
    return search.found


def made_beginning(
    made: Generation,
    name: str,
    source: Generation,
    settings: ViewSettings,
    skips: Mapping[tuple[int, str], Mapping[int, int]],
    layer: FileLayer,
) -> FileBeginning:
    """Return the search for the beginning of file `name` of `made`, a view's generation built from the archive's `source`. Blocking.

    Raises: ViewDiskFailed.
    """
    files = [file for file in made.files if file.number <= binlog_number(name)]
    with own_file(made.directory, layer):
        begun = begun_checkpoint(made.directory, files[0].name)
    before = InitialSnapshot(source.directory)
    return FileBeginning(
        [
            ViewedFile(
                made.directory / file.name,
                partial(_opened, source, file.name),
                _is_cut(source, file.name),
                skips.get((source.number, file.name), {}),
                before,
            )
            for file in files
        ],
        settings,
        begun,
        own_gtids=made.number != FIRST,
        layer=layer,
    )


def _opened(source: Generation, name: str) -> SourceBinlog | None:
    file = source.file(name)
    return None if file is None else source.open_shared(file)


def _is_cut(source: Generation, name: str) -> bool:
    file = source.file(name)
    return file is not None and file.cut


def begun_checkpoint(directory: Path, first: str) -> ViewCheckpoint | None:
    """Return where the file `first` of a view's generation in `directory` begins, if that began with it. Blocking. Raises: OSError."""
    begun = begun_with(directory)
    if begun is None or begun.position.file != first:
        return None
    return ViewCheckpoint.of_file(begun.next_gno, begun.known, begun.position.offset)
