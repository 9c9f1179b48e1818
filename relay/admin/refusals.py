"""Errors of the console, with the servers' numbers and words if servers have them."""

from protocol.errors import ErrorCode, StatementRefused


def not_here(what: str) -> StatementRefused:
    """Return the refusal of a statement that servers have and a relay cannot have; `what` says why, and gives the next step."""
    return StatementRefused(ErrorCode.ER_NOT_SUPPORTED_YET, f"binlog-relay: {what}")


def events_refused(why: str) -> StatementRefused:
    """Return the refusal of a SHOW BINLOG EVENTS that cannot be answered."""
    return StatementRefused(
        ErrorCode.ER_ERROR_WHEN_EXECUTING_COMMAND, f"Error when executing command SHOW BINLOG EVENTS: {why}"
    )
