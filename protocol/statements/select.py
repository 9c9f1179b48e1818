"""SELECT: one of constants, variables and functions is answered at once, all others are a request to the running relay."""

from collections.abc import Sequence
from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from protocol.resultset import AnswerColumn, ColumnFlag, ColumnType, Rows, Value
from protocol.statements.answers import Answer, Done
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.shapes import Captured
from protocol.statements.expression.tokens import Kind, Token
from protocol.statements.requests import AskGtidPosition, QueryTables, UseLocks
from protocol.statements.session.refusals import shown
from protocol.statements.session.system_variables import SYSTEM_VARIABLES, shown_value
from protocol.statements.translation.sqlite_text import sqlite_text
from protocol.statements.user_locks import lock_calls

_MAX_LABEL_BYTES: Final = 256
_ALIASES: Final = (Kind.WORD, Kind.NAME, Kind.STRING)
_SELECT_OPTIONS: Final = ("SQL_NO_CACHE", "SQL_CACHE", "DISTINCT", "ALL", "HIGH_PRIORITY")
# A MySQL 8.0.22+ replica with SOURCE_CONNECTION_AUTO_FAILOVER asks this of a source in a managed group. A server in no group answers
# 2. Source: MySQL 8.0.43 `sql/rpl_io_monitor.cc`; the answer is 9.7.4's.
_QUORUM_TABLE: Final = "REPLICATION_GROUP_MEMBERS"
_NO_QUORUM: Final = 2
_OF_VARIABLES: Final = ("global_variables", "session_variables")


def select(statement: Statement, captured: Captured) -> Answer:
    """Answer SELECT: with one row of values that are known here, or with a request, for tables and for unknown expressions."""
    tokens, limit = _without_limit(statement, captured[0])
    while len(tokens) > 1 and tokens[0].is_word(*_SELECT_OPTIONS):
        tokens = tokens[1:]
    if _asks_for_quorum(statement, tokens):
        kind = ColumnFlag.NOT_NULL
        column = AnswerColumn("QUORUM", ColumnType.LONG, 2, kind, 0, is_text=False, table="Q", original_name="QUORUM")
        return Rows((column,), ((_NO_QUORUM,),))
    if limit and (calls := lock_calls(statement, tokens)) is not None:
        return UseLocks(calls)
    if _reads_table(tokens):
        return query_tables(statement, captured[0])
    try:
        return _without_tables(statement, tokens, limit=limit)
    except StatementRefused as error:
        if error.number not in (ErrorCode.ER_PARSE_ERROR, ErrorCode.ER_SP_DOES_NOT_EXIST):
            raise
        try:
            return query_tables(statement, captured[0], error)
        except StatementRefused:
            raise error from None


def do(statement: Statement, captured: Captured) -> Answer:
    """Answer DO, which evaluates for its effects; only locks have any."""
    calls = lock_calls(statement, captured[0])
    return UseLocks(calls, shows=False) if calls is not None else Done()


def query_tables(
    statement: Statement, tokens: Sequence[Token], not_understood: StatementRefused | None = None
) -> QueryTables:
    """Return the request for the SELECT with these tokens after that word. `not_understood` is the error if SQLite fails, too.

    Raises: StatementRefused.
    """
    text = sqlite_text(statement, tokens)
    listed = {table for _schema, table in text.tables if table in _OF_VARIABLES}
    variables = _variables(statement, "session" if listed == {"session_variables"} else "global") if listed else ()
    refusal = not_understood or statement.refuse(statement.tokens)
    return QueryTables(
        text.text, text.parameters, text.tables, text.columns, variables, named=text.named, not_understood=refusal
    )


def _variables(statement: Statement, scope: str) -> tuple[tuple[str, str], ...]:
    session = statement.session
    exist = (name for name, variable in SYSTEM_VARIABLES.items() if variable.exists(session.facts))
    return tuple((name, shown_value(name, session, scope)) for name in exist)


def _without_tables(statement: Statement, tokens: Sequence[Token], *, limit: bool) -> Answer:
    """Answer with one row of constants, variables and functions."""
    tokens, holds = _without_condition(statement, tokens)
    limit = limit and holds
    items = _without_table(statement, tokens)
    if limit and (asked := _gtid_position(statement, items)) is not None:
        return asked
    columns: list[AnswerColumn] = []
    row: list[Value] = []
    for item in statement.split(items):
        expression, label = _labelled(statement, item)
        typed = statement.evaluate(expression)
        columns.append(typed.column.named(shown(label, _MAX_LABEL_BYTES)))
        row.append(typed.value)
    return Rows(tuple(columns), (tuple(row),) if limit else ())


