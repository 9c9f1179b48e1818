"""The switch of a stream from the end of one generation of the archive to the next: the binlogs of the source that came after.

by GTID                continues there, on the same connection
by file and position   ends with ERR 1236, which names the same place in the next generation
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import structlog

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import AnsweredError, ErrorCode, Malformed, PositionRefused
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.generation import Generation
from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveError
from relay.downstream.gtid_filter.gtid_filter import GtidFilter
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.request.refusal import INTERNAL_ERROR, damage_refusal, refusal
from relay.downstream.start.across_gap import at_gap, gap_behind, is_ahead, lacks_some, note_follower, place_behind
from relay.downstream.start.gtid_request import GtidRequest
from relay.downstream.start.place_after import PlaceSearches, rest
from relay.downstream.start.same_place import SamePlace
from relay.downstream.start.segment import Segment, SegmentOpener, missing_file
from relay.process.background import begin_task, tell_fault

# The result of a switch: where the stream continues, its file open, or the error that it ends with.
Found = Segment | AnsweredError


class GenerationSwitch(Protocol):
    """The switch that a dump uses at the end of a file that has no next one. On the event loop."""

    def is_due(self) -> bool:
        """Return whether the generation that is read has ended and a later one continues."""

    def begin(self, end: Position, before: GtidFilter | None, done: Callable[[Found], None]) -> None:
        """Look for the switch at the generation's end. `done` is called later, unless `cancel` is called: with where the stream
        continues, or with the error that ends it. before: the stream's present filter.
        """

    def cancel(self) -> None:
        """Cancel the switch: the dump has ended."""


class _Task(ABC):
    """A switch that is looked for in a task. On the event loop. `reading`: the generation of the stream."""

    def __init__(self, archive: Archive, reading: Generation) -> None:
        self.archive = archive
        self.reading = reading
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("relay.downstream")
        self._task: asyncio.Task[None] | None = None

    def is_due(self) -> bool:
        """Implement `GenerationSwitch.is_due`."""
        reading = self.reading
        # One whose files were all purged is in no list any more.
        return self.following is not None and (reading.ended or reading not in self.archive.all)

    @property
    def following(self) -> Generation | None:
        """The generation after the one that is read."""
        return self.archive.after(self.reading)

    def begin(self, end: Position, before: GtidFilter | None, done: Callable[[Found], None]) -> None:
        """Implement `GenerationSwitch.begin`."""
        self._task = begin_task(self._run(end, before, done), "looking for where a stream goes on")

    def cancel(self) -> None:
        """Implement `GenerationSwitch.cancel`."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, end: Position, before: GtidFilter | None, done: Callable[[Found], None]) -> None:
        found: Found
        try:
            found = await self.find(end, before)
        except PositionRefused as refused:
            found = refused
        except ArchiveDamaged as error:
            found = damage_refusal(error, self.reading.damage_advice)
        except (ArchiveError, OSError, Malformed) as error:
            text = f"{end}: the files of the next source cannot be read: {error}"
            found = refusal(text, ErrorCode.ER_UNKNOWN_ERROR)
        except Exception as fault:
            # An internal fault must not leave the replica waiting without an answer.
            tell_fault("passage_failed", fault, end=str(end))
            text = f"{end}: {INTERNAL_ERROR}. The replica may try again"
            found = refusal(text, ErrorCode.ER_UNKNOWN_ERROR)
        try:
            done(found)
        except Exception as fault:
            tell_fault("passage_failed", fault, end=str(end))
            done(refusal(f"{end}: {INTERNAL_ERROR}. The replica may try again", ErrorCode.ER_UNKNOWN_ERROR))

    @abstractmethod
    async def find(self, end: Position, before: GtidFilter | None) -> Segment:
        """Find where the stream continues. Raises: PositionRefused; ArchiveError, OSError, Malformed for an archive that cannot be
        read.
        """


class GtidSwitch(_Task):
    """The switch of a replica that asked by GTID. requested: its request."""

    def __init__(
        self,
        archive: Archive,
        reading: Generation,
        gtids: GtidLookup,
        opener: SegmentOpener,
        requested: GtidRequest,
    ) -> None:
        super().__init__(archive, reading)
        self._gtids = gtids
        self._opener = opener
        self._requested = requested

    async def find(self, end: Position, before: GtidFilter | None) -> Segment:
        """Implement `_Task.find`."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            following, sent = self.following, self.reading.executed
            assert following is not None
            gap = following.gap
            if gap is not None:
                self._check_not_ahead(end, gap)
                sent = following.before
            try:
                start = await self._gtids.ask_of(
                    following,
                    lambda archived: self._requested.go_on(sent, before, archived),  # noqa: B023
                )
            except PositionRefused as refused:
                if gap is None:
                    raise
                raise lacks_some(gap, refused) from refused
            except FileNotFoundError as error:
                raise missing_file(error, self.archive) from error
            if start is not None and self._has_begun(start):
                break
            await rest(loop.time() - began)
        segment = await self._opener.open(following, start.first_file, filter=start)
        note_follower(self.archive, following, self._opener.identity)
        self.reading = following
        return segment

    def _check_not_ahead(self, end: Position, gap: AcceptedGap) -> None:
        """Refuse a replica that was sent all of a generation, and so what the source lost of it. Raises: PositionRefused."""
        lost_in_it = gap.lost and gap.fork == gap.after
        if lost_in_it or end > gap.fork:
            raise is_ahead(end, gap, gap.lost)

    def _has_begun(self, start: GtidFilter) -> bool:
        """Return whether the file's format description is published; one that was removed meanwhile is left to the opener to refuse."""
        file = start.generation.file(start.first_file)
        return file is None or file.end > FIRST_EVENT


class PositionSwitch(_Task):
    """The switch of a replica that reads by file and position."""

    def __init__(self, archive: Archive, reading: Generation, searches: PlaceSearches) -> None:
        super().__init__(archive, reading)
        self._searches = searches

    async def find(self, end: Position, before: GtidFilter | None) -> Segment:
        """Implement `_Task.find`. It always raises."""
        behind = gap_behind(self.archive, self.reading)
        if behind is not None:
            following, gap = behind
            if end > gap.fork:
                raise is_ahead(end, gap)
            raise at_gap(end, gap, place_behind(self.archive, following, gap))
        place = await self._searches.find(self.reading)
        raise ended_here(end, place, self.following)


def ended_here(end: Position, place: SamePlace, following: Generation | None) -> PositionRefused:
    """Return ERR 1236 for a replica that reads by file and position, at the end of a source's binlogs."""
    identity = following.identity if following is not None else None
    who = "another source"
    if identity is not None:
        who += f", server_id {identity.server_id}" + (f", {identity.server_uuid}" if identity.server_uuid else "")
    if place.position is None:
        advice = f"The same place there has no file and position, {place.why}: follow by GTID, or copy the data again"
    else:
        file, offset = place.position.file, place.position.offset
        advice = (
            f"The same place there is {file}, position {offset}: "
            f"CHANGE MASTER TO MASTER_LOG_FILE='{file}', MASTER_LOG_POS={offset}"
        )
    return refusal(f"{end} is where the binlogs of a former source end; binlog-relay goes on with {who}. {advice}")
