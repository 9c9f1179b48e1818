"""What a check of an archive says."""

from dataclasses import dataclass

from relay.archive.storage.archive_errors import REPAIR


@dataclass(frozen=True, slots=True)
class ArchiveFinding:
    """Something wrong in the archive. `file` is a name in its directory; `offset` is None where there is none.

    `boundary`: where an archived file itself is not what was archived, the end of the last whole transaction before that;
    None: it is something else that is wrong, which can be made again from the files. advice: what to do about the former.
    """

    file: str
    offset: int | None
    what: str
    boundary: int | None = None
    advice: str = REPAIR

    @property
    def text(self) -> str:
        """What is wrong, and what to do about it."""
        return self.what if self.boundary is None else f"{self.what}. {self.advice}"
