"""When another source is taken, and when the others are only looked at."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog.testing
from pydantic import SecretStr

from relay.config import ServerSource
from relay.config.sections import FailoverMode
from relay.upstream import failover
from relay.upstream.failover import Failover
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_status import SourceLink

UNREACHABLE = UpstreamError(FailureKind.NETWORK, "the source db1:3306 cannot be reached")
REFUSES = UpstreamError(FailureKind.IDENTITY, "it lacks transactions", name="source_lacks_transactions")


def source(host: str) -> ServerSource:
    return ServerSource(host=host, port=3306, user="u", password=SecretStr("p"), server_id=4242)


FIRST, SECOND, THIRD = map(source, ("db1", "db2", "db3"))


class Looking:
    """A failover that looks all the time; `db2` would do, once it is asked `good_after` times."""

    def __init__(self, mode: FailoverMode, good_after: int = 0) -> None:
        self.link = SourceLink()
        self.taken: list[str] = []
        self.asked = 0
        self._good_after = good_after
        self.failover = Failover([FIRST, SECOND, THIRD], mode, 0.02, self.link, self._examine, self._take)

    async def _examine(self, source: ServerSource) -> str:
        if source.host == "db3":
            raise UpstreamError(FailureKind.NETWORK, "db3 does not answer")
        self.asked += 1
        if self.asked <= self._good_after:
            raise UpstreamError(FailureKind.IDENTITY, "db2 is behind")
        return "with a new generation"

    async def _take(self, source: ServerSource, why: str) -> None:
        self.taken.append(source.host)
        self.link.connecting()
        self.link.unreachable_since = None


@contextlib.asynccontextmanager
async def looking(made: Looking, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Any]]:
    monkeypatch.setattr(failover, "_LOOK_S", 0.005)
    monkeypatch.setattr(failover, "_AGAIN_S", 0.01)
    with structlog.testing.capture_logs() as logs:
        task = asyncio.create_task(made.failover.run(lambda: FIRST))
        yield logs
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()


async def until(made: Looking, asked: int) -> None:
    deadline = time.monotonic() + 10
    while made.asked < asked and not made.taken:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.02)


async def test_one_that_would_do_is_taken_in_place_of_one_that_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Looking("automatic", good_after=2)
    async with looking(made, monkeypatch):
        made.link.lost(UNREACHABLE, final=False)
        await until(made, 3)
    assert made.taken == ["db2"]


@pytest.mark.parametrize("mode", ["manual", "automatic"])
async def test_a_source_that_refuses_for_good_is_not_left_and_who_would_do_is_said_once(
    monkeypatch: pytest.MonkeyPatch, mode: FailoverMode
) -> None:
    made = Looking(mode)
    async with looking(made, monkeypatch) as logs:
        made.link.lost(REFUSES, final=True)
        made.link.stopped()
        await until(made, 4)
    assert made.taken == []
    (line,) = logs
    assert (line["event"], line["given_up"], line["why"], line["what"]) == (
        "source_candidates", "db1:3306", "source_lacks_transactions", "it lacks transactions"
    )  # fmt: skip
    assert line["verdicts"]["db2:3306"] == "would do: with a new generation"
    assert "is not left by itself" in line["advice"] and "SOURCE_HOST='db2'" in line["advice"]
    assert "STOP REPLICA" not in line["advice"], "it does not run"


async def test_it_is_said_again_when_another_one_would_do_and_no_more_once_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Looking("manual", good_after=3)
    async with looking(made, monkeypatch) as logs:
        made.link.lost(REFUSES, final=True)
        await until(made, 6)
        made.link.connecting()
        asked = made.asked
        await asyncio.sleep(0.1)
        assert made.asked <= asked + 1
    verdicts = [line["verdicts"]["db2:3306"] for line in logs]
    assert verdicts == ["would not do: db2 is behind", "would do: with a new generation"]


async def test_a_followed_source_that_answers_in_another_protocol_is_not_said_to_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    what = "db1:3306 answers with something that is not the MySQL protocol: its first packet has the number 80, not 0"
    garbage = UpstreamError(FailureKind.SETUP, what, "Check source.host and source.port.", name="not_mysql_protocol")
    made = Looking("automatic")
    async with looking(made, monkeypatch) as logs:
        made.link.lost(garbage, final=True)
        await until(made, 2)
    (line,) = logs
    assert (line["given_up"], line["why"], line["what"]) == ("db1:3306", "not_mysql_protocol", what)
    assert "refuse" not in str(line)
    assert "is not left by itself. Check source.host and source.port. To go over to db2:3306: " in line["advice"]


async def test_an_unreachable_source_is_told_with_what_happened_last(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Looking("manual")
    async with looking(made, monkeypatch) as logs:
        made.link.lost(UNREACHABLE, final=False)
        await until(made, 2)
    assert (logs[0]["unreachable"], logs[0]["what"]) == ("db1:3306", UNREACHABLE.what)
    assert logs[0]["advice"].startswith("To go over to db2:3306: STOP REPLICA; ")
