"""What the downstream side needs of an archive. `relay.archive.generation.Archive` has it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from protocol.position import Position
from relay.archive.read.position_check import PositionCheck
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.replica_marks import ReplicaMarks


class ServedArchive(Protocol):
    """An archive as its readers see it. All calls on the event loop."""

    @property
    def files(self) -> Sequence[ArchivedFile]:
        """Oldest first."""

    @property
    def end(self) -> Position | None:
        """The published end: a transaction boundary; None while nothing was published."""

    @property
    def replicas(self) -> ReplicaMarks:
        """What was being sent to which replica."""

    def file(self, name: str) -> ArchivedFile | None:
        """The file of that name."""

    def next_file(self, name: str) -> ArchivedFile | None:
        """The file after that one; None while there is none."""

    def path(self, name: str) -> Path:
        """Where it is."""

    def watch(self, callback: Callable[[], None]) -> None:
        """Calls `callback` on the loop when `end` moved or a file was sealed."""

    def unwatch(self, callback: Callable[[], None]) -> None:
        """Ends that."""

    async def check_position(self, file: str, offset: int) -> PositionCheck:
        """What is at that position."""
