"""The start of a replica that asks by file and position.

The same file name may exist in several generations of the archive, which mirror different sources. A replica that was receiving the
files of a former source asks for them again by the same names, so its recorded marks are checked first.
"""

import asyncio
import contextlib
from typing import Final, Protocol

from protocol.binlog.layout import FIRST_EVENT
from protocol.commands import BinlogDump
from protocol.position import Position, is_later
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.read.position_check import PositionCheck, Verdict
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.archive.storage.replica_marks import ReplicaIdentity
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.request.dump_request import DumpRequest
from relay.downstream.request.refusal import refusal
from relay.downstream.request.request_checks import Decision, decide, not_here_yet
from relay.downstream.request.source_state import SourceState
from relay.downstream.start.across_gap import gap_behind, is_ahead
from relay.downstream.start.by_gtid import LEAST_ASKED_S
from relay.downstream.start.place_after import place_after
from relay.downstream.start.segment import Segment, SegmentOpener

_RECHECK_S: Final = 0.05


class PositionHost(Protocol):
    """The parts of the server that a search for a position needs."""

    archive: Archive
    gtid_lookup: GtidLookup
    position_wait_s: float
    resumes_all: bool
    source: SourceState

    async def until_left(self, identity: ReplicaIdentity) -> None:
        """Wait until it is known what this replica had read when it ended a stream of its own just now."""

    def next_move(self) -> asyncio.Event:
        """Return an event that is set when the archive grows from now on."""


async def find_position_start(
    request: BinlogDump, about: DumpRequest, host: PositionHost, opener: SegmentOpener
) -> Segment:
    """Return where the stream begins. about: the client of `request`. Wait while the position may still arrive, without heartbeats:
    they would carry a smaller position.

    Raises: PositionRefused; ArchiveError, OSError, Malformed for an archive that cannot be read.
    """
    loop = asyncio.get_running_loop()
    archive, identity = host.archive, about.identity
    wait_s = 0.0 if request.ends_at_end else host.position_wait_s
    deadline = loop.time() + wait_s
    lacks: bool | None = None
    while True:
        moved = host.next_move()
        # Without a name, the first archived file is used.
        oldest = archive.all[0].files
        name = request.file or (oldest[0].name if oldest else "")
        generation = archive.current
        named = archive.named(name)
        if named is not None:
            generation, name = named
            check = await generation.check_position(name, request.offset)
        elif name:
            generation, check = await _generation_of(host, identity, name, request)
        if name:
            _check_before_gap(archive, generation, name, request)
            _check_damage(generation, name, check)
            if check.verdict is Verdict.UNKNOWN_FILE and _is_beyond(archive, name):
                # The source knows whether a file exists that the relay does not have yet, as after another relay.
                if lacks is None:
                    lacks = await _source_lacks(host, name, wait_s)
                if not lacks:
                    check = PositionCheck(Verdict.FUTURE, None, None, None)
            inside = check.verdict is Verdict.INSIDE_TRANSACTION
            if inside and identity is not None:
                await host.until_left(identity)
            known = inside and identity is not None and generation.replicas.may_resume(identity, name, request.offset)
            resumes = known or (inside and host.resumes_all)
            held = (generation.files[0].name, generation.files[-1].name) if generation.files else None
            decision = decide(check, name, request.offset, files_held=held, may_resume=resumes)
            if decision is Decision.ACCEPT and generation.file(name) is not None:
                return await opener.open(generation, name, request.offset, resumes=inside)
        left = deadline - loop.time()
        if left <= 0:
            end = str(generation.end) if generation.end is not None else None
            raise not_here_yet(name, request.offset, end=end, waited_s=wait_s)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(moved.wait(), left)
        await asyncio.sleep(min(_RECHECK_S, left))


def _is_beyond(archive: Archive, name: str) -> bool:
    files = archive.current.files
    return bool(files) and is_later(name, files[-1].name)


