"""Streams across a change of source: what a replica is sent on one connection, and what it is told by file and position."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pymysql
import pytest
import structlog.testing

from protocol.binlog.event_type import EventType
from protocol.commands import DumpFlag
from protocol.errors import PositionRefused
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import BinlogDumpGtid, encode_binlog_dump_gtid
from protocol.gtid.gtid_set import GtidSet
from protocol.position import Position
from protocol.statements import SourceFacts
from protocol.statements.session.gtid_variables import GtidVariables
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.downstream.connection import replica_session as session_module
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.request.dump_request import DumpRequest
from relay.downstream.start.mysql_request import MysqlRequest
from relay.downstream.start.next_generation import GtidSwitch
from relay.downstream.start.segment import SegmentHost, SegmentOpener
from tests.support.generation_filling import (
    A,
    B,
    append_files,
    change_source,
    identity,
    mariadb_series,
    mysql_series,
    two_generations,
)
from tests.support.served_generations import call, read_refusal, servers_of_generations, transactions

FIRST, SECOND, THIRD = (f"mysql-bin.{number:06d}" for number in (1, 2, 3))


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Archive], Any]]:
    async with servers_of_generations() as start:
        yield start


@pytest.mark.parametrize(
    ("held", "sent"),
    [
        ("", [FIRST, "A1", "A2", "A3", SECOND, "A4", "A5", "A6", SECOND, "A7", "A8", "A9", THIRD, "B1", "B2"]),
        (f"{A}:1-3", [SECOND, "A4", "A5", "A6", SECOND, "A7", "A8", "A9", THIRD, "B1", "B2"]),
        (f"{A}:1-4", [SECOND, "A5", "A6", "A7", "A8", "A9", THIRD, "B1", "B2"]),
        (f"{A}:1-4:8", [SECOND, "A5", "A6", "A7", "A9", THIRD, "B1", "B2"]),
        (f"{A}:1-3:8,{B}:1", [SECOND, "A4", "A5", "A6", SECOND, "A7", "A9", THIRD, "B2"]),
        (f"{A}:1-9,{B}:1-2", [THIRD]),
    ],
)
async def test_a_mysql_replica_gets_what_it_lacks_of_both_sources_once(
    serve: Callable[[Archive], Any], tmp_path: Path, held: str, sent: list[str]
) -> None:
    served = await serve(await two_generations(tmp_path))
    client = await served.by_set(held)
    events = await call(client.events_to_eof)
    assert transactions(events) == sent


async def test_a_replica_that_is_connected_during_the_change_notices_no_more_than_a_rotate(
    serve: Callable[[Archive], Any], tmp_path: Path
) -> None:
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-3", f"{A}:4-6"))
    served = await serve(archive)
    client = await served.by_set("", blocks=True, heartbeat_s=0.2)
    events: list[Any] = []

    def read_until(kind: EventType) -> None:
        while not events or events[-1].kind != kind:
            events.append(client.event())

    await call(lambda: read_until(EventType.HEARTBEAT))
    await change_source(archive, identity(B, 2), mysql_series(2, f"{A}:5-9", f"{B}:1-2", start=f"{A}:1-4"))
    events.append(await call(client.event))
    while events[-1].kind != EventType.HEARTBEAT or not transactions(events)[-1].startswith("B2"):
        events.append(await call(client.event))
    seen = transactions(events)
    assert seen == [FIRST, "A1", "A2", "A3", SECOND, "A4", "A5", "A6", SECOND, "A7", "A8", "A9", THIRD, "B1", "B2"]
    place = [number for number, event in enumerate(events) if event.kind == EventType.ROTATE and not event.end_log_pos]
    rotate, head = events[place[2]], events[place[2] + 1]
    assert (int.from_bytes(rotate.data[5:9], "little"), head.kind) == (2, EventType.FORMAT_DESCRIPTION)
    # `created` of 0: the replica goes on, it keeps its temporary tables.
    assert head.data[71:75] == bytes(4)
    # Positions are those of the new file: the heartbeat that stands for what was passed over comes before A7.
    heartbeats = [event for event in events[place[2] :] if event.kind == EventType.HEARTBEAT]
    sizes = archive.current.files[0].end
    assert 0 < heartbeats[0].end_log_pos < sizes
    assert heartbeats[0].data[19:-4].decode() == SECOND
    assert served.server.sessions[0].status().is_at_end
    assert served.server.sessions[0].status().needed_generation == 2


@pytest.mark.parametrize(
    ("held", "until", "sent"),
    [
        ("", None, [FIRST, "0-1-1", "0-1-2", "1-1-1", SECOND, "0-1-3", "1-1-2", THIRD, "0-2-5", "1-2-7"]),
        ("0-1-2", None, [FIRST, "1-1-1", SECOND, "0-1-3", "1-1-2", THIRD, "0-2-5", "1-2-7"]),
        ("0-2-5,1-1-1", None, [SECOND, "1-1-2", THIRD, "1-2-7"]),
        ("0-2-5,1-1-2", None, [THIRD, "1-2-7"]),
        ("", "0-1-3,1-2-7", [FIRST, "0-1-1", "0-1-2", "1-1-1", SECOND, "0-1-3", "1-1-2", THIRD, "1-2-7"]),
    ],
)
async def test_a_mariadb_replica_gets_what_it_lacks_of_both_sources_once(
    serve: Callable[[Archive], Any], tmp_path: Path, held: str, until: str | None, sent: list[str]
) -> None:
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(None, 1, "mariadb"))
    await append_files(archive, mariadb_series(1, "0-1-1,0-1-2,1-1-1", "0-1-3,1-1-2"))
    files = mariadb_series(3, "0-1-3,0-2-5,1-2-7", start="0-1-2,1-1-2")
    await change_source(archive, identity(None, 2, "mariadb"), files)
    served = await serve(archive)
    client = await served.by_position(held, until=until)
    assert transactions(await call(client.events_to_eof)) == sent


async def test_by_file_and_position_a_replica_is_told_where_its_coordinates_end_and_where_to_go_on(
    serve: Callable[[Archive], Any], tmp_path: Path
) -> None:
    archive = await two_generations(tmp_path)
    served = await serve(archive)
    ended = archive.all[0].end
    for file, offset in ((FIRST, 4), ("", 4)):
        client = await served.client()
        await call(lambda: client.ask_dump(file, offset))  # noqa: B023
        text = await read_refusal(client)
        assert text.startswith(f"{ended} is where the binlogs of a former source end")
        assert f"server_id 2, {B}" in text
    # In the new file A5 and A6 come first, and are the last of the old one.
    name, position = text.split("MASTER_LOG_FILE='")[1].split("', MASTER_LOG_POS=")
    client = await served.client()
    await call(lambda: client.ask_dump(name, int(position), flags=1))
    assert transactions(await call(client.events_to_eof)) == [SECOND, "A7", "A8", "A9", THIRD, "B1", "B2"]


async def test_a_name_that_both_sources_have_is_the_newest_ones_but_for_who_was_reading_the_other(
    serve: Callable[[Archive], Any], tmp_path: Path
) -> None:
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-3", f"{A}:4-6"))
    served = await serve(archive)
    reader = await served.client(uuid="aaaaaaaa-0000-0000-0000-00000000000a")
    await call(lambda: reader.ask_dump(SECOND, 4))
    head = await call(lambda: reader.events(4))
    assert transactions(head)[:1] == [SECOND]
    end = archive.current.end
    assert end is not None
    reader.cut()
    await change_source(archive, identity(B, 2), mysql_series(2, f"{A}:5-9", f"{B}:1-2", start=f"{A}:1-4"))
    again = await served.client(uuid="aaaaaaaa-0000-0000-0000-00000000000a")
    await call(lambda: again.ask_dump(SECOND, end.offset))
    assert (await read_refusal(again)).startswith(f"{SECOND}:{end.offset} is where")
    other = await served.client(uuid="bbbbbbbb-0000-0000-0000-00000000000b")
    await call(lambda: other.ask_dump(SECOND, 4, flags=1))
    assert transactions(await call(other.events_to_eof)) == [SECOND, "A5", "A6", "A7", "A8", "A9", THIRD, "B1", "B2"]


async def test_where_the_new_source_has_another_order_there_is_no_same_place(
    serve: Callable[[Archive], Any], tmp_path: Path
) -> None:
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-6"))
    # In the files of the new source A7 stands before A6.
    files = mysql_series(5, f"{A}:5:7", f"{A}:6,{B}:1", start=f"{A}:1-4")
    await change_source(archive, identity(B, 2), files)
    served = await serve(archive)
    client = await served.client()
    await call(lambda: client.ask_dump(FIRST, 4))
    text = await read_refusal(client)
    assert "has no file and position" in text and "another order" in text and "by GTID" in text
    client = await served.by_set("")
    numbers = [f"A{number}" for number in range(1, 7)]
    assert transactions(await call(client.events_to_eof)) == [
        FIRST,
        *numbers,
        "mysql-bin.000005",
        "A7",
        "mysql-bin.000006",
        "B1",
    ]


async def test_what_the_new_source_is_still_to_deliver_is_waited_for(
    serve: Callable[[Archive], Any], tmp_path: Path
) -> None:
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-6"))
    files = mysql_series(5, f"{A}:5", f"{A}:6-7", start=f"{A}:1-4")
    served = await serve(archive)
    by_place = await served.client(uuid="aaaaaaaa-0000-0000-0000-00000000000a", heartbeat_s=0.05)
    by_set = await served.by_set("", blocks=True, heartbeat_s=0.1)
    await call(lambda: by_place.ask_dump(FIRST, 4))
    await change_source(archive, identity(B, 2), files[:1])
    seen: list[Any] = []
    while "mysql-bin.000005" not in transactions(seen):
        seen.append(await call(by_set.event))
    # Whoever waits for it hears that the link lives.
    (waiting,) = (one.dump for one in served.server.sessions if one.client.replica_uuid and one.dump is not None)
    sent_bytes = waiting.sent_bytes
    async with asyncio.timeout(5):
        while waiting.sent_bytes == sent_bytes:
            await asyncio.sleep(0.01)
    # Events are looked at one by one until what the replica has is known to have come, and a file begins behind it.
    (session,) = (one for one in served.server.sessions if one.dump is not None and one.dump.is_filtered)
    await append_files(archive, files[1:])
    text = await read_refusal(by_place)
    assert "The same place there is mysql-bin.000006, position " in text
    while transactions(seen)[-1] != "A7":
        seen.append(await call(by_set.event))
    numbers = [f"A{number}" for number in range(1, 7)]
    assert transactions(seen) == [FIRST, *numbers, "mysql-bin.000005", "mysql-bin.000006", "A7"]
    await append_files(archive, mysql_series(7, f"{A}:8", start=f"{A}:1-7"))
    while transactions(seen)[-1] != "A8":
        seen.append(await call(by_set.event))
    assert session.dump is not None and not session.dump.is_filtered


async def test_a_switch_that_fails_for_a_reason_nobody_thought_of_ends_the_stream_and_the_replica_asks_again(
    serve: Callable[[Archive], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_arguments: object) -> None:
        raise LookupError("of a kind that nobody expects")

    monkeypatch.setattr(GtidSwitch, "find", broken)
    served = await serve(await two_generations(tmp_path))
    client = await served.by_set("")
    with pytest.raises(pymysql.MySQLError) as caught:
        await call(client.events_to_eof)
    assert caught.value.args[0] == 1105 and "internal error" in caught.value.args[1]


async def purge_oldest(generation: Generation, count: int = 1) -> None:
    await generation.purge([file.name for file in generation.files[:count]], "a test")


async def test_what_was_purged_of_the_next_source_is_not_left_out_without_a_word(
    serve: Callable[[Archive], Any], tmp_path: Path
) -> None:
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(None, 1, "mariadb"))
    await append_files(archive, mariadb_series(1, "0-1-1,0-1-2"))
    files = mariadb_series(3, "0-2-3", "0-2-4", start="0-1-2")
    following = await change_source(archive, identity(None, 2, "mariadb"), files)
    await purge_oldest(following)
    served = await serve(archive)
    client = await served.by_position("0-1-1")
    assert "Could not find GTID state requested by slave" in await read_refusal(client)


async def test_a_generation_purged_as_a_whole_takes_no_later_one_with_it(tmp_path: Path) -> None:
    archive = await two_generations(tmp_path)
    third = mysql_series(9, f"{B}:3", start=f"{A}:1-9,{B}:1-2")
    await change_source(archive, identity(A, 1), third)
    first, second, _third = list(archive.all)
    lookup = GtidLookup(archive)
    request = BinlogDumpGtid("", 4, DumpFlag(0), 77, encode_gtid_set(GtidSet()))
    facts = SourceFacts("mysql", "9.7.4", 2, B, gtids=lambda: GtidVariables(mode="ON"))
    opener = SegmentOpener(cast(SegmentHost, None), DumpRequest(request, {}, facts, None, None, ""))
    switch = GtidSwitch(archive, first, lookup, opener, MysqlRequest(request, facts, lookup))
    await purge_oldest(first, 2)
    await purge_oldest(second, 3)
    await archive.forget_emptied()
    assert len(archive.all) == 1 and switch.is_due()
    # What the replica was not sent of the second one is missing.
    with pytest.raises(PositionRefused, match=f"purged .*{B}"):
        await switch.find(Position(SECOND, 100), None)
    lookup.shutdown()
    await archive.close()


async def test_acknowledgements_of_both_sources_are_taken_in_their_order(
    serve: Callable[[Archive], Any], tmp_path: Path
) -> None:
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(3, f"{A}:1-3"))
    served = await serve(archive, semi_sync=True)
    client = await served.client()
    await call(lambda: client.query("SET @rpl_semi_sync_replica= 1"))
    body = encode_binlog_dump_gtid(encode_gtid_set(GtidSet()), flags=0, server_id=77)
    await call(lambda: client.command(0x1E, body))
    asked: list[tuple[str, int]] = []

    def read(count: int) -> None:
        """Up to so many events that are to be acknowledged."""
        file = ""
        while len(asked) < count:
            data = client.connection._read_packet().get_all_data()
            assert data[:2] == b"\0\xef"
            if data[2 + 1 + 4] == EventType.ROTATE and not int.from_bytes(data[16:20], "little"):
                file = data[3 + 27 : -4].decode()
            if data[2]:
                client.connection._next_seq_id = 1
                asked.append((file or asked[-1][0], int.from_bytes(data[16:20], "little")))

    def acknowledge(file: str, offset: int) -> None:
        payload = b"\xef" + offset.to_bytes(8, "little") + file.encode()
        client.connection._write_bytes(len(payload).to_bytes(3, "little") + b"\0" + payload)

    await call(lambda: read(1))
    # The new source's files have smaller numbers than the old one's.
    await change_source(archive, identity(B, 2), mysql_series(1, f"{A}:3-5", start=f"{A}:1-2"))
    await call(lambda: read(2))
    assert [file for file, _offset in asked] == [THIRD, FIRST]
    acknowledgements = served.server.sessions[0].acknowledgements
    for file, offset in asked:
        await call(lambda: acknowledge(file, offset))  # noqa: B023
    deadline = asyncio.get_running_loop().time() + 5
    while served.server.acknowledgement_sums.acknowledged < len(asked):
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.02)
    assert (str(acknowledgements.acked), acknowledgements.open) == (f"{FIRST}:{asked[-1][1]}", 0)


async def test_a_replica_whose_source_was_purged_as_a_whole_while_its_request_was_looked_at_is_told(
    serve: Callable[[Archive], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await serve(await two_generations(tmp_path))
    archive = served.archive
    admitted = session_module.admit

    async def slowly(*asked: Any) -> Any:
        found = await admitted(*asked)
        await purge_oldest(archive.all[0], 2)
        await archive.forget_emptied()
        return found

    monkeypatch.setattr(session_module, "admit", slowly)
    client = await served.by_set("")
    with pytest.raises(pymysql.MySQLError) as caught:
        await call(client.events_to_eof)
    assert caught.value.args[0] == 1105 and f"{FIRST} was removed" in caught.value.args[1]


class _Found(GtidSwitch):
    """Finds something at once."""

    def __init__(self) -> None:
        super().__init__(*[None] * 5)  # type: ignore[arg-type]

    async def find(self, end: Position, walk: object) -> Any:
        return "a part"


async def test_a_stream_that_cannot_go_on_with_what_was_found_is_ended_with_an_error() -> None:
    told: list[Any] = []

    def done(found: Any) -> None:
        told.append(found)
        if found == "a part":
            raise ZeroDivisionError("a bug")

    switch = _Found()
    with structlog.testing.capture_logs() as logs:
        switch.begin(Position(FIRST, 4), None, done)
        async with asyncio.timeout(5):
            while len(told) < 2:
                await asyncio.sleep(0)
    assert isinstance(told[1], PositionRefused) and told[1].number == 1105
    (line,) = logs
    assert (line["event"], type(line["exc_info"])) == ("passage_failed", ZeroDivisionError)
