"""Requests that overtake each other, goodbyes at odd moments, and what a server keeps of replicas that left."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pymysql
import pytest
import structlog.testing
from pymysql.constants import COMMAND

from protocol.auth.account import Account
from protocol.binlog.event_type import EventType
from protocol.source_side.machine import SourceSide
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.replica_marks import ReplicaIdentity
from relay.archive.write.options import ArchiveOptions, PublishPolicy, SyncPolicy
from relay.downstream.listen_options import ListenOptions
from relay.downstream.server import DownstreamServer
from relay.downstream.stream import live_edge
from relay.downstream.stream.dump import Dump
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.replica_client import PASSWORD, USER, ReplicaClient, StreamedEvent

T = TypeVar("T")
FIRST = "mysql-bin.000001"
UUID = "11111111-2222-3333-4444-000000000077"


async def call(function: Callable[[], T]) -> T:
    return await asyncio.wait_for(asyncio.to_thread(function), 20)


def start_of(client: ReplicaClient, offset: int, count: int, server_id: int = 77) -> list[StreamedEvent]:
    """Asks for a dump and reads its first events."""
    client.ask_dump(FIRST, offset, server_id=server_id)
    return client.events(count)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


DEFAULTS = ArchiveOptions()


class Served:
    """An archive with one open binlog of two transactions, and a server in front of it."""

    def __init__(self, generation: Generation, server: DownstreamServer, built: BinlogBuilder) -> None:
        self.generation = generation
        self.server = server
        self.built = built
        self.clients: list[ReplicaClient] = []

    async def replica(self, *, heartbeat_s: float = 0.0) -> ReplicaClient:
        client = await call(lambda: ReplicaClient(self.server.port))
        self.clients.append(client)
        await call(lambda: client.set_up(uuid=UUID, heartbeat_s=heartbeat_s))
        return client


async def serve(directory: Path, built: BinlogBuilder, options: ArchiveOptions = DEFAULTS) -> AsyncIterator[Served]:
    generation = await Generation.open(directory / "archive", options)
    generation.set_identity(SourceIdentity("mysql", "5.6.24-log", 1, None))
    await generation.begin_file(FIRST)
    await append_all(generation, built.data)
    server = DownstreamServer(
        Archive.of(generation), [Account.with_password(USER, PASSWORD)], options=ListenOptions(position_wait_s=5.0)
    )
    await server.start("127.0.0.1", 0)
    served = Served(generation, server, built)
    yield served
    for client in served.clients:
        client.cut()
    await server.close()
    await generation.close()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async for served in serve(tmp_path, BinlogBuilder().transaction(20).transaction(20)):
        yield served


@pytest.fixture
async def unsynced(tmp_path: Path) -> AsyncIterator[Served]:
    """Nothing is published before it is synced, and that takes long."""
    options = ArchiveOptions(sync=SyncPolicy.INTERVAL, publish=PublishPolicy.SYNCED, sync_interval_s=60.0)
    async for served in serve(tmp_path, BinlogBuilder(), options):
        yield served


@pytest.fixture
async def unchecked(tmp_path: Path) -> AsyncIterator[Served]:
    """A file without checksums, which needs nothing to be said before."""
    async for served in serve(tmp_path, BinlogBuilder(checksum=False).transaction(20)):
        yield served


def dump_packet(file: str, offset: int, server_id: int = 77) -> bytes:
    payload = bytes((COMMAND.COM_BINLOG_DUMP,)) + struct.pack("<IHI", offset, 0, server_id) + file.encode()
    return len(payload).to_bytes(3, "little") + b"\0" + payload


async def test_a_goodbye_right_behind_a_request_starts_no_dump(served: Served) -> None:
    with structlog.testing.capture_logs() as logs:
        client = await served.replica()
        second_group = served.built.boundary_at_or_before(served.built.size - 1)
        client.connection._sock.sendall(dump_packet(FIRST, second_group) + b"\x01\0\0\0\x01")
        await until(lambda: not served.server.sessions)
    assert [line["event"] for line in logs if line["log_level"] == "error" or line["event"] == "dump_started"] == []


async def test_a_goodbye_right_behind_a_request_ends_no_other_dump_of_this_replica(served: Served) -> None:
    first = await served.replica()
    await call(lambda: start_of(first, 4, 2))
    second = await served.replica()
    second.connection._sock.sendall(dump_packet(FIRST, 4) + b"\x01\0\0\0\x01")
    await until(lambda: len(served.server.sessions) == 1)
    assert served.server.sessions[0].dump is not None


async def test_a_request_that_is_held_does_not_end_a_newer_dump_of_this_replica(served: Served) -> None:
    position = served.built.size
    held = await served.replica()
    held.ask_dump(FIRST, position + 1000)
    await until(lambda: served.server.sessions)
    newer = await served.replica()
    await call(lambda: start_of(newer, position, 2))
    with pytest.raises(pymysql.MySQLError, match="has connected to the master"):
        await call(held.event)
    assert [session.dump is not None for session in served.server.sessions if session.dump] == [True]


async def test_a_replica_that_leaves_while_its_position_is_waited_for_is_in_the_log(served: Served) -> None:
    replica = await served.replica()
    beyond = served.built.size + 1000
    await call(lambda: replica.ask_dump(FIRST, beyond, server_id=77))
    await until(lambda: any(session.client.waits_for_position for session in served.server.sessions))
    with structlog.testing.capture_logs() as logs:
        await call(replica.cut)
        await until(lambda: [line for line in logs if line["event"] == "dump_not_begun"])
    (line,) = (line for line in logs if line["event"] == "dump_not_begun")
    assert (line["file"], line["offset"], line["server_id"]) == (FIRST, beyond, 77)
    assert line["archive_end"] == str(served.generation.end)


async def bare(served: Served, *statements: str) -> ReplicaClient:
    """A client that logs in and says SET NAMES, as libraries do by themselves, and these."""
    client = await call(lambda: ReplicaClient(served.server.port, speaks=False))
    served.clients.append(client)
    for statement in statements:
        await call(lambda statement=statement: client.query(statement))  # type: ignore[misc]
    return client


async def test_a_library_that_asks_without_the_set_up_of_its_replica_is_left_without_a_word(served: Served) -> None:
    client = await bare(served)
    with structlog.testing.capture_logs() as logs:
        client.ask_dump(FIRST, 4, server_id=77)
        with pytest.raises(pymysql.MySQLError, match="Lost connection"):
            await call(client.event)
    (line,) = (line for line in logs if line["event"].startswith("dump_"))
    assert (line["event"], line["server_id"], line["file"], line["offset"]) == ("dump_not_begun", 77, FIRST, 4)
    assert "did not set @master_binlog_checksum" in line["reason"]


@pytest.mark.parametrize("statement", ["SELECT VERSION()", "SET @slave_uuid= 'a'", "SHOW VARIABLES LIKE 'server_id'"])
async def test_whoever_says_a_word_before_its_request_is_told_why_it_is_refused(served: Served, statement: str) -> None:
    client = await bare(served, statement)
    client.ask_dump(FIRST, 4)
    with pytest.raises(pymysql.MySQLError, match="did not set @master_binlog_checksum"):
        await call(client.event)


async def test_a_reader_that_is_no_replica_is_told_why_it_is_refused_also_without_a_word(served: Served) -> None:
    client = await bare(served)
    client.ask_dump(FIRST, 4, server_id=0)
    with pytest.raises(pymysql.MySQLError, match="did not set @master_binlog_checksum"):
        await call(client.event)


@pytest.mark.parametrize(
    ("file", "told"), [("mysql-bin.000099", "has no such file"), ("no-binlog", "is not a binlog file name")]
)
async def test_what_no_set_up_would_cure_is_told_also_without_a_word(served: Served, file: str, told: str) -> None:
    client = await bare(served)
    client.ask_dump(file, 4, server_id=77)
    with pytest.raises(pymysql.MySQLError, match=told):
        await call(client.event)


async def test_a_library_that_asks_without_the_set_up_is_served_where_none_is_needed(unchecked: Served) -> None:
    client = await bare(unchecked)
    assert len(await call(lambda: start_of(client, 4, 3))) == 3


async def test_replicas_that_left_are_not_kept_until_the_archive_grows(served: Served) -> None:
    for _ in range(5):
        client = await served.replica()
        await asyncio.to_thread(start_of, client, served.built.size, 2)
        client.cut()
        await until(lambda: not served.server.sessions)
    assert len(served.server.mirror._edge) == 0


async def test_no_heartbeat_comes_before_the_format_description(unsynced: Served) -> None:
    client = await unsynced.replica(heartbeat_s=0.02)
    await call(lambda: start_of(client, 4, 1))
    await asyncio.sleep(0.2)
    unsynced.generation.publication.synced_to(FIRST, unsynced.built.size)
    following = await call(client.event)
    assert following is not None
    assert following.kind == EventType.FORMAT_DESCRIPTION


async def test_a_heartbeat_period_of_hundreds_of_digits_is_none(served: Served) -> None:
    client = await served.replica()
    await call(lambda: client.query(f"SET @master_heartbeat_period= '{'9' * 400}'"))
    events = await call(lambda: start_of(client, 4, 2))
    assert events[1].kind == EventType.FORMAT_DESCRIPTION


def place_inside(served: Served) -> int:
    """Where an event inside of a transaction begins."""
    group = next(iter(served.built.groups))
    return next(event.start for event in served.built.events if event.group_start == group and event.start > group)


async def test_a_replica_settles_also_between_frequent_heartbeats(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_edge, "SETTLED_S", 0.3)
    client = await served.replica(heartbeat_s=0.1)
    await call(lambda: start_of(client, 4, 20))
    inside, identity = place_inside(served), ReplicaIdentity.of(77, UUID, "replica")
    assert served.generation.replicas.may_resume(identity, FIRST, inside), (
        "its connection may still break with bytes unread"
    )

    dump = served.server.sessions[0].dump
    assert dump is not None

    def read_and_leave() -> None:
        # However many that are: one that is still unread when the server looks puts it off.
        while not dump.is_settled:
            client.event()
        client.read_out_and_leave()

    await call(read_and_leave)
    await until(lambda: not served.generation.replicas.may_resume(identity, FIRST, inside))


async def test_a_replica_that_took_no_heartbeat_may_hold_events_that_it_has_not_stored(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_edge, "SETTLED_S", 0.1)
    client = await served.replica()
    await call(lambda: start_of(client, 4, 1 + len(served.built.events)))
    await asyncio.sleep(0.5)
    await call(client.cut)  # nothing is unread, but who knows what was done with it
    await until(lambda: not served.server.sessions)
    assert served.generation.replicas.may_resume(ReplicaIdentity.of(77, UUID, "replica"), FIRST, place_inside(served))


async def test_a_replica_whose_heartbeats_are_rare_gets_one_when_it_seems_to_have_everything(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_edge, "SETTLED_S", 0.1)
    client = await served.replica(heartbeat_s=1800)
    events = await call(lambda: start_of(client, 4, 2 + len(served.built.events)))
    assert events[-1].kind == EventType.HEARTBEAT
    await call(client.cut)
    inside, identity = place_inside(served), ReplicaIdentity.of(77, UUID, "replica")
    await until(lambda: not served.generation.replicas.may_resume(identity, FIRST, inside))


async def test_a_goodbye_does_not_say_that_everything_was_read(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_edge, "SETTLED_S", 0.1)
    client = await served.replica(heartbeat_s=0.1)
    await call(lambda: client.ask_dump(FIRST, 4))
    await asyncio.sleep(0.5)
    await call(client.close)
    await until(lambda: not served.server.sessions)
    assert served.generation.replicas.may_resume(ReplicaIdentity.of(77, UUID, "replica"), FIRST, place_inside(served))


async def test_a_replica_that_was_cut_off_with_bytes_unread_may_resume_however_long_it_was_silent(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_edge, "SETTLED_S", 0.1)
    client = await served.replica()
    await call(lambda: client.ask_dump(FIRST, 4))
    await asyncio.sleep(0.5)
    await call(client.cut)  # closes a socket with everything unread: a reset
    await until(lambda: not served.server.sessions)
    assert served.generation.replicas.may_resume(ReplicaIdentity.of(77, UUID, "replica"), FIRST, place_inside(served))


async def test_a_replica_that_shuts_down_first_and_closes_later_may_resume_when_bytes_were_unread(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_edge, "SETTLED_S", 0.1)
    client = await served.replica(heartbeat_s=1800)
    await call(lambda: start_of(client, 4, 1 + len(served.built.events)))
    await asyncio.sleep(0.5)  # a heartbeat came, and nobody reads it
    await call(client.shut_down)
    await asyncio.sleep(0.5)
    await call(client.cut)
    await until(lambda: not served.server.sessions)
    assert served.generation.replicas.may_resume(ReplicaIdentity.of(77, UUID, "replica"), FIRST, place_inside(served))


async def test_a_replica_with_the_sources_server_id_is_stopped_before_the_dump(served: Served) -> None:
    """The identity of the archive's source has server_id 1."""
    client = await call(lambda: ReplicaClient(served.server.port))
    served.clients.append(client)
    await call(lambda: client.set_up(server_id=1))
    with pytest.raises(pymysql.MySQLError) as caught:
        await call(lambda: start_of(client, 4, 1))
    assert caught.value.args[0] == 1236
    assert "This replica has server_id 1, and so has the source" in caught.value.args[1]