def _gtid_position(statement: Statement, items: Sequence[Token]) -> AskGtidPosition | None:
    """Return the request for BINLOG_GTID_POS of a file and a number, alone, as a MariaDB replica asks; elsewhere it is NULL."""
    if not statement.session.facts.is_mariadb or len(items) < 6 or not items[0].is_word("BINLOG_GTID_POS"):
        return None
    expression, label = _labelled(statement, items)
    if len(expression) != 6 or not (expression[1].is_symbol("(") and expression[3].is_symbol(",")):
        return None
    file, position = expression[2], expression[4]
    if file.kind is not Kind.STRING or position.kind is not Kind.NUMBER or not position.text.isdecimal():
        return None
    if not expression[5].is_symbol(")"):
        return None
    return AskGtidPosition(file.text, int(position.text[:20]), shown(label, _MAX_LABEL_BYTES))


def _labelled(statement: Statement, item: Sequence[Token]) -> tuple[Sequence[Token], str]:
    """Return an item's expression and its column's name: the alias, or the statement's own spelling."""
    if len(item) > 2 and item[-2].is_word("AS"):
        if item[-1].kind not in _ALIASES:
            raise statement.refuse(item[-1:])
        return item[:-2], item[-1].text
    # Two adjacent things that nothing connects.
    if len(item) > 1 and item[-1].kind in _ALIASES and (item[-2].kind is not Kind.SYMBOL or item[-2].is_symbol(")")):
        return item[:-1], item[-1].text
    if len(item) == 1 and item[0].kind is Kind.STRING:
        return item, item[0].text
    return item, statement.source(item)


def _without_limit(statement: Statement, tokens: Sequence[Token]) -> tuple[Sequence[Token], bool]:
    """Remove `LIMIT n`, which tools append to a SELECT of variables; also return whether a row is left."""
    at = max((index for index, token in enumerate(tokens) if index and token.is_word("LIMIT")), default=len(tokens))
    numbers = [token.text.strip("0") != "" for token in tokens[at + 1 :] if token.kind is Kind.NUMBER]
    between = [token.text.upper() for token in tokens[at + 1 :] if token.kind is not Kind.NUMBER]
    if len(numbers) == 1 and not between:
        return tokens[:at], numbers[0]
    if len(numbers) == 2 and len(tokens) == at + 4 and between in ([","], ["OFFSET"]):
        offset, count = numbers if between == [","] else reversed(numbers)
        return tokens[:at], count and not offset
    return tokens, True


def _without_condition(statement: Statement, tokens: Sequence[Token]) -> tuple[Sequence[Token], bool]:
    """Remove the WHERE after `FROM DUAL`; also return whether it is true."""
    for index, token in enumerate(tokens):
        if (
            token.is_word("WHERE")
            and index > 2
            and tokens[index - 1].is_word("DUAL")
            and tokens[index - 2].is_word("FROM")
        ):
            return tokens[:index], statement.evaluate(tokens[index + 1 :]).is_true
    return tokens, True


def _without_table(statement: Statement, tokens: Sequence[Token]) -> Sequence[Token]:
    """Remove `FROM DUAL`, the only table that is known here."""
    if len(tokens) > 2 and tokens[-2].is_word("FROM") and tokens[-1].is_word("DUAL"):
        return tokens[:-2]
    return tokens


def _reads_table(tokens: Sequence[Token]) -> bool:
    """Return whether there is a FROM other than `FROM DUAL`, alone or with a WHERE."""
    places = [
        at for at, token in enumerate(tokens) if token.is_word("FROM") and not (at and tokens[at - 1].is_symbol("."))
    ]
    if len(places) != 1 or places[0] + 1 >= len(tokens) or not places[0]:
        return bool(places)
    following = tokens[places[0] + 1 :]
    return not (following[0].is_word("DUAL") and (len(following) == 1 or following[1].is_word("WHERE")))


def _asks_for_quorum(statement: Statement, tokens: Sequence[Token]) -> bool:
    if statement.session.facts.is_mariadb:
        return False
    asked = any(token.is_word(_QUORUM_TABLE) for token in tokens)
    return asked and any(token.is_word("QUORUM") for token in tokens)
