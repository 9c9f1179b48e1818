"""The levels `statements` and `table_maps`: what a split holds of them, as Arrow batches."""

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from protocol.kernel import statement_columns
from protocol.kernel.statement_columns import OPEN_QUERY, StatementColumns
from relay.audit.opening import payload_events, unpack_event
from relay.audit.split_reader import Run

ROWS: Final = 8192

Full = Callable[[], Iterator[pa.RecordBatch]]
"""What a full batch becomes; another is begun behind it."""


def take_run(columns: StatementColumns, run: Run, full: Full) -> Iterator[pa.RecordBatch]:
    """Takes all of a run."""
    while (status := columns.take(run.buffer, run.base, run.table, run.rows)) != statement_columns.DONE:
        if status == statement_columns.FULL:
            yield from full()
            columns.begin_batch()
            continue
        packed = bytes(memoryview(run.buffer)[columns.open_start : columns.open_stop])
        if status == OPEN_QUERY:
            text = unpack_event(packed)
            if text is None:
                columns.not_opened()
            else:
                columns.opened(text)
        else:
            yield from _take_payload(columns, packed, full)


def _take_payload(columns: StatementColumns, packed: bytes, full: Full) -> Iterator[pa.RecordBatch]:
    """Takes the events of a Transaction_payload, in pieces: a transaction may have gigabytes."""
    for events in payload_events(packed):
        at = 0
        while events is not None and at < len(events):
            at = columns.opened_events(events, at, len(events))
            if at < len(events) and not columns.full:
                events = None
            if columns.full:
                yield from full()
                columns.begin_batch()
        if events is None:
            columns.not_opened()
            return
    columns.payload_done()
