"""The statements of the stream that may define tables, as the kernel reports them for each run of bytes."""

import contextlib
from collections import deque
from dataclasses import dataclass
from typing import Final

from protocol.kernel.ingest import Ingest
from protocol.position import Position
from relay.schema_history.definition_scan import DefinitionEvent, events_in_run, last_bytes

_MOST_NOTES: Final = 10_000
_MOST_LOOKED_AT: Final = 2_000
"""The number of events that are examined on the event loop if a run has more definitions than the kernel lists."""
_MOST_NOTED_BYTES: Final = 16 << 20


@dataclass(slots=True)
class DefinitionNote:
    """A statement that may define tables; if `event` is None, nothing is known about it."""

    file: str
    offset: int
    event: DefinitionEvent | None


class DefinitionNotes:
    """The reports of the intake: it is called on the event loop for every run, and read by the watch's thread."""

    def __init__(self, place: Position | None) -> None:
        self._seen = 0
        self._notes: deque[DefinitionNote] = deque()
        self._noted_bytes = 0
        self._before = b""
        """The last bytes of the previous run."""
        self.first_file: str | None = None
        self.place = place
        """The position up to which every definition was noted."""
        self.file_changes = 0
        self.wanted = True

    def walked(self, ingest: Ingest, file: str | None, data: bytearray, start: int, base: int) -> None:
        """Process a run that the kernel walked: data[start:ingest.produced], which begins at `base` in `file`."""
        if file is None or not self.wanted:
            return
        if ingest.definitions != self._seen:
            self._note(ingest, file, data, start, base)
        if self.place is None or self.place.file != file:
            self.first_file = self.first_file or file
            self.file_changes += 1
        self._before = last_bytes(data, start, ingest.produced, self._before)
        if not ingest.in_event:
            self.place = Position(file, ingest.position)

    def _note(self, ingest: Ingest, file: str, data: bytearray, start: int, base: int) -> None:
        found = events_in_run(ingest, data, start, ingest.produced, base, self._before, _MOST_LOOKED_AT)
        if len(found) < ingest.definitions - self._seen:  # The run has more than the kernel lists
            found.append(DefinitionEvent(max(base, ingest.position - 1), None, 0, False))
        self._seen = ingest.definitions
        for event in found:
            if not self._notes:
                self._noted_bytes = 0
            size = len(event.raw) if event.raw is not None else 0
            room = self._noted_bytes + size <= _MOST_NOTED_BYTES
            if len(self._notes) > _MOST_NOTES:
                # If two of them may concern any table, everything between them is unknown.
                with contextlib.suppress(IndexError):  # The thread has just taken them all
                    self._notes.pop()
            room = room and len(self._notes) < _MOST_NOTES - 1
            self._notes.append(DefinitionNote(file, event.offset, event if room else None))
            self._noted_bytes += size if room else 0

    def take(self) -> tuple[list[DefinitionNote], Position | None]:
        """Return what was noted since the last call, and up to where that is complete."""
        place = self.place
        notes = []
        with contextlib.suppress(IndexError):
            while True:
                notes.append(self._notes.popleft())
        return notes, place

    @property
    def waiting(self) -> bool:
        """True if something was noted that was not taken yet."""
        return bool(self._notes)
