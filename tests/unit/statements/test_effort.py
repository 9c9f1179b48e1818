"""A statement's work is counted: little is done at once, more in a thread, and too much is refused."""

import time

import pytest

from protocol.errors import StatementRefused
from protocol.resultset import Rows
from protocol.source_side.statement_apart import StatementApart
from protocol.statements import SourceFacts, StatementSession, TooMuchForTheLoop, answer_statement
from protocol.statements.expression.like import matches_like
from protocol.statements.expression.regexp import Regexp
from tests.support.costly_commands import session_of_long_variables

MYSQL = SourceFacts("mysql", "5.7.44-log", 3, "uuid", "CRC32")
MANY_GTIDS = "GTID_SUBSET(CONCAT(@v0,@v1,@v1,@v1),@v0)"


def test_what_is_too_much_for_the_loop_is_answered_in_a_thread() -> None:
    session = StatementSession(MYSQL, 1)
    text = "SELECT '" + "x" * 60_000 + "'"
    with pytest.raises(TooMuchForTheLoop):
        answer_statement(text, session, 0.0)
    answer = StatementApart(text, session, 0.0).run()
    assert isinstance(answer, Rows) and answer.rows == (("x" * 60_000,),)


def test_what_is_too_much_for_a_thread_is_refused_by_name() -> None:
    with pytest.raises(StatementRefused, match="steps") as caught:
        StatementApart(f"SELECT {','.join([MANY_GTIDS] * 50)}", session_of_long_variables(), 0.0).run()
    assert caught.value.number == 1104


def test_what_a_thread_has_set_is_there_when_it_is_answered() -> None:
    session = StatementSession(MYSQL, 1)
    text = "SET /*" + " " * 60_000 + "*/ @a = 7, time_zone = '+02:00', NAMES latin1"
    with pytest.raises(TooMuchForTheLoop):
        answer_statement(text, session, 0.0)
    apart = StatementApart(text, session, 0.0)
    apart.run()
    assert not session.user_variables and not session.system_variables
    apart.take_over(session)
    assert session.user_variables == {"a": 7} and session.system_variables == {"time_zone": "+02:00"}
    assert session.encoding.charset.name == "latin1"


@pytest.mark.parametrize("statement", ["KILL 7", "SELECT GET_LOCK('a', 1)"])
def test_what_acts_at_once_is_not_done_in_a_thread(statement: str) -> None:
    with pytest.raises(StatementRefused) as caught:
        StatementApart(statement, StatementSession(MYSQL, 1), 0.0).run()
    assert caught.value.number == 1104


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("sql_mode", "STRICT_TRANS_TABLES,no_zero_date", True),
        ("sql_mode", ",ANSI", True),
        ("sql_mode", "1436549152", True),
        ("sql_mode", "NO_SUCH_MODE", False),
        ("sql_mode", "ANSI," * 200, False),
        ("lc_time_names", "de_DE", True),
        ("lc_time_names", "d" * 513, False),
        ("tx_isolation", "repeatable-read", True),
        ("tx_isolation", "none", False),
        ("binlog_format", "row", True),
        ("binlog_format", "column", False),
    ],
)
def test_session_variables_take_what_servers_take(name: str, value: str, taken: bool) -> None:
    session = StatementSession(MYSQL, 1)
    if taken:
        answer_statement(f"SET SESSION {name} = '{value}'", session, 0.0)
        assert session.system_variables[name] == value
    else:
        with pytest.raises(StatementRefused) as caught:
            answer_statement(f"SET SESSION {name} = '{value}'", session, 0.0)
        assert caught.value.number == 1231


def test_patterns_take_time_that_grows_with_text_and_pattern_only() -> None:
    begin = time.thread_time()
    assert not matches_like("a" * 16000, "%a" * 60 + "b")
    assert not Regexp("a?" * 127 + "b").is_in("a" * 4096)
    assert time.thread_time() - begin < 1
