"""Pushed filters that the kernel does not know: rows that Spark would leave out are removed before they are sent to it."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from relay.binlog_tables.decode.arrow_arrays import dictionary
from relay.binlog_tables.plan.schemas import known_columns
from relay.binlog_tables.plan.wanted import FAR, Range, Wanted

# The kernel itself filters by these, by level. Times are all its own: with since and until a finding of any time is kept.
_KERNEL: Final = {
    "events": {"position", "type", "type_code", "schema", "table"},
    "rows": {"schema", "table", "operation"},
}
_LARGEST: Final = (1 << 63) - 1

Test = tuple[str, Callable[[pa.Array], pa.Array]]


class RowFilter:
    """The filter of one read. Spark checks its filters again: only what it would leave out too is removed here."""

    def __init__(self, level: str, columns: tuple[str, ...], wanted: Wanted) -> None:
        known = known_columns(level)
        names = [name for name in columns if name not in _KERNEL.get(level, ()) and known[name] != "timestamp"]
        self._tests: list[Test] = [
            *((name, _in_range(wanted.ranges[name])) for name in names if name in wanted.ranges),
            *((name, _among(wanted.names[name])) for name in names if name in wanted.names),
        ]

    def of(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches with the rows that are wanted."""
        if not self._tests:
            yield from batches
            return
        for batch in batches:
            masks = [test(batch.column(name)) for name, test in self._tests]
            kept = batch.filter(reduce(pc.and_, masks))
            if kept.num_rows:
                yield kept


def _in_range(span: Range) -> Callable[[pa.Array], pa.Array]:
    bounds = [
        (compare, pa.scalar(bound, pa.int64()))
        for compare, bound, open_end in ((pc.greater_equal, span.low, -FAR), (pc.less_equal, span.high, FAR))
        if bound != open_end and -_LARGEST <= bound <= _LARGEST
    ]

    def test(values: pa.Array) -> pa.Array:
        masks = [compare(values, bound) for compare, bound in bounds]
        return reduce(pc.and_, masks) if masks else pc.is_valid(values)

    return test


def _among(texts: frozenset[str]) -> Callable[[pa.Array], pa.Array]:
    among = dictionary(sorted(texts))
    return lambda values: pc.is_in(values, value_set=among)
