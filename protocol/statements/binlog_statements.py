"""People's statements about binlogs: SHOW BINARY LOGS, SHOW BINLOG EVENTS, PURGE, FLUSH."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from protocol.statements.answers import Answer
from protocol.statements.expression.expressions import Statement, number
from protocol.statements.expression.functions import as_text, unix_time
from protocol.statements.expression.shapes import Captured
from protocol.statements.expression.tokens import Kind, Token
from protocol.statements.replica_statements import channel_of
from protocol.statements.requests import (
    Flush,
    PurgeBefore,
    PurgeTo,
    ShowBinaryLogs,
    ShowBinlogEvents,
    ShowMasterStatus,
    Words,
)
from protocol.statements.session.refusals import shown

_INTERVALS_S: Final = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 7 * 86400}
# Their lengths differ, so they are counted back in the calendar.
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_MOST_MONTHS: Final = 12 * 1000
_MAX_DEPTH: Final = 8
_DIGITS_OF_A_DATE: Final = {8: "%Y%m%d", 14: "%Y%m%d%H%M%S"}
_LOGS: Final = ("BINARY LOGS", "ENGINE LOGS", "ERROR LOGS", "GENERAL LOGS", "RELAY LOGS", "SLOW LOGS")
FLUSHED: Final = frozenset(
    (*_LOGS, "LOGS", "STATUS", "HOSTS", "PRIVILEGES", "TABLES", "USER_RESOURCES", "OPTIMIZER_COSTS", "QUERY CACHE", "DES_KEY_FILE",
     "MASTER", "SLAVE", "SSL", "TABLE", "USER_STATISTICS", "CLIENT_STATISTICS", "INDEX_STATISTICS", "TABLE_STATISTICS",
     "GLOBAL STATUS", "SESSION STATUS", "TABLES WITH READ LOCK")
)  # fmt: skip


def show_binary_logs(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW BINARY LOGS and SHOW MASTER LOGS."""
    return ShowBinaryLogs()


