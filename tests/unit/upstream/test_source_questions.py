"""Many replicas that are ahead of the relay ask the source one question, not one each."""

import asyncio
from typing import cast

import pytest

from relay.config import ServerSource
from relay.upstream.source import gtid_question
from relay.upstream.source.gtid_question import SourceQuestions
from relay.upstream.source.source_status import SourceLink


class Source:
    """Counts who asks it, and at how many a time."""

    def __init__(self) -> None:
        self.asked = self.at_once = self.most_at_once = 0

    async def answer(self, *_arguments: object) -> int:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        return self.asked


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    made = Source()
    monkeypatch.setattr(gtid_question, "_ask", made.answer)
    monkeypatch.setattr(gtid_question, "_BETWEEN_S", 0.05)
    return made


def questions() -> SourceQuestions:
    settings = ServerSource(host="db", user="repl", password="x", server_id=7)  # type: ignore[arg-type]
    return SourceQuestions(lambda: settings, cast(SourceLink, None))


async def test_all_who_ask_at_once_share_an_answer(source: Source) -> None:
    asked = questions()
    assert await asyncio.gather(*(asked.gtids() for _ in range(500))) == [1] * 500


async def test_who_asks_while_it_is_answered_has_a_newer_answer(source: Source) -> None:
    asked = questions()
    first = asyncio.create_task(asked.gtids())
    await asyncio.sleep(0.005)
    later = [asyncio.create_task(asked.gtids()) for _ in range(3)]
    assert (await first, [await one for one in later]) == (1, [2, 2, 2])
    assert source.most_at_once == 1


async def test_a_while_passes_between_two_questions(source: Source) -> None:
    asked = questions()
    clock = asyncio.get_running_loop().time
    await asked.gtids()
    began = clock()
    await asked.gtids()
    assert clock() - began >= 0.05


async def test_who_leaves_takes_the_answer_from_nobody(source: Source) -> None:
    asked = questions()
    leaving, staying = (asyncio.create_task(asked.gtids()) for _ in range(2))
    await asyncio.sleep(0.005)
    leaving.cancel()
    assert await staying == 1


async def test_a_question_that_fails_is_told_and_the_next_one_is_asked(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = questions()

    async def fail(*_arguments: object) -> int:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(gtid_question, "_ask", fail)
        with pytest.raises(ZeroDivisionError):
            await asked.gtids()
    assert await asked.gtids() == 1
