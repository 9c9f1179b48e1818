"""The rows of a table's `changes`: changed rows of the source, and its definitions between them."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from protocol.sql.tables.source_table import TableName
from relay.feed.statements.logged_changes import DdlChange

CHANGE_COLUMNS: Final = pa.schema(
    [
        ("sequence", pa.int64()),
        ("row", pa.int64()),
        ("operation", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("gtid", pa.string()),
        ("file", pa.string()),
        ("transaction", pa.int64()),
    ]
)
"""The columns of a table's changes: one row for each changed row, in order of (sequence, row). Definitions have rows below 0, and a
rename has the other tables' names in `before` and `after`."""
GAP: Final = "gap"
"""The operation of a row that says that changes before it are missing: `before` has from where, `after` up to where and why."""
_GAP_ROW: Final = -(1 << 31)
"""The value of `row` of a gap, below those of all definitions."""


def _name_told(key: TableName | None) -> str | None:
    return None if key is None else json.dumps({"table": ".".join(key)}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class HistoryGap:
    """A stretch that a table's changes do not have: `start` and `end` are FILE:POSITION, `sequence` is that of what follows it.

    `time` is that of the first change that may be missing, if it is known.
    """

    start: str
    end: str
    sequence: int
    reason: str
    time: datetime | None

    def rows(self) -> pa.Table:
        """Return its row of `changes`, which comes before all of what follows."""
        row = {
            "sequence": self.sequence,
            "row": _GAP_ROW,
            "operation": GAP,
            "before": json.dumps({"from": self.start}),
            "after": json.dumps({"to": self.end, "reason": self.reason}, ensure_ascii=False),
            "time": self.time,
        }
        return pa.Table.from_pylist([row], schema=CHANGE_COLUMNS)


def with_definitions(rows: Iterable[pa.Table], definitions: list[DdlChange]) -> Iterator[pa.Table]:
    """Yield rows of `changes` in order, with those of the definitions between them."""
    left = _definition_rows(definitions) if definitions else None
    for some in rows:
        table = some.select(CHANGE_COLUMNS.names).cast(CHANGE_COLUMNS)
        if left is not None:
            before = pc.less_equal(left.column("sequence"), pc.max(table.column("sequence")))
            table = _in_order(pa.concat_tables([table, left.filter(before)]))
            left = left.filter(pc.invert(before))
        yield table
    if left is not None and left.num_rows:
        yield _in_order(left)


def _in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("sequence", "ascending"), ("row", "ascending")])


def _definition_rows(definitions: list[DdlChange]) -> pa.Table:
    """Return definitions as rows; `row` is below 0, so that those of one statement are ordered, too."""
    counts = Counter(one.sequence for one in definitions)
    rows = []
    for one in definitions:
        rows.append(
            {
                "sequence": one.sequence,
                "row": -counts[one.sequence],
                "operation": one.action,
                "before": _name_told(one.source),
                "after": _name_told(one.target),
                "time": one.time,
                "gtid": None,
                "file": None,
                "transaction": one.start.position,
            }
        )
        counts[one.sequence] -= 1
    return pa.Table.from_pylist(rows, schema=CHANGE_COLUMNS)
