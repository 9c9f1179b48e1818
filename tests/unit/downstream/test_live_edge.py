"""What a stream does that has sent all there is: heartbeats, and finding out when its replica has stored everything."""

import asyncio
from collections.abc import Callable

import pytest
import structlog.testing

from protocol.errors import AnsweredError
from protocol.position import Position
from relay.downstream.stream import live_edge
from relay.downstream.stream.live_edge import LiveEdge


class Stream:
    """At rest at one place, with a replica that has read all but `unread` bytes."""

    def __init__(self, unread: int | None = 0) -> None:
        self.position = Position("mysql-bin.000001", 1000)
        self.is_at_rest = True
        self.waits_for_store = False
        self.shortest_silence_s = 0.0
        self.unread = unread
        self.made = 0
        self.heartbeats: list[bytes] = []
        self.on_heartbeat: Callable[[], None] = lambda: None
        self.has_heartbeat = True
        self.failures: list[AnsweredError] = []

    def unread_bytes(self) -> int | None:
        return self.unread

    def heartbeat(self) -> bytes | None:
        self.made += 1
        return f"at {self.position.offset}".encode() if self.has_heartbeat else None

    def fail(self, error: AnsweredError) -> None:
        self.failures.append(error)

    def send_heartbeat(self, event: bytes) -> None:
        self.heartbeats.append(event)
        self.on_heartbeat()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


async def test_heartbeats_come_once_a_period() -> None:
    stream = Stream()
    times: list[float] = []
    stream.on_heartbeat = lambda: times.append(asyncio.get_running_loop().time())
    edge = LiveEdge(stream, heartbeat_s=0.02, settles=False)
    edge.wait()
    await until(lambda: len(times) == 5)
    edge.close()
    assert times[-1] - times[0] >= 4 * 0.019


# uvloop's clock has whole milliseconds.
_CLOCK_S = 0.001


async def test_heartbeats_come_no_more_often_than_the_loop_has_time_for() -> None:
    stream = Stream()
    stream.shortest_silence_s = 0.05
    edge = LiveEdge(stream, heartbeat_s=0.001, settles=False)
    begin = asyncio.get_running_loop().time()
    edge.wait()
    await until(lambda: len(stream.heartbeats) == 3)
    edge.close()
    assert asyncio.get_running_loop().time() - begin >= 3 * (0.05 - _CLOCK_S)


async def test_a_heartbeat_for_one_place_is_made_once() -> None:
    stream = Stream()
    edge = LiveEdge(stream, heartbeat_s=0.001, settles=False)
    edge.wait()
    await until(lambda: len(stream.heartbeats) >= 5)
    assert stream.made == 1
    stream.position = Position("mysql-bin.000001", 2000)
    await until(lambda: stream.heartbeats[-1] == b"at 2000")
    edge.close()
    assert stream.made == 2


async def test_at_the_same_place_of_another_generation_the_heartbeat_is_made_anew() -> None:
    stream = Stream()
    edge = LiveEdge(stream, heartbeat_s=0.001, settles=False)
    edge.wait()
    await until(lambda: stream.heartbeats)
    edge.file_begins()
    await until(lambda: stream.made == 2)
    edge.close()


async def test_without_a_period_there_is_no_heartbeat() -> None:
    stream = Stream()
    edge = LiveEdge(stream, heartbeat_s=0.0, settles=False)
    edge.wait()
    await asyncio.sleep(0.05)
    edge.close()
    assert stream.heartbeats == []


async def test_what_is_sent_puts_the_next_heartbeat_off() -> None:
    stream = Stream()
    loop = asyncio.get_running_loop()
    edge = LiveEdge(stream, heartbeat_s=0.1, settles=False)
    edge.wait()
    await asyncio.sleep(0.06)
    sent_at = loop.time()
    edge.sent(sent_at)
    times: list[float] = []
    stream.on_heartbeat = lambda: times.append(loop.time())
    await until(lambda: times)
    edge.close()
    assert times[0] >= sent_at + 0.099


async def test_where_no_heartbeat_can_be_sent_the_next_is_tried_a_period_later() -> None:
    stream = Stream()
    stream.has_heartbeat = False
    edge = LiveEdge(stream, heartbeat_s=0.01, settles=False)
    edge.wait()
    await asyncio.sleep(0.05)
    stream.has_heartbeat = True
    stream.position = Position("mysql-bin.000001", 2000)
    await until(lambda: stream.heartbeats)
    edge.close()
    assert stream.heartbeats[0] == b"at 2000"


async def test_a_stream_that_is_busy_when_a_heartbeat_is_due_waits_for_its_next_call() -> None:
    stream = Stream()
    stream.is_at_rest = False
    edge = LiveEdge(stream, heartbeat_s=0.01, settles=False)
    edge.wait()
    await asyncio.sleep(0.05)
    assert stream.heartbeats == []
    stream.is_at_rest = True
    edge.wait()
    await until(lambda: stream.heartbeats)
    edge.close()


async def test_a_stream_that_its_own_heartbeat_ends_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream()
    edge = LiveEdge(stream, heartbeat_s=0.01, settles=False)
    stream.on_heartbeat = edge.close
    edge.wait()
    await until(lambda: stream.heartbeats)
    await asyncio.sleep(0.05)
    assert len(stream.heartbeats) == 1


async def test_a_replica_has_settled_when_a_heartbeat_was_sent_behind_events_that_it_has_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_edge, "SETTLED_S", 0.05)
    stream = Stream()
    edge = LiveEdge(stream, heartbeat_s=1800, settles=True)
    edge.wait()
    assert not edge.is_settled
    await until(lambda: edge.is_settled)
    edge.close()
    assert len(stream.heartbeats) == 1, "a period of half an hour is not waited for"


async def test_a_replica_that_has_not_read_everything_has_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_edge, "SETTLED_S", 0.01)
    monkeypatch.setattr(live_edge, "_UNREAD_AGAIN_S", 0.02)
    stream = Stream(unread=5)
    edge = LiveEdge(stream, heartbeat_s=0.01, settles=True)
    edge.wait()
    await until(lambda: len(stream.heartbeats) >= 5)
    assert not edge.is_settled
    stream.unread = 0
    await until(lambda: edge.is_settled)
    edge.close()


async def test_new_events_end_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_edge, "SETTLED_S", 0.01)
    stream = Stream()
    edge = LiveEdge(stream, heartbeat_s=0.01, settles=True)
    edge.wait()
    await until(lambda: edge.is_settled)
    edge.run_sent(asyncio.get_running_loop().time())
    settled = edge.is_settled
    edge.close()
    assert not settled


async def test_who_says_itself_where_to_go_on_never_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_edge, "SETTLED_S", 0.01)
    stream = Stream()
    edge = LiveEdge(stream, heartbeat_s=0.01, settles=False)
    edge.wait()
    await until(lambda: len(stream.heartbeats) >= 5)
    edge.close()
    assert not edge.is_settled


async def test_a_silence_that_fails_by_a_fault_of_ours_ends_the_stream_with_an_error() -> None:
    def fail() -> None:
        raise ZeroDivisionError("a bug")

    stream = Stream()
    stream.on_heartbeat = fail
    edge = LiveEdge(stream, heartbeat_s=0.001, settles=False)
    with structlog.testing.capture_logs() as logs:
        edge.wait()
        await until(lambda: stream.failures)
    assert [error.number for error in stream.failures] == [1105]
    (line,) = logs
    assert (line["event"], type(line["exc_info"])) == ("callback_failed", ZeroDivisionError)
    edge.close()
