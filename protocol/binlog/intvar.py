"""Intvar: the auto-increment or LAST_INSERT_ID() value of the next statement."""

from dataclasses import dataclass
from typing import Final

from protocol.binlog.fields import Fields

_NAMES: Final = {1: "LAST_INSERT_ID", 2: "INSERT_ID"}


@dataclass(frozen=True, slots=True)
class Intvar:
    """One of the two variables, and its value."""

    kind: int
    value: int

    @property
    def name(self) -> str:
        """The variable that is set: `LAST_INSERT_ID` or `INSERT_ID`."""
        return _NAMES.get(self.kind, f"variable {self.kind}")


def decode_intvar(body: bytes) -> Intvar:
    """Decode an Intvar event: kind u8 (1 LAST_INSERT_ID, 2 INSERT_ID) | value u64. Trailing bytes are ignored."""
    fields = Fields(body)
    return Intvar(fields.u8(), fields.u64())
