"""The notices that a statement leaves after it was carried out."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Notice:
    """A row of SHOW WARNINGS. `number` is a server's error number."""

    level: Literal["Note", "Warning", "Error"]
    number: int
    message: str
