"""Statements in character sets in which a byte below 0x80 may belong to a character, as servers read them."""

import pytest

from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.rules.targets.statement.source_statement import SourceStatement
from relay.view.stops.stop_reason import Untranslatable
from tests.support.rule_groups import RuleRun, Statement, settings

BIG5, SJIS, GBK, CP932, GB18030, LATIN1 = 1, 13, 28, 95, 248, 8


def query(text: bytes, collation: int) -> LoggedQuery:
    status = b"\x04" + collation.to_bytes(2, "little") * 3
    return LoggedQuery(b"", text, 7, 0, b"d", status, "5.6.24-log")


def strings(text: bytes, collation: int) -> list[int]:
    """How long the strings of a statement are."""
    return [len(token.text) for token in query(text, collation).tokens if token.kind is TokenKind.STRING]


@pytest.mark.parametrize(
    ("collation", "text", "lengths"),
    [
        (GBK, b"'\xc4'", [1]),  # the quote is no second byte
        (GBK, b"'\xc4', '\xc4'", [1, 1]),
        (GBK, b"'\xc4\\'", [2]),  # the backslash is one
        (GBK, b"'\x80\\'', 'a'", [2, 1]),  # 0x80 begins no character, so the backslash is one
        (SJIS, b"'\x95\\'", [2]),
        (SJIS, b"'\xb1\\n'", [2]),
        (CP932, b"'\x95\\'", [2]),
        (CP932, b"'\xfd'", [1]),
        (BIG5, b"'\xa5\\'", [2]),
        (BIG5, b"'\x81\\'', 'a'", [2, 1]),
        (GB18030, b"'\x81\x30\x81\x30'", [4]),
        (GB18030, b"'\x81\x30'", [2]),
        (GB18030, b"'\x81\\'", [2]),
        (LATIN1, b"'\xc4'", [1]),
    ],
)
def test_a_string_ends_where_the_server_ends_it(collation: int, text: bytes, lengths: list[int]) -> None:
    assert strings(b"INSERT INTO t VALUES (" + text + b")", collation) == lengths


def test_a_string_that_does_not_end_is_not_understood() -> None:
    with pytest.raises(UnsupportedSyntax):
        strings(b"INSERT INTO t VALUES ('\xc4\\')"[:-2], GBK)


def test_bytes_of_a_blob_stop_no_view() -> None:
    rules = RuleRun(settings(engines="innodb"))
    for made in ("CREATE DATABASE d", "CREATE TABLE i (a BLOB)", "CREATE TABLE m (a BLOB) ENGINE=MyISAM"):
        rules.plan(made)
    insert = Statement(b"INSERT INTO m VALUES ('\xc4')", client=GBK)
    try:
        made_of_it = rules.plan("BEGIN", Statement("INSERT INTO i VALUES (1)", client=GBK), insert, "ROLLBACK")
    except Untranslatable as error:
        pytest.fail(str(error))
    assert [len(one) for one in made_of_it] == [3]


def words(text: str) -> list[str]:
    return [word.text for word in SourceStatement(text.encode(), LATIN1, 0, 90704, TARGETS_BY_NAME["mysql-5.6"]).words]


def test_a_product_in_front_of_a_comment_is_one() -> None:
    assert words("SELECT 2*/*c*/3") == ["SELECT", "2", "*", "3"]
    assert words("SELECT 2*/* ' */a REGEXP 'b'") == ["SELECT", "2", "*", "a", "REGEXP", "b"]
    assert words("SELECT /*!50001 2*/*3") == ["SELECT", "2", "*", "3"]


def test_a_comment_without_an_end_is_not_readable() -> None:
    with pytest.raises(UnsupportedSyntax):
        words("SELECT 1 /* /*")
