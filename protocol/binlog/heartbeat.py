"""Heartbeats: a source that has nothing to send reports its position."""

from dataclasses import dataclass

from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The source's current file; `position` is None if it is in the header's log_pos."""

    file: str
    position: int | None


def decode_heartbeat(body: bytes, event_type: int, log_pos: int) -> Heartbeat:
    """Decode a Heartbeat (27) or Heartbeat_v2 (41) event; `log_pos` is the header's field.

    Layout v1: file name to the end; MariaDB above 4 GiB (log_pos 0): position u64 before it.
    Layout v2: (type packed, length packed, value)*: 1 file name, 2 position packed, 0 end.
    Raises: Truncated.
    """
    fields = Fields(body)
    if event_type == EventType.HEARTBEAT:
        position = fields.u64() if log_pos == 0 else None
        return Heartbeat(fields.rest().decode("utf-8", "backslashreplace"), position)
    file, place = "", None
    while fields.remaining:
        kind = fields.lenenc_int()
        if kind == 0:
            break
        value = fields.take(fields.lenenc_int())
        if kind == 1:
            file = value.decode("utf-8", "backslashreplace")
        elif kind == 2:
            place = Fields(value).lenenc_int()
    return Heartbeat(file, place)
