"""What replicas are sent and told around an accepted gap: nobody passes it in silence."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from protocol.binlog.event_type import EventType
from relay.archive.archive import Archive
from tests.support.generation_filling import GAP, A, append_files, behind_a_gap, identity, mysql_series
from tests.support.served_generations import Served, call, read_refusal, servers_of_generations, transactions

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"
NEW = "g0002.mysql-bin.000002"
OLD = "g0001.mysql-bin.000002"
ONE, OTHER = "aaaaaaaa-0000-0000-0000-00000000000a", "bbbbbbbb-0000-0000-0000-00000000000b"
LOST = "has transactions that the source has lost"


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Archive], Any]]:
    async with servers_of_generations() as start:
        yield start


@pytest.fixture
async def served(serve: Callable[[Archive], Any], tmp_path: Path) -> Served:
    """The source lost its file 2, with 4-6, and has used the name, and 4-5, again."""
    made: Served = await serve(await behind_a_gap(tmp_path))
    return made


async def by_position(served: Served, file: str, offset: int, *, uuid: str = ONE, once: bool = False) -> Any:
    client = await served.client(uuid=uuid)
    await call(lambda: client.ask_dump(file, offset, flags=int(once)))
    return client


@pytest.mark.parametrize(
    ("held", "sent"),
    [
        ("", [FIRST, "A1", "A2", "A3", SECOND, "A4", "A5"]),
        (f"{A}:1-2", [FIRST, "A3", SECOND, "A4", "A5"]),
        (f"{A}:1-3", [SECOND, "A4", "A5"]),
    ],
)
async def test_a_replica_by_gtid_that_lacks_nothing_gets_the_new_history_and_nothing_that_was_lost(
    served: Served, held: str, sent: list[str]
) -> None:
    client = await served.by_set(held)
    assert transactions(await call(client.events_to_eof)) == sent


@pytest.mark.parametrize("held", ["1-4", "1-6", "4"])
async def test_a_replica_by_gtid_that_has_what_was_lost_is_refused_by_name(served: Served, held: str) -> None:
    client = await served.by_set(f"{A}:{held}", uuid=ONE)
    text = await read_refusal(client)
    assert LOST in text and f"{A}:{held.replace('1', '4', 1)}".replace("4-4", "4") in text


async def test_a_replica_that_follows_behind_the_gap_may_have_the_numbers_that_were_given_again(
    served: Served,
) -> None:
    client = await served.by_set(f"{A}:1-3", uuid=ONE)
    await call(client.events_to_eof)
    again = await served.by_set(f"{A}:1-4", uuid=ONE)
    assert transactions(await call(again.events_to_eof)) == [SECOND, "A5"]
    stranger = await served.by_set(f"{A}:1-4", uuid=OTHER)
    assert LOST in await read_refusal(stranger)
    # Behind the numbers that were lost nobody can come from the old history.
    await append_files(served.archive, mysql_series(3, f"{A}:6-8", start=f"{A}:1-5"))
    copied = await served.by_set(f"{A}:1-7", uuid=OTHER)
    assert transactions(await call(copied.events_to_eof))[-1] == "A8"


async def test_by_file_and_position_the_stream_ends_where_the_source_ends_and_names_what_follows(
    served: Served,
) -> None:
    fork = served.archive.all[0].fork
    text = await read_refusal(await by_position(served, FIRST, 4))
    assert text == (
        f"{fork} is where an accepted gap begins. Nothing is missing there: when the replica has applied all, "
        f"CHANGE MASTER TO MASTER_LOG_FILE='{NEW}', MASTER_LOG_POS=4"
    )
    client = await by_position(served, NEW, 4, once=True)
    assert transactions(await call(client.events_to_eof)) == [SECOND, "A4", "A5"]


async def test_what_the_source_lost_is_for_who_reads_it_once_and_for_no_replica(served: Served) -> None:
    assert LOST in await read_refusal(await by_position(served, OLD, 4))
    client = await by_position(served, OLD, 4, once=True)
    assert transactions(await call(client.events_to_eof)) == [SECOND, "A4", "A5", "A6"]


async def test_a_place_that_may_be_two_is_refused_until_it_is_named(served: Served) -> None:
    text = await read_refusal(await by_position(served, SECOND, 4))
    assert f"'{OLD}' before the gap, or '{NEW}' behind it" in text
    # The new file has not come so far yet, the old one has a place there.
    old_end = served.archive.all[0].files[1].end
    assert old_end > served.archive.current.files[0].end
    assert "is a place in two files" in await read_refusal(await by_position(served, SECOND, old_end, uuid=OTHER))
    client = await by_position(served, NEW, 4)
    assert transactions(await call(lambda: client.events(3)))[:1] == [SECOND]
    client.cut()
    # Who is no replica looks at what SHOW BINARY LOGS shows.
    reader = await served.client()
    await call(lambda: reader.ask_dump(SECOND, 4, server_id=0, flags=1))
    assert transactions(await call(reader.events_to_eof)) == [SECOND, "A4", "A5"]
    # By its mark it is known to follow behind the gap.
    again = await by_position(served, SECOND, 4, once=True)
    assert transactions(await call(again.events_to_eof)) == [SECOND, "A4", "A5"]


async def test_a_name_with_a_generation_that_is_not_there_is_no_file(served: Served) -> None:
    assert "binlog-relay has no such file" in await read_refusal(await by_position(served, "g0007.mysql-bin.000002", 4))


@pytest.mark.parametrize("by_gtid", [True, False])
async def test_replicas_that_are_at_the_end_when_the_gap_is_accepted_are_told_that_they_are_ahead(
    serve: Callable[[Archive], Any], tmp_path: Path, by_gtid: bool
) -> None:
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-3", f"{A}:4-6"))
    served = await serve(archive)
    if by_gtid:
        client = await served.by_set("", blocks=True, heartbeat_s=0.1)
    else:
        client = await served.client(uuid=ONE, heartbeat_s=0.1)
        await call(lambda: client.ask_dump(FIRST, 4))

    def read_to_the_end() -> None:
        while client.event().kind != EventType.HEARTBEAT:
            pass

    await call(read_to_the_end)
    await behind_a_gap(tmp_path, archive)
    text = await read_refusal(client)
    assert LOST in text and (f"{A}:4-6" in text) is by_gtid


async def test_where_binlogs_are_missing_who_lacks_them_is_stopped_and_who_has_them_goes_on(
    serve: Callable[[Archive], Any], tmp_path: Path
) -> None:
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-3"))
    end = archive.current.end
    assert end is not None
    to = replace(end, file="mysql-bin.000005", offset=4)
    gap = replace(GAP, after=end, common=None, to=to, is_whole=False, lost="", missing=f"{A}:4-6", replicas=())
    await archive.prepare(identity(A, 1), "db:3306", to.file, gap)
    await append_files(archive, mysql_series(5, f"{A}:7-8", start=f"{A}:1-6"))
    await archive.settled()
    served = await serve(archive)
    text = await read_refusal(await served.by_set(f"{A}:1-2"))
    assert f"binlogs are missing up to {to}. It lacks: {A}:4-6. Copy the data" in text
    text = await read_refusal(await by_position(served, FIRST, 4))
    assert "or lose what is missing, knowingly: CHANGE MASTER TO MASTER_LOG_FILE='mysql-bin.000005'" in text
    assert f"Missing: {A}:4-6" in text
    client = await served.by_set(f"{A}:1-6")
    assert transactions(await call(client.events_to_eof)) == [to.file, "A7", "A8"]
    client = await served.by_set(f"{A}:1-2:4-6")
    assert transactions(await call(client.events_to_eof)) == [FIRST, "A3", to.file, "A7", "A8"]


async def test_where_an_end_was_lost_and_what_came_after_it_is_missing_too_nobody_begins_with_what_was_lost(
    serve: Callable[[Archive], Any], tmp_path: Path
) -> None:
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-3", f"{A}:4-6"))
    first, end = archive.current.files[0], archive.current.end
    assert end is not None
    fork, to = replace(end, file=first.name, offset=first.end), replace(end, file="mysql-bin.000005", offset=4)
    gap = replace(GAP, after=end, common=fork, to=to, is_whole=False, missing=f"{A}:4-9")
    await archive.prepare(identity(A, 1), "db:3306", to.file, gap)
    await append_files(archive, mysql_series(5, f"{A}:10", start=f"{A}:1-9"))
    await archive.settled()
    served = await serve(archive)
    for held in ("1-2", "1-3"):
        text = await read_refusal(await served.by_set(f"{A}:{held}"))
        assert text.startswith(f"{fork} is where an accepted gap begins") and f"It lacks: {A}:4-9" in text
    assert LOST in await read_refusal(await served.by_set(f"{A}:1-6"))
    copied = await served.by_set(f"{A}:1-10")
    assert transactions(await call(copied.events_to_eof)) == [to.file]


async def test_of_another_server_no_place_is_named_that_would_repeat_its_transactions(
    serve: Callable[[Archive], Any], tmp_path: Path
) -> None:
    archive = await behind_a_gap(tmp_path)
    gap = archive.all[1].gap
    assert gap is not None
    archive.all[1].gap = replace(gap, has_place=False)
    served = await serve(archive)
    text = await read_refusal(await by_position(served, FIRST, 4))
    assert "no file and position is known to follow" in text and "CHANGE MASTER" not in text
