"""Places that are found by their content: a time, the executed transactions, a number of transactions."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ProtocolError
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition
from protocol.gtid.mysql_gtid import MysqlGtid
from protocol.position import Position
from relay.archive.storage.gtid_facts import GtidValue
from relay.binlog_tables.decode.levels import read_split
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.overlap import executed_before
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.places import Places
from relay.binlog_tables.plan.read_finding import ReadRefused
from relay.binlog_tables.plan.splits import written_between
from relay.binlog_tables.plan.wanted import Wanted, microseconds

_SPLIT_BYTES: Final = 64 << 20


def place_of_time(places: Places, time: datetime, start: Position | None = None) -> Position | None:
    """Return the start of the first transaction that has an event of `time` or later; None if there is none.

    Files that the source had ended before are not read. No transaction before `start` is known to qualify.
    """
    files = places.files()
    first = next((number for number, file in enumerate(files) if start is not None and file.name == start.file), 0)
    files = written_between(places.store, files[first:], time.timestamp(), float("inf"))
    if not files:
        return None
    least = pa.scalar(microseconds(time), pa.int64())

    def is_late(batch: pa.RecordBatch) -> pa.Array:
        return pc.greater_equal(batch.column("last_time").cast(pa.int64()), least)

    begin = start if start is not None and start.file == files[0].name else Position(files[0].name, FIRST_EVENT)
    return _first(places, begin, "last_time", is_late)


def place_after(places: Places, start: Position, count: int, end: Position) -> Position:
    """Return the end of the transaction that is number `count` after `start`, but no place after `end`."""
    left = count
    for file, batch in _transactions(places, start, end, "start"):
        if batch.num_rows > left:
            return Position(file, batch.column("start")[left].as_py())
        left -= batch.num_rows
    return end


def place_behind(places: Places, executed: str) -> Position:
    """Return the start of the first transaction that `executed` does not contain; the end if it contains all.

    `executed` is a GTID set of MySQL, or a position of MariaDB, one GTID for each domain. Raises: ReadRefused.
    """
    known = _parsed(executed)
    begin: Position | None = None
    files = places.files()
    for file in reversed(files):
        head = executed_before(places.store, file)
        # An empty head in a later file may come from a server that gave no GTIDs then
        if head is not None and known.holds_all_of(head) and (head or file is files[0]):
            begin = Position(file.name, FIRST_EVENT)
            break
    if begin is None:
        raise ReadRefused(
            f"startingGtid {executed}: the binlogs that are there begin behind these transactions, or have no GTIDs. What came "
            "between is not in them. A copy of the source that is newer, or startingPosition, is needed."
        )

    def is_new(batch: pa.RecordBatch) -> pa.Array:
        return pa.array([not known.take(gtid) for gtid in batch.column("gtid").to_pylist()], pa.bool_())

    return _first(places, begin, "gtid", is_new) or places.newest(begin)


def _first(
    places: Places, start: Position, column: str, is_wanted: Callable[[pa.RecordBatch], pa.Array]
) -> Position | None:
    end = places.newest(start)
    for file, batch in _transactions(places, start, end, "start", column):
        found = batch.filter(is_wanted(batch))
        if found.num_rows:
            return Position(file, found.column("start")[0].as_py())
    return None


def _transactions(
    places: Places, start: Position, end: Position, *columns: str
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the transactions of [start, end) in file order, each batch with the name of its file."""
    options = ReadOptions("transactions", columns, failfast=False)
    for split in places.between(start, end, _SPLIT_BYTES, held=None):
        for batch in read_split(store_of(split.path), split, options, Wanted(), keeps=True):
            yield split.name, batch


class _MysqlExecuted:
    def __init__(self, gtids: GtidSet) -> None:
        self._gtids = gtids

    def holds_all_of(self, head: GtidValue) -> bool:
        return isinstance(head, GtidSet) and head <= self._gtids

    def take(self, gtid: str | None) -> bool:
        """Return whether it was executed; transactions must be passed in their order."""
        return gtid is not None and MysqlGtid.from_text(gtid) in self._gtids


class _MariadbExecuted:
    """The executed transactions up to one of each domain, by its number, and by its place where numbers went back."""

    def __init__(self, position: GtidPosition) -> None:
        self._last = {gtid.domain_id: gtid for gtid in position}
        self._passed: set[int] = set()

    def holds_all_of(self, head: GtidValue) -> bool:
        return isinstance(head, GtidList) and all(
            gtid.domain_id in self._last and gtid.sequence_number <= self._last[gtid.domain_id].sequence_number
            for gtid in head
        )

    def take(self, gtid: str | None) -> bool:
        """Return whether it was executed; transactions must be passed in their order."""
        if gtid is None:
            return False
        one = DomainGtid.from_text(gtid)
        last = self._last.get(one.domain_id)
        if last is None or one.domain_id in self._passed or one.sequence_number > last.sequence_number:
            return False
        if one == last:
            self._passed.add(one.domain_id)
        return True


def _parsed(executed: str) -> _MysqlExecuted | _MariadbExecuted:
    for read in (
        lambda: _MysqlExecuted(GtidSet.from_text(executed)),
        lambda: _MariadbExecuted(GtidPosition.from_text(executed)),
    ):
        try:
            return read()
        except (ProtocolError, ValueError):
            continue
    raise ReadRefused(
        f"startingGtid is {executed!r}; it takes what was executed: a GTID set of MySQL (3e11fa47-…:1-57), or a position of "
        "MariaDB (0-1-57)"
    )
