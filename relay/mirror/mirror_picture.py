"""The part of an archive that can be copied, as the event loop hands it to the mirror's thread."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PicturedFile:
    """A binlog. `end` is the offset up to which it is published."""

    name: str
    number: int
    end: int
    sealed: bool


@dataclass(frozen=True, slots=True)
class PicturedGeneration:
    """The files of one generation, oldest first, from the first on that may be missing in the bucket. `folder` is that of its objects,
    with a slash at its end, or empty."""

    number: int
    directory: Path
    folder: str
    files: tuple[PicturedFile, ...]
