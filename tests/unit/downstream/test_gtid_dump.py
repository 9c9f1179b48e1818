"""Streams by GTID, wherever reads of the file end: the same bytes in each marker layout, with a walk and without."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest
import structlog

from protocol.auth.account import Account
from protocol.gtid.block_index import BlockIndex, BlockIndexWriter
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mysql_gtid import Tsid, parse_uuid
from protocol.kernel.ingest import Ingest
from protocol.pieces import Pieces
from protocol.statements.session.gtid_variables import GtidVariables
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.gtids.gtid_recorder import gtx_path
from relay.archive.read import file_reads
from relay.archive.storage.archived_file import SourceIdentity
from relay.downstream.connection.replica_session import Session
from relay.downstream.gtid_filter import mysql_filter
from relay.downstream.request.source_state import SourceState
from relay.downstream.server import DownstreamServer
from relay.downstream.start import mysql_request
from tests.support.archive_filling import append_all
from tests.support.gtid_binlog import add_mysql, mysql_binlog
from tests.support.replica_client import PASSWORD, ReplicaClient

U = "11111111-1111-1111-1111-111111111111"
W = "99999999-9999-9999-9999-999999999999"
OF_THE_REPLICA = f"{W}:1-7"
OF_OTHERS = Tsid(parse_uuid(W)).key
FILE = "mysql-bin.000001"
LAYOUTS = ("tbm", "strip", "edges")
COM_BINLOG_DUMP_GTID = 0x1E
NON_BLOCK = 1
LONGEST_EVENT = 380
HEARTBEAT = 27
Stream = Callable[[str, GtidSet | None], Awaitable[list[bytes]]]


def stamped(data: bytearray) -> bytes:
    """The file as the relay archives it: all of its events with markers."""
    buffer = data[4:]
    ingest = Ingest(packets=False, stamp=True)
    ingest.begin_file(4)
    ingest.feed(buffer, 0, len(buffer))
    assert ingest.produced == len(buffer)
    return bytes(data[:4] + buffer)


@pytest.fixture
async def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stream]:
    """All events of the archive, by GTID, or by position if no set is given. NAME.gtx tells of every two or three transactions."""
    monkeypatch.setitem(FileGtidCollector.__init__.__kwdefaults__, "gap_bytes", 900)
    binlog = mysql_binlog(GtidSet())
    for number, gtid in enumerate(GtidSet.from_text(f"{U}:1-30").members()):
        add_mysql(binlog, gtid, number * 11)
    generation = await Generation.open(tmp_path)
    generation.set_identity(SourceIdentity("mysql", "9.7.4", 1, U))
    await generation.begin_file(FILE)
    await append_all(generation, stamped(binlog.data))
    server = DownstreamServer(
        Archive.of(generation),
        [Account.with_password(layout, PASSWORD, layout) for layout in LAYOUTS],
        SourceState(lambda: GtidVariables("ON")),
    )
    await server.start("127.0.0.1", 0)

    async def read(layout: str, held: GtidSet | None) -> list[bytes]:
        def run() -> list[bytes]:
            client = ReplicaClient(server.port, user=layout)
            try:
                client.set_up()
                if held is None:
                    client.ask_dump(FILE, 4, flags=NON_BLOCK)
                else:
                    request = encode_binlog_dump_gtid(encode_gtid_set(held), flags=NON_BLOCK, server_id=77)
                    client.command(COM_BINLOG_DUMP_GTID, request)
                return [event.data for event in client.events_to_eof()]
            finally:
                client.cut()

        return await asyncio.wait_for(asyncio.to_thread(run), 20)

    yield read
    await server.close()
    await generation.close()


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_walk_that_passes_over_nothing_changes_nothing_wherever_reads_end(
    stream: Stream, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_position = await stream(layout, None)
    assert all(event[4] != HEARTBEAT for event in by_position)
    for step in range(LONGEST_EVENT, LONGEST_EVENT + 40, 3):
        monkeypatch.setattr(file_reads, "STEP_BYTES", step)
        assert await stream(layout, GtidSet.from_text(OF_THE_REPLICA)) == by_position, step


async def test_a_set_of_megabytes_is_taken_apart_in_a_thread(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def decoded(data: bytes | memoryview | Pieces) -> GtidSet:
        threads.append(threading.current_thread().name)
        return decode_gtid_set(data)

    monkeypatch.setattr(mysql_request, "decode_gtid_set", decoded)
    many = GtidSetBuilder()
    for number in range(1, 100_001):
        many.add_run(OF_OTHERS, 2 * number, 2 * number + 1)
    held = many.snapshot()
    assert len(encode_gtid_set(held)) > 1 << 20
    assert await stream("tbm", held) == await stream("tbm", None)
    assert threads == ["gtid-lookup_0"]


async def test_a_request_of_megabytes_that_is_read_slowly_leaves_others_their_turn(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    turns = [0]
    greeted, updated = Session.connection_made, Session.buffer_updated

    def with_room(session: Session, transport: asyncio.BaseTransport) -> None:
        # For more than is read in a turn: what the system takes meanwhile is there at once.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        greeted(session, transport)

    def slowly(session: Session, nbytes: int) -> None:
        time.sleep(0.002)
        turns[-1] += nbytes
        updated(session, nbytes)

    def take_turn() -> None:
        turns.append(0)
        if others_wait:
            loop.call_soon(take_turn)

    monkeypatch.setattr(Session, "connection_made", with_room)
    monkeypatch.setattr(Session, "buffer_updated", slowly)
    many = GtidSetBuilder()
    for number in range(1, 200_001):
        many.add_run(OF_OTHERS, 2 * number, 2 * number + 1)
    others_wait = True
    take_turn()
    await stream("tbm", many.snapshot())
    others_wait = False
    assert sum(turns) > 3 << 20
    assert max(turns) <= 256 << 10


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_what_is_left_of_a_stream_with_holes_is_the_same_wherever_reads_end(
    stream: Stream, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = GtidSet.from_text(f"{U}:3:5-6:9-20:22:30,{OF_THE_REPLICA}")
    wanted = await stream(layout, held)
    assert sum(event[4] == HEARTBEAT for event in wanted) == 5
    assert 20 < len(wanted) < len(await stream(layout, None))
    for step in range(LONGEST_EVENT, LONGEST_EVENT + 40, 3):
        monkeypatch.setattr(file_reads, "STEP_BYTES", step)
        # By turns each event is looked at, and only pieces with something that the replica has.
        monkeypatch.setattr(mysql_filter, "_WORTH_A_PIECE_BYTES", 1 if step % 2 else 1 << 20)
        assert await stream(layout, held) == wanted, step


async def test_an_index_that_is_not_the_files_ends_the_stream(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_filter, "_WORTH_A_PIECE_BYTES", 1)
    first, second, *others = BlockIndex(gtx_path(tmp_path / FILE).read_bytes())
    wrong = [first, replace(second, stop=second.stop - 20), *others]
    gtx_path(tmp_path / FILE).write_bytes(b"".join(map(BlockIndexWriter().encode, wrong)))
    with structlog.testing.capture_logs() as logs, pytest.raises(pymysql.MySQLError):
        await stream("tbm", GtidSet.from_text(f"{U}:20"))
    (reason,) = [line["reason"] for line in logs if line["event"] == "dump_stopped"]
    assert f"an event goes on at {second.stop - 20}, where NAME.gtx has a transaction begin" in reason


async def test_what_a_replica_has_of_a_source_that_was_unknown_is_passed_over_when_it_comes(tmp_path: Path) -> None:
    binlog = mysql_binlog(GtidSet())

    def add(text: str) -> bytes:
        at = binlog.size
        (gtid,) = GtidSet.from_text(text).members()
        add_mysql(binlog, gtid)
        return bytes(binlog.data[at:])

    add(f"{U}:1")
    generation = await Generation.open(tmp_path)
    generation.set_identity(SourceIdentity("mysql", "9.7.4", 1, U))
    await generation.begin_file(FILE)
    await append_all(generation, binlog.data)
    source = SourceState(lambda: GtidVariables("ON"))
    server = DownstreamServer(Archive.of(generation), [Account.with_password("tbm", PASSWORD)], source)
    await server.start("127.0.0.1", 0)
    client = await asyncio.to_thread(ReplicaClient, server.port, user="tbm")
    try:
        await asyncio.to_thread(client.set_up)
        held = GtidSet.from_text(f"{U}:1,{W}:1-7")
        request = encode_binlog_dump_gtid(encode_gtid_set(held), flags=0, server_id=77)
        await asyncio.to_thread(client.command, COM_BINLOG_DUMP_GTID, request)
        while (await next_event(client)) != 27:  # behind the transaction that it has
            pass
        for text, wanted in (
            (f"{U}:2", True),
            (f"{W}:3", False),
            (f"{W}:8", True),
            (f"{W}:4", False),
            (f"{U}:3", True),
        ):
            at = binlog.size
            added = add(text)
            await append_all(generation, binlog.data, start=at)
            got = b""
            while wanted and len(got) < len(added):
                event = await asyncio.to_thread(client.event)
                assert event is not None
                got += event.data if event.kind != 27 else b""
            assert not wanted or got == added, text
    finally:
        client.cut()
        await server.close()
        await generation.close()


async def test_a_mode_that_went_down_and_up_again_while_nothing_came_leaves_the_stream_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reads, "STEP_BYTES", 1000)
    second = "mysql-bin.000002"
    binlog = mysql_binlog(GtidSet())
    transactions = list(GtidSet.from_text(f"{U}:1-3").members())
    add_mysql(binlog, transactions[0])
    generation = await Generation.open(tmp_path)
    generation.set_identity(SourceIdentity("mysql", "9.7.4", 1, U))
    await generation.begin_file(FILE)
    await append_all(generation, binlog.data)
    mode = "OFF"
    source = SourceState(lambda: GtidVariables("ON"), gtid_mode=lambda: mode)
    server = DownstreamServer(Archive.of(generation), [Account.with_password("tbm", PASSWORD)], source)
    await server.start("127.0.0.1", 0)
    client = await asyncio.to_thread(ReplicaClient, server.port, user="tbm")
    try:
        await asyncio.to_thread(client.set_up)
        request = encode_binlog_dump_gtid(encode_gtid_set(GtidSet(transactions[:1])), flags=0, server_id=77)
        await asyncio.to_thread(client.command, COM_BINLOG_DUMP_GTID, request)
        while (await next_event(client)) != 27:  # behind the transaction that it has
            pass
        # The source's files go on meanwhile.
        at = binlog.size
        binlog.rotate(second)
        await append_all(generation, binlog.data, start=at)
        following = mysql_binlog(GtidSet(transactions[:1]))
        await generation.begin_file(second)
        await append_all(generation, following.data)
        kinds = [await next_event(client) for _ in range(4)]
        assert kinds[1:] == [4, 15, 35]
        mode = "ON"
        at = following.size
        # A transaction that takes several reads of the file, and one behind it.
        add_mysql(following, transactions[1], 5000)
        add_mysql(following, transactions[2])
        await append_all(generation, following.data, start=at)
        got = b""
        while len(got) < following.size - at:
            event = await asyncio.to_thread(client.event)
            assert event is not None
            got += event.data if event.kind != 27 else b""
        assert got == bytes(following.data[at:])
    finally:
        client.cut()
        await server.close()
        await generation.close()


async def next_event(client: ReplicaClient) -> int:
    event = await asyncio.to_thread(client.event)
    assert event is not None
    return event.kind
