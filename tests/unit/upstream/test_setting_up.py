"""What a source says while the relay sets up: what passes is tried again, what does not is an operator's."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.archive.generation import Generation
from relay.upstream import server_source
from relay.upstream.attach import attachment
from relay.upstream.server_source import ServerUpstream
from relay.upstream.source import reconnect
from relay.upstream.stream.intake import Intake
from tests.support import fake_source
from tests.support.binlog_builder import BinlogBuilder
from tests.support.fake_source import FakeSource
from tests.support.relay_inside import relay_inside

FILE = "mysql-bin.000001"
BUILT = BinlogBuilder().ddl().transaction(10, 40)
# Numbers that servers send when they go down, are full, or end a connection; none says anything about the source.
PASSING = [
    (1037, "Out of memory; restart server and try again"),
    (1041, "Out of memory"),
    (1053, "Server shutdown in progress"),
    (1159, "Got timeout reading communication packets"),
    (1205, "Lock wait timeout exceeded"),
    (1317, "Query execution was interrupted"),
    (1927, "Connection was killed"),
    (3169, "Session was killed"),
]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy is tested elsewhere."""
    monkeypatch.setattr(reconnect, "_PAUSES", dict.fromkeys(reconnect._PAUSES, (0.02, 0.1)))


@pytest.fixture
def source() -> Iterator[FakeSource]:
    """A fake source with one file."""
    with FakeSource({FILE: bytes(BUILT.data)}) as fake:
        yield fake


@pytest.mark.parametrize(("number", "text"), PASSING)
async def test_a_source_that_is_going_down_is_tried_again(
    tmp_path: Path, source: FakeSource, number: int, text: str
) -> None:
    source.query_error = (number, text)
    async with relay_inside(tmp_path, source) as relay:
        line = await relay.until_logged("source_lost", 2)
        assert line["trouble"] == "network" and text in line["what"]
        source.query_error = None
        await relay.until_held(FILE, BUILT.size)


@pytest.mark.parametrize(
    "statement", ["SHOW BINARY LOGS", "SELECT @@global.binlog_checksum", "SET @master_heartbeat", "SHOW GLOBAL"]
)
async def test_a_source_that_goes_down_during_any_statement_is_tried_again(
    tmp_path: Path, source: FakeSource, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    answer = fake_source._Conversation._answer
    refused = 0

    def going_down(self: fake_source._Conversation, said: str) -> None:
        nonlocal refused
        if said.startswith(statement) and refused < 2:
            refused += 1
            self.refuse(1053, "Server shutdown in progress")
        else:
            answer(self, said)

    monkeypatch.setattr(fake_source._Conversation, "_answer", going_down)
    async with relay_inside(tmp_path, source) as relay:
        await relay.until_held(FILE, BUILT.size)
        assert [line["trouble"] for line in relay.logged("source_lost")] == ["network", "network"]


async def test_a_source_that_goes_down_when_its_checksum_is_asked_for_again_is_tried_again(
    tmp_path: Path, source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = fake_source._Conversation._answer
    asked = 0

    def going_down(self: fake_source._Conversation, said: str) -> None:
        nonlocal asked
        asked += said == "SELECT @@global.binlog_checksum"
        if asked == 2 and "binlog_checksum" in said:
            self.refuse(1053, "Server shutdown in progress")
        else:
            answer(self, said)

    monkeypatch.setattr(fake_source._Conversation, "_answer", going_down)
    async with relay_inside(tmp_path, source) as relay:
        await relay.until_held(FILE, BUILT.size)


async def test_a_fault_of_the_upstream_side_itself_still_closes_the_archive(
    tmp_path: Path, source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    close = Generation.close

    async def noted(self: Generation) -> None:
        closed.append(True)
        await close(self)

    async def faulty(self: ServerUpstream) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(Generation, "close", noted)
    monkeypatch.setattr(ServerUpstream, "run", faulty)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        async with relay_inside(tmp_path, source) as relay:
            await relay.until_logged("source_side_failed")
    assert closed


async def test_a_fault_in_the_way_of_the_bytes_ends_the_relay_with_a_traceback(
    tmp_path: Path, source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(self: Intake, *_run: object) -> int:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(Intake, "take", faulty)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        async with relay_inside(tmp_path, source) as relay:
            await relay.until_logged("source_side_failed")
            (line,) = relay.logged("task_failed")
            assert isinstance(line["exc_info"], RuntimeError) and line["exc_info"].__traceback__ is not None
            assert relay.logged("source_lost") == []


async def test_a_fault_in_a_look_beside_the_stream_is_told_and_ends_nothing(
    tmp_path: Path, source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def faulty(*_asked: object) -> None:
        raise RuntimeError("a fault of ours")

    async def off(_connection: object) -> str:
        return "log_slave_updates"

    monkeypatch.setattr(server_source, "warn_of_a_replica", faulty)
    monkeypatch.setattr(attachment, "switched_off", off)
    async with relay_inside(tmp_path, source) as relay:
        line = await relay.until_logged("task_failed")
        assert (line["task"], str(line["exc_info"])) == ("asking whether the source is a replica", "a fault of ours")
        await relay.until_held(FILE, BUILT.size)


async def test_a_thread_that_ends_by_surprise_ends_the_relay(tmp_path: Path, source: FakeSource) -> None:
    def faulty() -> None:
        raise RuntimeError("a fault of ours")

    with pytest.raises(RuntimeError, match="a fault of ours"):
        async with relay_inside(tmp_path, source) as relay:
            await relay.until_held(FILE, BUILT.size)
            threading.Thread(target=faulty, name="some-thread").start()
            line = await relay.until_logged("thread_failed")
            assert line["thread"] == "some-thread"
            await relay.until_logged("stopped")
