"""Strangers cannot fill the log: so many lines a minute, and how many were left out."""

from relay.downstream.connection import strangers as stranger_log
from relay.downstream.connection.strangers import StrangerLog, Strangers


def test_a_minute_has_so_many_lines_and_the_next_one_says_what_was_left_out() -> None:
    log = StrangerLog()
    most = stranger_log._MOST_LINES
    assert [log.left_out(100.0) for _ in range(most + 50)] == [0] * most + [None] * 50
    assert log.left_out(159.9) is None
    assert [log.left_out(160.0) for _ in range(2)] == [51, 0]


def test_who_was_silent_longest_goes_first_and_who_talks_goes_last() -> None:
    strangers = Strangers[str](4)
    for number, name in enumerate(("a", "b", "c", "d")):
        strangers.add(number, name)
    assert strangers.is_full
    strangers.spoke(0)
    assert [strangers.pop_idlest() for _ in range(5)] == [(1, "b"), (2, "c"), (3, "d"), (0, "a"), None]
    assert not strangers.is_full


def test_who_has_logged_in_or_left_is_no_stranger_any_more() -> None:
    strangers = Strangers[str](2)
    strangers.add(1, "a")
    strangers.add(2, "b")
    strangers.spoke(2)
    strangers.discard(1)
    strangers.discard(2)
    strangers.discard(3)
    strangers.spoke(2)
    assert len(strangers) == 0
