"""What a statement that was carried out leaves to be said."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Notice:
    """A row of SHOW WARNINGS. `number`: a server's error number."""

    level: Literal["Note", "Warning", "Error"]
    number: int
    message: str
