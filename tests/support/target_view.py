"""A writer of the binlogs of a view for an older target from a real source's, by the rules alone, without the view's own builder."""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import decode_first_event
from protocol.binlog.gtid_event import Gtid, encode_gtid
from protocol.binlog.header import decode_header
from protocol.binlog.layout import CHECKSUM_SIZE, FIRST_EVENT, HEADER, HEADER_SIZE, MAGIC
from relay.view.rules.group import Copy, GroupRules, Later, New, OutGroup
from relay.view.rules.settings import ViewSettings
from relay.view.rules.targets.target_format import target_format, target_previous_gtids
from tests.support.view_writer import groups_of

_MARKERS = 0x3C00


class TargetViewFile:
    """One file in the making. `gno` is that of the newest GTID that was assigned."""

    def __init__(self, source: bytes, settings: ViewSettings, gno: int) -> None:
        self._source = source
        self._settings = settings
        self.gno = gno
        self.data = bytearray(MAGIC)
        header, description = decode_first_event(source[FIRST_EVENT:])
        self._checksum = description.checksum_bytes
        body = source[FIRST_EVENT + HEADER_SIZE : FIRST_EVENT + header.size - CHECKSUM_SIZE]
        self._put(header.type, 0, header.timestamp, header.server_id, target_format(body, settings), CHECKSUM_SIZE)
        at = FIRST_EVENT + header.size
        previous = decode_header(source, at)
        if previous.type == EventType.PREVIOUS_GTIDS:
            own = source[at + HEADER_SIZE : at + previous.size - self._checksum]
            made = bytes(8) if settings.gtids == "anonymous" else target_previous_gtids(own, settings)
            assert made is not None
            self._put(previous.type, 0x80, previous.timestamp, previous.server_id, made, self._checksum)

    def _put(self, kind: int, flags: int, timestamp: int, server_id: int, body: bytes, checksum: int) -> None:
        size = HEADER_SIZE + len(body) + checksum
        event = HEADER.pack(timestamp, kind, server_id, size, len(self.data) + size, flags & ~_MARKERS) + body
        self.data += event + (struct.pack("<I", zlib.crc32(event)) if checksum else b"")

    def group(self, group: OutGroup) -> None:
        """Append a group, with a Gtid event of the view's policy before it if it needs a new one."""
        pieces = [new for piece in group.pieces for new in self._events(piece)]
        if group.gtid == "new" and self._settings.gtids != "keep":
            assign = self._settings.gtids == "assign"
            self.gno += assign
            gtid = Gtid(1, self._settings.uuid if assign else UUID(int=0), self.gno if assign else 0)
            kind = EventType.GTID if assign else EventType.ANONYMOUS_GTID
            pieces.insert(0, New(kind, 0, pieces[0].timestamp, pieces[0].server_id, encode_gtid(gtid)))
        for piece in pieces:
            self._put(piece.type, piece.flags, piece.timestamp, piece.server_id, piece.body, self._checksum)

    def _events(self, piece: Copy | New | Later) -> list[New]:
        assert not isinstance(piece, Later)
        if isinstance(piece, New):
            return [piece]
        found = []
        at = piece.start
        while at < piece.stop:
            header = decode_header(self._source, at)
            body = self._source[at + HEADER_SIZE : at + header.size - self._checksum]
            found.append(New(header.type, header.flags, header.timestamp, header.server_id, body))
            at += header.size
        return found


def write_target_view(binlogs: Sequence[Path], directory: Path, rules: GroupRules, settings: ViewSettings) -> int:
    """Write a file of the view for each of the source's; return the last GNO that was assigned.

    Raises: Untranslatable; what came before it is written.
    """
    directory.mkdir(exist_ok=True)
    gno = 0
    for path in binlogs:
        source = path.read_bytes()
        made = TargetViewFile(source, settings, gno)
        try:
            for group in groups_of(path.name, source):
                for outgroup in rules.plan(group):
                    made.group(outgroup)
        finally:
            gno = made.gno
            (directory / path.name).write_bytes(made.data)
    return gno