async def test_mysqlbinlog_that_never_stops_may_have_the_sources_server_id(served: Served) -> None:
    """Its server_id is 1 by default; it registers no replica."""
    client = await call(lambda: ReplicaClient(served.server.port))
    served.clients.append(client)
    await call(lambda: client.query("SET @master_binlog_checksum='NONE'"))

    def dump() -> list[StreamedEvent]:
        client.ask_dump(FIRST, 4, server_id=1)
        return client.events(2)

    assert [event.kind for event in await call(dump)] == [EventType.ROTATE, EventType.FORMAT_DESCRIPTION]


async def test_two_replicas_with_one_server_id_are_both_served_and_named_in_a_warning(served: Served) -> None:
    with structlog.testing.capture_logs() as logs:
        addresses = []
        for uuid in (UUID, "22222222-2222-3333-4444-000000000077"):
            client = await call(lambda: ReplicaClient(served.server.port))
            served.clients.append(client)
            addresses.append(f"127.0.0.1:{client.connection._sock.getsockname()[1]}")
            await call(lambda client=client, uuid=uuid: client.set_up(uuid=uuid))  # type: ignore[misc]
            await call(lambda client=client: start_of(client, 4, 2))  # type: ignore[misc]
    (warning,) = [line for line in logs if line["event"] == "server_id_shared"]
    assert (warning["other_address"], warning["replica_address"]) == tuple(addresses)
    assert len(served.server.sessions) == 2


