"""Replicas that wait at the end of an ended generation share one search for the same place in the newest."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from protocol.errors import Malformed
from protocol.position import Position
from relay.archive.archive import Archive
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.start import place_after
from relay.downstream.start.place_after import PlaceSearches
from relay.downstream.start.same_place import SamePlace
from tests.support.generation_filling import two_generations

FOUND = SamePlace(Position("mysql-bin.000002", 4))


class Looks:
    """Stands in the place of the look itself: what the source is to deliver comes when `answer` is set."""

    def __init__(self) -> None:
        self.count = 0
        self.answer: SamePlace | Exception | None = None

    def __call__(self, *_asked: object) -> SamePlace | None:
        self.count += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def more_than(self, count: int) -> None:
        async with asyncio.timeout(10):
            while self.count <= count:
                await asyncio.sleep(0.005)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    looks = Looks()
    monkeypatch.setattr(place_after, "same_place", looks)
    monkeypatch.setattr(place_after, "_AGAIN_S", 0.03)
    return looks


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncIterator[Archive]:
    archive = await two_generations(tmp_path)
    yield archive
    await archive.close()


@pytest.fixture
def searches(archive: Archive) -> Iterator[PlaceSearches]:
    gtids = GtidLookup(archive)
    yield PlaceSearches(archive, gtids)
    gtids.shutdown()


async def test_many_that_wait_ask_no_more_than_one_does(
    archive: Archive, searches: PlaceSearches, looks: Looks
) -> None:
    ended = archive.all[0]
    waiting = [asyncio.create_task(searches.find(ended)) for _ in range(100)]
    await looks.more_than(2)
    assert looks.count < 20
    before = looks.count
    looks.answer = FOUND
    assert await asyncio.wait_for(asyncio.gather(*waiting), 10) == [FOUND] * 100
    assert looks.count <= before + 2


async def test_one_that_leaves_takes_the_search_from_nobody_and_the_last_one_ends_it(
    archive: Archive, searches: PlaceSearches, looks: Looks
) -> None:
    ended = archive.all[0]
    first, second = (asyncio.create_task(searches.find(ended)) for _ in range(2))
    await looks.more_than(0)
    first.cancel()
    await looks.more_than(looks.count)
    second.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await second
    await asyncio.sleep(0.03)
    count = looks.count
    await asyncio.sleep(0.15)
    assert looks.count == count
    looks.answer = FOUND
    assert await asyncio.wait_for(searches.find(ended), 10) == FOUND


async def test_an_archive_that_cannot_be_read_is_an_error_for_all_and_the_next_one_asks_anew(
    archive: Archive, searches: PlaceSearches, looks: Looks
) -> None:
    ended = archive.all[0]
    looks.answer = Malformed("of a test")
    failed = await asyncio.gather(searches.find(ended), searches.find(ended), return_exceptions=True)
    assert [str(error) for error in failed] == ["of a test"] * 2
    assert looks.count == 1
    looks.answer = FOUND
    assert await asyncio.wait_for(searches.find(ended), 10) == FOUND
