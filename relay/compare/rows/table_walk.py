"""A table with a key, chunk after chunk: a thread sums the source's, and the new server's follow when it has the same place."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from protocol.position import Position
from relay.compare.rows.differences import Difference, Differences, TableOutcome, What
from relay.compare.rows.key_ranges import Key
from relay.compare.rows.load_limits import ChunkSize, LoadBrake
from relay.compare.rows.repair_script import RepairScript
from relay.compare.rows.settling import SettlingRounds
from relay.compare.rows.table_side import SideRow, TableSide
from relay.compare.servers.common_place import CommonPlace
from relay.compare.servers.compared_server import ComparedServer

_CHUNKS_AHEAD: Final = 4
_ROWS_AT_ONCE: Final = 200
_MOST_LISTED: Final = 200_000


@dataclass(frozen=True, slots=True)
class SummedRange:
    """The rows of the source with after < key <= upto (None: without this bound), as they were at some place before `end`."""

    after: Key | None
    upto: Key | None
    rows: int
    checksum: str
    end: Position


@dataclass(frozen=True, slots=True)
class Compared:
    """What a table's comparison uses. `reader` is a session at the source for the thread that reads ahead."""

    source: ComparedServer
    reader: ComparedServer
    target: ComparedServer
    place: CommonPlace
    rounds: SettlingRounds
    brake: LoadBrake
    findings: Differences
    script: RepairScript
    most_differences: int


class ChunkReader(threading.Thread):
    """Reads the source ahead. `chunks` gets each chunk, None at the end, or the error that ended it."""

    def __init__(self, side: TableSide, server: ComparedServer, after: Key | None, size: ChunkSize) -> None:
        super().__init__(name="compare-source", daemon=True)
        self.chunks: queue.Queue[SummedRange | Exception | None] = queue.Queue(_CHUNKS_AHEAD)
        self._side, self._server, self._after, self._size = side, server, after, size
        self._ended = threading.Event()

    def run(self) -> None:
        """Read chunk after chunk."""
        try:
            after = self._after
            while not self._ended.is_set():
                began = time.monotonic()
                upto = self._side.bound(self._server, after, self._size.rows)
                rows, checksum = self._side.checksum(self._server, after, upto)
                self._size.took(rows, time.monotonic() - began)
                self._put(SummedRange(after, upto, rows, checksum, self._server.end()))
                if upto is None:
                    self._put(None)
                    return
                after = upto
        except Exception as error:  # the other thread raises it
            self._put(error)

    def end(self) -> None:
        """Let the thread end, and wait for it."""
        self._ended.set()
        self.join()

    def _put(self, item: SummedRange | Exception | None) -> None:
        while not self._ended.is_set():
            try:
                self.chunks.put(item, timeout=0.2)
                return
            except queue.Full:
                continue


