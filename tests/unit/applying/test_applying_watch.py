"""Questions to a replica that does not answer as one does: bounded, without a fault, and never taken for an up-to-date replica."""

import asyncio
import time

import pytest
from pydantic import SecretStr

from relay.applying import applying_watch
from relay.applying.applying_state import AppliedDistance
from relay.applying.applying_watch import ApplyingWatch, AskedReplica
from relay.applying.replica_channel import FollowedRelay, ReplicaChannel
from relay.config import ReplicaSection
from relay.upstream.source.source_errors import FailureKind
from tests.support.fake_source import PASSWORD, USER, FakeSource
from tests.support.free_port import free_port

RELAY = FollowedRelay(3307, {"replica": None})


def section(port: int, password: str = PASSWORD) -> ReplicaSection:
    return ReplicaSection(host="127.0.0.1", port=port, user=USER, password=SecretStr(password), ssl_mode="disabled")


async def measured(_server_id: int, _channel: ReplicaChannel) -> AppliedDistance:
    return AppliedDistance(0, 0.0)


def asked(port: int, password: str = PASSWORD) -> tuple[FailureKind | None, str]:
    one = AskedReplica(section(port, password))
    kind = asyncio.run(one.ask(lambda: RELAY, measured))
    assert not one.state.is_known and one.state.text == f"not known: {one.state.why}"
    return kind, one.state.why


def test_nobody_at_the_port() -> None:
    kind, why = asked(port := free_port())
    assert kind is FailureKind.NETWORK and why.startswith(f"the replica 127.0.0.1:{port} cannot be reached")
    assert "source" not in why


def test_a_wrong_password_is_named_and_not_shown() -> None:
    with FakeSource() as server:
        kind, why = asked(server.port, "wrong-one")
    assert kind is FailureKind.AUTHENTICATION and "refuses the user" in why and "replica.user" in why
    assert "wrong-one" not in why and "source" not in why


def test_a_server_that_is_silent_has_its_time_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying_watch, "LIMIT_S", 0.3)
    with FakeSource(greeting=b"") as server:
        began = time.monotonic()
        asked(server.port)
    assert time.monotonic() - began < 5


def test_an_answer_that_no_server_gives_is_no_fault() -> None:
    with FakeSource(answers={"SHOW REPLICA STATUS": [["x", "y"]]}) as server:
        kind, why = asked(server.port)
    assert kind is FailureKind.SETUP and "something that no server says" in why


def test_a_fault_leaves_nothing_known_and_the_questions_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying_watch, "_EVERY_S", 0.01)
    asks = 0

    async def faulty(self: AskedReplica, *_: object) -> FailureKind | None:
        nonlocal asks
        asks += 1
        raise ZeroDivisionError

    monkeypatch.setattr(AskedReplica, "ask", faulty)

    async def run() -> str:
        watch = ApplyingWatch(lambda: RELAY, measured)
        watch.take([section(1)])
        async with asyncio.timeout(5):
            while asks < 3:
                await asyncio.sleep(0.01)
        await watch.close()
        return watch.states[0].text

    assert asyncio.run(run()) == "not known: a fault of binlog-relay: its log has more"