@pytest.mark.parametrize(
    ("user", "host", "ends"),
    [("replica", "127.0.0.9", True), ("other", "127.0.0.1", True), ("other", "127.0.0.9", False)],
)
async def test_a_stream_is_ended_by_its_own_account_or_address_only(
    served: Served, monkeypatch: pytest.MonkeyPatch, user: str, host: str, ends: bool
) -> None:
    first = await served.replica()
    await call(lambda: start_of(first, 4, 2))
    (victim,) = served.server.sessions
    assert victim.client.machine is not None and victim.client.machine.account is not None
    victim.client.machine.account = replace(victim.client.machine.account, user=user)
    victim.client.host = host
    with structlog.testing.capture_logs() as logs:
        second = await served.replica()
        await call(lambda: start_of(second, 4, 2))
    await until(lambda: (victim.dump is None) == ends)
    assert (
        [line["event"] for line in logs if line["event"] == "replica_uuid_shared"] == []
        if ends
        else ["replica_uuid_shared"]
    )


async def test_each_of_many_replicas_with_one_server_id_is_one_line_in_the_log(served: Served) -> None:
    with structlog.testing.capture_logs() as logs:
        for number in range(4):
            client = await call(lambda: ReplicaClient(served.server.port))
            served.clients.append(client)
            await call(lambda client=client, number=number: client.set_up(uuid=f"{UUID[:-1]}{number}"))  # type: ignore[misc]
            await call(lambda client=client: start_of(client, 4, 2))  # type: ignore[misc]
    assert [line["others"] for line in logs if line["event"] == "server_id_shared"] == [1, 2, 3]


