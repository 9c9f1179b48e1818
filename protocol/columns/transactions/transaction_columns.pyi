from typing import Final

from protocol.columns.column_reader import DONE as DONE
from protocol.columns.column_reader import FULL as FULL
from protocol.columns.column_reader import OPEN_PAYLOAD as OPEN_PAYLOAD
from protocol.columns.column_reader import OPEN_QUERY as OPEN_QUERY
from protocol.columns.column_reader import OPEN_ROWS as OPEN_ROWS
from protocol.columns.transactions.transaction_batch import CLOSERS as CLOSERS
from protocol.columns.transactions.transaction_batch import COLUMNS as COLUMNS
from protocol.columns.transactions.transaction_batch import KINDS as KINDS
from protocol.columns.transactions.transaction_counts import TransactionCounts

CHECKSUM_MISMATCH: Final[int]
BOUNDARY_VIOLATION: Final[int]
POSITION_CHAIN_BROKEN: Final[int]
UNKNOWN_EVENT_TYPE: Final[int]
EVENT_MALFORMED: Final[int]
ROWS_UNREADABLE: Final[int]
PAYLOAD_UNREADABLE: Final[int]
TRANSACTION_UNFINISHED: Final[int]

class TransactionColumns(TransactionCounts):
    def __init__(self, capacity: int, count_rows: bool = True) -> None: ...
    def begin_file(self, post_lengths: bytes) -> None: ...
    def finish(self) -> int: ...
