"""The totals of what an export wrote, and the transactions at both of its ends."""

from dataclasses import dataclass, field
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.gtid_event import decode_gtid
from protocol.binlog.gtid_tagged import decode_gtid_tagged
from protocol.binlog.layout import HEADER_SIZE
from protocol.binlog.mariadb_gtid import decode_mariadb_gtid
from protocol.errors import ProtocolError

WHOLE_STATEMENTS: Final = frozenset(
    {
        EventType.QUERY,
        EventType.QUERY_COMPRESSED,
        EventType.EXECUTE_LOAD_QUERY,
        EventType.LOAD,
        EventType.NEW_LOAD,
        EventType.EXEC_LOAD,
        EventType.DELETE_FILE,
    }
)
"""An event of these types outside of a transaction is a transaction of its own."""


@dataclass(slots=True)
class ExportedTransaction:
    """A transaction's range [start, end) in the archive's file. `timestamp` is that of its first event, in seconds; `head` is that
    event, with its header."""

    file: str
    generation: int
    start: int
    end: int
    timestamp: int
    head: bytes = field(repr=False)

    @property
    def gtid(self) -> str | None:
        """The GTID as servers write it; None if it has none."""
        kind, body, server_id = self.head[4], self.head[HEADER_SIZE:], int.from_bytes(self.head[5:9], "little")
        try:
            if kind == EventType.GTID:
                return decode_gtid(body).text
            if kind == EventType.GTID_TAGGED:
                return decode_gtid_tagged(body).text
            if kind == EventType.MARIADB_GTID:
                gtid = decode_mariadb_gtid(body)
                return f"{gtid.domain_id}-{server_id}-{gtid.sequence_number}"
        except ProtocolError:
            pass
        return None


@dataclass(slots=True)
class ExportTally:
    """A count of the transactions that pass. `left_out` are those of which the table filter kept nothing."""

    transactions: int = 0
    left_out: int = 0
    first: ExportedTransaction | None = None
    last: ExportedTransaction | None = None

    def take(self, transaction: ExportedTransaction) -> None:
        """Count one that was written."""
        self.transactions += 1
        if self.first is None:
            self.first = transaction
        self.last = transaction
