"""The tool that measures how long the event loop is held counts processor time of its thread, callback by callback."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.support.free_port import free_port
from tests.support.loop_holds import LIMIT_S, loop_watched
from tests.support.relay_process import RelayProcess

RECORDED = Path(__file__).resolve().parents[3] / "deploy" / "recorded"


def burn(seconds: float) -> None:
    """Works for so much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def test_work_on_the_loop_is_found_with_its_callback() -> None:
    with loop_watched() as holds:
        asyncio.get_running_loop().call_soon(burn, LIMIT_S * 1.5)
        await asyncio.sleep(0.01)
    assert LIMIT_S * 1.5 <= holds.longest.cpu_s < LIMIT_S * 4
    assert "burn" in holds.longest.callback
    with pytest.raises(AssertionError, match="burn"):
        holds.check()


async def test_waiting_and_work_in_a_thread_are_none() -> None:
    with loop_watched() as holds:
        asyncio.get_running_loop().call_soon(time.sleep, LIMIT_S * 1.5)
        await asyncio.to_thread(burn, LIMIT_S * 1.5)
    holds.check()


@pytest.mark.parametrize("forked", [True, False])
def test_a_relay_tells_its_holds_since_it_listens(tmp_path: Path, forked: bool) -> None:
    open_files = None if forked else 1024  # a limit of its own makes it a process of its own
    with RelayProcess(tmp_path, RECORDED, port=free_port(), watch_loop=True, open_files=open_files) as relay:
        assert (tmp_path / "loop_holds.jsonl").exists()
        relay.sql("SHOW VARIABLES")
        relay.loop_holds().check(1.0)
        told = [line for line in relay.log_lines() if line["event"] == "event_loop"]
        assert told and told[0]["loop"] == "asyncio"