def show_master_status(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW MASTER STATUS, in the older words."""
    return ShowMasterStatus(Words.MASTER_SLAVE)


def show_binary_log_status(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW BINARY LOG STATUS, in the newer words."""
    return ShowMasterStatus(Words.SOURCE_REPLICA)


def show_binlog_events(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW BINLOG EVENTS [IN file] [FROM position] [LIMIT [offset,] count]. A relay's relay log is its archive."""
    tokens = captured[1]
    if captured[0][0].is_word("RELAYLOG"):
        _channel, tokens = channel_of(statement, tokens)
    file: str | None = None
    position, offset, count = 4, 0, None
    if tokens and tokens[0].is_word("IN"):
        if len(tokens) < 2 or not tokens[1].is_text:
            raise statement.refuse(tokens[1:])
        file, tokens = tokens[1].text, tokens[2:]
    if tokens and tokens[0].is_word("FROM"):
        position, tokens = _integer(statement, tokens[1:]), tokens[2:]
    if tokens and tokens[0].is_word("LIMIT"):
        count, tokens = _integer(statement, tokens[1:]), tokens[2:]
        if tokens and tokens[0].is_symbol(","):
            offset, count, tokens = count, _integer(statement, tokens[1:]), tokens[2:]
        elif tokens and tokens[0].is_word("OFFSET"):
            offset, tokens = _integer(statement, tokens[1:]), tokens[2:]
    if tokens:
        raise statement.refuse(tokens)
    return ShowBinlogEvents(file, position, offset, count)


def _integer(statement: Statement, tokens: Sequence[Token]) -> int:
    """Return the integer with which the tokens begin."""
    value = number(tokens[0].text) if tokens and tokens[0].kind is Kind.NUMBER else None
    if not isinstance(value, int):
        raise statement.refuse(tokens)
    return value


def purge_to(statement: Statement, captured: Captured) -> Answer:
    """Answer PURGE BINARY|MASTER LOGS TO 'file'."""
    return PurgeTo(captured[1][0].text)


def purge_before(statement: Statement, captured: Captured) -> Answer:
    """Answer PURGE BINARY|MASTER LOGS BEFORE a time: a literal (in the session's time zone), or a function, also less an interval.

    Servers warn about a time that they do not understand and purge nothing; here it is an error (1525).
    """
    return PurgeBefore(_moment(statement, captured[1]))


def _moment(statement: Statement, tokens: Sequence[Token], depth: int = 0) -> float:
    """Return a moment in seconds since 1970."""
    if depth > _MAX_DEPTH:
        raise statement.refuse(tokens)
    if len(tokens) > 2 and tokens[0].is_symbol("(") and tokens[-1].is_symbol(")"):
        return _moment(statement, tokens[1:-1], depth + 1)
    if len(tokens) > 4 and tokens[0].is_word("DATE_SUB", "SUBDATE") and tokens[1].is_symbol("("):
        parts = statement.split(tokens[2:-1]) if tokens[-1].is_symbol(")") else []
        if len(parts) != 2 or not parts[1] or not parts[1][0].is_word("INTERVAL"):
            raise statement.refuse(tokens[2:])
        return _before(statement, _moment(statement, parts[0], depth + 1), parts[1][1:])
    for index, token in enumerate(tokens):
        if index and token.is_symbol("-") and index + 1 < len(tokens) and tokens[index + 1].is_word("INTERVAL"):
            return _before(statement, _moment(statement, tokens[:index], depth + 1), tokens[index + 2 :])
    if len(tokens) == 2 and tokens[0].is_word("TIMESTAMP", "DATE") and tokens[1].is_text:
        tokens = tokens[1:]
    literal = as_text(statement.evaluate(tokens).value)
    zone = statement.session.zone
    seconds = unix_time(literal, zone)
    if seconds is None and literal.isdecimal() and len(literal) in _DIGITS_OF_A_DATE:
        try:
            seconds = datetime.strptime(literal, _DIGITS_OF_A_DATE[len(literal)]).replace(tzinfo=zone).timestamp()
        except ValueError:
            seconds = None
    if seconds is None:
        raise StatementRefused(ErrorCode.ER_WRONG_VALUE, f"Incorrect DATETIME value: '{shown(literal, 64)}'")
    return seconds


def _before(statement: Statement, moment_s: float, interval: Sequence[Token]) -> float:
    """Return `moment_s` less `n UNIT`."""
    if len(interval) != 2 or interval[0].kind not in (Kind.NUMBER, Kind.STRING) or interval[1].kind is not Kind.WORD:
        raise statement.refuse(interval[2:] or interval)
    count, unit = number(interval[0].text), interval[1].text.upper()
    if not isinstance(count, int):
        raise statement.refuse(interval)
    if unit in _INTERVALS_S:
        return max(moment_s - count * _INTERVALS_S[unit], 0.0)
    if unit not in _MONTHS:
        raise statement.refuse(interval[1:])
    then = datetime.fromtimestamp(moment_s, statement.session.zone)
    months = then.year * 12 + then.month - 1 - min(count * _MONTHS[unit], _MOST_MONTHS)
    year, month = divmod(months, 12)
    if year < 1:
        return 0.0
    # The 31st of a month with 30 days is its last day.
    for day in range(then.day, 0, -1):
        try:
            return then.replace(year=year, month=month + 1, day=day).timestamp()
        except ValueError:
            continue
    return 0.0  # pragma: no cover - every month has a first day


def flush(statement: Statement, captured: Captured) -> Answer:
    """Answer FLUSH of one or several things."""
    what: list[str] = []
    for part in statement.split(captured[0]):
        thing = " ".join(token.text.upper() for token in part if token.kind is Kind.WORD)
        if thing not in FLUSHED or len(part) > len(thing.split()):
            raise statement.refuse(part)
        what.append(thing)
    return Flush(tuple(what))


def truncate(statement: Statement, captured: Captured) -> Answer:
    """Answer TRUNCATE TABLE performance_schema.host_cache, by which mysqladmin of MySQL 8.4 and later flushes hosts."""
    names = [token.text.lower() for token in captured[0]]
    if names != ["performance_schema", ".", "host_cache"]:
        raise statement.refuse(statement.tokens)
    return Flush(("HOSTS",))
