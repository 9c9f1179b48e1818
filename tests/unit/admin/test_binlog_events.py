"""SHOW BINLOG EVENTS at the relay: pages, boundaries, and what it costs others."""

import asyncio
import time
from pathlib import Path

import pymysql.connections
import pytest

from protocol.charsets import CHARACTER_SETS, TextEncoding
from protocol.errors import StatementRefused
from protocol.statements import EncodedRows, SourceFacts
from protocol.statements.requests import ShowBinlogEvents
from relay.admin import binlog_events
from relay.admin.binlog_events import MOST_EVENTS, BinlogEvents
from relay.admin.dialect import Dialect
from relay.archive.generation import Generation
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.console_fakes import MARIADB, MYSQL_56, a_client

NAME, SECOND = "mysql-bin.000001", "mysql-bin.000002"

Row = tuple[str, int, str, int, int, str]


def decoded(answer: EncodedRows) -> list[Row]:
    """The rows of an answer, behind the column count, six definitions and an EOF, before the last EOF."""
    rows = []
    for payload in answer.payloads[8:-1]:
        packet = pymysql.connections.MysqlPacket(payload, "utf8")
        name, pos, kind, server_id, end, info = (packet.read_length_coded_string().decode() for _ in range(6))
        rows.append((name, int(pos), kind, int(server_id), int(end), info))
    return rows


async def archive_of(directory: Path, built: BinlogBuilder) -> Generation:
    generation = await Generation.open(directory)
    await generation.begin_file(NAME)
    await append_all(generation, built.data)
    return generation


async def page(generation: Generation, facts: SourceFacts = MYSQL_56, **asked: object) -> list[Row]:
    events = BinlogEvents()
    try:
        return decoded(await events.show(generation, ShowBinlogEvents(**asked), Dialect.of(facts), a_client().encode))  # type: ignore[arg-type]
    finally:
        events.close()


async def refused(generation: Generation, facts: SourceFacts = MYSQL_56, **asked: object) -> str:
    with pytest.raises(StatementRefused) as caught:
        await page(generation, facts, **asked)
    assert caught.value.number == 1220
    return caught.value.what


async def test_every_event_is_a_row_with_its_boundary_in_front(tmp_path: Path) -> None:
    built = BinlogBuilder().ddl().transaction(5, 5)
    generation = await archive_of(tmp_path, built)
    rows = await page(generation)
    assert [(row[1], row[4]) for row in rows] == [(event.start, event.end) for event in built.events]
    labels = [row[5].partition("] ")[0] for row in rows]
    group = [label for row, label in zip(rows, labels, strict=True) if row[1] >= built.boundaries[-2]]
    await generation.close()
    assert (labels[0], labels[1]) == ("[ignore", "[self contained")
    assert (group[0], set(group[1:-1]), group[-1]) == ("[start", {"[inside"}, "[end")


async def test_an_incomplete_transaction_is_not_shown(tmp_path: Path) -> None:
    built = BinlogBuilder().transaction(5)
    whole = built.size
    built.transaction(5, 5)
    generation = await Generation.open(tmp_path)
    await generation.begin_file(NAME)
    await append_all(generation, built.data[: built.events[-1].start])
    assert max(row[4] for row in await page(generation)) == whole
    await generation.close()


async def test_a_page_ends_with_a_row_that_says_where_to_go_on(tmp_path: Path) -> None:
    built = BinlogBuilder()
    while len(built.events) < MOST_EVENTS * 2 + 100:
        built.transaction(*[3] * 200)
    generation = await archive_of(tmp_path, built)
    seen: list[int] = []
    position = 4
    while True:
        rows = await page(generation, file=NAME, position=position)
        more = rows[-1] if rows and rows[-1][2] == "More" else None
        seen += [row[1] for row in (rows[:-1] if more else rows)]
        if more is None:
            break
        assert len(rows) == MOST_EVENTS + 1
        assert f"SHOW BINLOG EVENTS IN '{NAME}' FROM {more[1]}" in more[5]
        position = more[1]
    assert seen == [event.start for event in built.events]
    await generation.close()


async def test_text_comes_in_the_clients_character_set(tmp_path: Path) -> None:
    generation = await archive_of(tmp_path, BinlogBuilder().ddl("CREATE TABLE größe (a INT)"))
    events = BinlogEvents()
    latin1 = a_client(encoding=TextEncoding(CHARACTER_SETS["latin1"], 8))
    try:
        answer = await events.show(generation, ShowBinlogEvents(), Dialect.of(MYSQL_56), latin1.encode)
    finally:
        events.close()
    await generation.close()
    assert any("größe".encode("latin-1") in payload for payload in answer.payloads)
    assert answer.payloads[1][-12:-10] == b"\x08\0"


