"""Incident: the source reports that something is missing from its binlog."""

from dataclasses import dataclass
from typing import Final

from protocol.binlog.fields import Fields
from protocol.errors import Malformed

_NAMES: Final = {0: "NONE", 1: "LOST_EVENTS"}


@dataclass(frozen=True, slots=True)
class Incident:
    """Kind 1 is LOST_EVENTS, the only one that servers write."""

    kind: int
    message: bytes

    @property
    def name(self) -> str:
        """The kind, as servers name it."""
        return _NAMES[self.kind]


def decode_incident(body: bytes) -> Incident:
    """Decode an Incident event: kind u16 | message length u8, message.

    Raises: Truncated; Malformed for a kind other than 0 and 1, which servers refuse too.
    """
    fields = Fields(body)
    kind = fields.u16()
    if kind not in _NAMES:
        raise Malformed(f"an incident of kind {kind}; 0 and 1 exist")
    return Incident(kind, fields.take(fields.u8()))
