from collections.abc import Iterable
from typing import Final

from protocol.columns.column_reader import DONE as DONE
from protocol.columns.column_reader import FULL as FULL
from protocol.columns.column_reader import OPEN_PAYLOAD as OPEN_PAYLOAD
from protocol.columns.column_reader import OPEN_QUERY as OPEN_QUERY
from protocol.columns.column_reader import PackedReader

LAST_INSERT_ID: Final[int]
INSERT_ID: Final[int]
RAND: Final[int]
USER_VARIABLE: Final[int]
COLUMNS: Final[dict[str, str]]

class StatementColumns(PackedReader):
    def __init__(self, wanted: Iterable[str], capacity: int, maps: bool = False) -> None: ...
    def keep_times(self, time_from: int, time_to: int) -> None: ...
    def begin_file(self, post_lengths: bytes) -> None: ...
    def begin_batch(self) -> None: ...
    def validity(self, name: str) -> bytearray: ...
    def text_column(self, name: str) -> tuple[bytearray, bytearray]: ...
