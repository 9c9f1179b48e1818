"""The bytes between two places of an archive, also of one of a hundred thousand files."""

from bisect import bisect_left
from collections.abc import Sequence

from protocol.errors import Malformed
from protocol.position import binlog_number
from relay.archive.archive import Archive
from relay.archive.storage.archived_file import ArchivedFile


class FileStarts:
    """The numbers of one generation's files, and how many bytes are before each, counted from the oldest that was seen."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._starts: list[int] = []

    def follow(self, files: Sequence[ArchivedFile]) -> None:
        """Take over what was added and removed. The first time is expensive: 100,000 files are some ten milliseconds."""
        numbers, starts = self._numbers, self._starts
        if not files or (numbers and files[0].number < numbers[0]):
            numbers.clear()
            starts.clear()
        if not files:
            return
        gone = bisect_left(numbers, files[0].number)
        del numbers[:gone], starts[:gone]
        if len(numbers) > len(files) or (numbers and files[len(numbers) - 1].number != numbers[-1]):
            numbers.clear()
            starts.clear()
        if not numbers:
            numbers.append(files[0].number)
            starts.append(0)
        for place in range(len(numbers), len(files)):
            starts.append(starts[-1] + files[place - 1].end)
            numbers.append(files[place].number)

    def place_of(self, number: int) -> int | None:
        """Return the start of the file of that number, or of the next existing one; None: there is none."""
        found = bisect_left(self._numbers, number)
        return self._starts[found] if found < len(self._starts) else None


class ArchiveDistances:
    """The distances in one archive. On the event loop only."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._starts: dict[int, FileStarts] = {}

    def follow(self) -> None:
        """Take over what has changed."""
        numbers = set()
        for generation in self._archive.all:
            numbers.add(generation.number)
            self._starts.setdefault(generation.number, FileStarts()).follow(generation.files)
        for number in self._starts.keys() - numbers:
            del self._starts[number]

    def behind(self, generation_number: int | None, file: str, offset: int) -> int | None:
        """Return the bytes from a place up to the archive's end; None: that file is unknown. Call `follow` first."""
        try:
            number = binlog_number(file)
        except Malformed:
            return None
        total: int | None = None
        for generation in self._archive.all:
            starts, files = self._starts.get(generation.number), generation.files
            if starts is None or not files:
                continue
            end = (starts.place_of(files[-1].number) or 0) + files[-1].end
            if total is not None:
                total += end - (starts.place_of(files[0].number) or 0)
            elif generation_number is None or generation.number == generation_number:
                place = starts.place_of(number)
                if place is not None:
                    total = max(0, end - place - offset)
        return total
