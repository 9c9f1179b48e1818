"""Errors of the console, with the servers' numbers and words if servers have them."""

from enum import IntEnum

from protocol.errors import StatementRefused


class ConsoleError(IntEnum):
    """Numbers of MySQL and MariaDB that only the console uses."""

    ER_ERROR_WHEN_EXECUTING_COMMAND = 1220
    ER_NOT_SUPPORTED_YET = 1235
    ER_SLAVE_MUST_STOP = 1198
    ER_SLAVE_WAS_RUNNING = 1254
    ER_SLAVE_WAS_NOT_RUNNING = 1255
    ER_UNKNOWN_TARGET_BINLOG = 1373
    ER_BINLOG_PURGE_FATAL_ERR = 1377
    ER_LOG_IN_USE = 1378
    ER_WARN_NO_MASTER_INFO = 1617
    ER_WARN_PURGE_LOG_IN_USE = 1867
    ER_WARN_PURGE_LOG_IS_ACTIVE = 1868
    ER_SLAVE_IO_THREAD_MUST_STOP = 3021
    ER_SLAVE_CHANNEL_DOES_NOT_EXIST = 3074
    ER_SLAVE_CHANNEL_WAS_RUNNING = 3083
    ER_SLAVE_CHANNEL_WAS_NOT_RUNNING = 3084


def not_here(what: str) -> StatementRefused:
    """Return the refusal of a statement that servers have and a relay cannot have; `what` says why, and gives the next step."""
    return StatementRefused(ConsoleError.ER_NOT_SUPPORTED_YET, f"binlog-relay: {what}")


def events_refused(why: str) -> StatementRefused:
    """Return the refusal of a SHOW BINLOG EVENTS that cannot be answered."""
    return StatementRefused(
        ConsoleError.ER_ERROR_WHEN_EXECUTING_COMMAND, f"Error when executing command SHOW BINLOG EVENTS: {why}"
    )
