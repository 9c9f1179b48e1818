"""The ages of archived files, by the times in their events, which clocks and `SET timestamp` may have made wrong."""

from collections.abc import Iterable, Sequence

from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.storage_location import Tier
from relay.retention.decision import HeldFile

NumberedFiles = Sequence[tuple[int, Sequence[ArchivedFile]]]
"""The number and the files of each generation, oldest first."""


def held_files_of(generations: NumberedFiles, now: float) -> list[HeldFile]:
    """Return the files with the times that they are judged by. now: Unix seconds. For a thread if they are many.

    A file whose newest event is in the future ends when the file after it began. No file is older than the one before it: a time that
    is too low has a file kept for as long as its neighbours.
    """
    numbered = [(number, file) for number, files in generations for file in files]
    held, newest = [], 0.0
    for place, (number, file) in enumerate(numbered):
        time = float(file.last_timestamp)
        if time > now:
            following = numbered[place + 1][1].first_timestamp if place + 1 < len(numbered) else 0
            time = float(following) if 0 < following <= now else now
        newest = max(newest, time)
        on_disk = 0 if file.tier is Tier.OBJECT else file.stored_bytes
        held.append(HeldFile(number, file.number, file.name, file.end, newest, on_disk))
    return held


def newest_event_time(generations: Iterable[tuple[int, Sequence[ArchivedFile]]]) -> float:
    """Return the time of the newest event of all files; 0: there is none."""
    return float(max((file.last_timestamp for _number, files in generations for file in files), default=0))
