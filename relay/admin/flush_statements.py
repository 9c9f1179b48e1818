"""FLUSH: the parts that a relay can do, and why not the rest."""

from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from protocol.statements import Done, Notice
from protocol.statements.binlog_statements import FLUSHED
from protocol.statements.requests import Flush
from relay.admin.refusals import not_here
from relay.admin.surroundings import Connections

_NOTHING_TO_DO: Final = frozenset(
    (
        "RELAY LOGS", "ERROR LOGS", "ENGINE LOGS", "GENERAL LOGS", "SLOW LOGS", "TABLES", "TABLE", "USER_RESOURCES",
        "QUERY CACHE", "OPTIMIZER_COSTS", "USER_STATISTICS", "CLIENT_STATISTICS", "INDEX_STATISTICS", "TABLE_STATISTICS",
    )
)  # fmt: skip
_STATUS: Final = ("STATUS", "GLOBAL STATUS", "SESSION STATUS")


def flush(request: Flush, connections: Connections) -> Done:
    """Do STATUS and HOSTS; logs cannot be rotated here. All parts or none. Raises: StatementRefused."""
    for part in request.what:
        if part in ("LOGS", "BINARY LOGS"):
            raise not_here(
                "FLUSH LOGS is for the source, whose binlogs these are: run it there and the relay follows. "
                "The relay's own log goes to stderr"
            )
        if part == "PRIVILEGES":
            raise not_here("accounts are in relay.toml: change it there and send SIGHUP to the relay")
        if part not in _NOTHING_TO_DO and part not in (*_STATUS, "HOSTS"):
            if part in FLUSHED:
                raise not_here(f"there is nothing here that FLUSH {part} could be done to")
            raise StatementRefused(
                ErrorCode.ER_PARSE_ERROR, f"You have an error in your SQL syntax; no server has FLUSH {part[:64]}"
            )
    notices = []
    for part in request.what:
        if part in _STATUS:
            connections.traffic.flush(connections.connected)
        elif part == "HOSTS":
            connections.forgive_logins()
        else:
            notices.append(
                Notice("Note", ErrorCode.ER_UNKNOWN_ERROR, f"binlog-relay has nothing to do for FLUSH {part}")
            )
    return Done(tuple(notices))