class TableWalk:
    """The comparison of one table."""

    def __init__(self, sides: tuple[TableSide, TableSide], use: Compared, outcome: TableOutcome) -> None:
        self._source, self._target = sides
        self._use = use
        self.outcome = outcome

    def run(self, after: Key | None, done: Callable[[Key | None, SummedRange], None]) -> None:
        """Compare all rows after a key; `done` is called after each chunk. Raises: CompareStop."""
        shape = self._source.shape
        size = ChunkSize(self._use.brake.limits, shape.rows, shape.size_bytes)
        reader = ChunkReader(self._source, self._use.reader, after, size)
        reader.start()
        try:
            while (chunk := reader.chunks.get()) is not None:
                if isinstance(chunk, Exception):
                    raise chunk
                self._compare(chunk, size)
                done(chunk.upto, chunk)
                self._use.brake.after(chunk.rows)
                if self.outcome.cut:
                    return
        finally:
            reader.end()

    def _compare(self, chunk: SummedRange, size: ChunkSize) -> None:
        self._use.place.reach(chunk.end)
        began = time.monotonic()
        found = self._target.checksum(self._use.target, chunk.after, chunk.upto)
        size.took(max(chunk.rows, found[0]), time.monotonic() - began)
        self.outcome.rows += chunk.rows
        if found != (chunk.rows, chunk.checksum):
            self._look_closer(chunk)

    def _look_closer(self, chunk: SummedRange) -> None:
        """Find the rows of a range whose checksums differ, and look at them until it is known what they are."""
        after, upto = chunk.after, chunk.upto
        more = True
        while more and not self.outcome.cut:
            # The new server may have any number of rows between two that the source has.
            last = self._target.bound(self._use.target, after, _MOST_LISTED, upto)
            self._look_at_each(after, upto if last is None else last)
            after, more = last, last is not None

    def _look_at_each(self, after: Key | None, upto: Key | None) -> None:
        ours = self._source.hashes(self._use.source, after, upto)
        self._use.place.reach(self._use.source.end())
        theirs = self._target.hashes(self._use.target, after, upto)
        keys = [key for key, hashed in ours.items() if theirs.get(key) != hashed]
        keys += [key for key in theirs if key not in ours]
        for first in range(0, len(keys), _ROWS_AT_ONCE):
            self._settle(keys[first : first + _ROWS_AT_ONCE])
            if self.outcome.cut:
                return

    def _settle(self, keys: Sequence[Key]) -> None:
        use, shown = self._use, set[tuple[Key | None, Key | None]]()
        settled = use.rounds.settle(keys, self._rows_of_source, self._rows_of_target)
        changes: list[tuple[Key, str | None, tuple[object, ...] | None]] = []
        names = list(settled.different)
        values = dict(
            zip(
                names,
                zip(
                    self._source.values_by_key(use.source, names),
                    self._target.values_by_key(use.target, names),
                    strict=True,
                ),
                strict=True,
            )
        )
        for key, (one, other) in settled.different.items():
            # Under a collation a key may have been asked for by two texts.
            identity = (one[0] if one else None, other[0] if other else None)
            if identity in shown or self._is_only_written_otherwise(values[key]):
                continue
            shown.add(identity)
            self._found(key, one, other, values[key])
            changes.append((key, other[1] if other else None, values[key][0] if one else None))
            if self.outcome.different + self.outcome.missing + self.outcome.extra >= use.most_differences:
                self.outcome.cut = True
                break
        if changes:
            use.script.rows(self._target, changes)
        for key in settled.unsettled:
            self.outcome.count("unsettled")
            use.findings.found(Difference("row", self.outcome.table, "unsettled", self._source.told_key(key)))

    def _rows_of_source(self, keys: Sequence[Key]) -> list[tuple[Key, str] | None]:
        return _plain(self._source.rows_by_key(self._use.source, keys))

    def _rows_of_target(self, keys: Sequence[Key]) -> list[tuple[Key, str] | None]:
        return _plain(self._target.rows_by_key(self._use.target, keys))

    def _is_only_written_otherwise(self, values: tuple[tuple[object, ...] | None, tuple[object, ...] | None]) -> bool:
        """Return whether equal values have two forms: the digits of a DOUBLE, the order in a JSON document."""
        one, other = values
        if one is None or other is None:
            return one is other
        return list(self._source.told(one).values()) == list(self._target.told(other).values())

    def _found(
        self,
        key: Key,
        one: tuple[Key, str] | None,
        other: tuple[Key, str] | None,
        values: tuple[tuple[object, ...] | None, tuple[object, ...] | None],
    ) -> None:
        what: What = "missing" if other is None else "extra" if one is None else "different"
        self.outcome.count(what)
        differing = {}
        if values[0] is not None and values[1] is not None:
            ours, theirs = self._source.told(values[0]), self._target.told(values[1])
            pairs = zip(ours.items(), theirs.values(), strict=True)
            differing = {name: (value, other_value) for (name, value), other_value in pairs if value != other_value}
        difference = Difference("row", self.outcome.table, what, self._source.told_key(key), differing)
        self._use.findings.found(difference)


def _plain(rows: Sequence[SideRow | None]) -> list[tuple[Key, str] | None]:
    return [None if one is None else (one.key, one.hash) for one in rows]
