"""Nobody can fill the log: so many lines a minute, and how many were left out."""

from relay.downstream.connection import line_bounds
from relay.downstream.connection.line_bounds import LineBounds


def test_a_minute_has_so_many_lines_and_the_next_one_says_what_was_left_out() -> None:
    log = LineBounds()
    most = line_bounds._MOST_LINES
    assert [log.left_out(100.0) for _ in range(most + 50)] == [0] * most + [None] * 50
    assert log.left_out(159.9) is None
    assert [log.left_out(160.0) for _ in range(2)] == [51, 0]


def test_an_account_that_is_told_often_takes_no_lines_of_another_one() -> None:
    log = LineBounds()
    most = line_bounds._MOST_LINES
    assert [log.left_out(100.0, "noisy") for _ in range(most + 1)][-1] is None
    assert (log.left_out(100.0, "quiet"), log.left_out(100.0)) == (0, 0)
