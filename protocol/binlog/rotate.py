"""Rotate: the file and offset at which the stream continues."""

from dataclasses import dataclass

from protocol.binlog.fields import Fields
from protocol.errors import Malformed


@dataclass(frozen=True, slots=True)
class Rotate:
    """The next file and the offset in it."""

    position: int
    file: str


def decode_rotate(body: bytes) -> Rotate:
    """Decode a Rotate event, stored or artificial.

    Layout: position u64 | file name to the end of the body (checksum removed).
    Raises: Truncated; Malformed for an empty name. The name is not checked further here.
    """
    fields = Fields(body)
    position = fields.u64()
    name = fields.rest()
    if not name:
        raise Malformed("a Rotate without a file name")
    return Rotate(position, name.decode("utf-8", "backslashreplace"))
