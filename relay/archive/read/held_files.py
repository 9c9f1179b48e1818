"""The files of a generation as its readers see them: the list, the offset up to which each may be read, and the watchers."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from protocol.errors import Malformed
from protocol.position import Position, binlog_number
from relay.archive.read.reader import FileReader
from relay.archive.storage.archive_errors import ArchiveCorrupt, ArchiveUnknownFile
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer
from relay.archive.storage.watchers import Watchers


class HeldFiles:
    """The files in one directory, by number, and the published end. All on the event loop.

    Nothing here writes to the disk: the code that changes the files reports it by `add`, `take_oldest`, `put_back` and `moved`.
    """

    def __init__(self, directory: Path, layer: FileLayer, files: Iterable[ArchivedFile]) -> None:
        self._directory = directory
        self._layer = layer
        self._files = list(files)
        self._by_name = {file.name: file for file in self._files}
        self.watchers: Watchers[[]] = Watchers()
        """The callbacks that `moved` notifies."""
        # The sums over all but the newest, which do not change any more: monitors read them, with 100,000 files too.
        self._older_bytes = sum(file.end for file in self._files[:-1])
        self._older_events = sum(file.events for file in self._files[:-1])

    # --- the files ---------------------------------------------------------------------------------------------------

    @property
    def all(self) -> Sequence[ArchivedFile]:
        """All files, oldest first; the last one may be open. Do not keep or change the sequence."""
        return self._files

    @property
    def newest(self) -> ArchivedFile | None:
        """The last file, sealed or not; None while there is none."""
        return self._files[-1] if self._files else None

    @property
    def open_file(self) -> ArchivedFile | None:
        """The file that grows, or None: no file yet, or the newest is sealed and its successor has no header yet."""
        return self._files[-1] if self._files and not self._files[-1].sealed else None

    @property
    def end(self) -> Position | None:
        """The published watermark: the end of the last transaction that readers may see."""
        if not self._files:
            return None
        newest = self._files[-1]
        return Position(newest.name, newest.end)

    @property
    def total_bytes(self) -> int:
        """The bytes of all files, up to their published ends."""
        return self._older_bytes + (self._files[-1].end if self._files else 0)

    @property
    def total_events(self) -> int:
        """The events of all files."""
        return self._older_events + (self._files[-1].events if self._files else 0)

    def get(self, name: str) -> ArchivedFile | None:
        """Return the file of that name, or None."""
        return self._by_name.get(name)

    def after(self, name: str) -> ArchivedFile | None:
        """Return the file after `name`, or None if `name` is the newest.

        Raises: ArchiveUnknownFile, also if files between are missing; ArchiveCorrupt if `name` itself is damaged.
        """
        file = self._by_name.get(name)
        if file is None:
            raise ArchiveUnknownFile("the archive does not hold this file", file=name)
        if file.damaged:
            raise ArchiveCorrupt(
                "the rest of this file is damaged and nothing is served past it",
                file=name,
                offset=file.end,
                advice="Run `archive verify --deep`, then restore the file from the source or another relay.",
            )
        place = bisect_right(self._files, file.number, key=lambda other: other.number)
        if place == len(self._files):
            return None
        following = self._files[place]
        if following.number != file.number + 1:
            raise ArchiveUnknownFile(
                f"{following.number - file.number - 1} file(s) between {name} and {following.name} are not held",
                file=name,
                offset=file.end,
                advice="Restore them from the source, or start the replica in a later file from a new copy of the data.",
            )
        return following

    def path(self, name: str) -> Path:
        """Return the path of the file. Raises: ArchiveUnknownFile (so a name from the network never becomes a path)."""
        if name not in self._by_name:
            raise ArchiveUnknownFile("the archive does not hold this file", file=name)
        return self._directory / name

    def follows_newest(self, name: str) -> bool:
        """Return whether a file of that name comes next, as far as names tell; without a file, any does."""
        newest = self.newest
        if newest is None:
            return True
        try:
            follows = binlog_number(name) == newest.number + 1
        except Malformed:
            return False
        return follows and name.rpartition(".")[0] == newest.name.rpartition(".")[0]

    def open_reader(self, name: str) -> FileReader:
        """Open a file for reading. Raises: ArchiveUnknownFile, ArchiveCorrupt (cannot be opened)."""
        file = self._by_name.get(name)
        if file is None:
            raise ArchiveUnknownFile("the archive does not hold this file", file=name)
        try:
            return FileReader(file, self._layer.stored(self._directory / name))
        except OSError as error:
            raise ArchiveCorrupt(
                f"the file cannot be opened: {error.strerror}", file=name, advice="Run `archive verify`."
            ) from error

    # --- the watchers ------------------------------------------------------------------------------------------------

    def watch(self, callback: Callable[[], None]) -> None:
        """Call `callback()` on the loop when `end` moved, a file was created or sealed; many moves may be one call."""
        self.watchers.add(callback)

    def unwatch(self, callback: Callable[[], None]) -> None:
        """End `watch`; an unknown callback is ignored."""
        self.watchers.remove(callback)

    def moved(self) -> None:
        """Notify the watchers that `end` moved, or a file was created, sealed or purged."""
        self.watchers.notify()

    # --- changes -----------------------------------------------------------------------------------------------------

    def add(self, file: ArchivedFile) -> None:
        """Add a new file; its number is greater than all others, and the one before it is complete."""
        if self._files:
            self._count_older(self._files[-1:], 1)
        self._files.append(file)
        self._by_name[file.name] = file

    def take_oldest(self, count: int) -> list[ArchivedFile]:
        """Remove the oldest ones: they are not found here any more; readers that have them open keep what they have."""
        taken = self._files[:count]
        del self._files[:count]
        for file in taken:
            del self._by_name[file.name]
        # If all are removed, the newest was among them, and was not counted.
        self._count_older(taken if self._files else taken[:-1], -1)
        return taken

    def put_back(self, files: Sequence[ArchivedFile]) -> None:
        """Put back the newest ones of those that were taken out: they are served again."""
        self._count_older(files if self._files else files[:-1], 1)
        self._files[:0] = files
        self._by_name.update((file.name, file) for file in files)

    def _count_older(self, files: Sequence[ArchivedFile], times: int) -> None:
        self._older_bytes += times * sum(file.end for file in files)
        self._older_events += times * sum(file.events for file in files)