async def test_long_texts_end_a_page_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binlog_events, "MOST_TEXT", 1000)
    built = BinlogBuilder()
    for number in range(40):
        built.ddl(f"CREATE TABLE t{number} /* {'x' * 200} */ (a INT)")
    generation = await archive_of(tmp_path, built)
    rows = await page(generation)
    assert rows[-1][2] == "More" and len(rows) < 10
    await generation.close()


@pytest.mark.parametrize(("offset", "count"), [(0, 3), (2, 2), (5, None), (0, 0), (1000, 5)])
async def test_a_limit_counts_from_the_position(tmp_path: Path, offset: int, count: int | None) -> None:
    built = BinlogBuilder().transaction(5, 5, 5).transaction(6)
    generation = await archive_of(tmp_path, built)
    starts = [event.start for event in built.events]
    rows = await page(generation, position=starts[2], offset=offset, count=count)
    wanted = starts[2:][offset:]
    assert [row[1] for row in rows] == (wanted if count is None else wanted[:count])
    await generation.close()


async def test_a_position_inside_of_an_event_is_refused_with_the_nearest_ones(tmp_path: Path) -> None:
    built = BinlogBuilder().transaction(5)
    generation = await archive_of(tmp_path, built)
    text = await refused(generation, position=built.boundaries[-1] - 3)
    assert text.startswith("Error when executing command SHOW BINLOG EVENTS: Wrong offset or I/O error")
    assert f"before {built.boundaries[-2]}, after {built.boundaries[-1]}" in text
    await generation.close()


async def test_behind_the_end_mysql_shows_nothing_and_mariadb_an_error(tmp_path: Path) -> None:
    built = BinlogBuilder().transaction(5)
    generation = await archive_of(tmp_path, built)
    assert await page(generation, position=built.size) == []
    assert await page(generation, position=built.size + 1) == []
    assert f"greater than actual file size:{built.size}" in await refused(generation, MARIADB, position=built.size + 1)
    await generation.close()


async def test_a_file_that_is_not_held_is_refused_with_those_that_are(tmp_path: Path) -> None:
    generation = await archive_of(tmp_path, BinlogBuilder().transaction(5))
    assert f"Could not find target log; binlog-relay holds {NAME} to {NAME}" in await refused(generation, file="../x")
    await generation.close()


async def test_a_file_that_is_purged_while_it_is_read_is_refused_as_one_that_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = BinlogBuilder().transaction(5).rotate(SECOND)
    await fill(tmp_path, (NAME, first.data), (SECOND, BinlogBuilder().transaction(5).data))
    generation = await Generation.open(tmp_path)
    path = generation.path

    def purged_then(name: str) -> Path:
        found = path(name)
        generation.held.take_oldest(1)
        found.unlink()
        return found

    monkeypatch.setattr(generation, "path", purged_then)
    text = await refused(generation, file=NAME)
    await generation.close()
    assert text.endswith(f"Could not find target log; binlog-relay holds {SECOND} to {SECOND}")


async def test_an_event_that_cannot_be_decoded_is_said_to_be_unreadable(tmp_path: Path) -> None:
    built = BinlogBuilder().transaction(5)
    generation = await archive_of(tmp_path, built)
    await generation.close()
    path = tmp_path / NAME
    data = bytearray(path.read_bytes())
    query = next(event for event in built.events if event.kind == 2)
    data[query.start + 19 + 8] = 0xFF  # the schema's length
    path.write_bytes(data)
    generation = await Generation.open(tmp_path)
    rows = await page(generation)
    assert any("unreadable: " in row[5] for row in rows)
    await generation.close()


async def test_a_listing_lets_the_loop_go_on(tmp_path: Path) -> None:
    built = BinlogBuilder()
    while len(built.events) < MOST_EVENTS:
        built.transaction(*[3] * 200)
    generation = await archive_of(tmp_path, built)
    events = BinlogEvents()
    listing = asyncio.ensure_future(
        events.show(generation, ShowBinlogEvents(), Dialect.of(MYSQL_56), a_client().encode)
    )
    turns = 0
    while not listing.done():
        turns += 1
        await asyncio.sleep(0.001)
    assert turns > 5
    assert len((await listing).payloads) > MOST_EVENTS
    events.close()
    await generation.close()


async def test_a_listing_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    built = BinlogBuilder()
    while built.size < 12 << 20:
        built.transaction(*[200_000] * 5)
    generation = await archive_of(tmp_path, built)
    events = BinlogEvents()
    # Its page begins behind everything: all of the file is scanned.
    listing = asyncio.ensure_future(
        events.show(generation, ShowBinlogEvents(offset=10**9), Dialect.of(MYSQL_56), a_client().encode)
    )
    await asyncio.sleep(0)
    listing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listing
    started = time.monotonic()
    await events.show(generation, ShowBinlogEvents(count=1), Dialect.of(MYSQL_56), a_client().encode)
    assert time.monotonic() - started < 2
    events.close()
    await generation.close()
