"""The sums of all files of a generation, for their readers."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer
from relay.archive.storage.ledger_kinds import BLOCK_SUMS
from relay.archive.sums.file_sums import FileSums
from relay.archive.sums.newest_block import NewestBlock

_MOST_NOTES: Final = 4
"""The most notes about one file that go into the ledger: `archive verify --deep` names all."""


class SummedFiles:
    """On the event loop. note(kind, file, offset, text): adds to log and ledger. make(file): called for a file with missing sums."""

    def __init__(
        self,
        directory: Path,
        layer: FileLayer,
        note: Callable[[str, str, int, str], None],
        make: Callable[[str], None],
    ) -> None:
        self.newest = NewestBlock()
        self._directory = directory
        self._layer = layer
        self._note = note
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._notes: dict[str, set[tuple[int, str]]] = {}

    def of(self, file: ArchivedFile) -> FileSums | None:
        """Return the sums that a reader of this file compares it with; None: its events have checksums of their own."""
        if file.checksum:
            return None
        return FileSums(self._layer, self._directory / file.name, self.newest, partial(self._found, file.name))

    def forget(self, name: str) -> None:
        """Forget the file, which was removed or replaced by another one."""
        self._notes.pop(name, None)

    def _found(self, name: str, offset: int, text: str, lacks: bool) -> None:
        """Note a fault of the files of sums, in any thread."""
        self._loop.call_soon_threadsafe(self._tell, name, offset, text, lacks)

    def _tell(self, name: str, offset: int, text: str, lacks: bool) -> None:
        told = self._notes.setdefault(name, set())
        if (offset, text) in told or len(told) >= _MOST_NOTES:
            return
        told.add((offset, text))
        self._note(BLOCK_SUMS, name, offset, text)
        if lacks:
            self._make(name)
