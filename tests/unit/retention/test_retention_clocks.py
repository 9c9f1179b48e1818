"""Clocks that jump, times of events that are wrong, and how much may go by age at once."""

from structlog.testing import capture_logs

from relay.archive.storage.archived_file import ArchivedFile
from relay.retention.age_purge_rate import AgePurgeRate
from relay.retention.file_times import held_files_of
from relay.retention.retention_clock import BELIEVED_AFTER_S, RetentionClock

DAY = 86400.0


class Clocks:
    wall = 1_700_000_000.0
    steady = 50.0

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    def clock(self) -> RetentionClock:
        return RetentionClock(lambda: self.wall, lambda: self.steady)


def a_file(number: int, first: int, last: int) -> ArchivedFile:
    name = f"mysql-bin.{number:06d}"
    return ArchivedFile(name, number, 1000, True, first, "5.6.24", 1, 1, "mysql", first, last)


def test_a_clock_that_goes_on_is_believed() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    clocks.passes(3 * DAY)
    clocks.wall += 200  # NTP
    assert (clock.now(), clock.disbelieved_s) == (clocks.wall, 0.0)


def test_a_jump_is_named_once_and_not_believed_for_a_day() -> None:
    for by_s in (400 * DAY, -400 * DAY):
        clocks = Clocks()
        clock = clocks.clock()
        right = clocks.wall
        clocks.wall += by_s
        with capture_logs() as logs:
            assert clock.now() == right
            clocks.passes(BELIEVED_AFTER_S - 10)
            assert clock.now() == right + BELIEVED_AFTER_S - 10
            assert round(clock.disbelieved_s) == by_s
            clocks.passes(20)
            assert clock.now() in (clocks.wall, right + BELIEVED_AFTER_S + 10)
            assert clock.now() == clocks.wall
        assert [line["event"] for line in logs] == ["retention_clock_jumped", "retention_clock_believed"]


def test_a_clock_that_is_set_right_again_is_believed_at_once() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    clocks.wall += 400 * DAY
    clock.now()
    clocks.wall -= 400 * DAY
    with capture_logs() as logs:
        assert clock.now() == clocks.wall
    assert [line["event"] for line in logs] == ["retention_clock_right_again"]


def test_events_of_the_future_end_when_the_next_file_begins() -> None:
    files = [a_file(1, 100, 9_000_000), a_file(2, 200, 300), a_file(3, 9_000_000, 9_000_001)]
    assert [file.time for file in held_files_of([(1, files)], 1000.0)] == [200, 300, 1000]


def test_a_file_is_never_older_than_the_one_before() -> None:
    files = [a_file(1, 100, 500), a_file(2, 5, 6), a_file(3, 600, 700)]
    assert [file.time for file in held_files_of([(1, files)], 1000.0)] == [500, 500, 700]


def test_an_archive_is_emptied_by_age_in_a_tenth_of_the_time_that_it_kept() -> None:
    pace, total, gone, seconds = AgePurgeRate(), 1000, 0.0, 0
    keep_for_s = 30 * DAY
    while gone < 0.9 * total:
        allowed = pace.allowance(total, keep_for_s, 600.0)
        pace.used(int(allowed), total)
        gone += int(allowed)
        seconds += 600
    assert 0.07 * keep_for_s < seconds < 0.1 * keep_for_s


def test_a_file_that_is_more_than_was_allowed_is_paid_for() -> None:
    pace = AgePurgeRate()
    assert pace.allowance(1000, 36000.0, 0.0) == 100
    pace.used(500, 1000)
    assert pace.allowance(1000, 36000.0, 1000.0) == 0
    assert pace.allowance(1000, 36000.0, 1000.0) > 0
