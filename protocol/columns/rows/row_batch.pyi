from collections.abc import Iterable
from typing import Final

from protocol.columns.column_reader import PackedReader

OPERATIONS: Final[tuple[str, ...]]
COLUMNS: Final[dict[str, str]]

class RowBatch(PackedReader):
    def __init__(self, capacity: int, wanted: Iterable[str] | None) -> None: ...
    def begin_batch(self) -> None: ...
    def dictionary_column(self, name: str) -> tuple[bytearray, bytearray, int, bytearray, bytearray]: ...
