"""The changes of a table from before the place where a rebuild begins, which stay as they are."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from protocol.errors import Malformed
from relay.binlog_tables import arrow
from relay.feed.archive_reading import ArchiveReading
from relay.feed.lake.lake_rows import changed_rows
from relay.feed.lake.lake_table import ColumnsChange, LakeTable
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.statements.history_rows import CHANGE_COLUMNS, GAP, HistoryGap


def kept_changes(reading: ArchiveReading, history: LakeTable, start: FeedOffset) -> Iterator[pa.RecordBatch]:
    """Yield the changes before `start`; a gap that reaches further becomes one that ends there."""
    told = reading.told(start)
    first = arrow.sequence_of(reading.path, told) or 0
    with history.scan() as reader:
        for batch in changed_rows(reader, ColumnsChange(CHANGE_COLUMNS)):
            sequence = batch.column("sequence")
            is_gap = pc.equal(batch.column("operation"), GAP)
            # A gap has the sequence of what follows it.
            earlier = pc.or_(pc.less(sequence, first), pc.and_(pc.equal(sequence, first), is_gap))
            yield batch.filter(earlier)
            for one in batch.filter(pc.and_(pc.invert(earlier), is_gap)).to_pylist():
                if is_before(_from(one), start):
                    shorter = HistoryGap(_from(one), told, first, json.loads(one["after"])["reason"], one["time"])
                    yield from shorter.rows().to_batches()


def _from(gap: dict[str, Any]) -> str:
    return str(json.loads(gap["before"])["from"])


def is_before(told: str, place: FeedOffset) -> bool:
    """Return whether FILE:POSITION is before a place; what is told of a binlog that was not there any more is, too."""
    try:
        return FeedOffset.of_text(told) < place
    except (ValueError, Malformed, FeedStop):
        return True
