"""Seconds_Behind: what a monitor is told while events come, when they stop, and when they stall."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from relay.admin import lag as lag_module
from relay.admin.lag import Lag
from relay.archive.storage.archived_file import ArchivedFile
from tests.support.console_fakes import FOLLOWING

AT_END = replace(FOLLOWING, received_offset=800)


class Growing:
    """An archive whose newest event has a certain age."""

    def __init__(self) -> None:
        self.file = ArchivedFile("mysql-bin.000001", 1, 800, False, 0, "5.6.24", 1, 1, "mysql")
        self.files = [self.file]
        self.current = self
        self.heartbeats = 0
        self.grew: Callable[[], None] | None = None

    def watch(self, callback: Callable[[], None]) -> None:
        self.grew = callback

    def unwatch(self, callback: Callable[[], None]) -> None:
        self.grew = None

    def grow(self, age_s: int) -> None:
        self.file.last_timestamp = int(time.time()) - age_s
        assert self.grew is not None
        self.grew()


@pytest.fixture
def archive() -> Growing:
    return Growing()


@pytest.fixture
def lag(archive: Growing) -> Lag:
    return Lag(archive, lambda: archive.heartbeats)


def behind(lag: Lag, archive: Growing, **changes: object) -> int | None:
    status = replace(AT_END, last_event_timestamp=archive.file.last_timestamp, **changes)  # type: ignore[arg-type]
    return lag.seconds_behind(status)


def test_while_events_come_it_is_their_age(lag: Lag, archive: Growing) -> None:
    archive.grow(30)
    assert behind(lag, archive) in (30, 31)


def test_a_live_stream_that_falls_silent_is_up_to_date(
    lag: Lag, archive: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.grow(30)
    monkeypatch.setattr(lag_module, "IDLE_S", -1.0)
    assert behind(lag, archive) == 0


def test_old_events_that_stop_coming_are_a_stall_until_a_heartbeat_says_otherwise(
    lag: Lag, archive: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.grow(3600)
    monkeypatch.setattr(lag_module, "IDLE_S", -1.0)
    assert behind(lag, archive) in (3600, 3601)
    archive.heartbeats += 1
    assert behind(lag, archive) == 0


def test_a_directory_sends_no_heartbeats(lag: Lag, archive: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.grow(3600)
    monkeypatch.setattr(lag_module, "IDLE_S", -1.0)
    assert behind(lag, archive, kind="directory") == 0


def test_half_a_transaction_is_not_everything(lag: Lag, archive: Growing) -> None:
    archive.grow(30)
    archive.heartbeats += 1
    assert behind(lag, archive, received_offset=900) in (30, 31)


def test_without_a_stream_nobody_knows(lag: Lag, archive: Growing) -> None:
    archive.grow(30)
    assert behind(lag, archive, io_running="Connecting") is None


def test_an_archive_that_has_not_grown_since_the_start_is_up_to_date(lag: Lag, archive: Growing) -> None:
    archive.file.last_timestamp = int(time.time()) - 3600
    assert behind(lag, archive) == 0


def test_right_after_an_attach_nobody_knows_until_something_came(lag: Lag, archive: Growing) -> None:
    archive.grow(30)
    attached = {"attached_at": time.time(), "stream_heartbeats": 0}
    archive.heartbeats += 1  # of the stream before
    assert behind(lag, archive, **attached) is None
    assert behind(lag, archive, **attached | {"stream_heartbeats": 1}) == 0
    assert behind(lag, archive, **attached, kind="directory") == 0
    archive.grow(20)
    assert behind(lag, archive, **attached) in (20, 21)


def test_a_new_stream_that_stays_silent_is_up_to_date(lag: Lag, archive: Growing) -> None:
    archive.grow(30)
    archive.heartbeats += 1
    assert behind(lag, archive, attached_at=time.time() - lag_module.IDLE_S - 0.1, stream_heartbeats=0) == 0
