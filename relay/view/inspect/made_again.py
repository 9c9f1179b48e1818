"""A view that is made once more, in memory, from the archive and its settings alone."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from protocol.binlog.layout import MAGIC
from relay.archive.inspect.listing import read_ledgers
from relay.binlog_file.file_bytes import DescriptorBytes
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.view_comparison import MadePiece
from relay.view.inspect.view_listing import mirrored_file
from relay.view.rules.settings import ViewSettings
from relay.view.translation import BUFFER_BYTES, FileTranslation, ViewStopped
from relay.view.view import skips_of
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of

_FIRST_GNO: Final = 1


def made_again(view: NamedView) -> "ViewMadeAgain":
    """Of the archive as it is now. Blocking. Raises: CatalogUnreadable; OSError."""
    skips = skips_of([row for _number, row in read_ledgers(view.archive)], view.name)
    return ViewMadeAgain(view.archive, view.settings, skips)


class ViewMadeAgain:
    """See `MadeAgain`. Where the view stands stopped, nothing more is made."""

    def __init__(self, archive: Path, settings: ViewSettings, skips: dict[str, dict[int, int]]) -> None:
        self._archive = archive
        self._settings = settings
        self._skips = skips
        start = settings.start
        self._next = ViewCheckpoint.of_file(start.next_gno if start is not None else _FIRST_GNO, b"")
        self._buffer = bytearray(BUFFER_BYTES)

    def pieces(self, file: str) -> Iterator[MadePiece]:
        """All that is made of this file. Raises: FileNotFoundError where the archive does not have it; ArchiveDamaged; OSError."""
        found = mirrored_file(self._archive, file)
        if found is None:
            raise FileNotFoundError(
                2, "the archive no longer has what the view was made from", str(self._archive / file)
            )
        directory, mirrored = found
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
