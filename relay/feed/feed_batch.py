"""A stretch of the archive as the feed applies it: whole transactions, by table, without what was rolled back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from relay.audit.plan.schemas import arrow_schema
from relay.feed.archive_reading import ROW_COLUMNS, ArchiveReading
from relay.feed.logged_changes import FedDefinition, UnseenChange, logged_changes
from relay.feed.rows.feed_place import FeedPlace
from relay.feed.rows.feed_stop import FeedStop
from relay.schema_history.tables.source_table import TableName

AT: Final = "at"
"""Column of rows: the place of their transaction, as FeedPlace.version."""
_HELD_BACK: Final = frozenset(("xa_prepare",))
_CUT: Final = "transaction_cut"


@dataclass(slots=True)
class TablePart:
    """What a batch has of one table. `rolled_back`: rows of transactions that were rolled back; `prepared`: of XA, not decided."""

    key: TableName
    rows: pa.Table
    definitions: list[FedDefinition] = field(default_factory=list)
    unseen: list[UnseenChange] = field(default_factory=list)


@dataclass(slots=True)
class FeedBatch:
    """[start, end). `stop`: why it ends before where it was to end. `rolled_back`, `prepared`: versions of transactions' places."""

    start: FeedPlace
    end: FeedPlace
    parts: dict[TableName, TablePart] = field(default_factory=dict)
    unseen: list[UnseenChange] = field(default_factory=list)
    rolled_back: frozenset[int] = frozenset()
    prepared: frozenset[int] = frozenset()
    stop: FeedStop | None = None
    rows: int = 0
    last_time: Any = None
    """Of its newest transaction."""


def read_batch(
    reading: ArchiveReading,
    start: FeedPlace,
    end: FeedPlace,
    wanted: Callable[[TableName], bool],
    known: list[TableName],
    schemas: list[str] | None = None,
) -> FeedBatch:
    """What [start, end) has of the wanted tables. It ends before the first transaction that cannot be read."""
    transactions = reading.transactions(start, end).to_pylist()
    batch = FeedBatch(start, end)
    ends: dict[tuple[str, int], tuple[FeedPlace, int]] = {}
    for one in transactions:
        if one["finding"] is not None and one["finding"] != _CUT:
            place = _boundary(
                one["file"], one["start"] if one["start"] is not None else one["finding_position"], ends, start
            )
            return _before(reading, place, start, (wanted, known, schemas), _unreadable(one, place, reading))
        if one["start"] is not None and one["end"] is not None:
            ends[one["file"], one["start"]] = (FeedPlace.at(one["file"], one["end"]), one["sequence"] or 0)
            batch.last_time = one["last_time"] or batch.last_time
    away = [one for one in transactions if one["rolled_back"] or one["finding"] == _CUT]
    batch.rolled_back = frozenset(FeedPlace.at(one["file"], one["start"]).version for one in away)
    batch.prepared = frozenset(
        FeedPlace.at(one["file"], one["start"]).version for one in transactions if one["closed_by"] in _HELD_BACK
    )
    rows = reading.rows(start, end, schemas)
    wrong = rows.filter(pc.is_valid(rows.column("finding")))
    for one in wrong.to_pylist():
        key = (one["schema"], one["table"])
        if one["schema"] is None or wanted(key):
            place = _boundary(
                one["file"], one["transaction"] if one["transaction"] is not None else one["position"], ends, start
            )
            return _before(reading, place, start, (wanted, known, schemas), _unreadable(one, place, reading))
    batch.rows = rows.num_rows
    for key, part in _by_table(rows):
        if wanted(key):
            unnamed = pc.index(part.column("named"), "none").as_py()
            if unnamed >= 0:
                one = part.slice(unnamed, 1).to_pylist()[0]
                place = FeedPlace.at(one["file"], one["transaction"])
                stop = FeedStop(
                    "columns_unnamed",
                    reading.told(place),
                    f"Nobody knows what the columns of {key[0]}.{key[1]} are called: the binlog does not say it, the relay "
                    "did not record it, and its CREATE TABLE is not in the archive.",
                    "At the source: SET PERSIST binlog_row_metadata = FULL (MySQL 8, MariaDB 10.5), for what comes; for what is "
                    f"there: `binlog-relay feed snapshot --table {key[0]}.{key[1]}`, or `exclude`.",
                    f"{key[0]}.{key[1]}",
                )
                return _before(reading, place, start, (wanted, known, schemas), stop)
            batch.parts[key] = TablePart(key, part)
    if any(one["kind"] not in ("row", "none") for one in transactions):
        statements = reading.statements(start, end)
        statements = statements.filter(pc.not_equal(statements.column("statement"), "BEGIN"))
        found = logged_changes(statements.to_pylist(), ends, reading.server_version, [*known, *batch.parts])
        for definition in found.definitions:
            if wanted(definition.key):
                if definition.key not in batch.parts:
                    batch.parts[definition.key] = TablePart(definition.key, no_rows())
                batch.parts[definition.key].definitions.append(definition)
        batch.unseen = found.unseen
    elif any(part for part in batch.parts):
        batch.unseen = _rolled_back_to(reading, start, end, ends, batch)
    batch.unseen += [UnseenChange(place, None, reason) for place, reason in reading.gaps(start, end)]
    return batch


