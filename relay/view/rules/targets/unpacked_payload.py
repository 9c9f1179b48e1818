"""The events of a compressed transaction (Transaction_payload, MySQL 8.0.20 and later), for versions that know no such event."""

from collections.abc import Iterator
from typing import Final

from protocol.binlog.header import EventHeader, decode_header
from protocol.binlog.layout import HEADER_SIZE
from protocol.binlog.transaction_payload import decode_transaction_payload
from protocol.errors import ProtocolError
from relay.view.rules.targets.known import target_stops

MOST_BYTES: Final = 64 << 20
"""Of what is unpacked: it is held in memory."""
_NONE: Final = 255
_ZSTD: Final = 0
_TURN_OFF: Final = "SET GLOBAL binlog_transaction_compression=OFF on the source, and skip the group"


def unpack_payload(body: bytes) -> Iterator[tuple[EventHeader, bytes]]:
    """Header and body of each event inside: they have no checksums, and their headers are those of the transaction but for
    end_log_pos. Raises: CannotBeKept, before the first one."""
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
        target_stops.payload_unreadable(f"it is damaged: {error}", "repair the archive from the source")
    yield from found


def _unpacked(body: bytes) -> bytes:
    head = decode_transaction_payload(body)
    packed = body[head.head_bytes :]
    if head.uncompressed_bytes > MOST_BYTES:
        target_stops.payload_unreadable(
            f"it has {head.uncompressed_bytes} bytes, more than the {MOST_BYTES} that a view holds in memory", _TURN_OFF
        )
    if head.compression == _NONE:
        events = packed
    elif head.compression == _ZSTD:
        events = _from_zstd(packed, head.uncompressed_bytes)
    else:
        target_stops.payload_unreadable(f"{head.compression_name} is not known here", "use a newer binlog-relay")
    if len(events) != head.uncompressed_bytes:
        raise ProtocolError(f"{len(events)} bytes where {head.uncompressed_bytes} are announced")
    return events


def _from_zstd(packed: bytes, announced: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        target_stops.payload_unreadable(
            "the package zstandard is not installed", "pip install 'binlog-relay[audit]', then start the relay again"
        )
    try:
        events: bytes = zstandard.ZstdDecompressor().stream_reader(packed).read(announced + 1)
    except zstandard.ZstdError as error:
        raise ProtocolError(f"zstd cannot read it ({error})") from None
    return events
