"""Errors that statements get, with the servers' numbers."""

from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from protocol.printable import printable
from protocol.statements.session.secrets import part_without_secrets

_MAX_SHOWN_BYTES: Final = 80
_MAX_NEAR_CHARACTERS: Final = 400


def shown(text: str, limit_bytes: int = _MAX_SHOWN_BYTES) -> str:
    """Return a part of a statement for a message: on one line, bounded, printable."""
    return printable(" ".join(text[: limit_bytes * 2].split()), limit_bytes)


def not_understood(statement: str, offset: int = 0) -> StatementRefused:
    """Return ER_PARSE_ERROR that names the part which was not understood: it begins at `offset`."""
    line = statement.count("\n", 0, offset) + 1
    near = part_without_secrets(statement[offset : offset + _MAX_NEAR_CHARACTERS], statement)
    return StatementRefused(
        ErrorCode.ER_PARSE_ERROR,
        "You have an error in your SQL syntax; binlog-relay answers only what replicas, monitors and their tools ask, "
        f"and does not understand '{shown(near)}' at line {line}",
    )


def too_long(what: str) -> StatementRefused:
    """Return ER_PARSE_ERROR for a statement that is not read because of its size."""
    return StatementRefused(
        ErrorCode.ER_PARSE_ERROR, f"You have an error in your SQL syntax; binlog-relay takes no statement of {what}"
    )


def empty_query() -> StatementRefused:
    """Return ER_EMPTY_QUERY."""
    return StatementRefused(ErrorCode.ER_EMPTY_QUERY, "Query was empty")


def unknown_variable(name: str) -> StatementRefused:
    """Return ER_UNKNOWN_SYSTEM_VARIABLE."""
    return StatementRefused(ErrorCode.ER_UNKNOWN_SYSTEM_VARIABLE, f"Unknown system variable '{shown(name, 64)}'")


def wrong_value(name: str, value: str) -> StatementRefused:
    """Return ER_WRONG_VALUE_FOR_VAR."""
    text = f"Variable '{shown(name, 64)}' can't be set to the value of '{shown(value, 64)}'"
    return StatementRefused(ErrorCode.ER_WRONG_VALUE_FOR_VAR, text)


def unknown_database(name: str) -> StatementRefused:
    """Return ER_BAD_DB_ERROR."""
    return StatementRefused(ErrorCode.ER_BAD_DB_ERROR, f"Unknown database '{shown(name, 64)}'")


def no_database() -> StatementRefused:
    """Return ER_NO_DB_ERROR."""
    return StatementRefused(ErrorCode.ER_NO_DB_ERROR, "No database selected")


def no_such_table(database: str, table: str) -> StatementRefused:
    """Return ER_NO_SUCH_TABLE."""
    return StatementRefused(
        ErrorCode.ER_NO_SUCH_TABLE, f"Table '{shown(database, 64)}.{shown(table, 64)}' doesn't exist"
    )


def unknown_table(database: str, table: str) -> StatementRefused:
    """Return ER_UNKNOWN_TABLE, which information_schema has in place of ER_NO_SUCH_TABLE."""
    return StatementRefused(ErrorCode.ER_UNKNOWN_TABLE, f"Unknown table '{shown(table, 64)}' in {shown(database, 64)}")


def table_denied(user: str, host: str, table: str) -> StatementRefused:
    """Return ER_TABLEACCESS_DENIED_ERROR, as servers word it, for a table that no account of a relay may read."""
    account = f"'{shown(user, 64)}'@'{shown(host, 64)}'"
    return StatementRefused(
        ErrorCode.ER_TABLEACCESS_DENIED_ERROR,
        f"SELECT command denied to user {account} for table '{shown(table, 64)}': a binlog-relay has no such data",
    )


def not_supported(what: str, instead: str = "") -> StatementRefused:
    """Return ER_NOT_SUPPORTED_YET for what is understood but not done here."""
    return StatementRefused(
        ErrorCode.ER_NOT_SUPPORTED_YET, f"binlog-relay does not support {what}" + (f": {instead}" if instead else "")
    )


def privilege_needed(privilege: str) -> StatementRefused:
    """Return ER_SPECIFIC_ACCESS_DENIED_ERROR, as servers word it, with what to do about it here."""
    return StatementRefused(
        ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR,
        f"Access denied; you need (at least one of) the {privilege} privilege(s) for this operation: "
        "in binlog-relay, an account with admin = true",
    )
