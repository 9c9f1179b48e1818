"""The transactions of a stretch of a file that change chosen tables, in their new place, with only these changes."""

import struct
from dataclasses import dataclass
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import FormatDescription
from protocol.binlog.layout import HEADER_SIZE, LOG_POS, event_size
from protocol.binlog.rows_event import STATEMENT_END
from protocol.binlog.transaction_payload import decode_transaction_payload
from protocol.columns.column_reader import whole_events
from protocol.errors import Malformed, ProtocolError
from protocol.kernel.codes import EVENT_SIZE_AT, INFERENCE_HEAD, INFO_OPEN, TABLE_ROW, U32_MAX
from relay.archive.storage.files import StoredFile
from relay.binlog_file.broken import Broken
from relay.binlog_file.event_reader import EventReader, EventRun
from relay.binlog_file.file_bytes import pieces, read_bytes
from relay.export.export_tally import WHOLE_STATEMENTS, ExportedTransaction, ExportTally
from relay.export.filter_report import FilterReport
from relay.export.filtered_transaction import FilteredTransaction, KeptEvent, SeenEvent, XaStatements
from relay.export.moved_events import MovedEvents
from relay.export.readable_files import ReadableFile
from relay.export.table_choice import TableChoice

_TABLE_ROWS: Final = 4096
_HEAD_BYTES: Final = 200
_MOST_UNPACKED_BYTES: Final = 512 << 20
_ZSTD: Final = 0
_NONE: Final = 255


@dataclass(slots=True)
class TableFilter:
    """The filter that a filtered export keeps from file to file. With `keeps_undecided` statements that cannot be decided stay."""

    choice: TableChoice
    keeps_undecided: bool
    report: FilterReport
    xa: XaStatements


class FilteredCopy:
    """A reader of ranges of one file through the kernel, which checks every event; it writes the kept part of each transaction."""

    def __init__(
        self,
        source: ReadableFile,
        stored: StoredFile,
        format_event: bytes,
        format: FormatDescription,
        moved: MovedEvents,
        tally: ExportTally,
        filter: TableFilter,
    ) -> None:
        self._source = source
        self._stored = stored
        self._format = format
        self._reader = EventReader(stored, table_rows=_TABLE_ROWS, format_event=format_event)
        self._moved = moved
        self._tally = tally
        self._filter = filter
        self._open: FilteredTransaction | None = None
        self._about: ExportedTransaction | None = None

    def copy(self, start: int, stop: int) -> None:
        """Copy [start, stop), both between two transactions. Raises: Broken; OSError."""
        for run in self._reader.runs(start, stop):
            self._take(run)
        unfinished = self._reader.unfinished
        if unfinished is not None or self._reader.ingest.in_event:
            at = unfinished[0] if unfinished is not None else self._reader.ingest.position
            raise Broken("event_truncated", at, f"The event at {at} ends behind {stop}, where it must end.")

    def _take(self, run: EventRun) -> None:
        view = memoryview(run.buffer)
        table = run.table
        trailer = self._format.checksum_bytes
        for at in range(0, run.rows * TABLE_ROW, TABLE_ROW):
            offset, size, kind, _flags, timestamp, _server, _log_pos, info = table[at : at + TABLE_ROW]
            place = offset - run.base
            data = bytes(view[place : min(place + size - trailer, run.consumed, place + INFERENCE_HEAD)])
            event = SeenEvent(offset, size, data, lambda offset=offset, size=size: self._whole(offset, size))  # type: ignore[misc]
            is_open = bool(info & INFO_OPEN)
            if self._open is None:
                if not is_open and kind not in WHOLE_STATEMENTS and kind != EventType.TRANSACTION_PAYLOAD:
                    # It is between transactions and concerns no table.
                    self._copy(KeptEvent(offset, size))
                    continue
                self._open = self._begin()
                self._about = ExportedTransaction(
                    self._source.name, self._source.generation, offset, offset + size, timestamp, data[:_HEAD_BYTES]
                )
            try:
                self._open.take(event)
            except ProtocolError as error:
                raise Broken("event_malformed", offset, f"The event at {offset} cannot be read: {error}.") from error
            if not is_open:
                self._end(self._open, offset + size)

    def _begin(self) -> FilteredTransaction:
        filter = self._filter
        return FilteredTransaction(
            filter.choice, self._format, filter.xa, unpacked_events, keeps_undecided=filter.keeps_undecided
        )

    def _end(self, transaction: FilteredTransaction, end: int) -> None:
        kept = transaction.kept()
        for event in kept:
            self._copy(event)
        about, self._open, self._about = self._about, None, None
        assert about is not None
        about.end = end
        if kept:
            self._tally.take(about)
        else:
            self._tally.left_out += 1
        self._filter.report.take(self._source.name, self._source.generation, transaction)

    def _whole(self, offset: int, size: int) -> bytes:
        return read_bytes(self._stored, offset, size - self._format.checksum_bytes)

    def _copy(self, event: KeptEvent) -> None:
        if event.data is not None:
            self._make(event.data)
            return
        first = True
        for piece in pieces(self._stored, event.offset, event.offset + event.size):
            if first:
                if event.ends_statement:
                    piece[HEADER_SIZE + event.flags_at] |= STATEMENT_END
                self._moved.begin(piece, event.offset, event.size)
                first = False
            else:
                self._moved.go_on(piece)

    def _make(self, data: bytes) -> None:
        """Write an event that the archive does not contain in this form; `data` is without a checksum."""
        size = len(data) + self._format.checksum_bytes
        event = bytearray(data) + bytes(self._format.checksum_bytes)
        struct.pack_into("<I", event, EVENT_SIZE_AT, size)
        struct.pack_into("<I", event, LOG_POS.start, (self._moved.position + size) & U32_MAX)
        self._moved.begin(memoryview(event), self._moved.position, size)


def unpacked_events(body: bytes) -> list[bytes]:
    """Return the events in the body of a Transaction_payload, without checksums. Raises: ProtocolError."""
    head = decode_transaction_payload(body)
    if head.uncompressed_bytes > _MOST_UNPACKED_BYTES:
        raise Malformed(
            f"a compressed transaction of {head.uncompressed_bytes} bytes, more than the {_MOST_UNPACKED_BYTES} that are taken "
            "apart in memory: export it without --tables"
        )
    packed = body[head.head_bytes :]
    data = packed if head.compression == _NONE else _unpacked(packed, head.compression, head.uncompressed_bytes)
    if len(data) != head.uncompressed_bytes or whole_events(data, 0, len(data)) != len(data):
        raise Malformed(f"a compressed transaction whose {head.uncompressed_bytes} bytes are not whole events")
    events = []
    at = 0
    while at < len(data):
        size = event_size(data, at)
        events.append(data[at : at + size])
        at += size
    return events


def _unpacked(packed: bytes, compression: int, size: int) -> bytes:
    if compression != _ZSTD:
        raise Malformed(f"compression {compression} of a transaction is not known")
    import zstandard

    stream = zstandard.ZstdDecompressor().stream_reader(packed)
    found = []
    left = size + 1
    try:
        while left and (piece := stream.read(min(left, 1 << 20))):
            found.append(bytes(piece))
            left -= len(piece)
    except zstandard.ZstdError as error:
        raise Malformed(f"zstd cannot read a compressed transaction: {error}") from None
    return b"".join(found)
