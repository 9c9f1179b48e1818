"""The source's GTID_MODE is looked at again with each new file of the stream."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from relay.upstream import gtid_watch
from relay.upstream.errors import Trouble, UpstreamError
from relay.upstream.gtid_watch import GtidWatch
from relay.upstream.source_gtids import SourceGtids
from relay.upstream.status import SourceLink


class Source:
    """Connections that answer with the next mode, or fail with it."""

    def __init__(self, *answers: str | UpstreamError) -> None:
        self.answers = list(answers)
        self.opened = self.closed = 0

    async def open(self) -> Any:
        self.opened += 1
        return self

    async def variable(self, name: str) -> str | None:
        assert name == "gtid_mode"
        answer = self.answers.pop(0)
        if isinstance(answer, UpstreamError):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(gtid_watch, "_PAUSE_S", 0.0)
    yield


async def looked(source: Source) -> tuple[str | None, int]:
    """One file begins for each answer; the mode afterwards, and how often it was news."""
    link, news = SourceLink(), 0
    link.gtids = SourceGtids("OFF")

    async def changed() -> None:
        nonlocal news
        news += 1

    watch = GtidWatch(source.open, link, changed)
    for count in range(1, len(source.answers) + 1):
        watch.file_begins()
        async with asyncio.timeout(5):
            while source.closed < count:
                await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
    watch.close()
    return link.gtids.mode, news


async def test_each_file_is_an_occasion_to_see_another_mode() -> None:
    source = Source("OFF", "OFF_PERMISSIVE", "OFF_PERMISSIVE", "ON_PERMISSIVE")
    assert await looked(source) == ("ON_PERMISSIVE", 2)
    assert source.opened == source.closed == 4


async def test_a_look_that_fails_leaves_the_mode_and_the_next_one_sees_it() -> None:
    assert await looked(Source(UpstreamError(Trouble.NETWORK, "gone"), "ON")) == ("ON", 1)
