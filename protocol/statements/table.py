"""The table of every shape of statement that is understood.

A statement that is not in it gets ER_PARSE_ERROR, a variable that this source would not have ER_UNKNOWN_SYSTEM_VARIABLE; both keep
the connection.
"""

from collections.abc import Callable
from typing import Final

from protocol.resultset import AnswerColumn, Rows
from protocol.statements.answers import Answer, Done
from protocol.statements.binlog_statements import (
    flush,
    purge_before,
    purge_to,
    show_binary_log_status,
    show_binary_logs,
    show_binlog_events,
    show_master_status,
    truncate,
)
from protocol.statements.change_source import change_master, change_replication_source
from protocol.statements.databases import use_database
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.shapes import Captured, fit
from protocol.statements.expression.show_conditions import row_filter
from protocol.statements.procedures import call
from protocol.statements.replica_statements import (
    reset_replica,
    reset_source,
    show_all_replicas_status,
    show_replica_status,
    show_replicas,
    show_slave_hosts,
    start_all_replicas,
    start_replica,
    stop_all_replicas,
    stop_replica,
)
from protocol.statements.requests import KillConnection, Request, ShowProcesslist, ShowStatus
from protocol.statements.select import do, select
from protocol.statements.session.effort import Effort
from protocol.statements.session.refusals import not_supported, privilege_needed
from protocol.statements.session.session import StatementSession
from protocol.statements.session.system_variables import read_variable
from protocol.statements.set_variables import set_password, set_transaction, set_variables
from protocol.statements.show_lists import show_collations, show_engines, show_grants, show_plugins
from protocol.statements.show_tables import (
    describe,
    show_columns,
    show_create_table,
    show_databases,
    show_index,
    show_table_status,
    show_tables,
)
from protocol.statements.show_variables import show_variables


def _done(statement: Statement, captured: Captured) -> Answer:
    return Done()


def _show_warnings(statement: Statement, captured: Captured) -> Answer:
    only_errors = statement.tokens[1].is_word("ERRORS")
    notices = [item for item in statement.session.notices if item.level == "Error" or not only_errors]
    columns = (
        AnswerColumn.text("Level", 7),
        AnswerColumn.number("Code", 5 if statement.session.facts.is_mysql_8 else 4, big=False),
        AnswerColumn.text("Message", 512),
    )
    return Rows(columns, tuple((item.level, item.number, item.message) for item in notices))


def _show_count(statement: Statement, captured: Captured) -> Answer:
    tokens = captured[0]
    name = {"(*)WARNINGS": "warning_count", "(*)ERRORS": "error_count"}.get("".join(t.text.upper() for t in tokens))
    if name is None:
        raise statement.refuse(tokens)
    counted = read_variable(name, "session", statement.session)
    return Rows((counted.column.named(f"@@session.{name}"),), ((counted.value,),))


def _show_processlist(statement: Statement, captured: Captured) -> Answer:
    return ShowProcesslist()


def _show_full_processlist(statement: Statement, captured: Captured) -> Answer:
    return ShowProcesslist(full=True)


def _show_status(statement: Statement, captured: Captured) -> Answer:
    is_global = statement.tokens[1].is_word("GLOBAL")
    return ShowStatus(row_filter(statement, captured[0], ("Variable_name", "Value")), is_global=is_global)


def _kill(statement: Statement, captured: Captured) -> Answer:
    tokens = captured[0]
    query_only = tokens[0].is_word("QUERY")
    if tokens[0].is_word("CONNECTION", "QUERY", "HARD", "SOFT"):
        tokens = tokens[1:]
    value = statement.evaluate(tokens).value
    if not isinstance(value, int):
        raise statement.refuse(tokens)
    return KillConnection(value, query_only)


def _shutdown(statement: Statement, captured: Captured) -> Answer:
    if not statement.session.is_admin:
        raise privilege_needed("SHUTDOWN")
    raise not_supported("SHUTDOWN", "end it by its service manager, or by SIGTERM")


_STEPS_A_CELL: Final = 12
_CELLS_A_COLUMN: Final = 4
_CHARACTERS_A_STEP: Final = 16

