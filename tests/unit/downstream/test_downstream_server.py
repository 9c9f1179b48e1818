"""The server with PyMySQL and a hand-made replica as its clients, on both event loops."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pymysql
import pytest
from structlog.testing import capture_logs

from protocol.auth.account import Account
from protocol.binlog.encoded_events import patch_format_description, rotate_event
from protocol.binlog.event_type import EventType
from protocol.errors import ErrorCode
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.downstream.connection import line_bounds
from relay.downstream.listen_options import ListenOptions
from relay.downstream.server import DownstreamServer
from relay.downstream.stream import live_edge
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.replica_client import PASSWORD, USER, ReplicaClient

T = TypeVar("T")
FIRST = "mysql-bin.000001"
SECOND = "mysql-bin.000002"
THIRD = "mysql-bin.000003"
FOURTH = "mysql-bin.000004"


class Served:
    """An archive of two finished binlogs and an open one, and a server in front of it."""

    def __init__(self, generation: Generation, server: DownstreamServer, files: dict[str, BinlogBuilder]) -> None:
        self.generation = generation
        self.server = server
        self.files = files
        self.clients: list[ReplicaClient] = []

    async def client(self, **arguments: object) -> ReplicaClient:
        client = await call(lambda: ReplicaClient(self.server.port, **arguments))  # type: ignore[arg-type]
        self.clients.append(client)
        return client

    async def replica(self, *, user: str = USER, **set_up: object) -> ReplicaClient:
        client = await self.client(user=user)
        await call(lambda: client.set_up(**set_up))  # type: ignore[arg-type]
        return client

    async def grow(self, change: Callable[[BinlogBuilder], object]) -> bytes:
        """Changes the newest file; returns what was appended."""
        built = self.files[THIRD]
        start = built.size
        change(built)
        await append_all(self.generation, built.data, start=start)
        return bytes(built.data[start:])


async def call(function: Callable[[], T]) -> T:
    return await asyncio.wait_for(asyncio.to_thread(function), 20)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    first = BinlogBuilder().ddl().transaction(20, 400).rotate(SECOND)
    second = BinlogBuilder().transaction(300).transaction(20).rotate(THIRD)
    third = BinlogBuilder().transaction(20)
    files = {FIRST: first, SECOND: second, THIRD: third}
    generation = await Generation.open(tmp_path / "archive")
    generation.set_identity(SourceIdentity("mysql", "5.6.24-log", 1, "11111111-2222-3333-4444-555555555555"))
    for name, built in files.items():
        await generation.begin_file(name)
        await append_all(generation, built.data)
    accounts = [Account.with_password(USER, PASSWORD), Account.with_password("plain", PASSWORD, "strip")]
    server = DownstreamServer(
        Archive.of(generation), accounts, options=ListenOptions(position_wait_s=0.5, max_connections=20)
    )
    await server.start("127.0.0.1", 0)
    served = Served(generation, server, files)
    yield served
    for client in served.clients:
        client.cut()
    await server.close()
    await generation.close()


async def refused(client: ReplicaClient, file: str, offset: int, *, server_id: int = 77) -> pymysql.MySQLError:
    def ask() -> None:
        client.ask_dump(file, offset, server_id=server_id)
        client.event()

    with pytest.raises(pymysql.MySQLError) as caught:
        await call(ask)
    return caught.value


async def test_a_known_user_with_its_password_gets_answers(served: Served) -> None:
    client = await served.client()
    assert await call(lambda: client.query("SELECT VERSION()")) == (("5.6.24-log",),)


@pytest.mark.parametrize(("user", "password"), [(USER, "wrong"), ("nobody", PASSWORD), (USER, ""), ("nobody", "")])
async def test_a_wrong_login_gets_1045(served: Served, user: str, password: str) -> None:
    with pytest.raises(pymysql.err.OperationalError) as caught:
        await served.client(user=user, password=password)
    assert caught.value.args[0] == ErrorCode.ER_ACCESS_DENIED_ERROR


async def test_a_refused_login_names_user_and_nothing_else(served: Served) -> None:
    texts = []
    for user in (USER, "somebody"):
        with pytest.raises(pymysql.err.OperationalError) as caught:
            await served.client(user=user, password="wrong")
        texts.append(caught.value.args[1].replace(user, "X"))
    assert texts[0] == texts[1]


async def test_who_was_greeted_before_a_reload_does_not_get_in_with_a_password_that_it_took_away(
    served: Served,
) -> None:
    loop = asyncio.get_running_loop()

    async def reload() -> None:
        served.server.replace_accounts([Account.with_password(USER, "another")])

    class Greeted(pymysql.Connection):  # type: ignore[type-arg]
        def _get_server_information(self) -> None:
            super()._get_server_information()
            asyncio.run_coroutine_threadsafe(reload(), loop).result(10)

    def log_in(password: str) -> None:
        Greeted(host="127.0.0.1", port=served.server.port, user=USER, password=password).close()

    with pytest.raises(pymysql.MySQLError, match="Access denied"):
        await call(lambda: log_in(PASSWORD))
    await call(lambda: log_in("another"))


async def test_an_unknown_statement_keeps_the_connection(served: Served) -> None:
    client = await served.client()
    with pytest.raises(pymysql.err.ProgrammingError) as caught:
        await call(lambda: client.query("OPTIMIZE THE WORLD"))
    assert caught.value.args[0] == ErrorCode.ER_PARSE_ERROR
    assert await call(lambda: client.query("SELECT @@server_id")) == ((1,),)


async def test_an_unknown_command_keeps_the_connection(served: Served) -> None:
    client = await served.client()

    def change_user() -> None:
        client.command(0x11, b"somebody\0\0\0")
        client.connection._read_packet()

    with pytest.raises(pymysql.MySQLError) as caught:
        await call(change_user)
    assert caught.value.args[0] == ErrorCode.ER_UNKNOWN_COM_ERROR
    await call(client.connection.ping)


async def test_more_connections_than_allowed_are_told_so(served: Served) -> None:
    for _ in range(20):
        await served.client()
    with pytest.raises(pymysql.err.OperationalError) as caught:
        await served.client()
    assert caught.value.args[0] == ErrorCode.ER_CON_COUNT_ERROR


async def test_the_whole_archive_is_served_byte_for_byte_with_artificial_rotates(served: Served) -> None:
    client = await served.replica()
    await call(lambda: client.ask_dump("", 4, flags=1))
    events = await call(client.events_to_eof)
    expected = b""
    for name, built in served.files.items():
        expected += rotate_event(Position(name, 4), 1, with_checksum=True) + bytes(built.data[4:])
    assert b"".join(event.data for event in events) == expected


async def test_after_eof_the_same_connection_takes_the_next_request(served: Served) -> None:
    client = await served.replica()
    for _ in range(2):
        await call(lambda: client.ask_dump(SECOND, 4, flags=1))
        assert (await call(client.events_to_eof))[0].kind == EventType.ROTATE
    assert await call(lambda: client.query("SELECT @@server_id")) == ((1,),)


async def test_a_start_in_a_file_gets_a_format_description_that_counts_for_nothing(served: Served) -> None:
    built = served.files[SECOND]
    start = built.boundaries[2]
    client = await served.replica()
    await call(lambda: client.ask_dump(SECOND, start))
    rotate, head, following = await call(lambda: client.events(3))
    assert rotate.data == rotate_event(Position(SECOND, start), 1, with_checksum=True)
    size = built.events[0].end - 4
    assert head.data == patch_format_description(bytes(built.data[4 : 4 + size]), mid_file=True, strip_markers=False)
    assert head.end_log_pos == 0
    assert following.data == bytes(built.data[start : start + len(following.data)])


async def test_mysqlbinlog_with_checksum_none_gets_its_first_rotate_without_one(served: Served) -> None:
    client = await served.client()
    await call(lambda: client.query("SET @master_binlog_checksum='NONE'"))
    await call(lambda: client.ask_dump(FIRST, 4, server_id=0))
    events = await call(client.events_to_eof)
    assert events[0].data == rotate_event(Position(FIRST, 4), 1, with_checksum=False)
    rotates = [event for event in events if event.kind == EventType.ROTATE]
    assert rotates[2].data == rotate_event(Position(SECOND, 4), 1, with_checksum=True)


async def test_a_replica_that_knows_no_checksums_is_refused_where_there_are_some(served: Served) -> None:
    client = await served.replica(checksum=False)
    error = await refused(client, FIRST, 4)
    assert error.args[0] == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG
    assert "Slave can not handle replication events with the checksum" in error.args[1]


async def test_new_events_reach_a_waiting_replica(served: Served) -> None:
    client = await served.replica()
    await call(lambda: client.ask_dump(THIRD, served.files[THIRD].size))
    await call(lambda: client.events(2))
    for _ in range(3):
        added = await served.grow(lambda built: built.transaction(50))
        events = await call(lambda: client.events(4))
        assert b"".join(event.data for event in events) == added


async def test_a_large_event_arrives_whole(served: Served) -> None:
    client = await served.replica()
    await call(lambda: client.ask_dump(THIRD, served.files[THIRD].size))
    await call(lambda: client.events(2))
    added = await served.grow(lambda built: built.transaction(17_000_000))
    events = await call(lambda: client.events(4))
    assert b"".join(event.data for event in events) == added


@pytest.mark.parametrize("offset", [0, 3, 2**32 - 1])
async def test_impossible_offsets_are_refused_by_name(served: Served, offset: int) -> None:
    error = await refused(await served.replica(), FIRST, offset)
    assert error.args[0] == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG
    assert error.args[1].startswith(f"{FIRST}:{offset} is no valid position")


@pytest.mark.parametrize("name", ["../mysql-bin.000001", "/etc/passwd", "mysql-bin.index", "a\x01b.000001/"])
async def test_a_file_name_with_a_path_is_refused_by_name(served: Served, name: str) -> None:
    error = await refused(await served.replica(), name, 4)
    assert "is not a binlog file name" in error.args[1]


async def test_an_unknown_file_is_refused_with_what_is_held(served: Served) -> None:
    error = await refused(await served.replica(), "mysql-bin.000009", 4)
    assert f"holds {FIRST} to {THIRD}" in error.args[1]


async def test_a_start_inside_a_transaction_is_refused_with_the_positions_around_it(served: Served) -> None:
    built = served.files[SECOND]
    group, end = next(iter(built.groups.items()))
    inside = next(event.start for event in built.events if event.group_start == group and event.start > group)
    error = await refused(await served.replica(), SECOND, inside)
    assert error.args[1].startswith(
        f"{SECOND}:{inside} is inside the transaction {group}-{end}; nearest valid positions: before {group}, after {end}"
    )


async def test_a_position_that_may_still_come_is_held_then_1105(served: Served) -> None:
    error = await refused(await served.replica(), THIRD, served.files[THIRD].size + 100)
    assert error.args[0] == ErrorCode.ER_UNKNOWN_ERROR


async def test_who_wants_only_what_there_is_waits_for_no_position_and_is_not_told_so(served: Served) -> None:
    client = await served.replica()
    await call(lambda: client.ask_dump(THIRD, served.files[THIRD].size + 100, flags=1))
    with pytest.raises(pymysql.MySQLError, match="waited 0 s") as caught:
        await call(client.event)
    assert caught.value.args[0] == ErrorCode.ER_UNKNOWN_ERROR


async def test_a_held_position_is_served_when_it_arrives(served: Served) -> None:
    served.server.mirror.position_wait_s = 10.0
    end = served.files[THIRD].size
    probe = BinlogBuilder().transaction(20)
    size = probe.transaction(50).size - BinlogBuilder().transaction(20).size
    client = await served.replica()
    await call(lambda: client.ask_dump(THIRD, end + size))
    await asyncio.sleep(0.1)
    await served.grow(lambda built: built.transaction(50))
    events = await call(lambda: client.events(2))
    assert [event.kind for event in events] == [EventType.ROTATE, EventType.FORMAT_DESCRIPTION]


async def test_a_lost_connection_resumes_inside_the_transaction_it_was_sent(served: Served) -> None:
    built = served.files[SECOND]
    group = next(iter(built.groups))
    inside = next(event.start for event in built.events if event.group_start == group and event.start > group)
    client = await served.replica(uuid="a" * 36)
    await call(lambda: client.ask_dump(SECOND, 4))
    await call(lambda: client.events(3))
    client.cut()
    again = await served.replica(uuid="a" * 36)
    await call(lambda: again.ask_dump(SECOND, inside))
    rotate, head, following = await call(lambda: again.events(3))
    assert (rotate.kind, head.kind) == (EventType.ROTATE, EventType.FORMAT_DESCRIPTION)
    assert following.data == bytes(built.data[inside : inside + len(following.data)])


async def test_another_replica_may_not_resume_there(served: Served) -> None:
    built = served.files[SECOND]
    group = next(iter(built.groups))
    inside = next(event.start for event in built.events if event.group_start == group and event.start > group)
    client = await served.replica(uuid="a" * 36)
    await call(lambda: client.ask_dump(SECOND, 4))
    await call(lambda: client.events(3))
    error = await refused(await served.replica(uuid="b" * 36), SECOND, inside)
    assert error.args[0] == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG


async def test_a_replica_that_has_settled_may_not_start_inside_a_transaction(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_edge, "SETTLED_S", 0.1)
    built = served.files[THIRD]
    group = next(iter(built.groups))
    inside = next(event.start for event in built.events if event.group_start == group and event.start > group)
    client = await served.replica(uuid="a" * 36, heartbeat_s=0.5)
    await call(lambda: client.ask_dump(THIRD, 4))
    events = await call(lambda: client.events(7))
    client.cut()
    assert [event.kind for event in events][5:] == [EventType.XID, EventType.HEARTBEAT]
    error = await refused(await served.replica(uuid="a" * 36), THIRD, inside)
    assert error.args[0] == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG


async def test_heartbeats_carry_the_replicas_own_position(served: Served) -> None:
    client = await served.replica(heartbeat_s=0.05)
    end = served.files[THIRD].size
    await call(lambda: client.ask_dump(THIRD, end))
    events = await call(lambda: client.events(4))
    assert [event.kind for event in events[2:]] == [EventType.HEARTBEAT] * 2
    assert events[2].end_log_pos == end
    assert events[2].data[19:-4] == THIRD.encode()


async def test_heartbeats_behind_a_stop_event_do_not_count_it(served: Served) -> None:
    client = await served.replica(heartbeat_s=0.05)
    end = served.files[THIRD].size
    await call(lambda: client.ask_dump(THIRD, end))
    await call(lambda: client.events(2))
    await served.grow(lambda built: built.stop())

    def first_after_stop() -> int:
        while client.events(1)[0].kind != EventType.STOP:
            pass
        return client.events(1)[0].end_log_pos

    assert await call(first_after_stop) == end


async def test_a_rotate_at_the_end_waits_for_the_file_that_it_names_and_heartbeats_go_on(served: Served) -> None:
    client = await served.replica(heartbeat_s=0.05)
    end = served.files[THIRD].size
    await call(lambda: client.ask_dump(THIRD, end))
    await call(lambda: client.events(2))
    rotate = await served.grow(lambda built: built.rotate(FOURTH))
    heartbeats = await call(lambda: client.events(3))
    assert {(event.kind, event.end_log_pos) for event in heartbeats} == {(EventType.HEARTBEAT, end)}
    fourth = BinlogBuilder().transaction(20)
    await served.generation.begin_file(FOURTH)
    await append_all(served.generation, fourth.data)

    def behind_the_heartbeats() -> list[bytes]:
        event = client.events(1)[0]
        while event.kind == EventType.HEARTBEAT:
            event = client.events(1)[0]
        return [event.data, *(event.data for event in client.events(2))]

    artificial = rotate_event(Position(FOURTH, 4), 1, with_checksum=True)
    head = bytes(fourth.data[4 : fourth.events[0].end])
    assert await call(behind_the_heartbeats) == [rotate, artificial, head]


async def test_a_reader_of_what_there_is_gets_a_rotate_at_the_end_at_once(served: Served) -> None:
    rotate = await served.grow(lambda built: built.rotate(FOURTH))
    client = await served.replica()
    client.ask_dump(THIRD, served.files[THIRD].size - len(rotate), flags=1)
    events = await call(client.events_to_eof)
    assert events[-1].data == rotate


async def test_no_heartbeats_come_where_none_were_asked_for(served: Served) -> None:
    client = await served.client(timeout_s=0.3)
    await call(lambda: client.set_up(heartbeat_s=0))
    await call(lambda: client.ask_dump(THIRD, served.files[THIRD].size))
    await call(lambda: client.events(2))
    with pytest.raises(pymysql.err.OperationalError):
        await call(client.event)


async def test_the_same_replica_again_ends_its_first_dump(served: Served) -> None:
    first = await served.replica(uuid="c" * 36)
    await call(lambda: first.ask_dump(THIRD, served.files[THIRD].size))
    await call(lambda: first.events(2))
    second = await served.replica(uuid="c" * 36)
    await call(lambda: second.ask_dump(THIRD, served.files[THIRD].size))
    await call(lambda: second.events(2))
    with pytest.raises(pymysql.MySQLError) as caught:
        await call(first.event)
    assert "same server_uuid/server_id" in caught.value.args[1]


async def test_kill_ends_another_dump_of_the_same_user(served: Served) -> None:
    first = await served.replica()
    number = (await call(lambda: first.query("SELECT CONNECTION_ID()")))[0][0]
    await call(lambda: first.ask_dump(THIRD, served.files[THIRD].size))
    await call(lambda: first.events(2))
    second = await served.client()
    await call(lambda: second.query(f"KILL {number}"))
    with pytest.raises(pymysql.err.OperationalError):
        await call(first.event)


async def test_kill_query_ends_a_dump_and_leaves_who_asks_nothing_alone(served: Served) -> None:
    idle, dumping = await served.client(), await served.replica()
    numbers = [(await call(lambda c=c: c.query("SELECT CONNECTION_ID()")))[0][0] for c in (idle, dumping)]  # type: ignore[misc]
    await call(lambda: dumping.ask_dump(THIRD, served.files[THIRD].size))
    await call(lambda: dumping.events(2))
    killer = await served.client()
    for number in numbers:
        await call(lambda number=number: killer.query(f"KILL QUERY {number}"))  # type: ignore[misc]
    with pytest.raises(pymysql.err.OperationalError):
        await call(dumping.event)
    assert await call(lambda: idle.query("SELECT 5")) == ((5,),)


async def test_what_a_client_says_of_itself_is_one_line_in_the_log(served: Served) -> None:
    with capture_logs() as logs:
        connection = await call(
            lambda: pymysql.connect(
                host="127.0.0.1",
                port=served.server.port,
                user=USER,
                password=PASSWORD,
                program_name="x\n\x1b[2Jlogin_refused",
            )
        )
        connection.close()
    (line,) = [line for line in logs if line["event"] == "replica_logged_in"]
    assert line["program_name"] == "x??[2Jlogin_refused"


async def test_who_knocks_on_and_on_does_not_fill_the_log(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_bounds, "_MOST_LINES", 5)

    def knock() -> None:
        with socket.create_connection(("127.0.0.1", served.server.port)) as stranger:
            stranger.sendall(b"\x05\0\0\1hello")
            while stranger.recv(4096):
                pass

    with capture_logs() as logs:
        for _ in range(20):
            await call(knock)
    assert len([line for line in logs if line["event"] == "connection_ended"]) == 5


async def test_a_statement_that_is_too_large_is_told_so(served: Served) -> None:
    client = await served.client()
    with pytest.raises(pymysql.MySQLError) as caught:
        await call(lambda: client.query("SELECT '" + "x" * (2 << 20) + "'"))
    assert caught.value.args[0] == ErrorCode.ER_NET_PACKET_TOO_LARGE


async def test_kill_of_a_connection_of_another_user_is_refused(served: Served) -> None:
    first = await served.replica()
    number = (await call(lambda: first.query("SELECT CONNECTION_ID()")))[0][0]
    second = await served.client(user="plain")
    with pytest.raises(pymysql.MySQLError) as caught:
        await call(lambda: second.query(f"KILL {number}"))
    assert caught.value.args[0] == ErrorCode.ER_KILL_DENIED_ERROR


async def test_a_stalled_replica_holds_nobody_up(served: Served) -> None:
    stalled = await served.replica(server_id=5)
    await served.grow(lambda built: [built.transaction(8_000_000) for _ in range(8)])
    await call(lambda: stalled.ask_dump(THIRD, 4, server_id=5))
    await call(lambda: stalled.events(2))
    other = await served.replica(server_id=6)
    await call(lambda: other.ask_dump(THIRD, 4, server_id=6, flags=1))
    assert sum(len(event.data) for event in await call(other.events_to_eof)) > 64_000_000


async def test_a_stalled_replica_that_half_closes_is_let_go(served: Served) -> None:
    stalled = await served.replica(server_id=6)
    await served.grow(lambda built: [built.transaction(8_000_000) for _ in range(8)])
    await call(lambda: stalled.ask_dump(THIRD, 4, server_id=6))
    await call(lambda: stalled.events(2))
    await asyncio.sleep(0.3)
    stalled.connection._sock.shutdown(socket.SHUT_WR)
    async with asyncio.timeout(5):
        while served.server.sessions:
            await asyncio.sleep(0.05)


async def test_closing_the_server_ends_a_stalled_and_a_waiting_replica_within_a_second(served: Served) -> None:
    waiting = await served.replica(server_id=5)
    await call(lambda: waiting.ask_dump(THIRD, served.files[THIRD].size, server_id=5))
    await call(lambda: waiting.events(2))
    stalled = await served.replica(server_id=6)
    await served.grow(lambda built: [built.transaction(8_000_000) for _ in range(8)])
    await call(lambda: stalled.ask_dump(THIRD, 4, server_id=6))
    await asyncio.sleep(0.2)
    async with asyncio.timeout(1.2):
        await served.server.close()
    assert served.server.sessions == []


async def test_a_replica_of_mysql_is_refused_behind_mariadb(served: Served) -> None:
    served.generation.set_identity(SourceIdentity("mariadb", "10.11.19-MariaDB-log", 1, None))
    error = await refused(await served.replica(), FIRST, 4)
    assert "only MariaDB" in error.args[1]


async def test_a_replica_of_mariadb_is_served_behind_mariadb(served: Served) -> None:
    served.generation.set_identity(SourceIdentity("mariadb", "10.11.19-MariaDB-log", 1, None))
    client = await served.replica()
    await call(lambda: client.query("SET @mariadb_slave_capability=4"))
    await call(lambda: client.ask_dump(FIRST, 4))
    assert (await call(lambda: client.events(1)))[0].kind == EventType.ROTATE


async def test_a_gtid_dump_is_refused_by_name_where_the_source_has_none(served: Served) -> None:
    client = await served.replica()

    def ask() -> None:
        client.command(0x1E, bytes(22))
        client.event()

    with pytest.raises(pymysql.MySQLError) as caught:
        await call(ask)
    assert "GTID_MODE = OFF instead of ON" in caught.value.args[1]


async def test_files_are_given_back_when_replicas_leave(served: Served) -> None:
    client = await served.replica()
    await call(lambda: client.ask_dump(FIRST, 4))
    await call(lambda: client.events(5))
    client.cut()
    async with asyncio.timeout(2):
        while served.server.sessions:
            await asyncio.sleep(0.01)
    assert served.server.mirror.reads._files == {}
