"""`spark.readStream.format("binlog")`: follows an archive or a directory, transaction by transaction.

An offset is {"file", "position"}, always between two transactions. What stands between two offsets never changes, so a
query that is restarted from its checkpoint reads the same again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from protocol.binlog.layout import FIRST_EVENT
from relay.audit.decode.levels import ReadOptions, read_split
from relay.audit.plan.overlap import Overlap
from relay.audit.plan.packed_store import store_of
from relay.audit.plan.series_files import AuditedFile, find_files
from relay.audit.plan.splits import SourceChain, Split, end_of, is_boundary, plan_file
from relay.audit.plan.wanted import Wanted

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

_LEAST_PART: Final = 64 << 10

Offset = dict[str, Any]


class PositionGone(Exception):
    """A query stands where there is no file any more. `str()` says where it could go on."""


class BinlogStreamReader(DataSourceStreamReader):
    """Micro-batches of one path. `start`: earliest, latest or FILE:POSITION; `most_bytes`: of a micro-batch, about."""

    def __init__(
        self,
        path: str,
        split_bytes: int,
        options: ReadOptions,
        start: str = EARLIEST,
        most_bytes: int | None = None,
        *,
        once: bool = False,
    ) -> None:
        self._path = path
        self._split_bytes = split_bytes
        self._options = options
        self._start = start
        self._most_bytes = most_bytes
        self._once = once
        self._reached: Offset | None = None
        """An end that was told: the next is not before it. Spark 4.1 does not say where a query stands."""

    def initialOffset(self) -> Offset:
        """Where a query without a checkpoint starts. Raises: PositionGone, ValueError for a position inside a transaction."""
        files = self._files()
        if self._start == LATEST:
            return self._end(files, None)
        if self._start == EARLIEST:
            return {"file": files[0].name, "position": FIRST_EVENT}
        name, _, position = self._start.rpartition(":")
        offset: Offset = {"file": name, "position": int(position)}
        file = files[self._index(files, offset)]
        if not is_boundary(store_of(self._path), file, offset["position"]):
            raise ValueError(
                f"startingPosition {self._start} is not between two transactions; `binlog-relay positions "
                f"{file.path} {position}` names the nearest that are"
            )
        return offset

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:
        """The end of what is there, or, from Spark 4.2 on, of what `limit` lets a micro-batch that begins at `start` have."""
        files = self._files()
        start = start or self._reached
        if start is not None:
            first = self._index(files, start)
        most = getattr(limit, "max_bytes", None)
        if start is None or most is None:
            return self._end(files, start)
        left = int(most)
        store = store_of(self._path)
        for number, file in enumerate(files[first:]):
            begin = int(start["position"]) if number == 0 else FIRST_EVENT
            end = max(end_of(store, file, begin), begin)
            if end - begin > left:
                parts = plan_file(store, file, max(left // 4, _LEAST_PART), start=begin, stop=end)
                within = [part.stop for part in parts if part.stop - begin <= left]
                # a transaction that is larger than the limit comes whole; what came before it is enough for now
                stop = within[-1] if within else (begin if number else parts[0].stop)
                return {"file": file.name, "position": stop}
            left -= end - begin
        return self._end(files, start)

    def getDefaultReadLimit(self) -> Any:
        """What one micro-batch may have, as the option maxBytesPerTrigger says."""
        if self._most_bytes is None:
            return super().getDefaultReadLimit()
        from pyspark.sql.streaming.datasource import ReadMaxBytes

        return ReadMaxBytes(self._most_bytes)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The splits between two offsets. Raises: PositionGone."""
        self._reached = end
        store = store_of(self._path)
        files = self._files()
        first, last = self._index(files, start), self._index(files, end)
        splits: list[Split] = []
        sources = SourceChain()
        overlap = Overlap(store, files, held=False) if self._once else None
        if first > 0 and int(start["position"]) == FIRST_EVENT:
            sources.look_at(store, files[first - 1])
        for number in range(first, last + 1):
            begin = int(start["position"]) if number == first else FIRST_EVENT
            stop = int(end["position"]) if number == last else None
            if stop is None or begin < stop:
                file = replace(files[number], growing=False)
                splits += plan_file(
                    store, file, self._split_bytes, start=begin, stop=stop, sources=sources, overlap=overlap
                )
        return list(splits)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one split. Raises: FileLost, so that the query can be started again and misses nothing."""
        if not isinstance(partition, Split):
            return iter(())
        return read_split(store_of(self._path), partition, self._options, Wanted(), keeps=True)

    def _files(self) -> list[AuditedFile]:
        files = find_files(store_of(self._path), self._path)
        # A server, or a relay, may be writing the newest: its last transaction is not there before it is whole.
        return [*files[:-1], replace(files[-1], growing=not files[-1].damaged)]

    def _end(self, files: list[AuditedFile], start: Offset | None) -> Offset:
        """The end of what is there, never before `start`: what is behind that was given already. Raises: OSError."""
        newest = files[-1]
        begin = int(start["position"]) if start is not None and start["file"] == newest.name else FIRST_EVENT
        position = max(end_of(store_of(self._path), newest, begin), begin)
        self._reached = {"file": newest.name, "position": position}
        return self._reached

    def _index(self, files: list[AuditedFile], offset: Offset) -> int:
        for number, file in enumerate(files):
            if file.name == offset["file"]:
                return number
        raise PositionGone(
            f"{offset['file']}, where the query stands at {offset['position']}, is not in {self._path} any more. The first "
            f"position there is {files[0].name}:{FIRST_EVENT}; a query from there needs a new checkpoint directory."
        )


def starting_position(text: str) -> str:
    """`text` if it is a startingPosition. Raises: ValueError."""
    name, _, position = text.rpartition(":")
    if text in (EARLIEST, LATEST) or (name and position.isdecimal() and int(position) >= FIRST_EVENT):
        return text
    raise ValueError(f"startingPosition is {text!r}; it takes earliest, latest or FILE:POSITION")


def limits_reads() -> bool:
    """Whether this Spark lets a source limit its micro-batches: since 4.2."""
    return hasattr(datasource.DataSourceStreamReader, "getDefaultReadLimit")
