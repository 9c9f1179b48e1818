"""A dump to a semi-sync replica: prefixes, flags, packet numbers, acknowledgements, lies."""

import asyncio
import contextlib
import errno
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pymysql
import pytest
import structlog.testing

from protocol.auth.account import Account
from protocol.binlog.event_type import EventType
from protocol.framing import frame_payload
from protocol.position import Position
from protocol.semisync import encode_acknowledgement
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.replica_marks import ReplicaMarks
from relay.downstream.connection import replica_session as session
from relay.downstream.connection.presentation import Presentation
from relay.downstream.listen_options import ListenOptions
from relay.downstream.server import DownstreamServer
from relay.downstream.stream import admission
from relay.downstream.stream.acknowledgements import Acknowledgements
from relay.downstream.stream.admission import AdmittedDump
from relay.downstream.stream.dump import Dump
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.event_stream import walk
from tests.support.kernel_builds import imported_kernel
from tests.support.replica_client import PASSWORD, USER, ReplicaClient

T = TypeVar("T")
FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"


async def call(function: Callable[[], T]) -> T:
    return await asyncio.wait_for(asyncio.to_thread(function), 20)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


def stamped(built: BinlogBuilder) -> bytes:
    """The binlog as the archive holds it: with markers."""
    return bytes(built.data[:4]) + walk(imported_kernel(), bytes(built.data[4:]), packets=False).produced


@dataclass
class Served:
    """Two binlogs and a server that asks for acknowledgements, unless told otherwise."""

    generation: Generation
    server: DownstreamServer
    second: BinlogBuilder
    first_end: int
    clients: list[ReplicaClient] = field(default_factory=list)

    async def replica(self, variable: str = "rpl_semi_sync_replica", heartbeat_s: float = 0.0) -> ReplicaClient:
        client = await call(lambda: ReplicaClient(self.server.port, timeout_s=5.0))
        self.clients.append(client)
        await call(lambda: client.set_up(heartbeat_s=heartbeat_s))
        await call(lambda: client.query(f"SET @{variable} = 1"))
        return client

    async def grow(self) -> int:
        start = self.second.size
        self.second.transaction(20)
        await append_all(self.generation, stamped(self.second), start=start)
        return self.second.size

    @property
    def acknowledged(self) -> Position | None:
        (session,) = self.server.sessions
        return session.acknowledgements.acked if session.acknowledgements is not None else None


