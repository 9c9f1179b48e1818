from collections.abc import Iterable
from typing import Final

from protocol.columns.column_reader import DONE as DONE
from protocol.columns.column_reader import FULL as FULL
from protocol.columns.column_reader import OPEN_PAYLOAD as OPEN_PAYLOAD
from protocol.columns.column_reader import OPEN_ROWS as OPEN_ROWS
from protocol.columns.column_reader import OPEN_TABLE as OPEN_TABLE
from protocol.columns.rows.row_batch import COLUMNS as COLUMNS
from protocol.columns.rows.row_batch import OPERATIONS as OPERATIONS
from protocol.columns.rows.row_writer import RowWriter

FINDINGS: Final[dict[int, str]]

class RowColumns(RowWriter):
    asked_position: int

    def __init__(self, capacity: int, wanted: Iterable[str] | None = None, asks: bool = False) -> None: ...
    @property
    def asked_table(self) -> tuple[bytes, bytes, bytes] | None: ...
    def keep_names(self, schemas: list[bytes] | None, tables: list[bytes] | None) -> None: ...
    def begin_file(self, post_lengths: bytes) -> None: ...
    def finish(self) -> int: ...
    def described(self, description: bytes) -> bool: ...
    def not_described(self) -> None: ...
