"""Incident: the source says that something is missing from its binlog."""

from dataclasses import dataclass

from protocol.binlog.fields import Fields


@dataclass(frozen=True, slots=True)
class Incident:
    """Kind 1 is LOST_EVENTS, the only one servers write."""

    kind: int
    message: bytes

    @property
    def name(self) -> str:
        """The kind as servers name it."""
        return "LOST_EVENTS" if self.kind == 1 else f"incident {self.kind}"


def decode_incident(body: bytes) -> Incident:
    """Decode an Incident event: kind u16 | message length u8, message. Raises: Truncated."""
    fields = Fields(body)
    kind = fields.u16()
    return Incident(kind, fields.take(fields.u8()))