@pytest.fixture
async def served(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    first = BinlogBuilder().ddl().transaction(20, 400).rotate(SECOND)
    second = BinlogBuilder().transaction(20)
    generation = await Generation.open(tmp_path / "archive")
    generation.set_identity(SourceIdentity("mysql", "5.6.24-log", 1, "11111111-2222-3333-4444-555555555555"))
    for name, built in ((FIRST, first), (SECOND, second)):
        await generation.begin_file(name)
        await append_all(generation, stamped(built))
    options = ListenOptions(presentation=Presentation(semi_sync=getattr(request, "param", True)))
    server = DownstreamServer(Archive.of(generation), [Account.with_password(USER, PASSWORD)], options=options)
    await server.start("127.0.0.1", 0)
    rotate = max(event.start for event in first.events)
    served = Served(generation, server, second, rotate)
    yield served
    for client in served.clients:
        client.cut()
    await server.close()
    await generation.close()


def read(client: ReplicaClient, count: int) -> list[tuple[int, int]]:
    """(type, flag) of the next events. PyMySQL counts packets as a server's client does; a flag sets it back."""
    found = []
    for _ in range(count):
        data = client.connection._read_packet().get_all_data()
        assert data[:2] == b"\0\xef"
        found.append((data[3 + 4], data[2]))
        if data[2]:
            client.connection._next_seq_id = 1
    return found


def acknowledge(client: ReplicaClient, position: Position) -> None:
    client.connection._write_bytes(frame_payload(encode_acknowledgement(position), 0))


async def at_end(served: Served, **settings: object) -> ReplicaClient:
    """A replica that was sent everything, with two events (one a file) asked for."""
    client = await served.replica(**settings)  # type: ignore[arg-type]
    await call(lambda: client.ask_dump(FIRST, 4))
    seen: list[tuple[int, int]] = []
    while sum(flag for _, flag in seen) < 2:
        seen += await call(lambda: read(client, 1))
    assert seen[0] == (EventType.ROTATE, 0)
    assert [kind for kind, flag in seen if flag] == [EventType.XID, EventType.XID]
    return client


@pytest.mark.parametrize("variable", ["rpl_semi_sync_slave", "rpl_semi_sync_replica"])
async def test_every_packet_has_the_prefix_and_the_end_of_each_run_is_asked_for(served: Served, variable: str) -> None:
    await at_end(served, variable=variable)


async def test_heartbeats_have_the_prefix_and_ask_for_nothing(served: Served) -> None:
    client = await at_end(served, heartbeat_s=0.01)
    assert await call(lambda: read(client, 3)) == [(EventType.HEARTBEAT, 0)] * 3


async def test_what_is_acknowledged_is_known_to_the_server(served: Served) -> None:
    client = await at_end(served)
    await call(lambda: acknowledge(client, Position(FIRST, served.first_end)))
    await until(lambda: served.acknowledged == Position(FIRST, served.first_end))
    await call(lambda: acknowledge(client, Position(SECOND, served.second.size)))
    await until(lambda: served.acknowledged == Position(SECOND, served.second.size))
    assert served.server.clients.semi_sync_status["yes_tx"] == 2
    assert served.server.clients.semi_sync_status["clients"] == 1
    end = await served.grow()
    while not (await call(lambda: read(client, 1)))[0][1]:
        pass
    await call(lambda: acknowledge(client, Position(SECOND, end)))
    await until(lambda: served.acknowledged == Position(SECOND, end))


@pytest.mark.parametrize(
    "lies",
    [
        [Position(SECOND, 10**6)],
        [Position("mysql-bin.000077", 4)],
        [Position(FIRST, 4)] * 3,
    ],
    ids=["beyond what was sent", "unknown file", "too many"],
)
async def test_a_replica_that_lies_is_closed_and_its_lie_is_counted_for_nothing(
    served: Served, lies: list[Position]
) -> None:
    client = await at_end(served)
    await call(lambda: [acknowledge(client, lie) for lie in lies])
    with pytest.raises(pymysql.err.OperationalError):
        await call(lambda: client.connection._read_packet())
    await until(lambda: not served.server.sessions)
    assert served.server.clients.semi_sync_status["clients"] == 0
    assert served.server.clients.semi_sync_status["yes_tx"] == len(lies) - 1


async def test_a_lie_with_a_goodbye_right_behind_it_is_a_lie(served: Served) -> None:
    client = await at_end(served)
    lie = frame_payload(encode_acknowledgement(Position(SECOND, 10**6)), 0)
    with structlog.testing.capture_logs() as logs:
        await call(lambda: client.connection._write_bytes(lie + frame_payload(b"\x01", 0)))
        await until(lambda: not served.server.sessions)
    (line,) = [line for line in logs if line["event"] == "connection_ended"]
    assert "acknowledged" in line["reason"]


async def test_a_flood_of_acknowledgements_ends_with_the_connection_and_disturbs_nobody(served: Served) -> None:
    other = await at_end(served)
    liar = await served.replica()
    await call(lambda: liar.ask_dump(FIRST, 4, server_id=99))
    ack = frame_payload(encode_acknowledgement(Position(FIRST, 4)), 0)

    def flood() -> None:
        for _ in range(200):
            liar.connection._write_bytes(ack * 1000)

    with pytest.raises((pymysql.err.OperationalError, OSError)):
        await call(flood)
        await call(lambda: read(liar, 1000))
    await until(lambda: len(served.server.sessions) == 1)
    await served.grow()
    assert await call(lambda: read(other, 1))


@pytest.mark.parametrize("served", [False], indirect=True)
async def test_where_no_acknowledgements_are_demanded_the_variable_changes_nothing(served: Served) -> None:
    client = await served.replica()
    await call(lambda: client.ask_dump(FIRST, 4))
    event = await call(client.event)
    assert event is not None and event.kind == EventType.ROTATE
    assert served.server.clients.semi_sync_status == {}


async def test_a_client_that_reads_to_the_end_is_not_asked(served: Served) -> None:
    """mysqlbinlog could not acknowledge; EOF would come in between."""
    client = await served.replica()
    await call(lambda: client.ask_dump(FIRST, 4, flags=1))
    assert len(await call(client.events_to_eof)) > 5


async def test_a_connection_that_has_just_ended_can_be_killed(served: Served) -> None:
    """MariaDB's semi-sync replica closes its connection, and asks on another one that it be killed."""
    client = await at_end(served)
    number = client.connection.thread_id()
    await call(client.cut)
    await until(lambda: not served.server.sessions)
    second = await call(lambda: ReplicaClient(served.server.port))
    served.clients.append(second)
    assert await call(lambda: second.query(f"KILL {number}")) == ()
    with pytest.raises(pymysql.MySQLError):
        await call(lambda: second.query("KILL 4711"))


# --- a request that fails leaves the counts as they were --------------------------------------------------------------


async def refused(served: Served, offset: int = 4) -> tuple[dict[str, int | str], pymysql.err.MySQLError]:
    """The counts when the replica has just read why it gets no dump, its connection still open; and what it read."""
    client = await served.replica()

    def ask() -> pymysql.err.MySQLError:
        client.ask_dump(FIRST, offset)
        try:
            client.connection._read_packet()
        except pymysql.err.MySQLError as error:
            return error
        raise AssertionError("a dump began")

    error = await call(ask)
    return served.server.clients.semi_sync_status, error


def fail_with(error: Exception) -> Any:
    def fail(*_args: object, **_more: object) -> Any:
        raise error

    return fail


async def test_a_position_that_is_refused_counts_nobody(served: Served) -> None:
    before = served.server.clients.semi_sync_status
    counts, error = await refused(served, offset=5)
    assert (counts, error.args[0]) == (before, 1236)


async def test_a_file_that_cannot_be_opened_counts_nobody(served: Served) -> None:
    before = served.server.clients.semi_sync_status
    served.generation.path(FIRST).unlink()
    counts, error = await refused(served)
    assert (counts, error.args[0]) == (before, 1236)


@pytest.mark.parametrize(
    ("owner", "name"), [(ReplicaMarks, "begin"), (AdmittedDump, "_switch"), (admission, "Dump")],
    ids=["its mark cannot be written", "its file was just purged", "the dump itself cannot be made"],
)  # fmt: skip
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), ZeroDivisionError("a bug")])
async def test_a_dump_that_cannot_be_prepared_counts_nobody(
    served: Served, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, error: Exception
) -> None:
    other = await at_end(served)
    before = served.server.clients.semi_sync_status
    assert before["clients"] == 1
    counts_at_its_end: list[dict[str, int | str]] = []

    def looks_before(end: Callable[[session.Session], None]) -> Callable[[session.Session], None]:
        def look(here: session.Session) -> None:
            counts_at_its_end.append(served.server.clients.semi_sync_status)
            end(here)

        return look

    # One that is refused is closed once it has read why, one that had begun is cut off.
    for way in ("_close_soon", "abort"):
        monkeypatch.setattr(session.Session, way, looks_before(getattr(session.Session, way)))
    monkeypatch.setattr(owner, name, fail_with(error))
    client = await served.replica()
    with pytest.raises(pymysql.err.MySQLError):
        await call(lambda: (client.ask_dump(FIRST, 4, server_id=78), client.connection._read_packet()))
    assert counts_at_its_end == [before]
    client.cut()
    await until(lambda: len(served.server.sessions) == 1)
    assert served.server.clients.semi_sync_status == before
    other.cut()


