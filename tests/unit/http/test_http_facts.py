"""What the HTTP port gathers and keeps: bounded, and right at its edges."""

import math

import pytest

from relay.archive.storage.archived_file import ArchivedFile
from relay.http.bearer_token import BearerToken
from relay.http.facts.archive_distances import FileStarts
from relay.http.facts.history import COLUMNS, History, HistorySample, SampleRing
from relay.http.host_check import HostCheck, asked_name
from relay.http.query_parameters import QueryParameters, Unanswerable
from relay.process.duration_histogram import DurationHistogram


def archived_file(number: int, end: int) -> ArchivedFile:
    return ArchivedFile(f"mysql-bin.{number:06d}", number, end, True, 0, "5.6.24", 1, 1, "mysql")


def sample(value: float) -> HistorySample:
    return HistorySample(**dict.fromkeys(COLUMNS, value))


def test_a_duration_is_counted_in_its_class_and_all_longer_ones() -> None:
    times = DurationHistogram((0.1, 1.0))
    for seconds in (0.1, 0.5, 7.0):
        times.observe(seconds)
    assert times.cumulative() == [(0.1, 1), (1.0, 2), (math.inf, 3)]
    assert (times.count, times.sum_s) == (3, pytest.approx(7.6))
    assert (times.take_longest(), times.take_longest()) == (7.0, 0.0)


@pytest.mark.parametrize(
    ("header", "is_let_in"),
    [(None, False), ("", False), ("Bearer right", True), ("bearer  right ", True), ("Basic right", False), ("Bearer rightx", False),
     ("Bearer \udcff", False)],
)  # fmt: skip
def test_only_the_right_token_is_let_in(header: str | None, is_let_in: bool) -> None:
    assert BearerToken("right").lets_in(header) is is_let_in
    assert BearerToken(None).lets_in(header)


def test_a_ring_keeps_the_newest_samples_in_order() -> None:
    ring = SampleRing(5, 3)
    for number in range(5):
        ring.add(float(number), sample(math.nan if number == 3 else float(number)))
    times, columns = ring.columns()
    assert times == [2.0, 3.0, 4.0]
    assert columns["source_behind_s"] == [2.0, None, 4.0]


def test_a_minute_has_the_mean_of_rates_and_the_worst_of_lags() -> None:
    history = History()
    for number in range(12):
        history.add(float(number * 5), float(number * 5), sample(float(number)), number * 500)
    _times, columns = history.coarse.columns()
    assert columns["received_bytes_per_s"] == [5.5]
    assert columns["source_behind_s"] == [11.0]
    assert history.growth.bytes_per_s == 100.0


def test_the_growth_of_less_than_half_a_minute_says_nothing() -> None:
    history = History()
    history.add(0.0, 0.0, sample(0.0), 0)
    history.add(5.0, 5.0, sample(0.0), 10**9)
    assert history.growth.bytes_per_s == 0.0


def test_files_that_come_and_go_keep_their_distances() -> None:
    files = [archived_file(number, 100) for number in range(1, 6)]
    starts = FileStarts()
    starts.follow(files)
    assert [starts.place_of(number) for number in (1, 3, 5, 6)] == [0, 200, 400, None]
    starts.follow(files[2:])
    assert [starts.place_of(number) for number in (1, 3, 5)] == [200, 200, 400]
    files.append(archived_file(6, 7))
    starts.follow(files[2:])
    assert starts.place_of(6) == 500
    starts.follow(files)  # a purge that failed put them back
    assert starts.place_of(6) == 500


@pytest.mark.parametrize("text", ["-1", "1001", "", "x", "1" * 30, "\u0661"])
def test_a_number_out_of_bounds_is_refused_by_name(text: str) -> None:
    with pytest.raises(Unanswerable) as refused:
        QueryParameters({"limit": text}, ("limit",)).whole("limit", 100, 1, 1000)
    assert refused.value.status == 400 and "limit" in refused.value.text


@pytest.mark.parametrize(
    ("header", "name"),
    [("a.example", "a.example"), ("A.Example.:80", "a.example"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("a:b", None), ("a:8:8", None),
     ("[::1]x", None), ("[::1", None), (":80", None), ("", None), ("a" * 256, None)],
)  # fmt: skip
def test_the_name_that_was_asked_for_is_read_from_the_header(header: str, name: str | None) -> None:
    assert asked_name(header) == name


def test_the_name_at_which_it_listens_is_one_of_its_names() -> None:
    assert HostCheck("127.0.0.9", ()).lets_in(["127.0.0.9:9307"])
    assert HostCheck("::1", ()).lets_in(["[::1]:9307"])
    assert HostCheck("localhost", ["[fd00::7]"]).lets_in(["[fd00::7]"])
    assert HostCheck("relay.example", ["other.example"]).lets_in(["relay.example"])
    assert not HostCheck("::1", ()).lets_in(["localhost", "rebound.example"])