async def _source_lacks(host: PositionHost, name: str, wait_s: float) -> bool:
    """Return whether the source says that it has no such file; a source that does not answer counts as no."""
    try:
        return await asyncio.wait_for(host.source.lacks_file(name), max(wait_s, LEAST_ASKED_S))
    except TimeoutError:
        return False


async def _generation_of(
    host: PositionHost, identity: ReplicaIdentity | None, name: str, request: BinlogDump
) -> tuple[Generation, PositionCheck]:
    """Return the generation that the position belongs to, and the state of the position. Raises: ArchiveError, OSError, Malformed."""
    archive = host.archive
    newest, offset = archive.current, request.offset
    if not request.file:
        generation = archive.all[0]
        return generation, await generation.check_position(name, offset)
    check = await newest.check_position(name, offset)
    earlier = [one for one in reversed(archive.all[:-1]) if one.file(name) is not None]
    if not earlier:
        return newest, check
    gap = next((one.gap for one in archive.all if one.gap is not None and one.number > earlier[-1].number), None)
    if gap is not None and newest.file(name) is not None and identity is not None and newest.replicas.knows(identity):
        return newest, check  # no replica goes back across a gap
    is_boundary = check.verdict is Verdict.BOUNDARY
    if identity is not None:
        await host.until_left(identity)
    if identity is not None and not newest.replicas.may_resume(identity, name, offset):
        for generation in earlier:
            if not generation.replicas.may_resume(identity, name, offset):
                continue
            # This very place may have been named to it, the same as the end of what it was sent.
            if is_boundary and await _is_place_after(archive, host.gtid_lookup, generation, Position(name, offset)):
                break
            return generation, await generation.check_position(name, offset)
    if gap is not None and identity is not None and check.verdict in (Verdict.BOUNDARY, Verdict.FUTURE):
        await _check_unambiguous(earlier, newest, name, offset)
    if not is_boundary:
        for generation in earlier:
            other = await generation.check_position(name, offset)
            if other.verdict is Verdict.BOUNDARY or newest.file(name) is None:
                return generation, other
    return newest, check


def _check_before_gap(archive: Archive, generation: Generation, name: str, request: BinlogDump) -> None:
    """Refuse a replica that has what the source has lost. Raises: PositionRefused."""
    behind = gap_behind(archive, generation)
    if behind is None or request.ends_at_end or generation.file(name) is None:
        return
    place, gap = Position(name, request.offset), behind[1]
    if place > gap.fork:
        raise is_ahead(place, gap)


def _check_damage(generation: Generation, name: str, check: PositionCheck) -> None:
    """Refuse a place that the archive had, in words that do not blame the replica. Raises: ArchiveDamaged."""
    file = generation.file(name)
    if check.verdict is Verdict.PAST_END and file is not None and file.damaged:
        what = "nothing behind it can be read" if file.end > FIRST_EVENT else "nothing of the file can be read"
        raise ArchiveDamaged(what, file=name, offset=file.end, boundary=file.end)


async def _check_unambiguous(earlier: list[Generation], newest: Generation, name: str, offset: int) -> None:
    """Refuse a place that exists in two generations, or will, if nothing decides which is meant. Raises: PositionRefused."""
    for generation in earlier:
        check = await generation.check_position(name, offset)
        if check.verdict is Verdict.BOUNDARY:
            raise refusal(
                f"{name}:{offset} is a place in two files: the source used the name again behind an accepted gap. Name the one "
                f"that is meant: MASTER_LOG_FILE='g{generation.number:04d}.{name}' before the gap, or "
                f"'g{newest.number:04d}.{name}' behind it"
            )


async def _is_place_after(archive: Archive, gtids: GtidLookup, generation: Generation, place: Position) -> bool:
    if gap_behind(archive, generation) is not None:
        return False  # that place has a name of its own
    found = await place_after(archive, gtids, generation)
    return found is not None and found.position == place
