"""Findings of events that a level does not show, or that a filter leaves out: its result lacks them, and reports it."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from protocol.columns.codes.column_codes import FULL
from protocol.columns.event_columns import EventColumns
from relay.binlog_file.event_reader import EventRun
from relay.binlog_tables.decode import arrow_arrays as arrays
from relay.binlog_tables.decode.split_reader import SplitReader
from relay.binlog_tables.plan.read_finding import NAMES, TEXTS, BinlogUnreadable
from relay.binlog_tables.plan.schemas import arrow_schema
from relay.binlog_tables.plan.splits import Split

_ROWS: Final = 1024
_NAMES: Final = arrays.dictionary(NAMES)
_TEXTS: Final = arrays.dictionary([TEXTS.get(name or "") for name in NAMES])


class OtherFindings:
    """A collector of events' findings that examines every run of a split beside the level's own columns.

    They become rows that are only a finding: file, position, end and time, as for an unreadable file. `columns` are those that the
    level must make so that nothing is reported twice; only the requested ones are returned.
    """

    def __init__(
        self, reader: SplitReader, split: Split, level: str, columns: tuple[str, ...], *, failfast: bool
    ) -> None:
        self._reader = reader
        self._split = split
        self._schema = arrow_schema(level, columns)
        self.columns = tuple(dict.fromkeys((*columns, "position", "finding")))
        self._failfast = failfast
        self._shown: set[int] = set()
        self._found: list[pa.RecordBatch] = []
        self._events = EventColumns(["position", "end", "time", "finding"], _ROWS)
        self._events.keep_findings()
        self._begun = False
        reader.on_run = self._take

    def beside(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the level's batches, then rows for findings that none of its rows has. Raises: BinlogUnreadable with `failfast`."""
        for batch in batches:
            finding = batch.column("finding")
            if finding.null_count < batch.num_rows:
                self._shown.update(batch.column("position").filter(finding.is_valid()).to_pylist())
            yield batch.select(self._schema.names)
        self._keep()
        for batch in self._found:
            rest = batch.filter(pa.array([at not in self._shown for at in batch.column("position").to_pylist()]))
            if rest.num_rows:
                yield self._as_level(rest)

    def _take(self, run: EventRun) -> None:
        events = self._events
        if not self._begun:
            events.begin_file(self._reader.post_lengths(), self._split.in_use)
            self._begun = True
        while events.take(run.buffer, run.base, run.table, run.rows) == FULL:
            self._keep()
        if self._failfast and (events.batch.rows or self._found):
            self._keep()
            first = self._found[0]
            name = first.column("finding")[0].as_py()
            raise BinlogUnreadable(self._split.name, first.column("position")[0].as_py(), name, TEXTS[name])

    def _keep(self) -> None:
        events, rows = self._events.batch, self._events.batch.rows
        if not rows:
            return
        values: dict[str, Any] = {name: arrays.numbers(events.column(name), "q", rows) for name in ("position", "end")}
        values["time"] = arrays.times(events.column("time"), rows)
        values["finding"] = arrays.words(events.column("finding"), rows, _NAMES)
        values["finding_text"] = arrays.words(events.column("finding"), rows, _TEXTS)
        self._found.append(pa.RecordBatch.from_pydict(values))
        events.begin()

    def _as_level(self, found: pa.RecordBatch) -> pa.RecordBatch:
        split = self._split
        if "sequence" in self._schema.names:
            places = arrays.sequences(split.name, split.sequence_base, found.column("position"))
            found = found.append_column("sequence", places)
        names = found.schema.names
        columns = [
            pa.repeat(pa.scalar(split.name, pa.string()), found.num_rows)
            if field.name == "file"
            else found.column(field.name).cast(field.type)
            if field.name in names
            else pa.nulls(found.num_rows, field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)
