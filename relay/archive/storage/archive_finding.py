"""The findings of a check of an archive."""

from dataclasses import dataclass

from relay.archive.storage.archive_errors import REPAIR


@dataclass(frozen=True, slots=True)
class ArchiveFinding:
    """Something wrong in the archive. `file` is a name in its directory; `offset` is None if there is none.

    `boundary`: if an archived file itself is not what was archived, the end of the last whole transaction before that; None:
    something else is wrong, which can be rebuilt from the files. advice: for the former.
    """

    file: str
    offset: int | None
    what: str
    boundary: int | None = None
    advice: str = REPAIR

    @property
    def text(self) -> str:
        """The fault, and the advice for it."""
        return self.what if self.boundary is None else f"{self.what}. {self.advice}"
