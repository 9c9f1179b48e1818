"""Statements that may have another effect on a replica. A test compares them with the warnings 1592 that MySQL 5.6 gives."""

from typing import Final

from protocol.sql.lexer import TokenKind
from protocol.sql.server_functions import UNSAFE_IN_STATEMENTS
from protocol.sql.statements.order_dependence import OrderReason
from relay.audit.readiness.check import BOTH, Check, Effect
from relay.audit.readiness.logged_statement import LoggedStatement

_EVERY: Final = "every version, in statement format"
_WARNED: Final = "MySQL 5.6 manual, Determination of Safe and Unsafe Statements; warning 1592 of 5.6"

_VALUES: Final = frozenset((OrderReason.GROUP, OrderReason.GROUP_CONCAT, OrderReason.VARIABLE))
# Their values are in the event, or are the same for every session.
_SAFE_VARIABLES: Final = frozenset((
    "auto_increment_increment", "auto_increment_offset", "character_set_client", "character_set_connection",
    "character_set_database", "character_set_server", "collation_connection", "collation_database", "collation_server",
    "foreign_key_checks", "identity", "insert_id", "last_insert_id", "lc_time_names", "pseudo_thread_id", "sql_auto_is_null",
    "time_zone", "timestamp", "unique_checks", "rand_seed1", "rand_seed2",
))  # fmt: skip


def _is_change(statement: LoggedStatement) -> bool:
    return (statement.changes_rows and statement.verb != "LOAD") or _creates_from_select(statement)


def _creates_from_select(statement: LoggedStatement) -> bool:
    return statement.verb == "CREATE" and statement.defines_table and statement.has("SELECT")


def _calls(statement: LoggedStatement) -> bool:
    if not _is_change(statement):
        return False
    if any(name in UNSAFE_IN_STATEMENTS for name, _ in statement.calls()):
        return True
    return any(
        statement.word(index - 1) != "." and statement.word(index + 1) != "("
        for index in statement.places("CURRENT_USER")
    )


def _reads_variables(statement: LoggedStatement) -> bool:
    if not _is_change(statement):
        return False
    return any(
        token.kind is TokenKind.VARIABLE
        and token.text.startswith("@@")
        and token.text.lower().lstrip("@").rpartition(".")[2] not in _SAFE_VARIABLES
        for token in statement.words
    )


def _takes_other_values(statement: LoggedStatement) -> bool:
    """Return whether its values depend on the order of rows of a table: those of VALUES come in one order only."""
    if statement.verb in ("INSERT", "REPLACE") and not (statement.has("SELECT") or statement.has("TABLE")):
        return False
    return not _VALUES.isdisjoint(statement.order_reasons)


def _updates_duplicates(statement: LoggedStatement) -> bool:
    return statement.verb == "INSERT" and statement.has("ON", "DUPLICATE", "KEY") and not statement.has("SELECT")


def _reads_logs(statement: LoggedStatement) -> bool:
    if not _is_change(statement):
        return False
    for index in range(len(statement.words) - 2):
        if statement.word(index + 1) == ".":
            schema, table = statement.name(index), statement.name(index + 2)
            if schema == "performance_schema" or (schema == "mysql" and table in ("general_log", "slow_log")):
                return True
    return False


# fmt: off
CHECKS: Final = (
    Check("limit_without_order", Effect.MAY_DIFFER, "LIMIT without ORDER BY", _EVERY,
        "Which rows it takes is left to the server: a newer optimizer may take others. Row format on the source cures it.",
        _WARNED, BOTH, finds=lambda statement: OrderReason.LIMIT in statement.order_reasons),
    Check("limit_with_order", Effect.TO_KNOW, "LIMIT with ORDER BY", _EVERY,
        "The same rows only where the order has no ties, such as a primary key.",
        _WARNED, BOTH, finds=lambda statement: statement.limits_ordered_rows),
    Check("unsafe_function", Effect.MAY_DIFFER, "UUID(), USER(), SYSDATE() and other functions with another value on the replica",
        _EVERY,
        "The replica computes its own value. NOW() and its kind are safe: the event has their time. Row format cures it.",
        _WARNED, BOTH, finds=_calls),
    Check("system_variable", Effect.MAY_DIFFER, "System variables that the event does not carry", _EVERY,
        "The replica uses its own value. Row format cures it.",
        _WARNED, BOTH, finds=_reads_variables),
    Check("order_of_rows", Effect.MAY_DIFFER, "IGNORE, REPLACE and ON DUPLICATE KEY UPDATE over many rows", _EVERY,
        "Which rows are skipped or replaced depends on the order in which the server reads them. Row format cures it.",
        _WARNED, BOTH, finds=lambda statement: OrderReason.DUPLICATE in statement.order_reasons),
    Check("order_of_values", Effect.MAY_DIFFER, "GROUP_CONCAT without ORDER BY, := in queries, columns outside of GROUP BY", _EVERY,
        "Which value the statement takes depends on the order in which the server reads the rows. Row format cures it.",
        "MySQL manual, MySQL Handling of GROUP BY, User-Defined Variables; the rules that make views",
        BOTH, finds=_takes_other_values),
    Check("auto_increment_select", Effect.MAY_DIFFER, "INSERT … SELECT into a table with AUTO_INCREMENT", _EVERY,
        "The numbers follow the order in which the server reads the rows. Row format cures it.",
        _WARNED, BOTH, finds=lambda statement: OrderReason.AUTO_INCREMENT in statement.order_reasons),
    Check("duplicate_key_update", Effect.TO_KNOW, "ON DUPLICATE KEY UPDATE", _EVERY,
        "On a table with several unique keys another row may be the duplicate. Look at the table's keys.",
        _WARNED, BOTH, finds=_updates_duplicates),
    Check("log_tables", Effect.MAY_DIFFER, "Reads of performance_schema or the log tables", _EVERY,
        "The replica has other rows in them.",
        _WARNED, BOTH, finds=_reads_logs),
    Check("load_data", Effect.TO_KNOW, "LOAD DATA", _EVERY,
        "The file travels in the log, and needs room in the replica's slave_load_tmpdir (replica_load_tmpdir).",
        _WARNED, BOTH, finds=lambda statement: statement.loads),
    Check("temporary_table", Effect.TO_KNOW, "Temporary tables in statement format", _EVERY,
        "A replica that is restarted between CREATE and DROP loses them, and stops at the next statement on them.",
        _WARNED, BOTH, finds=lambda statement: statement.verb == "CREATE" and statement.word(1) == "TEMPORARY"),
)
# fmt: on
"""Statements whose effect may differ between two servers."""
