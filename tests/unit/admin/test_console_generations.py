"""The console of a relay that has gone over to another source: what is listed, what may be purged."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from protocol.resultset import Rows
from protocol.statements import Done
from protocol.statements.requests import PurgeBefore, PurgeTo, ShowBinaryLogs
from relay.admin.console import Console
from relay.admin.dialect import Dialect
from relay.admin.status_variables import StatusFacts, status_values
from relay.archive.archive import Archive
from relay.archive_inspection.listing import read_ledger
from tests.support.console_fakes import FOLLOWING, MYSQL_97, FakeConnections, FakeSource, a_client, a_replica
from tests.support.generation_filling import A, B, append_files, mysql_series, two_generations

FIRST = ["mysql-bin.000001", "mysql-bin.000002"]
SECOND = ["mysql-bin.000002", "mysql-bin.000003"]


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncIterator[Archive]:
    opened = await two_generations(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def connections() -> FakeConnections:
    return FakeConnections()


@pytest.fixture
async def console(archive: Archive, connections: FakeConnections) -> AsyncIterator[Console]:
    made = Console(archive, FakeSource(), connections)
    yield made
    made.close()


def held(archive: Archive) -> list[tuple[int, str]]:
    return [(one.number, file.name) for one in archive.all for file in one.files]


async def purged(console: Console, request: PurgeTo | PurgeBefore) -> list[int]:
    """The numbers of the notices."""
    answer = await console.answer(request, a_client())
    assert isinstance(answer, Done)
    return [notice.number for notice in answer.notices]


async def test_the_newest_sources_files_are_listed(console: Console) -> None:
    answer = await console.answer(ShowBinaryLogs(), a_client())
    assert isinstance(answer, Rows) and [row[0] for row in answer.rows] == SECOND


async def test_a_purge_to_a_name_that_both_have_means_the_newer_one(
    console: Console, archive: Archive, tmp_path: Path
) -> None:
    assert await purged(console, PurgeTo("mysql-bin.000002")) == []
    assert held(archive) == [(2, name) for name in SECOND]
    assert [row.file for row in read_ledger(tmp_path) if row.kind == "purged"] == FIRST


async def test_a_purge_goes_from_the_oldest_source_on(console: Console, archive: Archive) -> None:
    assert await purged(console, PurgeTo("mysql-bin.000001")) == []
    assert held(archive) == [*((1, name) for name in FIRST), *((2, name) for name in SECOND)]
    assert await purged(console, PurgeTo("mysql-bin.000003")) == []
    assert held(archive) == [(2, "mysql-bin.000003")]


async def test_what_a_replica_reads_of_the_old_source_stays_with_all_behind_it(
    console: Console, archive: Archive, connections: FakeConnections
) -> None:
    connections.clients = [a_replica(3, "mysql-bin.000002", 4, generation=1)]
    assert await purged(console, PurgeTo("mysql-bin.000003")) == [1867]
    assert held(archive) == [(1, "mysql-bin.000002"), *((2, name) for name in SECOND)]
    connections.clients = [a_replica(3, "mysql-bin.000002", 4, generation=2)]
    assert await purged(console, PurgeTo("mysql-bin.000003")) == [1867]
    assert held(archive) == [(2, name) for name in SECOND]


async def test_a_replica_that_comes_while_the_old_sources_files_go_keeps_what_it_reads(
    console: Console, archive: Archive, connections: FakeConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = archive.all[0]
    purge = first.purge

    async def slowly(names: Sequence[str], reason: str) -> None:
        await purge(names, reason)
        connections.clients = [a_replica(3, SECOND[0], 4, generation=2)]

    monkeypatch.setattr(first, "purge", slowly)
    answer = await console.answer(PurgeTo(SECOND[1]), a_client())
    assert isinstance(answer, Done)
    assert held(archive) == [(2, name) for name in SECOND]
    (notice,) = answer.notices
    assert "purged only 2 out of 3 files" in notice.message


async def test_two_purges_at_once_remove_what_was_asked_for_and_no_more(
    console: Console, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one of them removes the old source's files the other may remove those of the new one that both ask for."""
    await append_files(archive, mysql_series(4, f"{B}:3", f"{B}:4", start=f"{A}:1-9,{B}:1-2"))
    first = archive.all[0]
    purge = first.purge

    async def slowly(names: Sequence[str], reason: str) -> None:
        await purge(names, reason)
        assert await purged(console, PurgeTo("mysql-bin.000003")) == []

    monkeypatch.setattr(first, "purge", slowly)
    assert await purged(console, PurgeTo("mysql-bin.000004")) == []
    assert held(archive) == [(2, "mysql-bin.000004"), (2, "mysql-bin.000005")]


async def test_a_purge_before_now_leaves_the_active_file(console: Console, archive: Archive) -> None:
    assert await purged(console, PurgeBefore(4e9)) == [1868]
    assert held(archive) == [(2, "mysql-bin.000003")]


async def test_the_status_counts_all_of_it(archive: Archive, connections: FakeConnections) -> None:
    values = status_values(StatusFacts(archive, FOLLOWING, connections, 0, None), Dialect.of(MYSQL_97))
    assert (values["Binlog_relay_archive_generation"], values["Binlog_relay_archive_generations"]) == (2, 2)
    assert (values["Binlog_relay_archive_files"], values["Binlog_relay_archive_oldest_file"]) == (4, FIRST[0])
