"""SELECT BINLOG_GTID_POS('file', position): the GTIDs of a replica at that position.

A MariaDB replica by file and position asks for it whenever it connects, and takes the answer for its own GTID state, so that it can
change to GTIDs later. Source: MariaDB 10.11 `sql_repl.cc (gtid_state_from_binlog_pos)`.
"""

from dataclasses import replace
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.mariadb import DomainGtid, GtidList
from protocol.resultset import AnswerColumn, ColumnType, Rows
from protocol.statements.requests import AskGtidPosition
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.read.file_snapshot import FileSnapshot
from relay.archive.read.position_check import Verdict
from relay.archive.storage.archive_errors import ArchiveError
from relay.binlog_file.file_bytes import pieces
from relay.fairness.client_threads import in_turn

_COLUMN: Final = AnswerColumn("", ColumnType.LONG_BLOB, 16777216)


async def gtid_position(archive: Archive, request: AskGtidPosition) -> Rows:
    """Return the answer; NULL for a position that is no event's place, or is not published, or cannot be read."""
    try:
        text = await _text(archive, request.file, max(request.position, FIRST_EVENT))
    except (ArchiveError, OSError, Malformed):
        text = None  # anything uncertain would be loaded into the replica's state
    return Rows((replace(_COLUMN, name=request.label),), ((text,),))


async def _text(archive: Archive, name: str, offset: int) -> str | None:
    named = archive.named(name)
    if named is not None:
        generation: Generation | None = named[0]
        name = named[1]
    else:
        generation = next((one for one in reversed(archive.all) if one.file(name) is not None), None)
    file = generation.file(name) if generation is not None else None
    if generation is None or file is None or file.flavour != "mariadb" or offset > file.end:
        return None
    check = await generation.check_position(name, offset)
    if check.verdict not in (Verdict.BOUNDARY, Verdict.INSIDE_TRANSACTION):
        return None
    # A group counts from its first event on.
    inside = check.verdict is Verdict.INSIDE_TRANSACTION and check.group is not None
    stop = check.group[1] if inside and check.group is not None else offset
    if stop is None:
        return None
    snapshot = FileSnapshot(name, generation.path(name), file.end, bool(file.checksum), layer=generation.layer)
    return await in_turn(_state, snapshot, stop)


def _state(snapshot: FileSnapshot, stop: int) -> str:
    """Return the newest group of each domain up to `stop`, the end of a group. Blocking. Raises: OSError, Malformed."""
    start, passed = FIRST_EVENT, []
    for block in snapshot.blocks() or ():
        if block.stop > stop:
            break
        start = block.stop
        for run in block.runs:
            domain, server = int.from_bytes(run.key[:4], "little"), int.from_bytes(run.key[4:8], "little")
            passed.append(DomainGtid(domain, server, run.last))
    head = _collected(snapshot, FIRST_EVENT, snapshot.head().end)
    before = head.before if isinstance(head.before, GtidList) else GtidList()
    rest = _collected(snapshot, start, stop).inside()
    assert isinstance(rest, GtidList)
    return str(before.advanced(passed).advanced(rest).position)


def _collected(snapshot: FileSnapshot, start: int, stop: int) -> FileGtidCollector:
    collector = FileGtidCollector("mariadb", checksum=snapshot.checksum)
    collector.begin(start)
    with snapshot.open() as file:
        for piece in pieces(file, start, stop):
            collector.take(piece)
    return collector
