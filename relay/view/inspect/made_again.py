"""A view that is rebuilt in memory, from the archive and its settings alone."""

from collections.abc import Iterator, Mapping, Sequence

from protocol.binlog.layout import MAGIC
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import StoredFile
from relay.archive_inspection.listing import read_ledgers
from relay.packed_reads.archive_layer import layer_of
from relay.schema_history.initial_snapshot import InitialSnapshot
from relay.view.dependencies.tables_file import read_tables
from relay.view.generations.view_generations import MadeGeneration, begun_with
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.view_comparison import MadePiece
from relay.view.inspect.view_listing import files_of
from relay.view.rules.settings import ViewSettings
from relay.view.stops.view_stop import ViewStopped
from relay.view.translation import BUFFER_BYTES, FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_map import ViewMap
from relay.view.view_rules import rules_of
from relay.view.view_skips import Skips, skips_of


def made_again(view: NamedView, made: MadeGeneration) -> "ViewMadeAgain":
    """Return the rebuilding of one generation from the archive as it is now. Blocking. Raises: CatalogUnreadable; OSError."""
    # The order matters: a view that is being built gets no further than its source files, and uses only decisions made before.
    files = files_of(made.directory)
    skips = skips_of([row for _number, row in read_ledgers(view.archive)], view.name)
    directory = made.source_directory
    held = {file.name: file for file in files_of(directory)} if directory.is_dir() else {}
    return ViewMadeAgain(view.settings, made, files, held, skips)


class ViewMadeAgain:
    """Implements `MadeAgain`. Where the view is stopped, nothing more is built.

    `made` is the generation; `files` are its files; `held` are the source's files, by name, from which it is built.
    """

    def __init__(
        self,
        settings: ViewSettings,
        made: MadeGeneration,
        files: Sequence[ArchivedFile],
        held: Mapping[str, ArchivedFile],
        skips: Skips,
    ) -> None:
        self._settings = settings
        self._made = made
        self._skips = skips
        self._held = held
        self._buffer = bytearray(BUFFER_BYTES)
        self._before = InitialSnapshot(made.source_directory)
        self._tables = None if settings.dependencies == "serial" else read_tables(made.directory, settings.name)
        self.files = [file for file in files if file.name in held]
        """The files of the view that can be rebuilt. The archive may have purged the sources of others."""
        start = settings.start if made.number == FIRST else None
        begun = begun_with(made.directory)
        known = begun.known if begun is not None and made.number != FIRST else b""
        self._next = ViewCheckpoint.of_view(start)._replace(rules=known)
        if self.files and (
            self.files[0] is not files[0] or (begun is not None and begun.position.file != files[0].name)
        ):
            # The view's own note is used there: what came before cannot be determined any more, or cannot be compared.
            while self.files and (noted := ViewMap.read(made.directory / self.files[0].name).beginning()) is None:
                del self.files[0]
            self._next = noted or self._next
        self.left = len(files) - len(self.files)
        """The number of `files` that cannot be rebuilt."""

    def pieces(self, file: str) -> Iterator[MadePiece]:
        """Yield all bytes of this one of `files`. Raises: ArchiveDamaged; OSError."""
        mirrored = self._held[file]
        yield MadePiece(0, MAGIC)
        directory = self._made.source_directory
        source_file = StoredFile.open(layer_of(directory), directory / file)
        try:
            translation = FileTranslation(
                file,
                source_file.read_into,
                self._settings,
                rules_of(self._settings, self._before),
                self._next,
                self._skips.get((self._made.source_number, file), {}),
                own_gtids=self._made.number != FIRST,
            )
            translation.tables = self._tables
            while True:
                source = translation.offset
                try:
                    count = translation.fill(
                        self._buffer, 0, mirrored.end, sealed=mirrored.sealed, ends_cut=mirrored.cut
                    )
                except ViewStopped:
                    break
                translation.marks.clear()
                if not count:
                    break
                yield MadePiece(source, bytes(memoryview(self._buffer)[:count]))
            self._next = translation.checkpoint().next_file()
        finally:
            source_file.close()
