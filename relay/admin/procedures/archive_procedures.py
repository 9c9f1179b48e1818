"""CALL binlog_relay.repair() and scrub(): damaged files are fetched again, all files are checked now."""

import asyncio
from collections.abc import Callable, Sequence

from protocol.errors import ErrorCode, StatementRefused
from protocol.resultset import AnswerColumn, Rows
from protocol.statements.requests import RepairFiles
from relay.archive.archive import Archive
from relay.archive_inspection.scrub import Scrub
from relay.config import DirectorySource, ServerSource
from relay.repair.file_origin import FileOrigin, origin_of
from relay.repair.repair import RepairRefused, RunningRepair

_MIB = 1 << 20


async def repair(
    archive: Archive,
    work: RunningRepair,
    source: ServerSource | DirectorySource,
    copies: Callable[[int], Sequence[FileOrigin]],
    request: RepairFiles,
) -> Rows:
    """Return the outcome for each file, a line each; none if no damage is known. copies: of a generation, the places to look for what
    the source does not supply. Raises: StatementRefused."""
    generation = archive.current
    try:
        origins = [origin_of(source), *await asyncio.to_thread(copies, generation.number)]
        outcomes = await work.run(generation, origins, [request.file] if request.file else [])
    except RepairRefused as error:
        raise StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, f"Not repaired: {error}") from error
    rows = tuple((one.file, "repaired" if one.is_repaired else "not repaired", one.text) for one in outcomes)
    return Rows((AnswerColumn.text("File", 64), AnswerColumn.text("State", 16), AnswerColumn.text("What", 1024)), rows)


def scrub(work: Scrub | None) -> Rows:
    """Return how much is read now. Raises: StatementRefused."""
    if work is None:
        raise StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, "There is no archive to check here")
    count = work.hurry()
    text = "All complete files are read and checked now: SHOW STATUS LIKE 'Binlog_relay_scrub%' tells how far it is"
    return Rows((AnswerColumn.text("MiB", 16), AnswerColumn.text("What", 256)), ((str(-(-count // _MIB)), text),))
