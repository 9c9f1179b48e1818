"""Strangers cannot fill the log: so many lines a minute, and how many were left out."""

from relay.downstream.connection import strangers as stranger_log
from relay.downstream.connection.strangers import StrangerLog


def test_a_minute_has_so_many_lines_and_the_next_one_says_what_was_left_out() -> None:
    log = StrangerLog()
    most = stranger_log._MOST_LINES
    assert [log.left_out(100.0) for _ in range(most + 50)] == [0] * most + [None] * 50
    assert log.left_out(159.9) is None
    assert [log.left_out(160.0) for _ in range(2)] == [51, 0]
