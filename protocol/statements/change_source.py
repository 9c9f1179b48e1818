"""CHANGE MASTER TO and CHANGE REPLICATION SOURCE TO: every option of MySQL 5.5 to 9.x and MariaDB to 11.x.

Source: MySQL 9.x reference, "CHANGE REPLICATION SOURCE TO"; MariaDB 11.x `sql/sql_yacc.yy (master_def)`.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from protocol.statements.answers import Answer
from protocol.statements.expression.expressions import Statement, number
from protocol.statements.expression.functions import as_text
from protocol.statements.expression.shapes import Captured
from protocol.statements.expression.tokens import Kind, Token
from protocol.statements.replica_statements import channel_of
from protocol.statements.requests import ChangeSource, ChangeValue, Words


class _Takes(Enum):
    """The kind of value that an option takes."""

    TEXT = "text"
    TEXT_OR_NULL = "text or NULL"
    NUMBER = "number"
    REAL = "number with decimals"
    SWITCH = "0 or 1"
    LIST = "list of numbers"
    WORD = "word"
    WORD_OR_TEXT = "word or text"


# fmt: off
_OPTIONS: Final[dict[str, _Takes]] = {
    "SOURCE_BIND": _Takes.TEXT,
    "SOURCE_HOST": _Takes.TEXT,
    "SOURCE_USER": _Takes.TEXT,
    "SOURCE_PASSWORD": _Takes.TEXT,
    "SOURCE_PORT": _Takes.NUMBER,
    "SOURCE_CONNECT_RETRY": _Takes.NUMBER,
    "SOURCE_RETRY_COUNT": _Takes.NUMBER,
    "SOURCE_DELAY": _Takes.NUMBER,
    "SOURCE_HEARTBEAT_PERIOD": _Takes.REAL,
    "SOURCE_LOG_FILE": _Takes.TEXT,
    "SOURCE_LOG_POS": _Takes.NUMBER,
    "SOURCE_AUTO_POSITION": _Takes.SWITCH,
    "SOURCE_USE_GTID": _Takes.WORD,
    "SOURCE_DEMOTE_TO_SLAVE": _Takes.SWITCH,
    "SOURCE_DEMOTE_TO_REPLICA": _Takes.SWITCH,
    "RELAY_LOG_FILE": _Takes.TEXT,
    "RELAY_LOG_POS": _Takes.NUMBER,
    "SOURCE_SSL": _Takes.SWITCH,
    "SOURCE_SSL_CA": _Takes.TEXT,
    "SOURCE_SSL_CAPATH": _Takes.TEXT,
    "SOURCE_SSL_CERT": _Takes.TEXT,
    "SOURCE_SSL_CRL": _Takes.TEXT,
    "SOURCE_SSL_CRLPATH": _Takes.TEXT,
    "SOURCE_SSL_KEY": _Takes.TEXT,
    "SOURCE_SSL_CIPHER": _Takes.TEXT,
    "SOURCE_SSL_VERIFY_SERVER_CERT": _Takes.SWITCH,
    "SOURCE_TLS_VERSION": _Takes.TEXT,
    "SOURCE_TLS_CIPHERSUITES": _Takes.TEXT_OR_NULL,
    "SOURCE_PUBLIC_KEY_PATH": _Takes.TEXT,
    "GET_SOURCE_PUBLIC_KEY": _Takes.SWITCH,
    "SOURCE_COMPRESSION_ALGORITHMS": _Takes.TEXT,
    "SOURCE_ZSTD_COMPRESSION_LEVEL": _Takes.NUMBER,
    "SOURCE_CONNECTION_AUTO_FAILOVER": _Takes.SWITCH,
    "NETWORK_NAMESPACE": _Takes.TEXT,
    "IGNORE_SERVER_IDS": _Takes.LIST,
    "DO_DOMAIN_IDS": _Takes.LIST,
    "IGNORE_DOMAIN_IDS": _Takes.LIST,
    "PRIVILEGE_CHECKS_USER": _Takes.WORD_OR_TEXT,
    "REQUIRE_ROW_FORMAT": _Takes.SWITCH,
    "REQUIRE_TABLE_PRIMARY_KEY_CHECK": _Takes.WORD,
    "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS": _Takes.WORD_OR_TEXT,
    "GTID_ONLY": _Takes.SWITCH,
}
# fmt: on


def change_master(statement: Statement, captured: Captured) -> Answer:
    """Answer CHANGE MASTER ['name'] TO option = value, ... [FOR CHANNEL 'name']."""
    tokens = captured[0]
    name = ""
    if tokens[0].is_text:
        name, tokens = tokens[0].text, tokens[1:]
    if not tokens or not tokens[0].is_word("TO"):
        raise statement.refuse(tokens)
    return _change(statement, Words.MASTER_SLAVE, tokens[1:], name)


def change_replication_source(statement: Statement, captured: Captured) -> Answer:
    """Answer CHANGE REPLICATION SOURCE TO option = value, ... [FOR CHANNEL 'name']."""
    return _change(statement, Words.SOURCE_REPLICA, captured[0], "")


def _change(statement: Statement, words: Words, tokens: Sequence[Token], name: str) -> Answer:
    channel, rest = channel_of(statement, tokens)
    if not rest:
        raise statement.refuse(rest)
    options: dict[str, ChangeValue] = {}
    for part in statement.split(rest):
        if not part or part[0].kind is not Kind.WORD:
            raise statement.refuse(part)
        option = _canonical(part[0].text)
        takes = _OPTIONS.get(option)
        # A repeated option is an error in servers too.
        if takes is None or option in options:
            raise statement.refuse(part)
        if len(part) < 3 or not part[1].is_symbol("="):
            raise statement.refuse(part[1:]) if len(part) > 1 else statement.refuse_after(part[0])
        options[option] = _value(statement, takes, part[2:])
    return ChangeSource(words, options, name or channel)


def _canonical(option: str) -> str:
    option = option.upper()
    if option == "GET_MASTER_PUBLIC_KEY":
        return "GET_SOURCE_PUBLIC_KEY"
    return "SOURCE_" + option.removeprefix("MASTER_") if option.startswith("MASTER_") else option


def _value(statement: Statement, takes: _Takes, tokens: Sequence[Token]) -> ChangeValue:
    first = tokens[0]
    if takes is _Takes.LIST:
        return _numbers(statement, tokens)
    if len(tokens) > 1:
        if takes is _Takes.WORD_OR_TEXT:  # 'user'@'host'
            return statement.source(tokens)
        raise statement.refuse(tokens[1:])
    value = number(first.text) if first.kind is Kind.NUMBER else None
    if takes in (_Takes.NUMBER, _Takes.REAL) and first.kind is Kind.NUMBER:
        if isinstance(value, int) or takes is _Takes.REAL:
            return value if isinstance(value, int) else first.text
    elif takes is _Takes.SWITCH and (value in (0, 1) or first.is_word("TRUE", "FALSE", "DEFAULT")):
        return value if isinstance(value, int) else int(not first.is_word("FALSE"))
    elif takes in (_Takes.TEXT, _Takes.TEXT_OR_NULL, _Takes.WORD_OR_TEXT) and first.is_text:
        return first.text
    elif takes in (_Takes.TEXT_OR_NULL, _Takes.WORD_OR_TEXT) and first.is_word("NULL"):
        return None
    elif takes in (_Takes.WORD, _Takes.WORD_OR_TEXT) and first.kind is Kind.WORD:
        return as_text(first.text).upper()
    raise statement.refuse(tokens)


def _numbers(statement: Statement, tokens: Sequence[Token]) -> tuple[int, ...]:
    if not tokens[0].is_symbol("(") or not tokens[-1].is_symbol(")"):
        raise statement.refuse(tokens)
    found: list[int] = []
    for part in statement.split(tokens[1:-1]) if len(tokens) > 2 else ():
        value = number(part[0].text) if len(part) == 1 else None
        if not isinstance(value, int):
            raise statement.refuse(part or tokens)
        found.append(value)
    return tuple(found)
