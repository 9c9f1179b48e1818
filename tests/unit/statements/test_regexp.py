"""REGEXP chooses what Python's own engine chooses, and takes no time for patterns that are made to take it."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import StatementRefused
from protocol.resultset import Rows
from protocol.statements import SourceFacts, StatementSession, answer_statement
from protocol.statements.expression.regexp import Regexp, RegexpRefused

MYSQL = SourceFacts("mysql", "5.6.24-log", 3, "uuid", "CRC32")

pieces = st.recursive(
    st.sampled_from(["a", "b", "ab", ".", "[ab]", "[^a]", "[a-c]", "^", "$", "\\."]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from("*+?")).map(lambda two: f"({two[0]}){two[1]}"),
    ),
    max_leaves=6,
)


@given(pieces, st.text("abc.", max_size=8))
def test_it_finds_what_a_backtracking_engine_finds(pattern: str, text: str) -> None:
    assert Regexp(pattern).is_in(text) is (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("character_set_server|collation_server", "COLLATION_SERVER", True),
        ("^server_(id|uuid)$", "server_id", True),
        ("^server_(id|uuid)$", "server_id_bits", False),
        ("[[:digit:]]+", "abc5", True),
        ("[[:digit:]]+", "abc", False),
        ("a\\.b", "axb", False),
        ("\\d\\d", "x12", True),
        ("[]a]", "]", True),
        ("[\\]x]", "]", True),
        ("", "anything", True),
    ],
)
def test_patterns_as_monitors_write_them(pattern: str, text: str, found: bool) -> None:
    assert Regexp(pattern).is_in(text) is found


@pytest.mark.parametrize(
    "pattern", ["(", "a)", "[a", "*", "a{2}", "(a)\\1", "[[:nothing:]]", "(?i)a", "a" * 257, "(" * 40]
)
def test_what_is_no_pattern_or_not_understood_is_refused(pattern: str) -> None:
    with pytest.raises(RegexpRefused):
        Regexp(pattern)


def test_a_pattern_made_to_take_long_does_not() -> None:
    began = time.process_time()
    assert not Regexp("(a*)*(a*)*(a|a)*(a?)+b").is_in("a" * 2000)
    assert time.process_time() - began < 1.0


def test_show_chooses_by_it() -> None:
    session = StatementSession(MYSQL, 42)
    rows = answer_statement("SHOW VARIABLES WHERE Variable_name REGEXP '^server_(id|uuid)$'", session, 0.0)
    assert isinstance(rows, Rows)
    assert [row[0] for row in rows.rows] == ["server_id", "server_uuid"]
    none = answer_statement("SHOW VARIABLES WHERE Variable_name NOT RLIKE '.'", session, 0.0)
    assert isinstance(none, Rows)
    assert none.rows == ()
    with pytest.raises(StatementRefused) as caught:
        answer_statement("SHOW VARIABLES WHERE Variable_name REGEXP '('", session, 0.0)
    assert caught.value.number == 1139
