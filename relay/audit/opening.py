"""Unpacks what the kernel asks for: MariaDB's compressed events (zlib), MySQL's compressed transactions (zstd)."""

from collections.abc import Iterator
from typing import Any, Final

from protocol.binlog.compression import unpack_compressed
from protocol.binlog.transaction_payload import decode_transaction_payload
from protocol.errors import ProtocolError
from protocol.kernel.event_columns import whole_events
from protocol.kernel.transaction_columns import OPEN_PAYLOAD, TransactionColumns

_PIECE_BYTES: Final = 1 << 20
_ZSTD: Final = 0
_NONE: Final = 255


def open_for(columns: TransactionColumns, status: int, buffer: bytearray) -> None:
    """Gives `columns` what it asked for with `status`, unpacked, or says that it cannot be had."""
    packed = bytes(memoryview(buffer)[columns.open_start : columns.open_stop])
    if status != OPEN_PAYLOAD:
        data = unpack_event(packed)
        if data is None:
            columns.not_opened()
        else:
            columns.opened(data)
        return
    if _take_payload(columns, packed):
        columns.payload_done()
    else:
        columns.not_opened()


def unpack_event(packed: bytes) -> bytes | None:
    """What MariaDB packed into an event: a statement, or rows; None where it cannot be had."""
    try:
        return unpack_compressed(packed)
    except ProtocolError:
        return None


def _take_payload(columns: TransactionColumns, packed: bytes) -> bool:
    """Hands the events of a Transaction_payload to `columns`, in pieces: a transaction may have gigabytes."""
    buffer = bytearray()
    try:
        for piece in payload_pieces(packed):
            buffer += piece
            stop = whole_events(buffer, 0, len(buffer))
            if columns.opened_events(buffer, 0, stop) != stop:
                return False
            del buffer[:stop]
    except ProtocolError:
        return False
    return not buffer


def payload_pieces(packed: bytes) -> Iterator[bytes]:
    """The bytes of a Transaction_payload's events, a megabyte at a time. Raises: ProtocolError, ImportError."""
    head = decode_transaction_payload(packed)
    body = memoryview(packed)[head.head_bytes :]
    if head.compression == _NONE:
        yield bytes(body)
        return
    if head.compression != _ZSTD:
        raise ProtocolError(f"compression {head.compression} of a transaction is not known")
    zstd, error = _zstd()
    stream = zstd.ZstdDecompressor().stream_reader(body)
    try:
        while piece := stream.read(_PIECE_BYTES):
            yield piece
    except error as reason:
        raise ProtocolError(f"zstd cannot read the transaction: {reason}") from None


def _zstd() -> tuple[Any, type[Exception]]:
    """The zstandard module; it is needed only where transactions are compressed. Raises: ImportError with what to do."""
    try:
        import zstandard
    except ImportError:
        raise ImportError("compressed transactions need zstandard: pip install 'binlog-relay[audit]'") from None
    return zstandard, zstandard.ZstdError
