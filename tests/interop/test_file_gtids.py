"""The collector of a file's GTIDs against what the servers that wrote the files say of themselves."""

import random
from pathlib import Path

import pytest

from deploy.servers import Server
from protocol.gtid.file_gtids import FileGtidCollector, gtid_text
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from tests.conftest import ServerFactory
from tests.support.workload import light_workload

pytestmark = pytest.mark.interop

GTID_OPTIONS = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates=ON"]


def collect(path: Path, flavour: str) -> tuple[FileGtidCollector, list[tuple[int, str]]]:
    """The file's facts, and where each of its transactions starts."""
    data = path.read_bytes()
    collector = FileGtidCollector(flavour, checksum=True, gap_bytes=0)
    for at in range(4, len(data), 10_007):
        collector.take(data[at : at + 10_007])
    collector.finish()
    assert collector.position == len(data)
    places = [(block.start, gtid_text(run.key, run.first)) for block in collector.take_blocks() for run in block.runs]
    return collector, places


def listed(server: Server, path: Path, mark: str) -> list[tuple[int, str]]:
    """Offset and GTID of each transaction, by SHOW BINLOG EVENTS."""
    rows = server.sql(f"SHOW BINLOG EVENTS IN '{path.name}'")
    return [(row[1], row[5].split(mark)[1].split("'")[0].split()[0]) for row in rows if mark in row[5]]


@pytest.mark.parametrize("name", ["mysql56", "mysql97"])
def test_the_sets_of_each_file_of_mysql_add_up_to_what_was_executed(servers: ServerFactory, name: str) -> None:
    server = servers(name).start(server_id=1, options=GTID_OPTIONS)
    chance = random.Random(3)
    server.execute_many(
        ["CREATE DATABASE holes", "CREATE TABLE holes.t (a INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"]
    )
    for size in (1, 100, 70_000, 3, 300_000):
        server.sql(f"INSERT INTO holes.t (b) VALUES (REPEAT('x', {size})), ('y')")
    sources = [f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2, 3)]
    tags = ["", ":a", ":_b"] if name == "mysql97" else [""]
    used: set[str] = set()
    for _ in range(150):
        gtid = f"{chance.choice(sources)}{chance.choice(tags)}:{chance.randrange(1, 90)}"
        if gtid not in used:
            used.add(gtid)
            server.execute_many(
                [f"SET gtid_next = '{gtid}'", "CREATE DATABASE IF NOT EXISTS holes", "SET gtid_next = AUTOMATIC"]
            )
        if chance.random() < 0.05:
            server.sql("FLUSH LOGS")
    so_far: GtidSet | None = None
    for path in server.binlogs():
        collector, places = collect(path, "mysql")
        before, inside = collector.before, collector.inside()
        assert isinstance(before, GtidSet)
        assert isinstance(inside, GtidSet)
        if so_far is not None:
            assert before == so_far
        assert not before.meets(inside)
        so_far = before | inside
        assert places == listed(server, path, "GTID_NEXT= '")
        assert GtidSet.from_text(",".join(text for _offset, text in places)) == inside
    ((executed,),) = server.sql("SELECT @@GLOBAL.gtid_executed")
    assert str(so_far) == executed


def test_the_lists_of_each_file_of_mariadb_add_up_to_its_state(servers: ServerFactory) -> None:
    server = servers("mariadb").start(server_id=1)
    light_workload(server, "ROW")
    chance = random.Random(5)
    for _ in range(150):
        server.execute_many(
            [
                f"SET gtid_domain_id = {chance.choice([0, 0, 1, 7])}",
                f"SET server_id = {chance.choice([1, 1, 2, 30])}",
                "CREATE DATABASE IF NOT EXISTS holes",
            ]
        )
        if chance.random() < 0.05:
            server.sql("FLUSH LOGS")
    state: GtidList | None = None
    for path in server.binlogs():
        collector, places = collect(path, "mariadb")
        before, inside = collector.before, collector.inside()
        assert isinstance(before, GtidList)
        assert isinstance(inside, GtidList)
        if state is not None:
            assert before == state
        state = before.advanced(inside)
        assert places == listed(server, path, "GTID ")
    ((text, position),) = server.sql("SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_binlog_pos")
    assert state == GtidList.from_text(text)
    assert state is not None
    assert str(state.position) == position
