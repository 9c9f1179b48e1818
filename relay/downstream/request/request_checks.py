"""The checks that decide whether a dump request is served, before the first event is sent."""

from enum import Enum
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.commands import BinlogDump
from protocol.errors import ErrorCode, Malformed, PositionRefused
from protocol.position import binlog_number
from protocol.resultset import Value
from relay.archive.read.position_check import PositionCheck, Verdict
from relay.downstream.request.refusal import refusal, set_up_missing, shown_name
from relay.downstream.request.replica_variables import mariadb_capability, replica_checksum

# The value that a client sends for a position that exceeds 32 bits.
_LARGEST_OFFSET: Final = 0xFFFFFFFF
_GTID_CAPABILITY: Final = 4


class Decision(Enum):
    """The decision about a request that is not refused."""

    ACCEPT = "accept"
    HOLD = "hold"


def check_request(request: BinlogDump, user_variables: dict[str, Value]) -> None:
    """Refuse what can be refused without the archive. Raises: PositionRefused."""
    name, offset = shown_name(request.file) or "(first file)", request.offset
    if request.file:
        try:
            binlog_number(request.file)
        except Malformed:
            raise refusal(
                f"'{name}' is not a binlog file name: no path, and a number of six digits or more at its end, "
                "such as mysql-bin.000001"
            ) from None
    if offset < FIRST_EVENT:
        raise refusal(
            f"{name}:{offset} is no valid position, the first is 4: "
            "Client requested master to start replication from position < 4"
        )
    if offset == _LARGEST_OFFSET:
        raise refusal(
            f"{name}:{offset} is no valid position: 2^32-1 is what a position beyond 4 GiB becomes in a request. "
            "Start at another file, at position 4"
        )
    if user_variables.get("slave_connect_state") is not None:
        # With a MariaDB source it is served by GTID, and does not come here.
        raise refusal(
            "This stream comes from a MySQL source, without MariaDB's GTIDs: use CHANGE MASTER TO MASTER_USE_GTID=no"
        )


def check_flavour(flavour: str, user_variables: dict[str, Value]) -> None:
    """Refuse a client that cannot read the stream. `flavour`: of the requested file. Raises: PositionRefused.

    MariaDB reads MySQL's events; MySQL stops at the first of MariaDB's own, with an error that names nothing.
    """
    if flavour != "mariadb" or mariadb_capability(user_variables) >= _GTID_CAPABILITY:
        return
    raise set_up_missing(
        "This stream comes from a MariaDB source, whose events MySQL cannot read, only MariaDB 10.0.2 or newer and its "
        "mariadb-binlog; this client did not set @mariadb_slave_capability=4. Replicate to a MariaDB server"
    )


def check_checksum(file: str, checksum: int, user_variables: dict[str, Value]) -> None:
    """Refuse a replica that does not know checksums if the file has them. Raises: PositionRefused."""
    if checksum and replica_checksum(user_variables) is None:
        raise set_up_missing(
            "Slave can not handle replication events with the checksum that master is configured to log; "
            f"{shown_name(file)} has CRC32 and the replica did not set @master_binlog_checksum"
        )


def decide(
    check: PositionCheck,
    file: str,
    offset: int,
    *,
    files_held: tuple[str, str] | None,
    may_resume: bool,
) -> Decision:
    """Accept, hold, or refuse. `files_held`: oldest and newest. `may_resume`: this very replica was receiving that place.

    Raises: PositionRefused (1236).
    """
    verdict = check.verdict
    if verdict is Verdict.BOUNDARY or (verdict is Verdict.INSIDE_TRANSACTION and may_resume):
        return Decision.ACCEPT
    if verdict is Verdict.FUTURE:
        return Decision.HOLD
    place = f"{shown_name(file)}:{offset}"
    nearest = _nearest(check)
    if verdict is Verdict.UNKNOWN_FILE:
        held = f"it holds {files_held[0]} to {files_held[1]}" if files_held else "it holds no file yet"
        purged = ". It was purged: copy the data to the replica again" if _is_older(file, files_held) else ""
        raise refusal(
            f"{place}: binlog-relay has no such file, {held}{purged}. "
            "Could not find first log file name in binary log index file"
        )
    if verdict is Verdict.INSIDE_TRANSACTION:
        raise refusal(
            f"{place} is inside the transaction {_range(check.group)}; {nearest}. "
            "Starting there would apply half of it: use a position between transactions"
        )
    if verdict is Verdict.INSIDE_EVENT:
        group = f", in the transaction {_range(check.group)}" if check.group else ""
        raise refusal(f"{place} is inside an event{group}; {nearest}. Use a position between transactions")
    if verdict is Verdict.PAST_END:
        raise refusal(
            f"{place} is past the end of this file; {nearest}, or the next file at 4. "
            "Client requested master to start replication from position > file size"
        )
    raise refusal(f"{place} is no valid position; {nearest}")


def not_here_yet(file: str, offset: int, *, end: str | None, waited_s: float) -> PositionRefused:
    """Return ERR 1105, which makes a replica try again: the source may have the position, the relay does not."""
    have = f"its archive ends at {end}" if end else "its archive is empty"
    return refusal(
        f"{shown_name(file) or '(first file)'}:{offset} has not reached binlog-relay yet: {have} "
        f"(waited {waited_s:g} s). The replica may try again",
        ErrorCode.ER_UNKNOWN_ERROR,
    )


def _range(group: tuple[int, int | None] | None) -> str:
    if group is None:
        return "around it"
    return (
        f"{group[0]}-{group[1]}"
        if group[1] is not None
        else f"from {group[0]} on, which the source's crash left without an end"
    )


def _nearest(check: PositionCheck) -> str:
    before = f"{check.before}" if check.before is not None else "none"
    after = f"{check.after}" if check.after is not None else "none"
    return f"nearest valid positions: before {before}, after {after}"


def _is_older(file: str, files_held: tuple[str, str] | None) -> bool:
    """Return whether a file of that name came before the oldest one."""
    if files_held is None or file.rpartition(".")[0] != files_held[0].rpartition(".")[0]:
        return False
    try:
        return 0 < binlog_number(file) < binlog_number(files_held[0])
    except Malformed:
        return False
