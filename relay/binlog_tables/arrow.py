"""The archive as Arrow, without Spark: `read(path, "rows")` returns a pyarrow.RecordBatchReader.

Everything that reads one reads binlogs: DuckDB, Polars, pandas, Delta, Parquet. docs/SPARK.md has a line for each.
"""

import difflib
import inspect
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from typing import Final, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from protocol.position import Position
from relay.binlog_tables.decode.arrow_arrays import dictionary
from relay.binlog_tables.decode.levels import read_split
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.places import Places, parsed_position
from relay.binlog_tables.plan.read_finding import ReadRefused
from relay.binlog_tables.plan.schemas import CHANGES, LEVELS, arrow_schema, known_columns
from relay.binlog_tables.plan.wanted import Wanted, keep_times
from relay.binlog_tables.plan.whole_read import EXECUTED, OF_FILES, ONCE, OVERLAPS, WholeRead, splits_of_read
from relay.binlog_tables.typed.newest_definition import newest_columns
from relay.binlog_tables.typed.table_changes import change_options, changes_schema, read_changes, wanted_of_table

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_MODES: Final = ("permissive", "failfast")
# The kernel omits rows of these levels before they are decoded.
_EARLY_LEVELS: Final = ("events", "rows")
_LEFT_OUT_EARLY: Final = {"file", "schema", "table", "operation", "type"}


class ReadChoices(TypedDict, total=False):
    """Further arguments of `read`.

    `where` maps text columns to values; all other rows are left out, and where possible the binlog is not even decoded. `since` and
    `until` are times, or their texts. `overlap` is once, every or executed, for transactions that a later source repeats. `mode` is
    permissive or failfast. With `keeps` an unreadable file is an error, and no finding, since what is not read now is never read again.
    `statement_characters` limits the statement in level rows, which all rows of a statement repeat.
    """

    where: Mapping[str, Collection[str]]
    since: datetime | str | None
    until: datetime | str | None
    overlap: str
    mode: str
    keeps: bool
    statement_characters: int | None


def read(
    path: Paths,
    level: str = "events",
    *,
    columns: Sequence[str] | None = None,
    table: str | None = None,
    start: str | None = None,
    end: str | None = None,
    **more: Unpack[ReadChoices],
) -> pa.RecordBatchReader:
    """Return the rows of a level, as batches of some thousand rows, which are read while they are requested.

    `path` is an archive, a directory of binlogs, a pattern, a binlog or a URL; or several that are parts of one source's. `table` is
    `schema.table`, for its rows alone; findings whose table is unknown are included. `start` and `end` are FILE:POSITION, between two
    transactions, and limit the read to [start, end). Level changes needs a table, and has its columns, typed.

    Raises: ReadRefused for an invalid request; NothingToRead, PositionGone, OSError; while it is read, in failfast mode
    BinlogUnreadable, with `keeps` FileLost.
    """
    _check_names(more)
    of_rows = "rows" if level == CHANGES else level
    whole = WholeRead(
        _paths(path),
        of_rows,
        whole_files="transaction_ordinal" in (columns or ()),
        overlap=_overlap(of_rows, more.get("overlap")),
        start=_position("start", start),
        end=_position("end", end),
        since=_time("since", more.get("since")),
        until=_time("until", more.get("until")),
    )
    mode = more.get("mode", "permissive")
    if mode not in _MODES:
        raise ReadRefused(f"there is no mode {mode!r}; there are {' and '.join(_MODES)}")
    failfast, keeps = mode == "failfast", more.get("keeps", False)
    if level == CHANGES:
        if table is None or more.get("where"):
            raise ReadRefused("level changes is of one table: table is SCHEMA.TABLE, and where is for other levels")
        return _changes(whole, table, columns, failfast=failfast, keeps=keeps)
    names = _columns(level, columns)
    texts = _texts(level, table, more.get("where", {}))
    wanted = Wanted()
    for name in _LEFT_OUT_EARLY.intersection(texts) if level in _EARLY_LEVELS else ():
        wanted.keep_names(name, texts[name])
    keep_times(level, whole.since, whole.until, wanted)
    made = tuple(dict.fromkeys((*names, *texts, "finding"))) if texts else names
    options = ReadOptions(level, made, failfast, statement_characters=more.get("statement_characters"))
    splits = splits_of_read(whole, wanted)

    def batches() -> Iterator[pa.RecordBatch]:
        for split in splits:
            for batch in read_split(store_of(split.path), split, options, wanted, keeps=keeps):
                kept = _kept(batch, texts) if texts else batch
                if kept.num_rows:
                    yield kept.select(names) if texts else kept

    return pa.RecordBatchReader.from_batches(arrow_schema(level, names), batches())


def _check_names(more: Collection[str]) -> None:
    """Raise ReadRefused for an argument that `read` does not have: without it, more would be read than was asked for."""
    known = [*[*inspect.signature(read).parameters][:-1], *ReadChoices.__annotations__]
    for name in more:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
            raise ReadRefused(f"read has no argument {name!r}", meant)


def _changes(
    whole: WholeRead, table: str, columns: Sequence[str] | None, *, failfast: bool, keeps: bool
) -> pa.RecordBatchReader:
    """Return level changes: the columns that the table has at the end of what is read."""
    options = change_options(newest_columns(whole.paths, table, whole.end), table, columns, failfast=failfast)
    wanted = wanted_of_table(options.table, whole.since, whole.until)
    splits = splits_of_read(whole, wanted)

    def batches() -> Iterator[pa.RecordBatch]:
        for split in splits:
            yield from read_changes(store_of(split.path), split, options, wanted, keeps=keeps)

    return pa.RecordBatchReader.from_batches(changes_schema(options), batches())


