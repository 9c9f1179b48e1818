"""A disk on which something happens between two calls that change it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from relay.archive.storage.files import Buffer, FileLayer


class SteppedDisk(FileLayer, ABC):
    """A disk that takes a step before each call that would make, write, rename, remove or sync a file; a subclass defines the step."""

    @abstractmethod
    def step(self) -> None:
        """Take the step."""

    def create(self, path: Path) -> int:
        self.step()
        return super().create(path)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        self.step()
        return super().pwritev(fd, buffers, offset)

    def sync_data(self, fd: int) -> None:
        self.step()
        super().sync_data(fd)

    def rename(self, source: Path, target: Path) -> None:
        self.step()
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self.step()
        super().unlink(path)

    def sync_directory(self, directory: Path) -> None:
        self.step()
        super().sync_directory(directory)
