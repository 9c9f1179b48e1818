"""A view's files without the view: a source's binlogs through the rules, with a GTID event before each group. It is for tests of rules.

The kernel's other changes to copied groups (rows of version 1, the status variable for TIMESTAMP columns) are not made here.
"""

import struct
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from uuid import UUID

from protocol.binlog.format_description import decode_first_event
from protocol.binlog.gtid_event import Gtid, encode_gtid
from protocol.binlog.layout import CHECKSUM_SIZE, FIRST_EVENT, FLAGS, HEADER, HEADER_SIZE, MAGIC
from protocol.kernel.codes import (
    FORMAT_DESCRIPTION_EVENT,
    GTID_EVENT,
    PREVIOUS_GTIDS_EVENT,
    ROTATE_EVENT,
    STOP_EVENT,
    TABLE_ROW,
)
from protocol.kernel.ingest import Ingest
from relay.view.rules.group import Copy, GroupEvent, New, OutGroup, SourceGroup

VIEW_UUID: Final = UUID("6f0f3cb2-6d0c-5a43-9c63-000000000016")
_NO_GROUP: Final = frozenset((FORMAT_DESCRIPTION_EVENT, PREVIOUS_GTIDS_EVENT, ROTATE_EVENT, STOP_EVENT))
_START, _INSIDE, _END = 3, 4, 5


class Plans(Protocol):
    """The rules, or their substitute."""

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """Return the plan of a group."""


class AsItIs:
    """A substitute without rules: each group is one of the view, as the source wrote it."""

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """Return the group."""
        return [OutGroup((Copy(group.start, group.stop),))]


def groups_of(name: str, data: bytes) -> Iterator[SourceGroup]:
    """Yield the groups of a whole binlog, which has checksums or none."""
    _header, description = decode_first_event(data[FIRST_EVENT:])
    ingest = Ingest()
    table = array("q", bytes(8 * TABLE_ROW * (len(data) // HEADER_SIZE + 1)))
    ingest.set_table(table, True)
    ingest.begin_file(FIRST_EVENT)
    ingest.feed(bytearray(data), FIRST_EVENT, len(data))
    lengths = bytes(description.post_header_length(kind) for kind in range(256))
    events: list[GroupEvent] = []
    for row in range(ingest.table_rows):
        offset, length, kind, _flags, timestamp, server_id, _end, info = table[row * TABLE_ROW : (row + 1) * TABLE_ROW]
        if kind in _NO_GROUP:
            continue
        flags = int.from_bytes(data[offset:][FLAGS], "little")
        events.append(GroupEvent(offset, length, kind, flags, timestamp, server_id))
        if info & 7 in (_START, _INSIDE):
            continue
        yield source_group(name, data, events, lengths, description.server_version, description.checksum_bytes)
        events = []


def source_group(
    name: str, data: bytes, events: list[GroupEvent], lengths: bytes, version: str, checksum_bytes: int = CHECKSUM_SIZE
) -> SourceGroup:
    """Return a group of these events of the file `data`."""

    def body(event: GroupEvent, most: int | None = None) -> bytes:
        return data[event.offset + HEADER_SIZE : event.offset + event.length - checksum_bytes][:most]

    start, stop = events[0].offset, events[-1].offset + events[-1].length
    return SourceGroup(name, start, stop, tuple(events), body, lengths, version)


@dataclass
class ViewWriter:
    """Files of a view in `directory`, made one after the other. `gno` is the number of the newest GTID, `version` the one that GTID
    events name."""

    directory: Path
    rules: Plans
    gno: int = 0
    version: int = 50624

    def write(self, source: Path) -> None:
        """Write the file of the same name. Raises: Untranslatable, with the groups before it written."""
        data = source.read_bytes()
        header, description = decode_first_event(data[FIRST_EVENT:])
        made = bytearray(MAGIC)
        first = bytearray(data[FIRST_EVENT : FIRST_EVENT + header.size])
        first[17:19] = b"\0\0"
        checksum = description.checksum_bytes
        _append(made, bytes(first[: header.size - CHECKSUM_SIZE]), True)
        _append(made, _event(PREVIOUS_GTIDS_EVENT, 0x80, header.timestamp, header.server_id, bytes(8)), checksum > 0)
        sequence = 0
        try:
            for group in groups_of(source.name, data):
                begins, ends = group.ends()
                for out in self.rules.plan(group):
                    self.gno += 1
                    sequence += 1
                    timestamp = ends.timestamp
                    time_us, version = timestamp * 1_000_000, self.version
                    gtid = Gtid(
                        1, VIEW_UUID, self.gno, "", sequence - 1, sequence, time_us, time_us, 0, version, version
                    )
                    body = encode_gtid(gtid)
                    _append(made, _event(GTID_EVENT, 0, timestamp, begins.server_id, body), checksum > 0)
                    for piece in out.pieces[out.gtid == "source" :]:
                        if isinstance(piece, New):
                            raw = _event(piece.type, piece.flags, piece.timestamp, piece.server_id, piece.body)
                            _append(made, raw, checksum > 0)
                            continue
                        assert isinstance(piece, Copy)
                        for event in group.events:
                            if piece.start <= event.offset < piece.stop:
                                raw = data[event.offset : event.offset + event.length - checksum]
                                _append(made, raw, checksum > 0)
        finally:
            self.directory.mkdir(parents=True, exist_ok=True)
            (self.directory / source.name).write_bytes(made)


def _event(kind: int, flags: int, timestamp: int, server_id: int, body: bytes) -> bytes:
    return HEADER.pack(timestamp, kind, server_id, 0, 0, flags) + body


def _append(made: bytearray, raw: bytes, with_checksum: bool) -> None:
    size = len(raw) + (CHECKSUM_SIZE if with_checksum else 0)
    timestamp, kind, server_id, _size, _end, flags = HEADER.unpack_from(raw)
    event = HEADER.pack(timestamp, kind, server_id, size, len(made) + size, flags & 0x3FF) + raw[HEADER_SIZE:]
    made += event + (struct.pack("<I", zlib.crc32(event)) if with_checksum else b"")
