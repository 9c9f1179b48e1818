from typing import Final

from protocol.kernel.column_reader import DONE as DONE
from protocol.kernel.column_reader import FULL as FULL
from protocol.kernel.column_reader import OPEN_PAYLOAD as OPEN_PAYLOAD
from protocol.kernel.column_reader import OPEN_QUERY as OPEN_QUERY
from protocol.kernel.column_reader import OPEN_ROWS as OPEN_ROWS
from protocol.kernel.column_reader import PackedReader

CHECKSUM_MISMATCH: Final[int]
BOUNDARY_VIOLATION: Final[int]
POSITION_CHAIN_BROKEN: Final[int]
UNKNOWN_EVENT_TYPE: Final[int]
EVENT_MALFORMED: Final[int]
ROWS_UNREADABLE: Final[int]
PAYLOAD_UNREADABLE: Final[int]
TRANSACTION_UNFINISHED: Final[int]
KINDS: Final[tuple[str, ...]]
CLOSERS: Final[tuple[str, ...]]
COLUMNS: Final[dict[str, str]]

class TransactionColumns(PackedReader):
    def __init__(self, capacity: int, count_rows: bool = True) -> None: ...
    def keep_times(self, first_from: int, first_to: int, last_from: int, last_to: int) -> None: ...
    def keep_findings(self) -> None: ...
    def begin_file(self, post_lengths: bytes) -> None: ...
    def begin_batch(self) -> None: ...
    def list_column(self, name: str) -> tuple[bytearray, int, bytearray, bytearray]: ...
    def finish(self) -> int: ...