async def test_more_streams_wait_longer_between_two_heartbeats(served: Served) -> None:
    for number in range(3):
        client = await call(lambda: ReplicaClient(served.server.port))
        served.clients.append(client)
        await call(lambda client=client, number=number: client.set_up(uuid=f"{UUID[:-1]}{number}"))  # type: ignore[misc]
        await call(lambda client=client: start_of(client, served.built.size, 2))  # type: ignore[misc]
    await until(lambda: len(served.server.mirror._edge) == 3)
    assert served.server.mirror.shortest_silence_s() == pytest.approx(3 / 2000)


async def test_who_sends_ahead_and_leaves_takes_nothing_of_the_others_turns(served: Served) -> None:
    rounds = served.server.rounds
    length_s = rounds.length_s()
    client = await served.replica()
    client.connection._sock.sendall(b"\x01\0\0\0\x0e" * 4000)
    async with asyncio.timeout(5):
        while served.server.traffic.commands < 100:
            await asyncio.sleep(0)
    client.cut()
    await until(lambda: not served.server.sessions)
    assert rounds.length_s() == length_s


async def test_a_connection_whose_answer_fails_by_surprise_is_ended_and_told(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_said: object) -> None:
        raise ZeroDivisionError("a bug")

    waiting = await served.replica()
    with structlog.testing.capture_logs() as logs:
        for name, ask in (
            ("answer", lambda client: client.query("SHOW SLAVE STATUS")),
            ("refuse_dump", lambda client: (client.ask_dump(FIRST, 5), client.event())),
        ):
            client = await served.replica()
            with monkeypatch.context() as patched:
                patched.setattr(SourceSide, name, fail)
                with pytest.raises(pymysql.MySQLError, match="Lost connection"):
                    await call(lambda client=client, ask=ask: ask(client))  # type: ignore[misc]
            await until(lambda: len(served.server.sessions) == 1)
    told = [line for line in logs if line["log_level"] == "error"]
    assert [(line["event"], line["task"]) for line in told] == [
        ("task_failed", "answering a statement"), ("task_failed", "deciding about a dump request")
    ]  # fmt: skip
    assert all(isinstance(line["exc_info"], ZeroDivisionError) for line in told)
    assert len(await call(lambda: start_of(waiting, 4, 2))) == 2


