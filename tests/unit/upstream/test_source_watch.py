"""The source's variables are looked at again with each new file of the stream, and now and then."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pymysql.err
import pytest
import structlog.testing

from protocol.gtid.gtid_set import GtidSet
from relay.upstream.source import source_watch
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_gtids import SourceGtids
from relay.upstream.source.source_status import SourceLink
from relay.upstream.source.source_watch import SourceWatch


class Source:
    """Connections that answer with the next mode, or fail with it."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.opened = self.closed = 0
        self.purged = ""
        self.settings: dict[str, str] | pymysql.err.MySQLError = {}

    async def open(self) -> Any:
        self.opened += 1
        return self

    async def variable(self, name: str) -> str | None:
        if name == "gtid_purged":
            return self.purged
        if name != "gtid_mode":
            return {"gtid_domain_id": "7", "gtid_strict_mode": "1"}[name]
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def variables(self, names: Sequence[str]) -> dict[str, str]:
        if isinstance(self.settings, Exception):
            raise self.settings
        return {name: text for name, text in self.settings.items() if name in names}

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(source_watch, "_PAUSE_S", 0.0)
    yield


async def file_begun(watch: SourceWatch, source: Source, count: int) -> None:
    """A file begins, the `count`th; returns when it was looked, and what was seen is taken."""
    watch.file_begins()
    async with asyncio.timeout(5):
        while source.closed < count:
            await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)


async def looked(source: Source) -> tuple[str | None, int]:
    """One file begins for each answer; the mode afterwards, and how often it was news."""
    link, news = SourceLink(), 0
    link.gtids = SourceGtids("OFF")

    async def changed() -> None:
        nonlocal news
        news += 1

    watch = SourceWatch(source.open, link, changed)
    for count in range(1, len(source.answers) + 1):
        await file_begun(watch, source, count)
    watch.close()
    return link.gtids.mode, news


async def test_each_file_is_an_occasion_to_see_another_mode() -> None:
    source = Source("OFF", "OFF_PERMISSIVE", "OFF_PERMISSIVE", "ON_PERMISSIVE")
    assert await looked(source) == ("ON_PERMISSIVE", 2)
    assert source.opened == source.closed == 4


async def test_a_look_that_fails_leaves_the_mode_and_the_next_one_sees_it() -> None:
    assert await looked(Source(UpstreamError(FailureKind.NETWORK, "gone"), "ON")) == ("ON", 1)


async def test_what_changes_without_a_new_file_is_looked_at_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_watch, "_LOOK_EVERY_S", 0.01)
    for known, name, wanted in (
        (SourceGtids("ON"), "purged", GtidSet.from_text("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7")),
        (SourceGtids(None), "domain_id", 7),
        (SourceGtids(None), "strict_mode", True),
    ):
        source, link = Source(*["ON"] * 1000), SourceLink()
        source.purged = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7"
        link.gtids = known
        changed = asyncio.Event()

        async def on_changed(changed: asyncio.Event = changed) -> None:
            changed.set()

        watch = SourceWatch(source.open, link, on_changed)
        async with asyncio.timeout(5):
            await changed.wait()
        watch.close()
        assert getattr(link.gtids, name) == wanted
        assert source.opened == source.closed


async def test_a_fault_of_our_own_is_told_once_and_the_next_look_comes_all_the_same() -> None:
    faults = [ZeroDivisionError("a bug"), ZeroDivisionError("a bug")]
    with structlog.testing.capture_logs() as logs:
        assert await looked(Source(*faults, "ON", KeyError("another"), "OFF")) == ("OFF", 2)
    told = [line for line in logs if line["log_level"] == "error"]
    assert [(line["event"], line["exc_info"]) for line in told[:1]] == [("source_watch_failed", faults[0])]
    assert [line["what"] for line in told] == ["ZeroDivisionError: a bug", "KeyError: 'another'"]
    assert "gtid_purged" in told[0]["stale"]


async def test_a_fault_in_what_is_done_with_another_mode_does_not_end_the_looks() -> None:
    link, source, calls = SourceLink(), Source("ON", "ON_PERMISSIVE"), 0
    link.gtids = SourceGtids("OFF")

    async def changed() -> None:
        nonlocal calls
        calls += 1
        raise ZeroDivisionError("a bug")

    watch = SourceWatch(source.open, link, changed)
    with structlog.testing.capture_logs() as logs:
        for count in (1, 2):
            watch.file_begins()
            async with asyncio.timeout(5):
                while calls < count:
                    await asyncio.sleep(0)
            await asyncio.sleep(0.01)
    watch.close()
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["source_watch_failed"]


async def test_how_rows_are_logged_is_looked_at_too_and_a_refusal_leaves_what_is_known() -> None:
    source, link, news = Source(*["ON"] * 3), SourceLink(), 0
    link.gtids, link.settings = SourceGtids("ON"), {"binlog_format": "MIXED"}
    source.settings = {"binlog_format": "ROW", "binlog_row_metadata": "FULL", "datadir": "/not/asked"}

    async def changed() -> None:
        nonlocal news
        news += 1

    watch = SourceWatch(source.open, link, changed)
    for count, refused in ((1, False), (2, False), (3, True)):
        if refused:
            source.settings = pymysql.err.OperationalError(1227, "Access denied")
        await file_begun(watch, source, count)
    watch.close()
    assert (link.settings, news) == ({"binlog_format": "ROW", "binlog_row_metadata": "FULL"}, 1)
