"""The lag of replicas in seconds: how long ago an archive had what a replica was sent last.

The archive's growth is noted once a second. A lag that begins before the oldest note is dated by the times of the file's events.
"""

import time
from bisect import bisect_right
from collections import deque
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import ArchivedFile
from relay.http.facts.archive_distances import ArchiveDistances

_NOTES: Final = 900


class ReplicaLag:
    """The lag of those who are served one archive. On the event loop only."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._distances = ArchiveDistances(archive)
        self._written = 0
        """The bytes that came since the first note."""
        self._last_end: tuple[int, int, int] | None = None
        self._notes: deque[tuple[int, float]] = deque(maxlen=_NOTES)
        """Pairs of the bytes since the first note and the time when that many were there, rising."""

    def note(self) -> None:
        """Note the growth; called once a second."""
        self._distances.follow()
        generation = self.archive.current
        file = generation.files[-1] if generation.files else None
        end = (generation.number, file.number, file.end) if file is not None else None
        if end is None or end == self._last_end:
            return
        before = self._last_end
        if before is not None:
            grown = self._distances.behind(before[0], _name_like(file.name if file else "", before[1]), before[2])
            self._written += grown or 0
        self._last_end = end
        self._notes.append((self._written, time.monotonic()))

    def behind(self, generation_number: int | None, file: str, offset: int) -> tuple[int | None, float | None]:
        """Return the bytes and seconds from a replica's position to the archive's end, if it was sent everything up to there; None:
        unknown."""
        self._distances.follow()
        behind = self._distances.behind(generation_number, file, offset)
        if behind is None:
            return None, None
        if behind <= 0:
            return 0, 0.0
        has = self._written - behind
        if self._notes and has >= self._notes[0][0]:
            place = bisect_right(self._notes, (has, float("inf")))
            if place >= len(self._notes):
                return behind, 0.0  # newer than the newest note
            return behind, max(0.0, time.monotonic() - self._notes[place][1])
        return behind, self._by_event_time(generation_number, file, offset)

    def _by_event_time(self, generation_number: int | None, name: str, offset: int) -> float | None:
        for generation in self.archive.all:
            if generation_number is None or generation.number == generation_number:
                file = generation.file(name)
                if file is not None:
                    return max(0.0, time.time() - _time_at(generation, file, offset))
        return None


def _time_at(_generation: Generation, file: ArchivedFile, offset: int) -> float:
    """Return approximately when the event at `offset` was written, by the source's clock."""
    if file.end <= FIRST_EVENT:
        return float(file.last_timestamp)
    share = min(1.0, max(0.0, offset / file.end))
    return file.first_timestamp + share * (file.last_timestamp - file.first_timestamp)


def _name_like(name: str, number: int) -> str:
    return f"{name.rpartition('.')[0]}.{number:06d}"
