"""Tasks, callbacks and threads that end by surprise: told once, with a traceback, and whoever depends on them is told."""

import ast
import asyncio
import contextlib
import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from relay.process.background import begin_task, guarded, run_to_end, watch_process

RELAY = Path(__file__).resolve().parents[3] / "relay"
MAKERS = {"create_task", "ensure_future", "TaskGroup"}


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as captured:
        yield captured


async def fails(error: Exception) -> None:
    raise error


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("path", sorted(RELAY.rglob("*.py")), ids=lambda path: str(path.relative_to(RELAY)))
def test_tasks_are_made_in_one_place(path: Path) -> None:
    if path.name == "background.py":
        return
    names = {
        getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "name", None)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute | ast.Name | ast.alias)
    }
    assert not names & MAKERS, (
        "relay.process.background makes them: the exception of one that is kept is never told otherwise"
    )


async def test_a_task_that_ends_by_surprise_is_told_at_once_although_it_is_kept(logs: list[Any]) -> None:
    told: list[Exception] = []
    fault = ZeroDivisionError("a bug")
    kept = begin_task(fails(fault), "looking", told.append)
    await turns()
    (line,) = logs
    assert (line["event"], line["log_level"], line["task"], line["exc_info"]) == (
        "task_failed",
        "error",
        "looking",
        fault,
    )
    assert line["what"] == "ZeroDivisionError: a bug"
    assert told == [fault] and kept.done()


async def test_a_task_that_is_cancelled_or_ends_as_expected_is_no_news(logs: list[Any]) -> None:
    waiting = begin_task(asyncio.sleep(60), "waiting", lambda _error: pytest.fail("it was cancelled"))
    expected = begin_task(fails(OSError("the disk")), "reading", expected=(OSError,))
    fine = begin_task(asyncio.sleep(0, "result"), "being fine")
    await turns()
    waiting.cancel()
    await turns()
    assert await fine == "result"
    with pytest.raises(OSError, match="the disk"):
        await expected
    assert logs == []


async def test_work_that_goes_on_without_its_caller_is_told_only_where_nobody_hears_of_it(logs: list[Any]) -> None:
    with pytest.raises(OSError, match="heard"):
        await run_to_end(fails(OSError("heard")), "purging", expected=(OSError,))
    assert logs == []
    go = asyncio.Event()
    ended: list[str] = []

    async def work(error: Exception | None) -> None:
        await go.wait()
        ended.append(str(error))
        if error is not None:
            raise error

    for error in (None, OSError("the disk"), ZeroDivisionError("a bug")):
        caller = asyncio.ensure_future(run_to_end(work(error), "purging", expected=(OSError,)))
        await turns()
        caller.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await caller
    assert ended == []
    go.set()
    await turns()
    assert ended == ["None", "the disk", "a bug"], "none of them was cancelled with its caller"
    assert [(line["log_level"], line["what"]) for line in logs] == [
        ("warning", "the disk"), ("error", "ZeroDivisionError: a bug")
    ]  # fmt: skip
    assert isinstance(logs[1]["exc_info"], ZeroDivisionError)


async def test_a_callback_that_fails_is_told_and_ends_what_depends_on_it(logs: list[Any]) -> None:
    told: list[Exception] = []
    seen: list[int] = []

    def callback(number: int) -> None:
        seen.append(1 // number)

    call = guarded(callback, "sending", told.append)
    asyncio.get_running_loop().call_soon(call, 0)
    asyncio.get_running_loop().call_soon(call, 1)
    await turns()
    assert seen == [1]
    assert [type(error) for error in told] == [ZeroDivisionError]
    assert [(line["event"], line["callback"], line["exc_info"]) for line in logs] == [
        ("callback_failed", "sending", told[0])
    ]


@pytest.fixture
async def stops() -> Any:
    stops: list[Exception] = []
    take_back = watch_process(asyncio.get_running_loop(), stops.append)
    yield stops
    take_back()


async def test_what_no_other_net_has_caught_is_in_the_log(logs: list[Any], stops: list[Exception]) -> None:
    def fail() -> None:
        raise ZeroDivisionError("a bug")

    asyncio.get_running_loop().call_soon(fail)
    await turns()
    asyncio.get_running_loop().create_task(fails(KeyError("lost")))
    await turns()
    gc.collect()
    await turns()
    assert [type(line["exc_info"]) for line in logs] == [ZeroDivisionError, KeyError]
    assert stops == []


async def test_a_thread_that_ends_by_surprise_is_told_and_whoever_needs_it(
    logs: list[Any], stops: list[Exception]
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("a bug")

    thread = threading.Thread(target=fail, name="archive-writer")
    thread.start()
    thread.join()
    async with asyncio.timeout(5):
        while not stops:
            await asyncio.sleep(0.01)
    (line,) = logs
    assert (line["event"], line["thread"]) == ("thread_failed", "archive-writer")
    assert stops == [line["exc_info"]]


async def test_the_net_is_taken_back() -> None:
    before = threading.excepthook
    watch_process(asyncio.get_running_loop(), lambda _error: None)()
    assert threading.excepthook is before
    assert asyncio.get_running_loop().get_exception_handler() is None
