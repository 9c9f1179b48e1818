"""What a check of an archive says."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArchiveFinding:
    """Something wrong in the archive. `file` is a name in its directory; `offset` is None where there is none."""

    file: str
    offset: int | None
    what: str
