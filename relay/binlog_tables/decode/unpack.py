"""The decompression that the kernel asks for: MariaDB's compressed events (zlib), MySQL's compressed transactions (zstd)."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from protocol.binlog.compression import MOST_HELD_BYTES, unpack_compressed
from protocol.binlog.layout import HEADER_SIZE, event_size, is_event_size
from protocol.binlog.transaction_payload import decode_transaction_payload
from protocol.columns.codes.column_codes import DONE, OPEN_PAYLOAD, OPEN_QUERY, OPEN_ROWS
from protocol.columns.column_reader import ColumnReader, whole_events
from protocol.errors import ProtocolError
from relay.binlog_file.event_reader import EventRun

_PIECE_BYTES: Final = 1 << 20
_ZSTD: Final = 0
_NONE: Final = 255


Batches = Iterator[pa.RecordBatch]


def take_run(columns: ColumnReader, run: EventRun, stopped: Callable[[int], Batches]) -> Batches:
    """Take all of a run; compressed parts are unpacked and given to `columns`, or reported as unavailable.

    `stopped` handles every other status with which `columns` stops, and yields the resulting batches.
    """
    while (status := columns.take(run.buffer, run.base, run.table, run.rows)) != DONE:
        if status in (OPEN_ROWS, OPEN_QUERY):
            _open_event(columns, _packed(columns, run))
        elif status == OPEN_PAYLOAD:
            yield from _take_payload(columns, _packed(columns, run), stopped)
        else:
            yield from stopped(status)


def _packed(columns: ColumnReader, run: EventRun) -> bytes:
    return bytes(memoryview(run.buffer)[columns.open_start : columns.open_stop])


def _open_event(columns: ColumnReader, packed: bytes) -> None:
    """Unpack what MariaDB packed into an event: a statement, or rows."""
    try:
        columns.opened(unpack_compressed(packed, MOST_HELD_BYTES))
    except ProtocolError:
        columns.not_opened()


def _take_payload(columns: ColumnReader, packed: bytes, stopped: Callable[[int], Batches]) -> Batches:
    """Take the events of a compressed transaction, which is unpacked piece by piece."""
    for events in payload_events(packed):
        at = 0
        while events is not None and (status := columns.opened_events(events, at, len(events))) != DONE:
            at = columns.opened_at
            yield from stopped(status)
        if events is None or columns.opened_at != len(events):
            columns.not_opened()
            return
    columns.payload_done()


def payload_events(packed: bytes) -> Iterator[bytearray | None]:
    """Yield the events of a Transaction_payload's body in pieces, each of whole events: a transaction may have gigabytes.

    None, at the end, means that it cannot be unpacked from here on.
    """
    buffer = bytearray()
    try:
        for piece in payload_pieces(packed):
            buffer += piece
            stop = whole_events(buffer, 0, len(buffer))
            if stop:
                yield buffer[:stop]
                del buffer[:stop]
            if len(buffer) >= HEADER_SIZE and not is_event_size(event_size(buffer)):
                break  # Otherwise the rest of the transaction would be held while waiting for the end of an event that is none
    except ProtocolError:
        yield None
        return
    if buffer:
        yield None


def payload_pieces(packed: bytes) -> Iterator[bytes]:
    """Yield the bytes of a Transaction_payload's events, a megabyte at a time.

    Raises: ProtocolError, also if they are not as many as the event says; ImportError.
    """
    head = decode_transaction_payload(packed)
    body = memoryview(packed)[head.head_bytes :]
    left = head.uncompressed_bytes
    for piece in _unpacked(body, head.compression):
        left -= len(piece)
        if left < 0:
            raise ProtocolError(f"a transaction of more than the {head.uncompressed_bytes} bytes that it announces")
        yield piece
    if left:  # A stream that is cut between two of its blocks ends like a whole one
        raise ProtocolError(f"a transaction of {head.uncompressed_bytes} bytes, the last {left} of which are missing")


def _unpacked(body: memoryview, compression: int) -> Iterator[bytes]:
    if compression == _NONE:
        yield bytes(body)
        return
    if compression != _ZSTD:
        raise ProtocolError(f"compression {compression} of a transaction is not known")
    zstd, error = _zstd()
    stream = zstd.ZstdDecompressor().stream_reader(body)
    try:
        while piece := stream.read(_PIECE_BYTES):
            yield piece
    except error as reason:
        raise ProtocolError(f"zstd cannot read the transaction: {reason}") from None


def _zstd() -> tuple[Any, type[Exception]]:
    """Return the zstandard module; it is needed only if transactions are compressed. Raises: ImportError with what to do."""
    try:
        import zstandard
    except ImportError:
        raise ImportError("compressed transactions need zstandard: pip install 'zstandard>=0.23,<1'") from None
    return zstandard, zstandard.ZstdError
