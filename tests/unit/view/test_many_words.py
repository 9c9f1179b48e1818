"""Statements with more words than other rules read."""

from protocol.sql.lexer import TokenKind
from relay.view.rules.judged.statement_judge import _read_rows
from relay.view.rules.statement.logged_query import LoggedQuery


def test_an_insert_of_two_megabytes_of_short_rows_with_calls_is_judged() -> None:
    raw = b"INSERT INTO t VALUES " + b",".join([b"(1, 'abc', 1.5, NOW(), NOW())"] * 40_000)
    query = LoggedQuery(b"", raw, 7, 0, b"shop", b"", "5.6.24-log")
    assert _read_rows(query).tokens[-1].kind is TokenKind.END
