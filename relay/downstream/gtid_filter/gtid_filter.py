"""The one owner of what a GTID replica is not sent: it is consulted before each run of the archive's bytes, without them.

For a run that must be looked at, its filter of groups decides range by range (`filtered_run`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import PositionRefused
from protocol.position import Position
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import ArchivedFile
from relay.downstream.gtid_filter.group_filter import GroupFilter
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.gtid_filter.seek import WORTH_A_SEEK_BYTES, Seek
from relay.fairness.fair_pool import TURN, taking


@dataclass(frozen=True, slots=True)
class SendTo:
    """Send what is stored before `stop` as it is."""

    stop: int


@dataclass(frozen=True, slots=True)
class FilterTo:
    """Look at what is stored before `stop`; some of it may be left out."""

    stop: int


@dataclass(frozen=True, slots=True)
class SkipTo:
    """Skip what is stored before `target`: it is not sent and need not be read."""

    target: int


@dataclass(frozen=True, slots=True)
class SendFirst:
    """Send these events before anything else."""

    events: list[bytes]


@dataclass(frozen=True, slots=True)
class End:
    """End the stream here: with an error, or because the replica wanted no more."""

    error: PositionRefused | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait: the next step is being looked up in a thread."""


Step = SendTo | FilterTo | SkipTo | SendFirst | End | Wait
_WAIT: Final = Wait()
_FINISHED: Final = End(None)


class GtidFilter(ABC):
    """The filter of one replica in one generation, from the first event of the file `first_file` on. On the event loop, in
    microseconds.

    continues: the replica has begun before, here or elsewhere, and keeps its temporary tables: `created` of the first file's format
    description must be 0.
    """

    def __init__(
        self, gtids: GtidLookup, generation: Generation, first_file: str, groups: GroupFilter | None, *, continues: bool
    ) -> None:
        """groups: created with the part of the first file that need not be read; None: everything that follows is sent."""
        self.generation = generation
        self.first_file = first_file
        self.continues = continues
        self._gtids = gtids
        self._turn = TURN.get()
        self._groups = groups
        self._file: ArchivedFile | None = None
        self._server_id = 0
        self._must_look = False
        """The last answer of the variant. While it is True the filter of groups stays: another could only begin between transactions.
        """
        self._looked_to = FIRST_EVENT
        """Nothing that must be looked at was published up to here, the end of a transaction."""
        self._looks_up = False

    # --- the differences of the flavours -----------------------------------------------------------------------------

    @abstractmethod
    def must_look(self, file: str) -> bool:
        """Return whether what is published of `file` by now must be looked at event by event."""

    @abstractmethod
    def changed(self, groups: GroupFilter | None) -> GroupFilter | None:
        """Return the filter of groups to continue with, outside of any transaction, as something must be looked at.

        groups: the present one, None: everything that follows was sent. Raises: PositionRefused if the stream ends instead.
        """

    # --- the place of the stream -------------------------------------------------------------------------------------

    def begin_file(self, file: ArchivedFile, server_id: int) -> None:
        """Begin `file`: the next bytes are its first event. server_id: of the events that are generated here."""
        self._file = file
        self._server_id = server_id
        self._looked_to = FIRST_EVENT
        if self._groups is not None:
            self._groups.begin_file(file.name, checksum=bool(file.checksum))

    def begin_behind(self, offset: int) -> None:
        """Begin in the middle of a file: the next bytes are an event at `offset`, outside of any transaction."""
        if self._groups is not None:
            self._groups.begin_behind(offset)

    def look_for_seek(self, found: Callable[[], None]) -> None:
        """Look up what of the new file need not be read, if that is worth it; then call `found`, later."""
        groups, file = self._groups, self._file
        assert file is not None
        if groups is None or (file.end < WORTH_A_SEEK_BYTES and not groups.counts_again):
            return
        self._looks_up = True

        def done(seek: Seek | None) -> None:
            self._looks_up = False
            groups.seek = seek
            found()

        with taking(self._turn):
            self._gtids.find_seek(self.generation, groups, file.name, done)

    # --- the next step -----------------------------------------------------------------------------------------------

    def next(self, offset: int, stop: int, published: int) -> Step:
        """Return what to do with the bytes from `offset` on, where a run would end at `stop`, and the published bytes at `published`.

        A step that sends never goes beyond `stop`; `stop` at `offset`: nothing is left to send.
        """
        if self._looks_up:
            return _WAIT
        groups = self._groups
        if groups is not None:
            if groups.send_until <= offset and (groups.refused is not None or groups.finished):
                return self._ended(groups, offset)
            seek = groups.seek
            if seek is not None:
                if offset < seek.place:
                    return SendTo(min(stop, seek.place))
                groups.take_seek(seek)
                return SkipTo(seek.target)
            if groups.is_done and not self._must_look:
                groups = self._groups = None
        try:
            stop = self._stop_looked_at(offset, stop, published)
        except PositionRefused as refused:
            return End(refused)
        groups = self._groups
        if groups is None:
            return SendTo(stop)
        if stop <= offset and (pending := self._taken_pending(offset)):
            return SendFirst(pending)
        return SendTo(stop) if groups.sends_all(stop) else FilterTo(stop)

    def _ended(self, groups: GroupFilter, offset: int) -> Step:
        if groups.refused is not None:
            return End(groups.refused)
        pending = self._taken_pending(offset)
        return SendFirst(pending) if pending else _FINISHED

    def _stop_looked_at(self, offset: int, stop: int, published: int) -> int:
        """Return where a run from `offset` must end so that the filter of groups may change after it. Raises: PositionRefused."""
        file = self._file
        assert file is not None
        self._must_look = self.must_look(file.name)
        if not self._must_look:
            self._looked_to = published
            return stop
        if offset < self._looked_to:
            return min(stop, self._looked_to)
        groups = self.changed(self._groups)
        if groups is not None and groups is not self._groups:
            groups.begin_file(file.name, checksum=bool(file.checksum))
            groups.begin_behind(offset)
        self._groups = groups
        return stop

    def _taken_pending(self, offset: int) -> list[bytes]:
        events = self.pending_events(offset)
        self.groups.pending_sent()
        return events

    # --- the questions of a filtered run -----------------------------------------------------------------------------

    @property
    def groups(self) -> GroupFilter:
        """The filter of the groups. Only if `is_active`."""
        assert self._groups is not None
        return self._groups

    @property
    def is_active(self) -> bool:
        """True if what is sent next may have to be looked at."""
        return self._groups is not None

    @property
    def is_done(self) -> bool:
        """True if everything from here on is sent, as far as is known."""
        return self._groups is None or (self._groups.is_done and not self._must_look)

    @property
    def has_ended(self) -> bool:
        """True if the stream ends at the place that was reached."""
        return self._groups is not None and (self._groups.refused is not None or self._groups.finished)

    def pending_events(self, offset: int) -> list[bytes]:
        """Return what the replica gets before anything that is stored after `offset`, until `groups.pending_sent`."""
        file = self._file
        assert file is not None
        place = Position(file.name, offset)
        return self.groups.pending_events(place, self._server_id, with_checksum=bool(file.checksum))
