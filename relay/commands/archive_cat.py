"""`binlog-relay archive cat NAME`: the bytes of an archived binlog as they were received, wherever and however it is stored."""

import contextlib
from pathlib import Path
from typing import BinaryIO

from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import CATALOG_NAME, StoredFile
from relay.binlog_file.file_bytes import pieces
from relay.commands.archive_command import archive_failures, shown_name
from relay.commands.outcome import CommandFailed
from relay.packed_reads.archive_layer import layer_of


def cat(directory: Path, name: str, out: BinaryIO) -> None:
    """Write the file of that name to `out`, up to its end by the catalog. name: as `archive list` shows it. The relay may be running.
    Raises: CommandFailed; OSError."""
    with archive_failures(directory):
        place, file = _found(directory, name)
        with StoredFile.open(layer_of(directory), place / file.name) as stored:
            for piece in pieces(stored, 0, file.end):
                out.write(piece)
    with contextlib.suppress(BrokenPipeError):
        out.flush()


def _found(directory: Path, name: str) -> tuple[Path, ArchivedFile]:
    """Return the directory and the file. A name that several sources used is that of the newest, unless it says which."""
    for number, place in reversed(begun_generations(directory)):
        catalog = Catalog.open_read_only(place / CATALOG_NAME)
        try:
            files = catalog.files()
        finally:
            catalog.close()
        for file in files:
            if name in (file.name, shown_name(number, file.name)):
                return place, file
    raise CommandFailed(f"The archive does not hold {name}. 'binlog-relay archive list' shows what it holds.")
