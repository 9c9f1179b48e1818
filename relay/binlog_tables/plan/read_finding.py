"""The possible findings about a binlog, by name: a row for one is better than a result that is silently shorter."""

from dataclasses import dataclass
from typing import Final

from protocol.columns.codes.column_codes import FINDINGS
from protocol.errors import ExitCode, RelayError
from relay.binlog_file.file_end import INCOMPLETE

TEXTS: Final = {
    "checksum_mismatch": "The event's CRC32 does not fit its bytes: they changed after the server wrote them.",
    "boundary_violation": "The event cannot stand here by the boundaries of WL#4162.",
    "position_chain_broken": "end_log_pos is not where the event ends: bytes before it were lost, or added.",
    "unknown_event_type": "No server up to MySQL 9.7 and MariaDB 12 writes this event type; its content was not read.",
    "event_malformed": "Lengths inside the event pass its end.",
    "rows_unreadable": "The rows cannot be separated: no Table_map precedes them, a column type is not known, or they are cut.",
    "payload_unreadable": "The compressed transaction cannot be unpacked.",
    "transaction_unfinished": "The transaction has no end: the file stops in it, or another one begins.",
    "transaction_cut": "The source ended in the middle of this transaction, and went on with the next file: it was rolled back.",
    "table_map_missing": "Rows of a table that no Table_map before them names.",
    "column_type_unknown": "The table has a column of a type that no server up to MySQL 9.7 and MariaDB 12 has; its rows are left out.",
    "row_malformed": "The event ends inside this row, or its lengths pass the event's end; the event's other rows are left out.",
    "value_malformed": "A value of this row cannot be one of its column's type; its bytes are shown in base64.",
    "value_uncertain": "Nobody knows the sign of a number, or the character set of a text, in this row: the value is read as if it "
    "were signed, or UTF-8, and may be another.",
    "row_too_large": "The row's images are larger than a batch can hold; they are left out.",
}
"""The findings that the kernel makes, with the sentence for people."""

NAMES: Final[list[str | None]] = [FINDINGS.get(code) for code in range(max(FINDINGS) + 1)]
"""This maps the kernel's code of a finding to its name; None for 0, which is none."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that no event's or transaction's own row can carry.

    From `position` to `end` (both offsets in `file`) nothing could be read. `time` is that of the newest event before, in seconds; 0 if
    there is none.
    """

    file: str
    position: int
    end: int
    time: int
    name: str
    text: str


class BinlogUnreadable(RelayError):
    """The error that mode=failfast raises at a finding. `str()` names file, position and what is wrong."""

    def __init__(self, file: str, position: int, name: str, text: str) -> None:
        super().__init__(f"{name} in {file} at {position}: {text} (mode=permissive makes it a row)")
        self.file = file
        self.position = position
        self.name = name


def stop_at(finding: Finding) -> BinlogUnreadable:
    """Return the error that failfast raises for `finding`."""
    return BinlogUnreadable(finding.file, finding.position, finding.name, finding.text)


class ReadRefused(RelayError, ValueError):
    """The error that a read was requested with an invalid option, column, table or place. `str()` says what exists instead.

    It is a ValueError too: Python programs that read by `relay/binlog_tables/arrow.py` or by Spark expect one for a wrong argument.
    """

    exit_code = ExitCode.WRONG_USE


class StorageSilent(RelayError):
    """The error that a bucket gave no answer, or said "later", after all tries: nothing is known of the file, so it is no finding.

    It is no OSError: code that skips a file that cannot be opened would skip one that exists.
    """

    exit_code = ExitCode.SOURCE_UNREACHABLE


FILES_MISSING: Final = "files_missing"
LOSSES: Final = frozenset({"file_gone", "file_unreadable", "file_shrunk", FILES_MISSING, INCOMPLETE})
"""These findings concern the disk or the network, not what the source wrote: later there may be none."""


class FileLost(RelayError):
    """The error that a stream could not read a file that it must read. `str()` names file, position and why, and what to do."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(
            f"{finding.name} in {finding.file} at {finding.position}: {finding.text} The query stops, so that nothing is left "
            "out; started again, it goes on from its checkpoint."
        )
        self.finding = finding


def stop_at_loss(finding: Finding) -> None:
    """Raise FileLost for a finding of LOSSES."""
    if finding.name in LOSSES:
        raise FileLost(finding)
