"""A stretch of the archive as the feed applies it: whole transactions, by table, without what was rolled back."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from protocol.sql.server_version import version_numbers
from protocol.sql.tables.source_table import TableName
from relay.feed.archive_reading import IMAGES, ArchiveReading, RowParts
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop, table_stop
from relay.feed.spool.part_rows import PartRows
from relay.feed.spool.rows_spool import RowsSpool
from relay.feed.spool.spool_directory import SpoolDirectory
from relay.feed.statements.logged_changes import (
    RENAMED,
    DdlChange,
    UnseenChange,
    logged_changes,
    rolls_back_in_part,
)
from relay.feed.xa_commits import xa_commits
from relay.source_tables.names import in_lower_case

_HELD_BACK: Final = pa.array(["xa_prepare"], pa.string())
_CUT: Final = "transaction_cut"
_BY_SERVER: Final = 0x0010
"""This flag of rows (USE_SQL_FOREIGN_KEY_F, MySQL 9.6) says that the server enforces their foreign keys and logs the changes."""


@dataclass(slots=True)
class TablePart:
    """The changes of one table in a batch: its rows, its definitions, and changes that have no rows."""

    key: TableName
    rows: PartRows = field(default_factory=lambda: PartRows([]))
    definitions: list[DdlChange] = field(default_factory=list)
    unseen: list[UnseenChange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BatchSpace:
    """The memory that the rows of a batch may take; the rest is written to `directory` (None: all of it is in memory)."""

    directory: SpoolDirectory | None = None
    most_bytes: int = 1 << 62

    def spool(self) -> RowsSpool:
        """Return a spool for rows of one batch."""
        return RowsSpool(self.directory, self.most_bytes)


@dataclass(slots=True)
class FeedBatch:
    """The stretch [start, end), which must be closed once it is applied or discarded. `stop` says why it ends early.

    `rolled_back` and `prepared` are versions of transactions' places. `by_engine` are those of transactions whose foreign keys the
    engine enforces, which no binlog records; None means that all may be such.
    """

    start: FeedOffset
    end: FeedOffset
    parts: dict[TableName, TablePart] = field(default_factory=dict)
    unseen: list[UnseenChange] = field(default_factory=list)
    aside: dict[TableName, list[DdlChange]] = field(default_factory=dict)
    """The definitions of tables that are set aside: one of them may be what brings its table back."""
    rolled_back: frozenset[int] = frozenset()
    prepared: frozenset[int] = frozenset()
    by_engine: frozenset[int] | None = None
    stop: FeedStop | None = None
    rows: int = 0
    last_time: Any = None
    """The time of its newest transaction."""
    space: BatchSpace = field(default_factory=BatchSpace)
    spools: list[RowsSpool] = field(default_factory=list)

    def spool(self) -> RowsSpool:
        """Return a spool for more rows, which is closed with the batch."""
        self.spools.append(self.space.spool())
        return self.spools[-1]

    def close(self) -> None:
        """Remove what the batch has on disk."""
        for one in self.spools:
            one.close()
        self.spools.clear()


@dataclass(frozen=True, slots=True)
class WantedTables:
    """The tables for which a batch is made. `known` are those in the lake; rows are read only of `schemas`.

    `passed` returns whether a table is fed beyond a place, so that errors there no longer matter to it. `parts` are the parts of rows
    to read. `names_fold` is True if names that differ only in case may mean one table, as far as earlier batches show.
    """

    wanted: Callable[[TableName], bool]
    known: list[TableName] = field(default_factory=list)
    schemas: list[str] | None = None
    passed: Callable[[TableName, FeedOffset], bool] = lambda _key, _place: False
    parts: RowParts = IMAGES
    names_fold: bool = True
    space: BatchSpace = field(default_factory=BatchSpace)
    aside: frozenset[TableName] = frozenset()
    """The tables that are set aside, of which only definitions are read."""


def read_batch(reading: ArchiveReading, start: FeedOffset, end: FeedOffset, tables: WantedTables) -> FeedBatch:
    """Return the changes of the wanted tables in [start, end).

    The batch ends before the first transaction that cannot be read, and before a RENAME, which gets a batch of its own.
    """
    transactions = reading.transactions(start, end)
    finding = transactions.column("finding")
    for one in transactions.filter(pc.and_(pc.is_valid(finding), pc.not_equal(finding, _CUT))).slice(0, 1).to_pylist():
        position = one["start"] if one["start"] is not None else one["finding_position"]
        place = _boundary(one["file"], position, _ends(transactions), start)
        return _before(reading, place, start, tables, _unreadable(one, place, reading))
    batch = FeedBatch(start, end, space=tables.space)
    batch.last_time = pc.max(transactions.column("last_time")).as_py()
    cut = pc.fill_null(pc.equal(finding, _CUT), False)
    batch.rolled_back = _places(
        transactions.filter(pc.or_(cut, pc.fill_null(transactions.column("rolled_back"), False)))
    )
    if all(_knows_flag(reading.server_version(place)) for place in (start, end)):
        unlogged = pc.equal(pc.bit_wise_and(transactions.column("row_flags"), _BY_SERVER), 0)
        batch.by_engine = _places(transactions.filter(pc.fill_null(unlogged, False)))
    held_back = pc.is_in(transactions.column("closed_by"), _HELD_BACK)
    batch.prepared = _places(transactions.filter(held_back))
    if batch.prepared:
        batch.prepared -= reading.in_one_phase(start, end)
    try:
        wrong = _read_rows(reading, batch, transactions, tables)
    except BaseException:
        batch.close()
        raise
    if wrong is not None:
        batch.close()
        return _before(reading, wrong[0], start, tables, wrong[1])
    plain = pc.all(pc.is_in(transactions.column("kind"), pa.array(["row", "none"]))).as_py()
    _add_statements(reading, batch, transactions, tables, plain=plain is not False)
    batch.unseen += [UnseenChange(place, None, reason) for place, reason in reading.gaps(start, end)]
    if pc.any(pc.equal(transactions.column("closed_by"), "xa_commit")).as_py():
        batch.unseen += xa_commits(reading, start, end)
    cut = _rename_cut(batch)
    if cut is None:
        return batch
    batch.close()
    return read_batch(reading, start, cut, tables)


def _read_rows(
    reading: ArchiveReading, batch: FeedBatch, transactions: pa.Table, tables: WantedTables
) -> tuple[FeedOffset, FeedStop] | None:
    """Read the rows of the wanted tables into the batch; return where it must end, and why, if something cannot be read."""
    spool = batch.spool()
    for rows in reading.rows(batch.start, batch.end, tables.schemas, tables.parts):
        wrong = _wrong_row(reading, rows, batch.start, transactions, tables)
        if wrong is not None:
            return wrong
        batch.rows += rows.num_rows
        spool.add(rows)
    batch.parts = {key: TablePart(key, rows) for key, rows in spool.parts().items() if tables.wanted(key)}
    return None


def _wrong_row(
    reading: ArchiveReading, rows: pa.Table, start: FeedOffset, transactions: pa.Table, tables: WantedTables
) -> tuple[FeedOffset, FeedStop] | None:
    """Return the first row that cannot be read and matters: the end of what is before it, and the stop."""
    for one in rows.filter(pc.is_valid(rows.column("finding"))).to_pylist():
        key = (one["schema"], one["table"])
        position = one["transaction"] if one["transaction"] is not None else one["position"]
        if one["schema"] is not None and (
            not tables.wanted(key) or tables.passed(key, FeedOffset.at(one["file"], position))
        ):
            continue
        place = _boundary(one["file"], position, _ends(transactions), start)
        stop = _unreadable(one, place, reading)
        if one["schema"] is not None:
            stop = table_stop(one["finding"], stop.place, ".".join(key), stop.what)
        return place, stop
    unnamed = rows.filter(pc.equal(rows.column("named"), "none")).select(["file", "transaction", "schema", "table"])
    for one in unnamed.group_by(unnamed.column_names, use_threads=False).aggregate([]).to_pylist():
        key = (one["schema"], one["table"])
        place = FeedOffset.at(one["file"], one["transaction"])
        if tables.wanted(key) and not tables.passed(key, place):
            return place, _unnamed(key, reading.told(place))
    return None


def renames_of(batch: FeedBatch) -> list[DdlChange]:
    """Return the definitions that rename its tables."""
    return [one for part in batch.parts.values() for one in part.definitions if one.action == RENAMED]


def _rename_cut(batch: FeedBatch) -> FeedOffset | None:
    """Return where a batch must end so that a RENAME is alone in one; None if it may stay as it is."""
    found = renames_of(batch)
    if not found:
        return None
    first = min(found, key=lambda one: one.start)
    if first.start > batch.start:
        return first.start
    return first.end if first.end < batch.end else None


def _add_statements(
    reading: ArchiveReading, batch: FeedBatch, transactions: pa.Table, tables: WantedTables, *, plain: bool
) -> None:
    """Add definitions and changes without rows. `plain` groups consist of rows, so that only ROLLBACK TO is looked for, which is logged
    if other engines take part."""
    if plain and not batch.parts:
        return
    statements = reading.statements(batch.start, batch.end)
    text = statements.column("statement")
    kept = pc.match_substring(text, "rollback", ignore_case=True) if plain else pc.not_equal(text, "BEGIN")
    rows = statements.filter(kept).to_pylist()
    if plain:
        rows = [row for row in rows if rolls_back_in_part(row["statement"])]
    if not rows:
        return
    names = [*tables.known, *batch.parts]
    found = logged_changes(
        rows,
        _ends(transactions),
        reading.server_version,
        names,
        reading.used_temporary,
        lambda: tables.names_fold and not has_capitals(reading.changed_tables(batch.start, batch.end)),
    )
    for definition in found.definitions:
        if tables.wanted(definition.key):
            part = batch.parts.setdefault(definition.key, TablePart(definition.key))
            part.definitions.append(definition)
            if definition.hides:
                part.unseen.append(
                    UnseenChange(definition.start, frozenset(), definition.hides, position=definition.position)
                )
        elif definition.key in tables.aside:
            batch.aside.setdefault(definition.key, []).append(definition)
    batch.unseen = found.unseen


def has_capitals(names: Iterable[TableName]) -> bool:
    """Return whether some names of logged rows are not in lower case; on a server whose names are case-insensitive all are."""
    return any(in_lower_case(one) != one for one in names)


def _knows_flag(version: str) -> bool:
    """Return whether a server of this version may log the changes of its foreign keys. A replica of an older server does not, nor one
    with innodb_native_foreign_keys = ON; its rows say so."""
    return "mariadb" not in version.lower() and version_numbers(version)[:2] >= (9, 6)


def _ends(transactions: pa.Table) -> dict[tuple[str, int], tuple[FeedOffset, int]]:
    """Map (file, start) of the transactions to their end and sequence."""
    columns = [transactions.column(name).to_pylist() for name in ("file", "start", "end", "sequence")]
    return {
        (file, start): (FeedOffset.at(file, end), sequence or 0)
        for file, start, end, sequence in zip(*columns, strict=True)
        if start is not None and end is not None
    }


def _places(transactions: pa.Table) -> frozenset[int]:
    """Return the starts of transactions, as versions."""
    columns = [transactions.column(name).to_pylist() for name in ("file", "start")]
    return frozenset(
        FeedOffset.at(file, start).version for file, start in zip(*columns, strict=True) if start is not None
    )


def _before(
    reading: ArchiveReading, place: FeedOffset, start: FeedOffset, tables: WantedTables, stop: FeedStop
) -> FeedBatch:
    batch = read_batch(reading, start, place, tables) if place > start else FeedBatch(start, start, space=tables.space)
    batch.stop = batch.stop or stop
    return batch


def _unnamed(key: TableName, told: str) -> FeedStop:
    name = ".".join(key)
    return FeedStop(
        "columns_unnamed",
        told,
        f"Nobody knows what the columns of {name} are called: the binlog does not say it, the relay did not record it, and its "
        "CREATE TABLE is not in the archive.",
        "At the source: SET PERSIST binlog_row_metadata = FULL (MySQL 8, MariaDB 10.5), for what comes; for what is there: "
        f"`binlog-relay feed snapshot --table {name}`, or `exclude`.",
        name,
    )


def _unreadable(one: dict[str, Any], place: FeedOffset, reading: ArchiveReading) -> FeedStop:
    at = one.get("finding_position") or one.get("position") or place.position
    return FeedStop(
        one["finding"],
        reading.told(place),
        f"{one['file']} at {at}: {one['finding_text']} Everything before this transaction is in the lake.",
        "See `binlog-relay events FILE` and docs/FEED.md; a damaged file is put right by `binlog-relay archive repair`. To go on "
        "without it: `binlog-relay feed snapshot --all` loads the tables as they are now.",
    )


def _boundary(
    file: str, position: int, ends: dict[tuple[str, int], tuple[FeedOffset, int]], start: FeedOffset
) -> FeedOffset:
    """Return the end of the last transaction that was read before a position, never before `start`."""
    at = FeedOffset.at(file, position)
    before = [end for end, _sequence in ends.values() if end <= at]
    return max([start, *before])
