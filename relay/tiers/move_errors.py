"""Why a file was not moved. It is where it was, whole."""

from relay.archive.storage.archive_errors import ArchiveDamaged


class MoveFailed(Exception):
    """`str()` is one sentence for an operator. `file`: the binlog; `advice`: the next step, may be empty.

    `damage`: what of the file on the disk is not what was archived; None: that is not known.
    """

    def __init__(self, what: str, *, file: str, advice: str = "", damage: ArchiveDamaged | None = None) -> None:
        self.what = what
        self.file = file
        self.advice = advice
        self.damage = damage
        super().__init__(f"{file}: {what}." + (f" {advice}" if advice else ""))


class MoveStopped(Exception):
    """The mover was told to end."""
