"""What the archive says by GTID of real sources, against what they say of themselves: running, killed, rebuilt."""

import asyncio
import random
from pathlib import Path

import pytest

from deploy.servers import Server
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList
from protocol.gtid.mysql_gtid import MysqlGtid
from relay.archive.generation import Generation
from relay.archive.gtids.gtid_state import GtidView
from relay.archive_inspection.listing import read_ledger, rebuild_archive
from relay.archive_inspection.transaction_search import find_gtid
from tests.interop.conftest import ChainFactory

pytestmark = pytest.mark.interop

GTID_OPTIONS = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates=ON"]
OPTIONS = {"mysql56": GTID_OPTIONS, "mysql97": GTID_OPTIONS, "mariadb": []}


def transactions_of_many(source: Server, name: str, chance: random.Random) -> None:
    """Some of the source's own, and some of others with holes; files change meanwhile."""
    source.execute_many(["CREATE DATABASE IF NOT EXISTS holes", "CREATE TABLE IF NOT EXISTS holes.t (a LONGTEXT)"])
    for _ in range(40):
        source.sql(f"INSERT INTO holes.t VALUES (REPEAT('x', {chance.choice([1, 100, 90_000])}))")
        if name == "mariadb":
            source.execute_many(
                [
                    f"SET gtid_domain_id = {chance.choice([0, 1, 7])}",
                    f"SET server_id = {chance.choice([1, 2, 30])}",
                    "CREATE DATABASE IF NOT EXISTS holes",
                ]
            )
        else:
            other = f"00000000-0000-0000-0000-00000000000{chance.choice([1, 2])}"
            tag = chance.choice(["", ":a", ":_b"]) if name == "mysql97" else ""
            number = chance.randrange(1, 10_000)
            source.execute_many(
                [
                    f"SET gtid_next = '{other}{tag}:{number}'",
                    "CREATE DATABASE IF NOT EXISTS holes",
                    "SET gtid_next = AUTOMATIC",
                ]
            )
        if chance.random() < 0.15:
            source.sql("FLUSH LOGS")


async def opened(directory: Path) -> GtidView:
    generation = await Generation.open(directory)
    view = generation.gtids.view()
    await generation.close()
    return view


def executed(source: Server, name: str) -> GtidSet | GtidList:
    if name == "mariadb":
        ((text,),) = source.sql("SELECT @@GLOBAL.gtid_binlog_state")
        return GtidList.from_text(text)
    ((text,),) = source.sql("SELECT @@GLOBAL.gtid_executed")
    return GtidSet.from_text(text)


def listed(source: Server, path: Path, mark: str) -> list[tuple[int, str]]:
    """Offset and GTID of each transaction, by SHOW BINLOG EVENTS."""
    rows = source.sql(f"SHOW BINLOG EVENTS IN '{path.name}'")
    return [(row[1], row[5].split(mark)[1].split("'")[0].split()[0]) for row in rows if mark in row[5]]


@pytest.mark.parametrize("name", ["mysql56", "mysql97", "mariadb"])
def test_the_archive_has_what_the_source_executed_and_finds_it(chains: ChainFactory, name: str) -> None:
    chain = chains(name, options=OPTIONS[name])
    chance = random.Random(name)
    transactions_of_many(chain.source, name, chance)
    chain.wait_archived()
    chain.relay.kill()
    chain.relay.start()
    transactions_of_many(chain.source, name, chance)
    chain.wait_archived()
    chain.relay.stop()
    directory = chain.relay.archive
    view = asyncio.run(opened(directory))
    assert view.executed == executed(chain.source, name)
    assert [row.kind for row in read_ledger(directory) if row.kind.startswith("gtid")] == []
    for path in chain.source.binlogs():
        if path.name not in view.names:
            continue
        for offset, text in listed(chain.source, path, "GTID " if name == "mariadb" else "GTID_NEXT= '")[::5]:
            gtid = MysqlGtid.from_text(text) if ":" in text else DomainGtid.from_text(text)
            place = find_gtid(directory, gtid)
            assert place is not None
            assert (place.file, place.start, place.gtid) == (path.name, offset, text)
    rebuild_archive(directory)
    again = asyncio.run(opened(directory))
    assert (again.names, again.executed, again.befores) == (view.names, view.executed, view.befores)
