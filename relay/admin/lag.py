"""The time by which the archive is behind the source's clock."""

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from relay.archive.storage.archived_file import ArchivedFile
from relay.upstream.source.source_status import SourceStatus

IDLE_S: Final = 2.0
"""After this time without anything new, and nothing half received, the newest event's age means nothing any more."""
CATCHING_UP_S: Final = 60
"""Events this old on arrival are those of a relay that catches up: its silence may be a stall. Then only a heartbeat, which a source
sends when it has nothing else, proves that everything has come."""


class WithFiles(Protocol):
    """The needed part of the newest generation."""

    @property
    def files(self) -> Sequence[ArchivedFile]:
        """All files, oldest first."""


class Watched(Protocol):
    """The needed part of the archive."""

    @property
    def current(self) -> WithFiles:
        """The newest generation."""

    def watch(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever the archive grows."""

    def unwatch(self, callback: Callable[[], None]) -> None:
        """End `watch`."""


class Lag:
    """Notes when the archive grew, and the age of the events."""

    def __init__(self, archive: Watched, heartbeats: Callable[[], int]) -> None:
        self._archive = archive
        self._heartbeats = heartbeats
        self._grew_at = float("-inf")
        self._grew_at_unix = float("-inf")
        self._age_s = 0.0
        self._heartbeats_then = -1
        archive.watch(self._grew)

    def close(self) -> None:
        """Stop watching."""
        self._archive.unwatch(self._grew)

    def _grew(self) -> None:
        self._grew_at, self._grew_at_unix = time.monotonic(), time.time()
        self._heartbeats_then = self._heartbeats()
        files = self._archive.current.files
        if files:
            self._age_s = time.time() - files[-1].last_timestamp

    def seconds_behind(self, status: SourceStatus) -> int | None:
        """Return the age of the newest archived event while events come; 0 when all that came is archived; None: no stream, or one
        that is too new for its silence to mean anything.

        The age is in whole seconds, by the source's timestamps and this machine's clock.
        """
        if status.io_running != "Yes":
            return None
        in_flight = (status.received_file, status.received_offset) != (status.archived_file, status.archived_offset)
        if not in_flight and self._is_too_new(status):
            return None
        if not in_flight and self._has_all(status):
            return 0
        return max(0, int(time.time()) - status.last_event_timestamp) if status.last_event_timestamp else 0

    def _is_too_new(self, status: SourceStatus) -> bool:
        """Return whether the source was connected just now, and nothing came yet, no heartbeat either."""
        if status.kind != "server" or status.attached_at is None or status.stream_heartbeats:
            return False
        return self._grew_at_unix < status.attached_at and 0 <= time.time() - status.attached_at <= IDLE_S

    def _has_all(self, status: SourceStatus) -> bool:
        if self._heartbeats() > self._heartbeats_then:
            return True
        if status.kind == "server" and self._age_s > CATCHING_UP_S:
            return False
        return time.monotonic() - self._grew_at > IDLE_S
