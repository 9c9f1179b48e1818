"""A view that is made once more, in memory, from the archive and its settings alone."""

import os
from collections.abc import Iterator, Mapping

from protocol.binlog.layout import MAGIC
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.inspect.listing import read_ledgers
from relay.archive.storage.archived_file import ArchivedFile
from relay.binlog_file.file_bytes import DescriptorBytes
from relay.view.generations.view_generations import MadeGeneration
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.view_comparison import MadePiece
from relay.view.inspect.view_listing import files_of
from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.translation import BUFFER_BYTES, FileTranslation, ViewStopped
from relay.view.view import Skips, skips_of
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_map import ViewMap
from relay.view.view_rules import rules_of


def made_again(view: NamedView, made: MadeGeneration) -> "ViewMadeAgain":
    """One generation of it, of the archive as it is now. Blocking. Raises: CatalogUnreadable; OSError."""
    skips = skips_of([row for _number, row in read_ledgers(view.archive)], view.name)
    directory = made.source_directory
    held = {file.name: file for file in files_of(directory)} if directory.is_dir() else {}
    return ViewMadeAgain(view.settings, made, held, skips)


class ViewMadeAgain:
    """See `MadeAgain`. Where the view stands stopped, nothing more is made.

    made: which generation of it; held: the source's files, by name, that it is made from.
    """

    def __init__(
        self, settings: ViewSettings, made: MadeGeneration, held: Mapping[str, ArchivedFile], skips: Skips
    ) -> None:
        self._settings = settings
        self._made = made
        self._skips = skips
        self._held = held
        self._buffer = bytearray(BUFFER_BYTES)
        files = files_of(made.directory)
        self.files = [file for file in files if file.name in held]
        """Of the view: those that can be made again. The archive may have purged what others were made from."""
        start = settings.start if made.number == FIRST else None
        self._next = ViewCheckpoint.of_file(start.next_gno if start is not None else FIRST_GNO, b"")
        if self.files and self.files[0] is not files[0]:
            # What the view itself noted there: of what came before nothing is left to find it out from.
            noted = ViewMap.read(made.directory / self.files[0].name)
            if len(noted):
                self._next = ViewCheckpoint.of_file(noted.record(0).next_gno, noted.record(0).rules)

    def pieces(self, file: str) -> Iterator[MadePiece]:
        """All that is made of this one of `files`. Raises: ArchiveDamaged; OSError."""
        mirrored = self._held[file]
        yield MadePiece(0, MAGIC)
        fd = os.open(self._made.source_directory / file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            translation = FileTranslation(
                file,
                DescriptorBytes(fd).read_into,
                self._settings,
                rules_of(self._settings),
                self._next,
                self._skips.get((self._made.source_number, file), {}),
                own_gtids=self._made.number != FIRST,
            )
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
            checkpoint = translation.checkpoint()
            self._next = ViewCheckpoint.of_file(checkpoint.next_gno, checkpoint.rules)
        finally:
            os.close(fd)