async def test_a_connection_that_is_lost_while_its_request_is_held_counts_nobody(served: Served) -> None:
    before = served.server.clients.semi_sync_status
    client = await served.replica()
    await call(lambda: client.ask_dump(SECOND, served.second.size + 1000))
    await until(lambda: served.server.sessions[0].client.waits_for_position)
    assert served.server.clients.semi_sync_status == before
    client.cut()
    await until(lambda: not served.server.sessions)
    assert served.server.clients.semi_sync_status == before
    await served.grow()
    assert served.server.clients.semi_sync_status == before


async def test_a_connection_that_is_lost_as_its_request_is_answered_gets_no_dump(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asyncio.wait_for of Python 3.11 swallows a cancellation that meets a result: admission may outlive its connection."""
    client = await served.replica()
    (here,) = served.server.sessions
    made: list[Acknowledgements] = []

    class Made(Acknowledgements):
        def __init__(self, *facts: Any) -> None:
            super().__init__(*facts)
            made.append(self)

    async def admit(*facts: Any) -> AdmittedDump:
        admitted = await admission.admit(*facts)
        client.cut()
        with contextlib.suppress(asyncio.CancelledError):
            await until(lambda: not served.server.sessions)
        return admitted

    monkeypatch.setattr(session, "admit", admit)
    monkeypatch.setattr(session, "Acknowledgements", Made)
    await call(lambda: client.ask_dump(FIRST, 4))
    await until(lambda: not served.server.sessions and here._admission is None)
    assert (here.dump, here.acknowledgements, made) == (None, None, [])
    assert served.server.mirror.reads._files == {}
    assert served.server.clients.semi_sync_status["clients"] == 0


async def test_a_dump_that_fails_at_its_first_byte_counts_nobody(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = served.server.clients.semi_sync_status
    monkeypatch.setattr(Dump, "begin", fail_with(ZeroDivisionError("a bug")))
    client = await served.replica()
    with pytest.raises(pymysql.err.MySQLError):
        await call(lambda: (client.ask_dump(FIRST, 4), client.connection._read_packet()))
    await until(lambda: not served.server.sessions)
    assert served.server.clients.semi_sync_status == before
    assert served.server.mirror.reads._files == {}
