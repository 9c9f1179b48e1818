"""All transactions of a stretch of a file, in their new place."""

from typing import Final

from protocol.kernel.codes import INFO_BOUNDARY, INFO_OPEN, SELF_CONTAINED, TABLE_ROW
from relay.archive.storage.files import StoredFile
from relay.binlog_file.broken import Broken
from relay.binlog_file.event_reader import EventReader, EventRun
from relay.export.export_tally import WHOLE_STATEMENTS, ExportedTransaction, ExportTally
from relay.export.moved_events import MovedEvents
from relay.export.readable_files import ReadableFile

_TABLE_ROWS: Final = 8192
_HEAD_BYTES: Final = 200


class WholeCopy:
    """A copier of ranges of one file through the kernel, which checks every event."""

    def __init__(
        self, source: ReadableFile, stored: StoredFile, format_event: bytes, moved: MovedEvents, tally: ExportTally
    ) -> None:
        self._source = source
        self._reader = EventReader(stored, table_rows=_TABLE_ROWS, format_event=format_event)
        self._moved = moved
        self._tally = tally
        self._open: ExportedTransaction | None = None
        self._unended: ExportedTransaction | None = None
        """The transaction whose last event is not complete yet."""

    def copy(self, start: int, stop: int) -> None:
        """Copy [start, stop), both between two transactions. Raises: Broken; OSError."""
        for run in self._reader.runs(start, stop):
            self._take(run)
        unfinished = self._reader.unfinished
        if self._moved.left or unfinished is not None:
            at = unfinished[0] if unfinished is not None else self._reader.ingest.position
            raise Broken("event_truncated", at, f"The event at {at} ends behind {stop}, where it must end.")

    def _take(self, run: EventRun) -> None:
        moved, tally = self._moved, self._tally
        view = memoryview(run.buffer)
        table = run.table
        begin, end = run.start, run.consumed
        if moved.left:
            part = min(moved.left, end - begin)
            moved.go_on(view[begin : begin + part])
            if not moved.left and self._unended is not None:
                tally.take(self._unended)
                self._unended = None
        for at in range(0, run.rows * TABLE_ROW, TABLE_ROW):
            offset, size, kind, _flags, timestamp, _server, _log_pos, info = table[at : at + TABLE_ROW]
            place = offset - run.base
            ended: ExportedTransaction | None = None
            if self._open is None:
                alone = info & INFO_BOUNDARY == SELF_CONTAINED and kind in WHOLE_STATEMENTS
                if info & INFO_OPEN or alone:
                    head = bytes(view[place : min(place + _HEAD_BYTES, place + size, end)])
                    one = ExportedTransaction(
                        self._source.name, self._source.generation, offset, offset + size, timestamp, head
                    )
                    if alone:
                        ended = one
                    else:
                        self._open = one
            elif not info & INFO_OPEN:
                ended, self._open = self._open, None
                ended.end = offset + size
            moved.begin(view[place : min(place + size, end)], offset, size)
            if ended is not None and moved.left:
                self._unended = ended
            elif ended is not None:
                tally.take(ended)
