"""The reason why reading a binlog cannot continue, in one place: a name for machines, a sentence for people."""

from typing import Final

from protocol.binlog.event_type import event_type_name
from protocol.binlog.layout import ENCRYPTED_MAGIC, HEADER_SIZE, MAGIC, TYPE_AT, event_size
from protocol.errors import RelayError
from protocol.kernel.codes import BAD_CRC
from protocol.kernel.ingest import STATUS_NAMES, Ingest

FIRST_ERROR: Final = BAD_CRC
"""The first of the results of the kernel's `feed` that are errors."""
EVENT_TRUNCATED: Final = "event_truncated"
THROUGH_ITS_SERVER: Final = "Read it through its server: mysqlbinlog --read-from-remote-server --raw."

_TEXTS: Final = {
    "event_length_wrong": "{event} announces {length} bytes; that cannot be an event. What follows is not read.",
    "format_description_missing": "{event} stands before any Format_description. "
    "Binlogs of MySQL 5.0 and later start with one.",
    "format_description_unsupported": "This Format_description is of a layout that no MySQL or MariaDB server since 5.0 "
    "writes.",
    "binlog_encrypted": f"MariaDB encrypted the file at rest from here on. {THROUGH_ITS_SERVER}",
    "event_malformed": "Lengths inside {event} pass its end. What follows is not read.",
}
_OTHER: Final = "{event} cannot be read. What follows is not read."


class Broken(RelayError, ValueError):
    """A binlog that cannot be read any further at `offset`.

    name: for machines. text: whole sentences. detail: what the kernel expected and got, without a full stop. It is a
    ValueError too: a reader at a place that need not be an event's start handles all faults of the bytes alike.
    """

    offset: int

    def __init__(self, name: str, offset: int, text: str, detail: str = "") -> None:
        super().__init__(text, offset=offset)
        self.name = name
        self.detail = detail or text.rstrip(".")

    def __str__(self) -> str:
        return f"at {self.offset}: {self.detail}"


def wrong_magic(magic: bytes) -> tuple[str, str] | None:
    """Return the kind of a file that starts with `magic`: a name, and words to put after "the file"; None: a binlog."""
    if magic == MAGIC:
        return None
    if magic == ENCRYPTED_MAGIC:
        return "file_encrypted", "is encrypted at rest by MySQL"
    if not magic:
        return "not_a_binlog", "is not a binlog: it is empty"
    return "not_a_binlog", f"is not a binlog: it starts with {magic.hex(' ')} instead of {MAGIC.hex(' ')}"


def format_missing(offset: int) -> Broken:
    """Return the error for a first event, at `offset`, that does not tell how those after it are read."""
    return Broken("format_description_missing", offset, "The file does not begin with a Format_description.")


def refused(ingest: Ingest, status: int, head: bytes) -> Broken:
    """Return the error for an event at the kernel's position that it refused with `status`; `head`: the event's first bytes, a
    header's at most."""
    name = STATUS_NAMES.get(status, f"status_{status}")
    event = event_type_name(head[TYPE_AT]) if len(head) > TYPE_AT else "the event"
    text = _TEXTS.get(name, _OTHER).format(event=event, length=event_size(head))
    return Broken(name, ingest.position, text, ingest.error_text)


def cut_event(offset: int, announced: int, there: int) -> Broken:
    """Return the error for a file that ends inside the event at `offset`, of which it has `there` bytes. announced: 0 if unknown."""
    least = "" if announced else "at least "
    text = f"The event has {least}{announced or HEADER_SIZE} bytes, the file ends after {there} of them."
    return Broken(EVENT_TRUNCATED, offset, text)
