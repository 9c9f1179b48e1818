"""The storage engine of a table, by places in the archive: as the relay recorded it, as statements say, as groups were closed."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from protocol.errors import Malformed
from protocol.position import binlog_number
from protocol.sql.engines import has_transactions
from relay.binlog_tables.plan.recorded import recorded_schema
from relay.binlog_tables.plan.series_files import SeriesFile
from relay.binlog_tables.plan.store import Store

Place = tuple[int, int]
"""This pair contains (number of the file among those that are audited, offset in it)."""
LOW: Final[Place] = (-1, 0)
HIGH: Final[Place] = (1 << 30, 0)


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine. `transactional` is None if unknown. `name` is "" if only the kind is known; `known_by` says from what."""

    transactional: bool | None
    name: str = ""
    known_by: str = ""


UNKNOWN: Final = Engine(None)


@dataclass(frozen=True, slots=True)
class EngineSpan:
    """The engine of `table`, a text schema.table, from `first` up to and not including `stop`."""

    table: str
    first: Place
    stop: Place
    engine: Engine


@dataclass(frozen=True, slots=True)
class Closed:
    """The way in which groups end that change only `table`: by xid, commit, rollback; `first` is where the first of them begins."""

    table: str
    by: str | None
    first: Place


def of_name(name: str, known_by: str) -> Engine:
    """Return the engine of this name."""
    return Engine(has_transactions(name), name, known_by)


def recorded_engines(store: Store, files: Sequence[SeriesFile]) -> list[EngineSpan]:
    """Return what the relay asked the sources, for the stretches in which it held. Raises: OSError."""
    found = []
    for directory in dict.fromkeys(file.path.rpartition("/")[0] for file in files):
        schema = recorded_schema(store, directory or ".")
        if not schema:
            continue
        held = sorted(_held(files, directory))
        for first, stop, table in schema.spans():
            if table.engine and held:
                name = f"{table.schema}.{table.name}"
                engine = of_name(table.engine, "recorded")
                found.append(EngineSpan(name, _place(held, first), _place(held, stop), engine))
    return found


def _held(files: Sequence[SeriesFile], directory: str) -> Iterator[tuple[int, int]]:
    """Yield (the binlog's number, its number among the files) for those in a directory."""
    for number, file in enumerate(files):
        if file.path.rpartition("/")[0] == directory:
            try:
                yield binlog_number(file.path.rpartition("/")[2]), number
            except Malformed:
                continue


def _place(held: list[tuple[int, int]], place: tuple[int, int]) -> Place:
    """Return a position in a source's binlogs as a place among the files; in a missing one, the beginning of the next."""
    at = bisect_left(held, (place[0], -1))
    if at == len(held):
        return held[-1][1] + 1, 0
    return held[at][1], place[1] if held[at][0] == place[0] else 0


def engine_spans(
    recorded: Iterable[EngineSpan], defined: Iterable[EngineSpan], closed: Iterable[Closed]
) -> list[EngineSpan]:
    """Return what is known of each table, from the best source for each stretch: what was recorded, else the last statement before it
    that names an engine, else how groups end that change only the table. Unknown stretches are left out.

    `defined` extends from each such statement up to the next. A table that never had engines of both kinds has one for the whole
    archive.
    """
    by_table: dict[str, tuple[list[EngineSpan], list[EngineSpan], list[Closed]]] = {}
    for number, spans in enumerate((recorded, defined)):
        for span in spans:
            if span.engine.transactional is not None:
                by_table.setdefault(span.table, ([], [], []))[number].append(span)  # type: ignore[arg-type]
    for one in closed:
        by_table.setdefault(one.table, ([], [], []))[2].append(one)
    return [span for table, told in sorted(by_table.items()) for span in _of_table(table, *told)]


def _of_table(
    table: str, recorded: list[EngineSpan], defined: list[EngineSpan], closed: list[Closed]
) -> Iterator[EngineSpan]:
    told = [*defined, *recorded]
    if len({span.engine.transactional for span in told}) == 1:
        yield EngineSpan(table, LOW, HIGH, told[-1].engine)
        return
    edges = sorted({LOW, HIGH, *(place for span in told for place in (span.first, span.stop) if LOW < place < HIGH)})
    made: list[EngineSpan] = []
    for first, stop in pairwise(edges):
        # Later ones in the list are better: what was recorded, and what was asked last.
        there = [span.engine for span in told if span.first <= first < span.stop]
        engine = there[-1] if there else engine_by_closers(one.by for one in closed if one.first < stop)
        if made and made[-1].stop == first and made[-1].engine == engine:
            made[-1] = EngineSpan(table, made[-1].first, stop, engine)
        elif engine.transactional is not None:
            made.append(EngineSpan(table, first, stop, engine))
    yield from made


def engine_by_closers(closed_by: Iterable[str | None]) -> Engine:
    """Return the kind of engine of a table, by how groups end in which only it was changed.

    A server ends a group with Xid if an engine with transactions took part, with COMMIT if none did; ROLLBACK says nothing about one
    table.
    """
    by = set(closed_by)
    if "xid" in by:
        return Engine(True, "", "its groups end with Xid")
    return Engine(False, "", "its groups end with COMMIT") if "commit" in by else UNKNOWN
