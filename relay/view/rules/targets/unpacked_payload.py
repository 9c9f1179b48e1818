"""The events of a compressed transaction (Transaction_payload, MySQL 8.0.20 and later), for versions that know no such event."""

import io
import sys
from collections.abc import Callable, Container, Iterator
from typing import Final

from protocol.binlog.header import EventHeader, decode_header
from protocol.binlog.layout import HEADER_SIZE
from protocol.binlog.transaction_payload import decode_transaction_payload
from protocol.errors import ProtocolError
from relay.view.stops import transaction_stops

MOST_BYTES: Final = 64 << 20
"""The most unpacked bytes: they are in memory."""
_PIECE: Final = 1 << 20
_Read = Callable[[int], bytes]
_NONE: Final = 255
_ZSTD: Final = 0
_TURN_OFF: Final = "SET GLOBAL binlog_transaction_compression=OFF on the source, and skip the group"


def unpack_payload(body: bytes) -> Iterator[tuple[EventHeader, bytes]]:
    """Yield header and body of each event inside: they have no checksums, and their headers are those of the transaction except for
    end_log_pos. Raises: Untranslatable, before the first one."""
    try:
        events = _unpacked(body)
        found = []
        at = 0
        while at < len(events):
            header = decode_header(events, at)
            if at + header.size > len(events):
                raise ProtocolError(f"its event at {at} of {header.size} bytes ends behind its {len(events)} bytes")
            found.append((header, events[at + HEADER_SIZE : at + header.size]))
            at += header.size
    except ProtocolError as error:
        raise transaction_stops.payload_unreadable(
            f"it is damaged: {error}", "repair the archive from the source"
        ) from error
    yield from found


def look_into_payload(body: bytes, wanted: Container[int]) -> Iterator[tuple[EventHeader, bytes]]:
    """Yield header and body of each event inside, one at a time, so that the whole may have any size. Bodies of types that are not
    `wanted` are b"". Raises: Untranslatable, where it cannot be read."""
    try:
        read = _reader(body)
        while head := _taken(read, HEADER_SIZE):
            if len(head) < HEADER_SIZE:
                raise ProtocolError("it ends inside of a header")
            header = decode_header(head, 0)
            size = header.size - HEADER_SIZE
            if header.type not in wanted:
                _pass_over(read, size)
                yield header, b""
                continue
            if size > MOST_BYTES:
                why = f"an event in it has {size} bytes, more than the {MOST_BYTES} that a view holds in memory"
                raise transaction_stops.payload_unreadable(why, _TURN_OFF)
            inside = _taken(read, size)
            if len(inside) < size:
                raise ProtocolError(f"its event of type {header.type} ends {size - len(inside)} bytes behind it")
            yield header, inside
    except ProtocolError as error:
        raise transaction_stops.payload_unreadable(
            f"it is damaged: {error}", "repair the archive from the source"
        ) from error


def _taken(read: _Read, size: int) -> bytes:
    """Return `size` bytes; fewer only at the end."""
    pieces = []
    while size and (piece := read(min(size, _PIECE))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _pass_over(read: _Read, size: int) -> None:
    while size:
        passed = len(read(min(size, _PIECE)))
        if not passed:
            raise ProtocolError(f"its last event ends {size} bytes behind it")
        size -= passed


def _reader(body: bytes) -> _Read:
    """Return a function that gives up to so many unpacked bytes, in order, and b"" at the end. It raises ProtocolError."""
    head = decode_transaction_payload(body)
    packed = body[head.head_bytes :]
    if head.compression == _NONE:
        return io.BytesIO(packed).read
    if head.compression != _ZSTD:
        raise transaction_stops.payload_unreadable(
            f"{head.compression_name} is not known here", "use a newer binlog-relay"
        )
    return _zstd_reader(packed)


def _unpacked(body: bytes) -> bytes:
    head = decode_transaction_payload(body)
    packed = body[head.head_bytes :]
    if head.uncompressed_bytes > MOST_BYTES:
        raise transaction_stops.payload_unreadable(
            f"it has {head.uncompressed_bytes} bytes, more than the {MOST_BYTES} that a view holds in memory", _TURN_OFF
        )
    if head.compression == _NONE:
        events = packed
    else:
        events = _taken(_reader(body), head.uncompressed_bytes + 1)
    if len(events) != head.uncompressed_bytes:
        raise ProtocolError(f"{len(events)} bytes where {head.uncompressed_bytes} are announced")
    return events


def _zstd_reader(packed: bytes) -> _Read:
    try:
        import zstandard
    except ImportError:
        # This is an installation whose packages are older than its code, or a Spark executor.
        advice = f"run {sys.executable} -m pip install 'zstandard>=0.23,<1', then start the relay again"
        raise transaction_stops.payload_unreadable("the package zstandard is not installed", advice) from None
    stream = zstandard.ZstdDecompressor().stream_reader(packed)

    def read(size: int) -> bytes:
        try:
            return bytes(stream.read(size))
        except zstandard.ZstdError as error:
            raise ProtocolError(f"zstd cannot read it ({error})") from None

    return read
