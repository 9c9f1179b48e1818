"""One file of an archive: the check whether the fetched file is what was archived, and its way into the damaged one's place."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import DAMAGED_INFIX, FileLayer
from relay.repair.file_origin import RemadeFile

SCRATCH: Final = ".repair"
"""A directory in the archive's, where files are rebuilt. Its contents are of a repair that runs, or was killed."""


@dataclass(frozen=True, slots=True)
class WantedFile:
    """The facts about a file that must be fetched again. None: unknown."""

    name: str
    end: int | None
    created: int | None = None
    server_id: int | None = None
    digest: str | None = None

    @classmethod
    def of(cls, file: ArchivedFile) -> "WantedFile":
        """Return what the catalog knows of it. The recorded end of a file that was found damaged at a start is not what was
        archived."""
        end = None if file.damaged else file.end
        return cls(file.name, end, file.created or None, file.server_id or None, None if file.damaged else file.digest)

    def difference(self, remade: RemadeFile) -> str | None:
        """Return how the fetched file is shown to be another one; None: it is not."""
        facts = remade.facts
        if self.created is not None and (facts.created, facts.server_id) != (self.created, self.server_id):
            return (
                f"it was made at {facts.created} by server_id {facts.server_id}, the archived one at {self.created} by "
                f"server_id {self.server_id} (Unix seconds)"
            )
        if self.end is not None and facts.end != self.end:
            return f"it has {facts.end} bytes, {self.end} were archived"
        if self.digest is not None and remade.digest != self.digest:
            return f"its digest is {remade.digest}; {self.digest} was noted when the archived one was complete"
        return None


def empty_scratch(directory: Path, layer: FileLayer) -> Path:
    """Return a new empty directory for one file, in the archive's own so that a rename puts it in place. Blocking. Raises: OSError."""
    scratch = directory / SCRATCH
    if os.path.lexists(scratch):
        _remove(scratch, layer)
    layer.make_directory(scratch)
    return scratch


def _remove(scratch: Path, layer: FileLayer) -> None:
    if scratch.is_dir() and not scratch.is_symlink():
        layer.remove_tree(scratch)
    else:
        layer.unlink(scratch)


def put_in_place(directory: Path, remade: RemadeFile, layer: FileLayer) -> str | None:
    """Put the file and its indexes where the damaged ones are; return the name that the damaged file's bytes keep, if any.

    At each moment the old or the new file has its name. Blocking. Raises: OSError.
    """
    name = remade.facts.name
    path = directory / name
    kept = None
    if os.path.lexists(path):
        kept = _free_name(directory, name)
        if path.is_file() and not path.is_symlink():
            layer.link(path, directory / kept)
        else:
            layer.rename(path, directory / kept)
    made = sorted(part for part in layer.names(remade.directory) if part.startswith(f"{name}."))
    for part in [name, *made]:
        fd = layer.open_write(remade.directory / part)
        try:
            layer.sync_data(fd)
        finally:
            layer.close(fd)
    for part in [name, *made]:
        layer.rename(remade.directory / part, directory / part)
    layer.sync_directory(directory)
    layer.remove_tree(remade.directory)
    return kept


def _free_name(directory: Path, name: str) -> str:
    base = f"{name}{DAMAGED_INFIX}{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    free, serial = base, 1
    while os.path.lexists(directory / free):
        serial += 1
        free = f"{base}-{serial}"
    return free
