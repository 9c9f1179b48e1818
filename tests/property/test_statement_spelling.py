"""However a statement is spelled, its answer is the same; and no statement makes the relay loop or crash."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import StatementRefused
from protocol.resultset import Rows, result_payloads
from protocol.statements import Answer, SourceFacts, StatementSession, answer_statement, tokenize
from protocol.statements.expression.tokens import Kind
from tests.support.statement_corpus import ERRORS, SAME, SAME_SHAPE

FACTS = [
    SourceFacts("mysql", "5.6.24-log", 3, "11111111-2222-3333-4444-555555555555", "CRC32"),
    SourceFacts("mysql", "9.7.4", 3, "11111111-2222-3333-4444-555555555555", "CRC32"),
    SourceFacts("mariadb", "11.8.6-MariaDB", 3, None, "CRC32"),
]
NOW = 1_700_000_000.0
PEOPLE = [
    "SHOW BINLOG EVENTS IN 'a.1' FROM 120 LIMIT 2, 5",
    "SHOW SLAVE STATUS FOR CHANNEL ''",
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('a', 'b')",
    "STOP SLAVE SQL_THREAD, IO_THREAD",
    "START REPLICA",
    "CHANGE MASTER TO MASTER_HOST='h', MASTER_PORT=3307, IGNORE_SERVER_IDS=(1, 2), MASTER_HEARTBEAT_PERIOD=0.5",
    "PURGE BINARY LOGS BEFORE DATE_SUB(NOW(), INTERVAL 7 DAY)",
    "PURGE MASTER LOGS TO 'a.1'",
    "FLUSH NO_WRITE_TO_BINLOG BINARY LOGS, STATUS",
    "KILL QUERY 7",
    "SHOW ALL SLAVES STATUS",
]
GAPS = st.sampled_from(
    [" ", "  ", "\n", "\t\r\n", "/**/", " /* x */ ", " -- x\n", " # it's\n", "/* ' */", " /*!00000 */ "]
)
ENDS = st.sampled_from(["", ";", " ; ", ";;", "\n", " -- end", " # end", "/* end */", "\\G"])


def answered(statement: str, facts: SourceFacts) -> tuple[str, Answer | int | tuple[object, ...]]:
    session = StatementSession(facts, 42, user="u", host="h", is_admin=True)
    try:
        answer = answer_statement(statement, session, NOW)
    except StatementRefused as error:
        return "refused", error.number
    if isinstance(answer, Rows):
        # A column may be named by the statement's own text.
        return "rows", (
            answer.rows,
            [column if isinstance(column, str) else column.named("") for column in answer.columns],
        )
    return "done", answer


@pytest.mark.parametrize("statement", SAME + SAME_SHAPE + PEOPLE)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_spaces_comments_and_case_change_no_answer(statement: str, data: st.DataObject) -> None:
    tokens = tokenize(statement)
    spelled = data.draw(GAPS)
    for index, token in enumerate(tokens):
        text = statement[token.start : token.stop]
        if token.kind in (Kind.WORD, Kind.SYSTEM_VARIABLE, Kind.USER_VARIABLE) and not text.startswith("@`"):
            text = data.draw(st.sampled_from([text, text.lower(), text.upper(), text.swapcase()]))
        spelled += text
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        is_pair = (
            following is not None and token.kind is following.kind is Kind.SYMBOL and token.stop == following.start
        )
        if not is_pair:
            spelled += data.draw(GAPS)
    spelled += data.draw(ENDS)
    for facts in FACTS:
        got, expected = answered(spelled, facts), answered(statement, facts)
        if expected[0] == "rows" and got[0] == "rows":
            assert repr(got).lower() == repr(expected).lower(), spelled
        else:
            assert got == expected, spelled


WORDS = sorted(
    {word for statement in SAME + SAME_SHAPE + ERRORS + PEOPLE for word in statement.split()} | {"(", ")", ",", "*/"}
)


@given(st.lists(st.sampled_from(WORDS), max_size=14), st.sampled_from(FACTS), st.booleans())
@settings(max_examples=1500, deadline=None)
def test_words_in_any_order_are_answered_or_refused(words: list[str], facts: SourceFacts, is_admin: bool) -> None:
    session = StatementSession(facts, 42, is_admin=is_admin)
    with contextlib.suppress(StatementRefused):
        answer = answer_statement(" ".join(words), session, NOW)
        if isinstance(answer, Rows):
            result_payloads(answer, session.encoding, session.status)


@given(st.sampled_from(SAME + PEOPLE), st.integers(0, 400), st.integers(0, 400), st.text(max_size=6))
@settings(max_examples=1500, deadline=None)
def test_a_statement_with_a_piece_replaced_is_answered_or_refused(
    statement: str, start: int, size: int, piece: str
) -> None:
    changed = statement[:start] + piece + statement[start + size :]
    session = StatementSession(FACTS[0], 42, is_admin=True)
    try:
        answer = answer_statement(changed, session, NOW)
    except StatementRefused as error:
        assert error.number > 1000
        assert len(error.what.encode()) < 511
        return
    if isinstance(answer, Rows):
        result_payloads(answer, session.encoding, session.status)


@pytest.mark.parametrize(
    "statement",
    [
        "PURGE BINARY LOGS BEFORE " + "DATE_SUB(" * 700 + "NOW()" + ", INTERVAL 1 DAY)" * 700,
        "PURGE BINARY LOGS BEFORE NOW()" + " - INTERVAL 1 DAY" * 900,
        "PURGE BINARY LOGS BEFORE DATE_SUB(NOW() - INTERVAL 99999999999999999999 DAY, INTERVAL 99999999999999999999 MONTH)",
        "SELECT " + "IF(1," * 800 + "1" + ",1)" * 800,
        "SELECT 1" + " = 1" * 1500,
        "SHOW STATUS WHERE Variable_name = 'a'" + " OR Variable_name = 'a'" * 900,
        "CHANGE MASTER TO IGNORE_SERVER_IDS = (" + "1," * 1500 + "1)",
        "SELECT UNIX_TIMESTAMP('9999-99-99'), UNIX_TIMESTAMP('" + "9" * 5000 + "')",
        "SET @a = " + "9" * 5000,
        "SET wait_timeout = " + "9" * 20,
        "KILL 99999999999999999999",
        "SELECT NOW(99999999999999999999), 1e999999, -1e999",
        "SHOW BINLOG EVENTS FROM 99999999999999999999",
        "/*!99999 " * 1000,
        "SELECT 'a'" + "'b'" * 4000,
    ],
    ids=lambda statement: statement[:40],
)
def test_extremes_are_answered_or_refused_at_once(statement: str) -> None:
    session = StatementSession(FACTS[2], 42, is_admin=True)
    with contextlib.suppress(StatementRefused):
        answer = answer_statement(statement, session, NOW, in_a_thread=True)
        if isinstance(answer, Rows):
            result_payloads(answer, session.encoding, session.status)
