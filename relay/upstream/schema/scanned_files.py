"""The binlogs of an archive that are scanned for statements which define tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from relay.archive.storage.archived_file import ArchivedFile


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A binlog that the archive contains."""

    name: str
    path: Path
    end: int


class ScannedFiles(Sequence[ScannedFile]):
    """The archive's files as they are now, oldest first. It costs a pointer for each file, of which there may be 100,000."""

    def __init__(self, directory: Path, files: Sequence[ArchivedFile]) -> None:
        self._directory = directory
        self._files = tuple(files)
        self._newest_end = files[-1].end if files else 0

    def __len__(self) -> int:
        return len(self._files)

    @overload
    def __getitem__(self, at: int) -> ScannedFile: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[ScannedFile]: ...

    def __getitem__(self, at: int | slice) -> ScannedFile | Sequence[ScannedFile]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        file = self._files[at]
        # The others are complete.
        end = self._newest_end if file is self._files[-1] else file.end
        return ScannedFile(file.name, self._directory / file.name, end)
