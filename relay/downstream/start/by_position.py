"""Where a replica begins that asks by file and position.

Names of files may be those of several generations of the archive, which mirror different sources. A replica that was being
sent the files of a former source asks for them again by the same names, so what was noted of it decides first.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from protocol.commands import BinlogDump
from protocol.position import Position
from protocol.statements import SourceFacts
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.read.position_check import PositionCheck, Verdict
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.replica_marks import ReplicaIdentity
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.request.request_checks import Decision, judge, not_here_yet
from relay.downstream.start.place_after import place_after

_RECHECK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class PositionStart:
    """The stream begins in `file` of `archive` at `offset`. resumes: inside a transaction, where this replica's stream broke
    off."""

    generation: Generation
    file: ArchivedFile
    offset: int
    resumes: bool


async def find_position_start(
    request: BinlogDump,
    facts: SourceFacts,
    identity: ReplicaIdentity | None,
    archive: Archive,
    gtids: GtidLookup,
    *,
    wait_s: float,
    next_move: Callable[[], asyncio.Event],
    until_left: Callable[[ReplicaIdentity], Awaitable[None]],
) -> PositionStart:
    """Where to begin. Waits up to `wait_s` while the position may still arrive: without heartbeats, they would carry a
    smaller position.

    Raises: PositionRefused; ArchiveError for an archive that cannot be read.
    """
    loop = asyncio.get_running_loop()
    wait_s = 0.0 if request.ends_at_end else wait_s
    deadline = loop.time() + wait_s
    while True:
        moved = next_move()
        # Without a name the first file that there is.
        oldest = archive.all[0].files
        name = request.file or (oldest[0].name if oldest else "")
        generation = archive.current
        if name:
            generation, check = await _generation_of(archive, gtids, identity, name, request, until_left)
            inside = check.verdict is Verdict.INSIDE_TRANSACTION
            if inside and identity is not None:
                await until_left(identity)
            resumes = inside and identity is not None and generation.replicas.may_resume(identity, name, request.offset)
            held = (generation.files[0].name, generation.files[-1].name) if generation.files else None
            decision = judge(check, name, request.offset, files_held=held, facts=facts, may_resume=resumes)
            file = generation.file(name)
            if decision is Decision.ACCEPT and file is not None:
                return PositionStart(generation, file, request.offset, inside)
        left = deadline - loop.time()
        if left <= 0:
            end = str(generation.end) if generation.end is not None else None
            raise not_here_yet(name, request.offset, end=end, waited_s=wait_s)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(moved.wait(), left)
        await asyncio.sleep(min(_RECHECK_S, left))


async def _generation_of(
    archive: Archive,
    gtids: GtidLookup,
    identity: ReplicaIdentity | None,
    name: str,
    request: BinlogDump,
    until_left: Callable[[ReplicaIdentity], Awaitable[None]],
) -> tuple[Generation, PositionCheck]:
    """The generation that the position is of, and what is there. Raises: ArchiveError, OSError, Malformed."""
    newest, offset = archive.current, request.offset
    if not request.file:
        generation = archive.all[0]
        return generation, await generation.check_position(name, offset)
    check = await newest.check_position(name, offset)
    earlier = [one for one in reversed(archive.all[:-1]) if one.file(name) is not None]
    if not earlier:
        return newest, check
    is_boundary = check.verdict is Verdict.BOUNDARY
    if identity is not None:
        await until_left(identity)
    if identity is not None and not newest.replicas.may_resume(identity, name, offset):
        for generation in earlier:
            if not generation.replicas.may_resume(identity, name, offset):
                continue
            # It may have been told this very place, the same as the end of what it was sent.
            if is_boundary and await _is_place_after(archive, gtids, generation, Position(name, offset)):
                break
            return generation, await generation.check_position(name, offset)
    if not is_boundary:
        for generation in earlier:
            other = await generation.check_position(name, offset)
            if other.verdict is Verdict.BOUNDARY or newest.file(name) is None:
                return generation, other
    return newest, check


async def _is_place_after(archive: Archive, gtids: GtidLookup, generation: Generation, place: Position) -> bool:
    found = await place_after(archive, gtids, generation)
    return found is not None and found.position == place
