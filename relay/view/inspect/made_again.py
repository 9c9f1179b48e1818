"""A view that is made once more, in memory, from the archive and its settings alone."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from protocol.binlog.layout import MAGIC
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.inspect.listing import read_ledgers
from relay.archive.storage.archived_file import ArchivedFile
from relay.binlog_file.file_bytes import DescriptorBytes
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.view_comparison import MadePiece
from relay.view.inspect.view_listing import files_of
from relay.view.translation import BUFFER_BYTES, FileTranslation, ViewStopped
from relay.view.view import skips_of
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_map import ViewMap
from relay.view.view_rules import rules_of

_FIRST_GNO: Final = 1


def made_again(view: NamedView) -> "ViewMadeAgain":
    """Of the archive as it is now. Blocking. Raises: CatalogUnreadable; OSError."""
    skips = skips_of([row for _number, row in read_ledgers(view.archive)], view.name)
    held = {
        file.name: (directory, file)
        for _number, directory in begun_generations(view.archive)
        for file in files_of(directory)
    }
    return ViewMadeAgain(view, held, skips)


class ViewMadeAgain:
    """See `MadeAgain`. Where the view stands stopped, nothing more is made.

    held: the source's files by name, with the directory of each.
    """

    def __init__(
        self, view: NamedView, held: Mapping[str, tuple[Path, ArchivedFile]], skips: dict[str, dict[int, int]]
    ) -> None:
        self._settings = view.settings
        self._skips = skips
        self._held = held
        self._buffer = bytearray(BUFFER_BYTES)
        files = files_of(view.directory)
        self.files = [file for file in files if file.name in held]
        """Of the view: those that can be made again. The archive may have purged what others were made from."""
        start = view.settings.start
        self._next = ViewCheckpoint.of_file(start.next_gno if start is not None else _FIRST_GNO, b"")
        if self.files and self.files[0] is not files[0]:
            # What the view itself noted there: of what came before nothing is left to find it out from.
            noted = ViewMap.read(view.directory / self.files[0].name)
            if len(noted):
                self._next = ViewCheckpoint.of_file(noted.record(0).next_gno, noted.record(0).rules)

    def pieces(self, file: str) -> Iterator[MadePiece]:
        """All that is made of this one of `files`. Raises: ArchiveDamaged; OSError."""
        directory, mirrored = self._held[file]
        yield MadePiece(0, MAGIC)
        fd = os.open(directory / file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            translation = FileTranslation(
                file,
                DescriptorBytes(fd).read_into,
                self._settings,
                rules_of(self._settings),
                self._next,
                self._skips.get(file, {}),
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
