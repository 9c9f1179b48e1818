"""The test whether a binlog is complete: a server that begins the next one without a restart ends it with a Rotate."""

from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import decode_first_event
from protocol.binlog.layout import FIRST_EVENT, HEADER_SIZE, MAGIC, TYPE_AT, event_size
from protocol.errors import ProtocolError
from relay.binlog_file.file_bytes import FileBytes, read_bytes
from relay.binlog_file.head import LONGEST_FORMAT, read_start

_LONGEST_END: Final = 1024
"""The largest Rotate: header, a position, the name of a file, a checksum."""
_ROTATES_TO: Final = FIRST_EVENT.to_bytes(8, "little")
_STOP_SIZES: Final = (HEADER_SIZE, HEADER_SIZE + 4)

INCOMPLETE: Final = "file_incomplete"
INCOMPLETE_TEXT: Final = (
    "The file does not end with a Rotate or Stop, and the next one does not say that its server was started there: this one is not all "
    "there. It is being copied, was copied before its server had ended it, or was cut. Copy it again."
)


def is_incomplete(source: FileBytes, end: int, following: FileBytes) -> bool:
    """Return whether events are missing after `end`, where the file ends, by the next file of its series. Raises: OSError.

    A server that crashed writes no Rotate either; but what it begins when it starts again says when it was started (`created`; seen
    with MySQL 5.6 and 9.7, MariaDB 10.11 and 11.8). Then it is undecidable, and this is False. It is True if the next file's
    beginning is not there yet, and for a file whose end could not be written: on a full disk MySQL 5.6 begins the next one all the
    same.
    """
    return not _is_ended(source, end) and not _says_a_start(following)


def _is_ended(source: FileBytes, end: int) -> bool:
    """Return whether the last event is a Rotate or a Stop."""
    start = max(FIRST_EVENT, end - _LONGEST_END)
    tail = read_bytes(source, start, max(0, end - start))
    for at in range(len(tail) - HEADER_SIZE + 1):
        kind, size = tail[at + TYPE_AT], event_size(tail, at)
        if size != len(tail) - at:
            continue
        if kind == EventType.ROTATE and tail[at + HEADER_SIZE :].startswith(_ROTATES_TO):
            return True
        if kind == EventType.STOP and size in _STOP_SIZES:
            return True
    return False


def _says_a_start(source: FileBytes) -> bool:
    """Return whether the file was begun by a server that was started; also True if it is no binlog, which its reader reports."""
    begin = read_start(source)
    if not MAGIC.startswith(begin.magic):
        return True
    if not begin.is_whole:
        return event_size(begin.event) > LONGEST_FORMAT
    try:
        return decode_first_event(begin.event)[1].created != 0
    except ProtocolError:
        return True
