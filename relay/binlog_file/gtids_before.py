"""The GTIDs executed before a binlog, by its head: its Previous_gtids, or MariaDB's Gtid_list."""

from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.gtid.file_gtids import BLOCK_BYTES, FileGtidCollector
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from relay.binlog_file.event_places import event_headers
from relay.binlog_file.file_bytes import FileBytes, pieces

_LONGEST_HEAD: Final = 64 << 20
_HEAD_PIECE_BYTES: Final = 4096
_IN_HEADS: Final = frozenset(
    {EventType.FORMAT_DESCRIPTION, EventType.START_ENCRYPTION, EventType.PREVIOUS_GTIDS, EventType.GTID_LIST}
)


def gtids_before(
    source: FileBytes, flavour: str, *, checksum: bool, stop: int = _LONGEST_HEAD
) -> GtidSet | GtidList | None:
    """Return what the file says of all before it, looked for up to offset `stop`; None: nothing. Raises: Malformed; OSError.

    Of a file without such an event no more is read than the headers up to where it would be.
    """
    stop = _head_stop(source, stop)
    collector = FileGtidCollector(flavour, checksum=checksum)
    for piece in pieces(source, FIRST_EVENT, stop, BLOCK_BYTES):
        try:
            collector.take(piece)
        except Malformed:
            if not collector.head_complete:
                raise  # otherwise the damage is after the head
        if collector.head_complete:
            break
    return collector.before


def _head_stop(source: FileBytes, stop: int) -> int:
    """Return where the event with the GTIDs ends; if there is none, where the first event starts that follows it in every file."""
    end = FIRST_EVENT
    for start, fields in event_headers(source, FIRST_EVENT, stop, _HEAD_PIECE_BYTES):
        if fields.type not in _IN_HEADS:
            return start
        end = start + fields.size
        if fields.type in (EventType.PREVIOUS_GTIDS, EventType.GTID_LIST):
            return min(end, stop)
    return min(end, stop)
