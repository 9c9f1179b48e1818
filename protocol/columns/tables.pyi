from collections.abc import Sequence
from typing import Final

SLOT: Final[int]
MALFORMED: Final[int]
NO_ROOM: Final[int]
UNKNOWN_TYPE: Final[int]

class TableMaps:
    used: int

    def __init__(self) -> None: ...
    def reset(self) -> None: ...
    def grow(self) -> None: ...
    def set_names(self, schemas: Sequence[bytes] | None, tables: Sequence[bytes] | None) -> None: ...
