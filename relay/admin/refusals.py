"""Errors of the console, with the servers' numbers and words where servers have them."""

from protocol.errors import ErrorCode, StatementRefused


def not_here(what: str) -> StatementRefused:
    """A statement that servers have and a relay cannot have; `what` says why, and what to do."""
    return StatementRefused(ErrorCode.ER_NOT_SUPPORTED_YET, f"binlog-relay: {what}")


def events_refused(why: str) -> StatementRefused:
    """SHOW BINLOG EVENTS cannot be answered."""
    return StatementRefused(
        ErrorCode.ER_ERROR_WHEN_EXECUTING_COMMAND, f"Error when executing command SHOW BINLOG EVENTS: {why}"
    )
