"""The head of an exported binlog: the source's format description, and what was executed before its first transaction."""

import struct
import zlib
from dataclasses import dataclass

from protocol.binlog.encoded_events import patch_format_description
from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import FormatDescription, decode_first_event
from protocol.binlog.layout import CHECKSUM_SIZE, FIRST_EVENT, HEADER, HEADER_SIZE, MAGIC
from protocol.errors import ProtocolError
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import encode_gtid_list
from relay.archive.read.file_snapshot import FileSnapshot
from relay.archive.storage.files import FileLayer, StoredFile
from relay.archive.storage.gtid_facts import GtidValue, state_behind
from relay.binlog_file.event_places import EventFields, event_headers
from relay.binlog_file.file_bytes import pieces, read_bytes
from relay.export.export_errors import ExportDamaged
from relay.export.export_plan import ExportPiece

_TAGGED_AT = 7
_TELLS = (EventType.PREVIOUS_GTIDS, EventType.GTID_LIST)
_MARKERS = 0x3C00


@dataclass(frozen=True, slots=True)
class PieceHead:
    """The head. `data` are the exported file's first bytes; the events from `start` of the source's file on follow. `executed` is what
    `data` says was executed before; None if it says nothing."""

    data: bytes
    start: int
    format: FormatDescription
    format_event: bytes
    executed: GtidValue | None


def piece_head(piece: ExportPiece, stored: StoredFile, layer: FileLayer) -> PieceHead:
    """Return the head of a piece. Blocking. Raises: ExportDamaged; OSError."""
    file = piece.source.file
    try:
        snapshot = FileSnapshot(
            file.name, piece.source.path, piece.source.stop, bool(file.checksum), layer=layer
        ).head()
        event = snapshot.format_description
        if event is None:
            raise ExportDamaged(f"{file.name} has no format description in the archive.")
        described = decode_first_event(event)[1]
        data = MAGIC + patch_format_description(event, mid_file=False, strip_markers=True)
        if piece.start <= snapshot.end:
            return PieceHead(data, FIRST_EVENT + len(event), described, event, None)
        executed, told = _executed(piece, stored, described, snapshot.end)
    except ProtocolError as error:
        raise ExportDamaged(f"The head of {file.name} cannot be read: {error}. Run 'archive verify --deep'.") from error
    if executed is not None and told is not None:
        data += _told_again(executed, told, len(data), described)
    return PieceHead(data, piece.start, described, event, executed)


@dataclass(frozen=True, slots=True)
class _ToldExecuted:
    """The event in the source's head that says what was executed."""

    fields: EventFields
    body: bytes


def _executed(
    piece: ExportPiece, stored: StoredFile, described: FormatDescription, head_end: int
) -> tuple[GtidValue | None, _ToldExecuted | None]:
    """Return what was executed before the piece, and the event of the file's head that says so. Raises: Malformed; OSError."""
    told = None
    for at, fields in event_headers(stored, FIRST_EVENT, head_end):
        if fields.type in _TELLS:
            body = read_bytes(stored, at + HEADER_SIZE, fields.size - HEADER_SIZE - described.checksum_bytes)
            told = _ToldExecuted(fields, body)
    if told is None:
        return None, None
    collector = FileGtidCollector(described.flavour, checksum=bool(described.checksum_bytes))
    for data in pieces(stored, FIRST_EVENT, piece.start):
        collector.take(data)
        collector.take_blocks()
    return state_behind(collector.before, collector.inside()), told


def _told_again(executed: GtidValue, told: _ToldExecuted, at: int, described: FormatDescription) -> bytes:
    """Return the same event with what was executed later."""
    if isinstance(executed, GtidSet):
        # A server that ever saw a tag writes the second format from then on.
        body = encode_gtid_set(executed, tagged=told.body[_TAGGED_AT : _TAGGED_AT + 1] == b"\1")
    else:
        body = encode_gtid_list(executed)
    fields = told.fields
    size = HEADER_SIZE + len(body) + described.checksum_bytes
    end = at + size if fields.log_pos else 0
    event = HEADER.pack(fields.timestamp, fields.type, fields.server_id, size, end, fields.flags & ~_MARKERS) + body
    return event + struct.pack("<I", zlib.crc32(event)) if described.checksum_bytes == CHECKSUM_SIZE else event
