"""Where a replica begins that asks by file and position."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from protocol.commands import BinlogDump
from protocol.statements import SourceFacts
from relay.archive.archived_file import ArchivedFile
from relay.archive.replica_marks import ReplicaIdentity
from relay.downstream.archive_view import ServedArchive
from relay.downstream.positions import Decision, judge, not_here_yet

_RECHECK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class PositionStart:
    """The stream begins in `file` at `offset`. resumes: inside a transaction, where this replica's stream broke off."""

    file: ArchivedFile
    offset: int
    resumes: bool


async def find_position_start(
    request: BinlogDump,
    facts: SourceFacts,
    identity: ReplicaIdentity | None,
    archive: ServedArchive,
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
    deadline = loop.time() + (0.0 if request.ends_at_end else wait_s)
    while True:
        moved = next_move()
        files = archive.files
        name = request.file or (files[0].name if files else "")
        if name:
            check = await archive.check_position(name, request.offset)
            inside = check.verdict.name == "INSIDE_TRANSACTION"
            if inside and identity is not None:
                await until_left(identity)
            resumes = inside and identity is not None and archive.replicas.may_resume(identity, name, request.offset)
            held = (archive.files[0].name, archive.files[-1].name) if archive.files else None
            decision = judge(check, name, request.offset, files_held=held, facts=facts, may_resume=resumes)
            file = archive.file(name)
            if decision is Decision.ACCEPT and file is not None:
                return PositionStart(file, request.offset, inside)
        left = deadline - loop.time()
        if left <= 0:
            end = str(archive.end) if archive.end is not None else None
            raise not_here_yet(name, request.offset, end=end, waited_s=wait_s)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(moved.wait(), left)
        await asyncio.sleep(min(_RECHECK_S, left))
