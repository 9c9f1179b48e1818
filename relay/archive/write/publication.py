"""The visible effect of the writer's work: the ends of what is received, synced and published, and the watchers."""

from collections.abc import Callable

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import Position
from relay.archive.gtids.gtid_state import GtidState
from relay.archive.read.held_files import HeldFiles
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.gtid_facts import GtidFacts, GtidNews
from relay.archive.storage.watchers import Watchers
from relay.archive.write.options import PublishPolicy
from relay.archive.write.run import Run
from relay.process.background import guarded


class Publication:
    """Takes the writer's reports (`WriterEvents`) and updates `held` and `gtids` accordingly. All on the event loop.

    on_sealed(file): a file is complete. on_failure(error): the writer has failed and drops everything.

    An internal fault in one of the parts that a report goes to is logged (`callback_failed`) and does not affect the others: what is
    written is published, and its buffers are given back. If it is in `gtids`, no GTID is known of any file then: replicas that ask by
    GTID are refused until the relay has restarted, which reads the files again.
    """

    def __init__(
        self,
        held: HeldFiles,
        gtids: GtidState,
        policy: PublishPolicy,
        on_sealed: Callable[[ArchivedFile], None],
        on_failure: Callable[[ArchiveWriteError], None],
    ) -> None:
        self._held = held
        self._gtids = gtids
        self._policy = policy
        self._on_sealed = on_sealed
        self._on_failure = on_failure
        self._sync_watchers: Watchers[[]] = Watchers()
        self.queued_bytes = 0
        """The bytes that were appended and are not written yet: the code that queues a run adds them, reports subtract them."""
        newest = held.newest
        self._received_file = newest
        self._received_offset = newest.end if newest else 0
        self._synced_file = newest
        self._synced_offset = newest.end if newest else 0

    @property
    def received(self) -> Position | None:
        """The end of what is written; it may be inside a transaction or event."""
        file = self._received_file
        return None if file is None else Position(file.name, self._received_offset)

    @property
    def synced(self) -> Position | None:
        """The end of the last transaction that is on stable storage."""
        file = self._synced_file
        return None if file is None else Position(file.name, self._synced_offset)

    def synced_offset_in(self, file: ArchivedFile) -> int:
        """Return the offset up to which `file`, the newest one, is on stable storage."""
        return self._synced_offset if self._synced_file is file else FIRST_EVENT

    def begin_again(self) -> None:
        """Begin again after the recovery from a failure: nothing is written after the newest file's published end."""
        newest = self._held.newest
        self._received_file = newest
        self._received_offset = newest.end if newest else 0

    def watch_sync(self, callback: Callable[[], None]) -> None:
        """Call `callback()` on the loop when `synced` moved; many moves may be one call."""
        self._sync_watchers.add(callback)

    def unwatch_sync(self, callback: Callable[[], None]) -> None:
        """End `watch_sync`; an unknown callback is ignored."""
        self._sync_watchers.remove(callback)

    def _synced_moved(self) -> None:
        self._sync_watchers.notify()

    def _note_gtids(self, note: Callable[[], None]) -> None:
        """Call `note`. A fault in it is logged, and no GTID is known from then on."""
        give_up = self._gtids.give_up
        guarded(note, "GTIDs of what is published", lambda _fault: give_up([file.name for file in self._held.all]))()

    # --- WriterEvents ------------------------------------------------------------------------------------------------

    def file_created(self, file: ArchivedFile) -> None:
        """Implement `WriterEvents.file_created`."""
        self._held.add(file)
        self._note_gtids(lambda: self._gtids.begin_file(file.name, file.flavour))
        self._received_file, self._received_offset = file, FIRST_EVENT

    def advanced(self, received: int, boundary: int, runs: list[Run], gtids: GtidNews | None) -> None:
        """Implement `WriterEvents.advanced`."""
        file = self._held.all[-1]
        self._received_file = file
        self._received_offset = received
        for run in runs:
            file.events += run.events
            file.groups += run.groups
            self.queued_bytes -= len(run.data)
        if runs[-1].timestamp > file.last_timestamp:
            file.last_timestamp = runs[-1].timestamp
        if gtids is not None:
            self._gtids.report(boundary, gtids)
        if self._policy is PublishPolicy.WRITTEN and boundary > file.end:
            file.end = boundary
            self._note_gtids(lambda: self._gtids.publish(boundary))
            self._held.moved()
        for run in runs:
            if run.on_written is not None:
                run.on_written()

    def dropped(self, runs: list[Run]) -> None:
        """Implement `WriterEvents.dropped`."""
        for run in runs:
            self.queued_bytes -= len(run.data)
            if run.on_written is not None:
                run.on_written()

    def synced_to(self, name: str, boundary: int) -> None:
        """Implement `WriterEvents.synced_to`."""
        file = self._held.get(name)
        if file is None:
            return  # purged since
        self._synced_file, self._synced_offset = file, boundary
        if boundary > file.end and not file.sealed:
            file.end = boundary
            self._note_gtids(lambda: self._gtids.publish(boundary))
            self._held.moved()
        self._synced_moved()

    def gtids_resumed(self, gtids: GtidFacts) -> None:
        """Implement `WriterEvents.gtids_resumed`."""
        self._note_gtids(lambda: self._gtids.resume(gtids))

    def file_sealed(self, file: ArchivedFile, gtids: GtidFacts) -> None:
        """Implement `WriterEvents.file_sealed`."""
        mine = self._held.get(file.name)
        assert mine is not None, "the newest file is never purged"
        for field in ("events", "groups", "last_timestamp", "cut", "end", "sealed"):
            setattr(mine, field, getattr(file, field))
        self._note_gtids(lambda: self._gtids.seal(gtids))
        self._synced_file, self._synced_offset = mine, file.end
        self._received_offset = file.end
        guarded(self._on_sealed, "a complete file", lambda _error: None)(mine)
        self._held.moved()
        self._synced_moved()

    def trimmed(self, name: str, boundary: int, events: int) -> None:
        """Implement `WriterEvents.trimmed`."""
        file = self._held.get(name)
        assert file is not None, "the newest file is never purged"
        file.events = events
        self._received_file, self._received_offset = file, boundary

    def failed(self, error: ArchiveWriteError, runs: list[Run]) -> None:
        """Implement `WriterEvents.failed`."""
        self.dropped(runs)
        self._on_failure(error)