async def test_a_fault_in_one_stream_at_the_live_edge_keeps_nobody_else_waiting(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = []
    for server_id in (77, 78, 79):
        client = await call(lambda: ReplicaClient(served.server.port))
        served.clients.append(client)
        await call(lambda client=client, server_id=server_id: client.set_up(server_id=server_id))  # type: ignore[misc]
        await call(lambda client=client, server_id=server_id: start_of(client, served.built.size, 2, server_id))  # type: ignore[misc]
        clients.append(client)
    await until(lambda: len(served.server.mirror._edge) == 3)
    pump, broken = Dump.pump, next(iter(served.server.mirror._edge))

    def faulty(dump: Dump) -> None:
        if dump is broken:
            raise ZeroDivisionError("a bug")
        pump(dump)

    monkeypatch.setattr(Dump, "pump", faulty)
    start = served.built.size
    served.built.transaction(20)
    with structlog.testing.capture_logs() as logs:
        await append_all(served.generation, served.built.data, start=start)
        await until(lambda: len(served.server.sessions) == 2)
        await until(lambda: all(session.status().is_at_end for session in served.server.sessions))
    (line,) = [line for line in logs if line["log_level"] == "error"]
    assert (line["event"], type(line["exc_info"])) == ("dump_fault", ZeroDivisionError)
