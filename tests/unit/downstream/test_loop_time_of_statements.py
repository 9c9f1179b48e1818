"""The event loop never has a statement for long: not among the tests of protocol/, which run traced and so take four times as long."""

import contextlib
import time

import pytest

from protocol.errors import StatementRefused
from protocol.statements import TooMuchForTheLoop, answer_statement
from tests.support.costly_commands import QUERY, costly_commands, session_of_long_variables

ON_THE_LOOP_S = 0.020


@pytest.mark.parametrize("name", [name for name, command in costly_commands().items() if command[:1] == QUERY])
def test_the_dearest_statements_are_a_few_milliseconds_of_the_loop(name: str) -> None:
    session, text = session_of_long_variables(), costly_commands()[name][1:].decode("latin-1")
    took_s = []
    for _ in range(2):  # the first also fills caches of patterns
        begin = time.thread_time()
        with contextlib.suppress(TooMuchForTheLoop, StatementRefused):
            answer_statement(text, session, 0.0)
        took_s.append(time.thread_time() - begin)
    assert min(took_s) < ON_THE_LOOP_S
