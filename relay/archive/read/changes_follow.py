"""Whether anything that a replica applies stands between a place and the archive's end, or only what servers write for themselves.

A replica that has applied all may say a place before the head of the newest file, or before a Stop: those move no replica.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import HEADER_SIZE
from relay.archive.storage.files import FileLayer, StoredFile
from relay.binlog_file.event_places import event_headers

_MOST_EVENTS: Final = 32
_OF_THE_FILE: Final = frozenset(
    {
        EventType.FORMAT_DESCRIPTION,
        EventType.PREVIOUS_GTIDS,
        EventType.GTID_LIST,
        EventType.BINLOG_CHECKPOINT,
        EventType.START_ENCRYPTION,
        EventType.HEARTBEAT,
        EventType.ROTATE,
        EventType.STOP,
    }
)


class Stretch(NamedTuple):
    """A part of a file, between two events."""

    path: Path
    start: int
    end: int


def changes_follow(layer: FileLayer, rest: Sequence[Stretch]) -> bool:
    """Return whether it has, or may have, anything that a replica applies. Blocking. Raises: OSError."""
    left = _MOST_EVENTS
    for stretch in rest:
        reached = stretch.start
        with StoredFile.open(layer, stretch.path) as stored:
            for at, fields in event_headers(stored, stretch.start, stretch.end, HEADER_SIZE):
                left -= 1
                if left < 0 or fields.type not in _OF_THE_FILE:
                    return True
                reached = at + fields.size
        if reached != stretch.end:
            return True
    return False
