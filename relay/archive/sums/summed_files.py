"""The sums of all files of a generation, for those who read them."""

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
"""Of one file that come into the ledger: `archive verify --deep` names all."""


class SummedFiles:
    """On the event loop. note(kind, file, offset, text): into log and ledger. make(file): sums of it lack."""

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
        """What a reader of this file compares it with; None: its events have checksums of their own."""
        if file.checksum:
            return None
        return FileSums(self._layer, self._directory / file.name, self.newest, partial(self._found, file.name))

    def forget(self, name: str) -> None:
        """The file is gone, or another one is in its place."""
        self._notes.pop(name, None)

    def _found(self, name: str, offset: int, text: str, lacks: bool) -> None:
        """In any thread."""
        self._loop.call_soon_threadsafe(self._tell, name, offset, text, lacks)

    def _tell(self, name: str, offset: int, text: str, lacks: bool) -> None:
        told = self._notes.setdefault(name, set())
        if (offset, text) in told or len(told) >= _MOST_NOTES:
            return
        told.add((offset, text))
        self._note(BLOCK_SUMS, name, offset, text)
        if lacks:
            self._make(name)