def read_values(
    path: Paths, columns: Sequence[str], *, start: str, end: str, schemas: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield level rows, with each value of the images in a column of its own after `columns`; for a feed: `keeps`, and what was
    executed.

    `shape` has names and forms of the row's columns, as JSON; `whole` is 1 if the after-image has all of them; `odd` is 1 if a value is
    not as its form says; `b0`, `a0` … are the values before and after, in the table's order. Not all batches have as many. `schemas`
    limits the read to rows of these. Raises: as `read`.
    """
    wanted = Wanted()
    if schemas is not None:
        wanted.keep_names("schema", frozenset(schemas))
    place, stop = _position("start", start), _position("end", end)
    whole = WholeRead(_paths(path), "rows", overlap=EXECUTED, start=place, end=stop)
    options = ReadOptions("rows", _columns("rows", columns), failfast=False, values=True)
    for split in splits_of_read(whole, wanted):
        for batch in read_split(store_of(split.path), split, options, wanted, keeps=True):
            if batch.num_rows:
                yield batch


def oldest(path: Paths) -> str:
    """Return the first existing place, as FILE:POSITION. Raises: NothingToRead, OSError."""
    return str(Places(_paths(path)).oldest())


def newest(path: Paths, start: str | None = None, *, max_bytes: int | None = None) -> str:
    """Return the end of the last whole transaction, as FILE:POSITION; with `start` and `max_bytes`, of the last one within so many
    bytes after `start`.

    A transaction is always included as a whole, even a larger one. Raises: NothingToRead, PositionGone, OSError, ReadRefused.
    """
    places, begin = Places(_paths(path)), _position("start", start)
    if max_bytes is None:
        return str(places.newest(begin))
    if begin is None or max_bytes < 1:
        raise ReadRefused("max_bytes is a number of bytes behind start")
    return str(places.reached(begin, max_bytes))


def sequence_of(path: Paths, position: str) -> int | None:
    """Return the sequence of a transaction that begins at FILE:POSITION; None if names do not give an order.

    Raises: NothingToRead, PositionGone, OSError, ReadRefused.
    """
    place = _position("position", position)
    return None if place is None else Places(_paths(path)).sequence(place)


def _paths(path: Paths) -> tuple[str, ...]:
    several = [path] if isinstance(path, str | os.PathLike) else path
    paths = tuple(os.fspath(one) for one in several)
    if not paths or not all(paths):
        raise ReadRefused("nothing to read is named: path is an archive, a directory of binlogs, a pattern or a binlog")
    return paths


def _columns(level: str, columns: Sequence[str] | None) -> tuple[str, ...]:
    if level not in LEVELS:
        raise ReadRefused(f"there is no level {level!r}; there are {', '.join((*LEVELS, CHANGES))}")
    known = known_columns(level)
    names = tuple(LEVELS[level] if columns is None else columns)
    for name in names:
        if name not in known:
            raise ReadRefused(f"level {level} has no column {name!r}; it has {', '.join(known)}")
    return names


def _texts(level: str, table: str | None, where: Mapping[str, Collection[str]]) -> dict[str, frozenset[str]]:
    """Return the wanted values of text columns."""
    texts = {name for name, kind in known_columns(level).items() if kind == "string"}
    found: dict[str, frozenset[str]] = {}
    for name, values in where.items():
        if name not in texts:
            raise ReadRefused(f"where has {name!r}; level {level} can be filtered on {', '.join(sorted(texts))}")
        found[name] = frozenset([values] if isinstance(values, str) else values)
    if table is not None:
        schema, _, name = table.partition(".")
        if not schema or not name or "table" not in texts or {"schema", "table"}.intersection(where):
            raise ReadRefused(
                f"table is {table!r}; it takes SCHEMA.TABLE, in levels that have a table, and no such names in where"
            )
        found |= {"schema": frozenset([schema]), "table": frozenset([name])}
    return found


def _kept(batch: pa.RecordBatch, texts: Mapping[str, frozenset[str]]) -> pa.RecordBatch:
    """Return the rows that have the wanted values, and findings whose values are unknown."""
    wrong = batch.column("finding").is_valid()
    masks = []
    for name, values in texts.items():
        column = batch.column(name)
        masks.append(pc.or_(pc.is_in(column, value_set=dictionary(sorted(values))), pc.and_(wrong, column.is_null())))
    return batch.filter(reduce(pc.and_, masks))


def _time(name: str, value: datetime | str | None) -> datetime | None:
    if value is None:
        return None
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except ValueError:
        raise ReadRefused(
            f"{name} is {value!r}; it takes a time like 2026-01-31T23:59:59, of UTC or with a zone"
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _overlap(level: str, overlap: str | None) -> str:
    if overlap is not None and (overlap not in OVERLAPS or level in OF_FILES):
        raise ReadRefused(
            f"overlap is {overlap!r} of level {level}; it is one of {', '.join(OVERLAPS)}, but for {', '.join(OF_FILES)}"
        )
    return overlap or ONCE


def _position(name: str, text: str | None) -> Position | None:
    if text is None:
        return None
    place = parsed_position(text)
    if place is None:
        raise ReadRefused(f"{name} is {text!r}; it takes FILE:POSITION")
    return place
