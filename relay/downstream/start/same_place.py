"""The file and position in the next source's binlogs that equal the end of a source's binlogs.

It is the place before which everything that was executed by then is listed, and nothing else. Two sources may have written the same
transactions in another order: then there may be none.
"""

from dataclasses import dataclass
from typing import Final

from protocol.gtid.dump_decision import MariadbHoldings, MysqlHoldings
from protocol.gtid.file_gtids import FileGtidCollector, IndexBlock
from protocol.gtid.file_search import still_awaited
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList
from protocol.kernel.gtid_filter import GtidSkip
from protocol.position import Position
from relay.archive.read.file_snapshot import FileSnapshot
from relay.archive.storage.gtid_facts import GtidValue
from relay.downstream.gtid_filter.gtid_lookup import ArchivedGtids
from relay.downstream.gtid_filter.mysql_filter import MysqlGroupFilter
from relay.downstream.gtid_filter.seek import exact_seek

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SamePlace:
    """The place; `position` None: there is none, for the reason `why`."""

    position: Position | None
    why: str = ""


_OTHER_ORDER: Final = SamePlace(None, "the source now has the same transactions in another order")
_BEFORE: Final = SamePlace(None, "it lies before the binlogs that are kept of the source now")


def same_place(archived: ArchivedGtids, executed: GtidValue | None) -> SamePlace | None:
    """Return the place in the generation `archived` after what was `executed` by the end of the one before. None: not all of it came
    yet.

    Blocking. Raises: OSError, Malformed.
    """
    if archived.mysql is not None and isinstance(executed, GtidSet):
        return _of_mysql(archived, archived.mysql, executed)
    if archived.mariadb is not None and isinstance(executed, GtidList):
        return _of_mariadb(archived, archived.mariadb, executed)
    if executed is not None and not archived.files:
        return None
    return SamePlace(None, "the binlogs say nothing of GTIDs")


def _of_mysql(archived: ArchivedGtids, holdings: MysqlHoldings, executed: GtidSet) -> SamePlace | None:
    if not executed <= holdings.executed:
        return None
    if not holdings.purged <= executed:
        return _BEFORE
    wanted = (executed - holdings.purged).count
    needed = holdings.search.first_needed(executed)
    number = len(archived.files) - 1 if needed is None else needed
    snapshot = archived.files[number]
    passed = sum(holdings.search.inside(earlier).count for earlier in range(number))
    if needed is None:
        passed += holdings.search.inside(number).count
        offset = snapshot.end
    else:
        groups = MysqlGroupFilter(executed)
        head = snapshot.head()
        seek = exact_seek(snapshot, groups.find_seek(snapshot), GtidSkip(executed.intervals_by_key()), head.end)
        offset = head.end if seek is None else seek.target
        passed += 0 if seek is None else seek.transactions
    return SamePlace(Position(snapshot.name, offset)) if passed == wanted else _OTHER_ORDER


def _of_mariadb(archived: ArchivedGtids, holdings: MariadbHoldings, executed: GtidList) -> SamePlace | None:
    if not all(map(holdings.state.contains, executed)):
        return None
    number = holdings.first_needed(executed.position)
    if number is None:
        return _BEFORE
    waiting = {gtid.domain_id: gtid for gtid in still_awaited(holdings.befores[number], executed.position)}
    for snapshot in archived.files[number:]:
        offset = _first_sent(snapshot, waiting)
        if offset is not None or snapshot.name == archived.files.names[-1]:
            place = Position(snapshot.name, snapshot.end if offset is None else offset)
            return _OTHER_ORDER if waiting else SamePlace(place)
    return None


def _first_sent(snapshot: FileSnapshot, waiting: dict[int, DomainGtid]) -> int | None:
    """Return the offset of the first group that is sent to a replica that waits for these; remove those that come before it."""
    start = snapshot.head().end
    blocks = snapshot.blocks()
    if blocks is not None and len(blocks):
        keys = {
            domain.to_bytes(4, "little"): (gtid.server_id.to_bytes(4, "little"), gtid.sequence_number)
            for domain, gtid in waiting.items()
        }
        target, _groups = blocks.first_reaching(keys)
        start = target if start < target <= snapshot.end else start
    collector = FileGtidCollector("mariadb", checksum=snapshot.checksum, gap_bytes=0)
    collector.begin(start)
    with snapshot.open() as file:
        at = start
        while at < snapshot.end:
            data = file.read(at, min(_CHUNK, snapshot.end - at))
            if not data:
                break
            at += len(data)
            collector.take(data)
            if at >= snapshot.end:
                collector.finish()
            for group in collector.take_blocks():
                if not _is_passed(group, waiting):
                    return group.start
    return None


def _is_passed(group: IndexBlock, waiting: dict[int, DomainGtid]) -> bool:
    run = group.runs[0]
    domain, server = int.from_bytes(run.key[:4], "little"), int.from_bytes(run.key[4:8], "little")
    awaited = waiting.get(domain)
    if awaited is None:
        return False
    if server != awaited.server_id or run.first < awaited.sequence_number:
        return True
    if run.first == awaited.sequence_number:
        del waiting[domain]
        return True
    del waiting[domain]
    return False