def _rolled_back_to(
    reading: ArchiveReading, start: FeedPlace, end: FeedPlace, ends: Any, batch: FeedBatch
) -> list[UnseenChange]:
    """ROLLBACK TO stands in groups of rows, where other engines take part."""
    statements = reading.statements(start, end)
    if not statements.num_rows:
        return []
    like = pc.match_substring_regex(statements.column("statement"), r"(?i)^[\s(/]*.{0,200}rollback\s+(work\s+)?to\b")
    return logged_changes(statements.filter(like).to_pylist(), ends, reading.server_version, list(batch.parts)).unseen


def _before(
    reading: ArchiveReading, place: FeedPlace, start: FeedPlace, how: tuple[Any, Any, Any], stop: FeedStop
) -> FeedBatch:
    batch = read_batch(reading, start, place, *how) if place > start else FeedBatch(start, start)
    batch.stop = batch.stop or stop
    return batch


def _unreadable(one: dict[str, Any], place: FeedPlace, reading: ArchiveReading) -> FeedStop:
    at = one.get("finding_position") or one.get("position") or place.position
    return FeedStop(
        one["finding"],
        reading.told(place),
        f"{one['file']} at {at}: {one['finding_text']} Everything before this transaction is in the lake.",
        "See `binlog-relay events FILE` and docs/FEED.md; a damaged file is put right by `binlog-relay archive repair`. To go on "
        "without it: `binlog-relay feed snapshot --all` loads the tables as they are now.",
    )


def _boundary(
    file: str, position: int, ends: dict[tuple[str, int], tuple[FeedPlace, int]], start: FeedPlace
) -> FeedPlace:
    """The end of the last transaction that was read before a position, never before `start`."""
    at = FeedPlace.at(file, position)
    before = [end for end, _sequence in ends.values() if end <= at]
    return max([start, *before])


def with_places(rows: pa.Table) -> pa.Table:
    """The rows with the places of their transactions, in the column `at`."""
    files = pc.unique(rows.column("file")).to_pylist()
    base = pa.array([FeedPlace.at(file, 0).version for file in files], pa.int64())
    index = pc.index_in(rows.column("file"), pa.array(files, pa.string()))
    places = pc.add(base.take(index), rows.column("transaction")) if rows.num_rows else pa.array([], pa.int64())
    return rows.append_column(AT, places)


def no_rows() -> pa.Table:
    """A table's part of a batch that has no rows of it."""
    schema = arrow_schema("rows", tuple(one for one in ROW_COLUMNS if one != "sequence"))
    return with_places(pa.schema([("sequence", pa.int64()), *schema]).empty_table())


def _by_table(rows: pa.Table) -> list[tuple[TableName, pa.Table]]:
    """The rows of each table, in order."""
    if not rows.num_rows:
        return []
    rows = with_places(rows)
    names = rows.select(["schema", "table"]).group_by(["schema", "table"]).aggregate([]).to_pylist()
    if len(names) == 1:
        return [((names[0]["schema"], names[0]["table"]), rows)]
    found = []
    for name in names:
        mask = pc.and_(pc.equal(rows.column("schema"), name["schema"]), pc.equal(rows.column("table"), name["table"]))
        found.append(((name["schema"], name["table"]), rows.filter(mask)))
    return found