# The first shape that fits answers.
# fmt: off
_SHAPES: Final[tuple[tuple[str, Callable[[Statement, Captured], Answer]], ...]] = (
    ("SELECT {rest}",                                   select),
    ("SHOW [GLOBAL|SESSION|LOCAL] VARIABLES {tail}",    show_variables),
    ("SHOW [GLOBAL|SESSION|LOCAL] STATUS {tail}",       _show_status),
    ("SHOW WARNINGS {tail}",                            _show_warnings),
    ("SHOW ERRORS {tail}",                              _show_warnings),
    ("SHOW COUNT {rest}",                               _show_count),
    ("SHOW GRANTS {tail}",                              show_grants),
    ("SHOW COLLATION {tail}",                           show_collations),
    ("SHOW [STORAGE] ENGINES",                          show_engines),
    ("SHOW PLUGINS",                                    show_plugins),
    ("SHOW DATABASES|SCHEMAS {tail}",                   show_databases),
    ("SHOW [FULL] TABLES {tail}",                       show_tables),
    ("SHOW [FULL] COLUMNS|FIELDS {rest}",               show_columns),
    ("SHOW INDEX|INDEXES|KEYS {rest}",                  show_index),
    ("SHOW TABLE STATUS {tail}",                        show_table_status),
    ("SHOW CREATE TABLE {rest}",                        show_create_table),
    ("DESCRIBE|DESC|EXPLAIN {rest}",                    describe),
    ("SHOW BINARY|MASTER LOGS",                         show_binary_logs),
    ("SHOW MASTER STATUS",                              show_master_status),
    ("SHOW BINARY LOG STATUS",                          show_binary_log_status),
    ("SHOW BINLOG STATUS",                              show_binary_log_status),
    ("SHOW BINLOG|RELAYLOG EVENTS {tail}",              show_binlog_events),
    ("SHOW SLAVE HOSTS",                                show_slave_hosts),
    ("SHOW REPLICA HOSTS",                              show_replicas),
    ("SHOW REPLICAS",                                   show_replicas),
    ("SHOW SLAVE|REPLICA {rest}",                       show_replica_status),
    ("SHOW ALL SLAVES|REPLICAS STATUS",                 show_all_replicas_status),
    ("SHOW PROCESSLIST",                                _show_processlist),
    ("SHOW FULL PROCESSLIST",                           _show_full_processlist),
    ("SET [SESSION|GLOBAL|LOCAL] TRANSACTION {rest}",   set_transaction),
    ("SET PASSWORD {rest}",                             set_password),
    ("SET {rest}",                                      set_variables),
    ("STOP ALL SLAVES|REPLICAS",                        stop_all_replicas),
    ("START ALL SLAVES|REPLICAS",                       start_all_replicas),
    ("STOP SLAVE|REPLICA {tail}",                       stop_replica),
    ("START SLAVE|REPLICA {tail}",                      start_replica),
    ("RESET SLAVE|REPLICA {tail}",                      reset_replica),
    ("RESET MASTER {tail}",                             reset_source),
    ("RESET BINARY LOGS AND GTIDS {tail}",              reset_source),
    ("CHANGE MASTER {rest}",                            change_master),
    ("CHANGE REPLICATION SOURCE TO {rest}",             change_replication_source),
    ("PURGE BINARY|MASTER LOGS TO {string}",            purge_to),
    ("PURGE BINARY|MASTER LOGS BEFORE {rest}",          purge_before),
    ("FLUSH [NO_WRITE_TO_BINLOG|LOCAL] {rest}",         flush),
    ("TRUNCATE [TABLE] {rest}",                         truncate),
    ("CALL {rest}",                                     call),
    ("KILL {rest}",                                     _kill),
    ("SHUTDOWN {tail}",                                 _shutdown),
    ("USE {name}",                                      use_database),
    ("BEGIN [WORK]",                                    _done),
    ("START TRANSACTION {tail}",                        _done),
    ("COMMIT [WORK]",                                   _done),
    ("ROLLBACK [WORK]",                                 _done),
    ("UNLOCK TABLES|TABLE",                             _done),
    ("DO {rest}",                                       do),
)
# fmt: on


def answer_statement(text: str, session: StatementSession, now_s: float, *, in_a_thread: bool = False) -> Answer:
    """Answer one statement. `now_s` is the wall clock, seconds since 1970. `in_a_thread`: it may take as long as is allowed there.

    Raises: StatementRefused for whatever is not understood or not allowed, TooMuchForTheLoop outside of a thread (see `AnswerApart`);
    nothing was changed then.
    """
    session.effort = Effort(in_a_thread=in_a_thread)
    statement = Statement(text, session, now_s)
    if not statement.tokens:
        return Done()
    reached = 0
    for shape, answer in _SHAPES:
        fitting = fit(shape, statement.tokens)
        if fitting.captured is not None:
            answered = allowed(answer(statement, fitting.captured), session)
            if isinstance(answered, Rows):
                session.effort.spend(_steps_to_send(answered))
            if answer not in (_show_warnings, _show_count):
                session.notices = ()
            return answered
        reached = max(reached, fitting.reached)
    raise statement.refuse(statement.tokens[reached:])


def _steps_to_send(answer: Rows) -> int:
    """Return the steps for encoding the columns and the rows."""
    characters = sum(len(value) for row in answer.rows for value in row if isinstance(value, str))
    cells = (len(answer.rows) + _CELLS_A_COLUMN) * len(answer.columns)
    return _STEPS_A_CELL * cells + characters // _CHARACTERS_A_STEP


def allowed(answer: Answer, session: StatementSession) -> Answer:
    """Return `answer`, unless it needs an admin account. Raises: StatementRefused (1227)."""
    if isinstance(answer, Request) and answer.privilege and not session.is_admin:
        raise privilege_needed(answer.privilege)
    return answer
