"""The thread that forces what the writer has written to stable storage: a slow fdatasync never delays a write."""

import errno
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from relay.archive.storage.files import FileLayer, StoredFile
from relay.archive.write.options import SyncPolicy
from relay.binlog_file.event_places import count_events
from relay.process.background import tell_fault
from relay.process.duration_histogram import DISK_BOUNDS_S, DurationHistogram

_CHECKPOINT_EVERY_S: Final = 1.0


class SyncedFile(Protocol):
    """The file that grows, with the parts that are synced here."""

    @property
    def name(self) -> str:
        """The name of the binlog."""

    @property
    def fd(self) -> int:
        """The descriptor of the binlog."""

    def sync_indexes(self, layer: FileLayer) -> None:
        """Put the files next to the binlog on stable storage before returning. Raises: OSError."""


class Written(NamedTuple):
    """The part that may be synced: whole groups up to `boundary`. It is immutable, because the writer continues meanwhile."""

    file: SyncedFile
    boundary: int
    mark_end: int
    """The end of the run that contains `boundary`."""
    mark_events: int
    """The number of events up to `mark_end`."""
    groups: int
    timestamp: int

    def events(self, layer: FileLayer) -> int:
        """Return the number of events up to `boundary`. Raises: OSError."""
        if self.mark_end == self.boundary:
            return self.mark_events
        return self.mark_events - count_events(StoredFile(layer, self.file.fd), self.boundary, self.mark_end)[0]


class Checkpoint(NamedTuple):
    """The end up to which a file and its indexes are on stable storage: the next recovery need not read what is before `end`."""

    name: str
    end: int
    events: int
    groups: int
    last_timestamp: int


class SyncThread:
    """Syncs the newest state that it was given, when the policy or a caller wants it. Methods may be called in any thread.

    times: of syncs. All reports are made in the thread itself. on_synced(name, boundary): whole groups up to there are on stable
    storage. on_checkpoint: at most one a second, before that second's `on_synced`. on_failure: a sync failed; what later ones report
    of the same bytes means nothing, so none is made until `begin_again`.
    """

    def __init__(
        self,
        layer: FileLayer,
        policy: SyncPolicy,
        interval_s: float,
        *,
        times: DurationHistogram | None = None,
        on_synced: Callable[[str, int], None],
        on_checkpoint: Callable[[Checkpoint], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._layer = layer
        self._at_once = policy is SyncPolicy.TRANSACTION
        self._pause_s = interval_s if policy is SyncPolicy.INTERVAL else None
        self._times = times or DurationHistogram(DISK_BOUNDS_S)
        self._on_synced = on_synced
        self._on_checkpoint = on_checkpoint
        self._on_failure = on_failure
        self._written: Written | None = None
        self._goal = (-1, -1)
        """The (file number, offset) up to which a sync was requested, whatever the policy. It only ever increases in one file."""
        self._wake = threading.Event()
        self._lock = threading.Lock()
        """Held while descriptors are synced, and while they are closed or cut."""
        self._broken = False
        self._stopping = False
        self._last_checkpoint = 0.0
        self._thread = threading.Thread(target=self._main, name="archive-sync", daemon=True)

    def start(self) -> None:
        """Start the thread; call once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Blocking, at most one system call long."""
        self._stopping = True
        self._wake.set()
        self._thread.join()

    # --- the bytes to be synced --------------------------------------------------------------------------------------

    def begin_at(self, written: Written) -> None:
        """Allow syncing this from now on; it is not urgent."""
        self._written = written

    def grow(self, written: Written, before: tuple[int, int]) -> None:
        """Note that more was written after `before` (file number, offset)."""
        self._written = written
        if self._at_once or self._goal > before:
            self._wake.set()

    def want(self, number: int, offset: int) -> None:
        """Request a sync as soon as whole groups up to there are written; one sync answers all requests by then."""
        self._goal = (number, offset)
        # What was written before the goal was set is looked at now, the rest when it comes (`grow`).
        self._wake.set()

    def withdraw(self) -> None:
        """Begin no sync from now on, until `begin_at`. One may be running: close and cut descriptors in `paused()`."""
        self._written = None

    # --- for the owner of the descriptors ----------------------------------------------------------------------------

    def paused(self) -> AbstractContextManager[bool]:
        """Keep any sync from running inside the block: descriptors may be closed, cut, or synced (`sync_here`)."""
        return self._lock

    def sync_here(self, fd: int) -> None:
        """Sync in the caller's thread; call it in `paused()`. Raises: OSError, also after a sync that failed before."""
        if self._broken:
            raise OSError(errno.EIO, "a sync before this one failed")
        self._layer.sync_data(fd)

    def begin_again(self) -> None:
        """Count syncs again: what a failed sync may have lost was written again."""
        self._broken = False

    # --- the thread --------------------------------------------------------------------------------------------------

    def _main(self) -> None:
        wake = self._wake
        synced: tuple[SyncedFile | None, int] = (None, -1)
        while True:
            wake.wait(self._pause_s)
            wake.clear()
            if self._stopping:
                return
            newest = self._written
            if newest is None or self._broken or (newest.file, newest.boundary) == synced:
                continue
            try:
                written = self._sync()
            except Exception as error:
                if not isinstance(error, OSError):
                    tell_fault("archive_sync_failed", error, file=newest.file.name)
                self._on_failure(error)
                continue
            if written is not None:
                synced = (written.file, written.boundary)
                self._on_synced(written.file.name, written.boundary)

    def _sync(self) -> Written | None:
        """Return what was synced; None: it was withdrawn meanwhile. Raises: OSError."""
        checkpoint = None
        with self._lock:
            # The present state: while the lock was waited for, the file may have been cut back.
            written = self._written
            if written is None:
                return None
            file = written.file
            try:
                began = time.monotonic()
                self._layer.sync_data(file.fd)
                now = time.monotonic()
                self._times.observe(now - began)
                if now - self._last_checkpoint >= _CHECKPOINT_EVERY_S:
                    self._last_checkpoint = now
                    # Only what the indexes cover on stable storage may be skipped by the next recovery.
                    file.sync_indexes(self._layer)
                    events = written.events(self._layer)
                    checkpoint = Checkpoint(file.name, written.boundary, events, written.groups, written.timestamp)
            except Exception:
                # Before the lock is free: `sync_here` would succeed on what this one has lost.
                self._broken = True
                raise
        if checkpoint is not None:
            self._on_checkpoint(checkpoint)
        return written
