"""MariaDB's Annotate_rows, which hold the statement of the row events behind them: for who asks for them, as at a source."""

import random
from pathlib import Path

import pytest

from deploy.servers import BinlogPosition, Server
from protocol.binlog.event_type import EventType
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until
from tests.support.cutting_proxy import CuttingProxy
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER
from tests.support.replica_client import ReplicaClient

pytestmark = pytest.mark.interop

NON_BLOCK = 1
SEND_ANNOTATE = 2
WITHOUT = ["--skip-replicate-annotate-row-events", "--log-slave-updates"]
# A login, the statements and the head of the stream take less, so that each connection brings at least one event.
LEAST_CUT_BYTES = 6000


@pytest.fixture(params=["mariadb", "mariadb118"])
def chain(request: pytest.FixtureRequest, chains: ChainFactory) -> Chain:
    """Row events of one and of many statements a transaction, of both engines, in two files."""
    made = chains(request.param, options=["--binlog-format=ROW"], sections={"[account]": {"markers": "strip"}})
    made.source.execute_many(
        [
            "CREATE DATABASE one",
            "CREATE TABLE one.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT) ENGINE=InnoDB",
            "CREATE TABLE one.m (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT) ENGINE=MyISAM",
        ]
    )
    write(made.source, 12)
    made.source.sql("FLUSH LOGS")
    write(made.source, 12)
    return made


def write(source: Server, transactions: int) -> None:
    for number in range(transactions):
        table = "tm"[number % 3 == 2]
        statements = [f"INSERT INTO one.{table} (body) VALUES (REPEAT('x', {1 + 900 * (number % 4)}))"] * (
            1 + number % 3
        )
        source.execute_many(
            ["BEGIN", *statements, f"UPDATE one.{table} SET body = CONCAT(body, 'y') LIMIT 3", "COMMIT"]
        )


def stream(port: int, user: str, password: str, at: BinlogPosition | str, flags: int) -> list[bytes]:
    """All events up to the end, from a file and position, or of one who has these GTIDs."""
    client = ReplicaClient(port, user=user, password=password)
    try:
        client.query("SET @master_binlog_checksum='CRC32', @mariadb_slave_capability=4")
        file, offset = "", 4
        if isinstance(at, str):
            client.query(f"SET @slave_connect_state='{at}'")
        else:
            file, offset = at
        client.ask_dump(file, offset, flags=NON_BLOCK | flags)
        return [event.data for event in client.events_to_eof()]
    finally:
        client.cut()


def compared(events: list[bytes], source: Server, at: BinlogPosition | str) -> list[bytes]:
    """By GTID a relay leaves out what it need not read between groups: MariaDB's notes for its own recovery.

    MariaDB 11.8 has an index of GTIDs: it begins at the first group, where a relay and MariaDB 10.11 begin with the file.
    """
    kept = [event for event in events if event[4] != EventType.BINLOG_CHECKPOINT]
    if isinstance(at, str) and source.name == "mariadb118":
        kinds = [event[4] for event in kept]
        return kept[kinds.index(EventType.MARIADB_GTID) :] if EventType.MARIADB_GTID in kinds else []
    return kept


@pytest.mark.parametrize("flags", [0, SEND_ANNOTATE], ids=["without", "with"])
def test_the_stream_has_the_sources_events_and_positions(chain: Chain, flags: int) -> None:
    source = chain.source
    chain.wait_published()
    starts: list[BinlogPosition | str] = [""]
    for path in source.binlogs():
        starts.append(BinlogPosition(path.name, 4))
        for row in source.sql(f"SHOW BINLOG EVENTS IN '{path.name}'"):
            if row[2] == "Gtid":
                starts += [BinlogPosition(path.name, int(row[1])), str(row[5]).split("GTID ")[1].split()[0]]
    for at in starts:
        theirs = stream(source.port, source.replication_user, source.replication_password, at, flags)
        ours = stream(chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, at, flags)
        assert compared(ours, source, at) == compared(theirs, source, at), at
        assert any(event[4] == EventType.ANNOTATE_ROWS for event in ours) == (flags != 0 and at != starts[-1])
    chain.check_archive()


@pytest.mark.parametrize("use_gtid", ["no", "slave_pos"])
def test_a_replica_that_does_not_ask_for_them_has_none_and_counts_as_behind_the_source(
    chain: Chain, use_gtid: str
) -> None:
    source = chain.source
    here, there = (chain.server(source.name, WITHOUT) for _ in range(2))
    chain.attach(here, use_gtid=use_gtid)
    there.attach_to(source, chain.first_position(), use_gtid=use_gtid)
    write(source, 6)
    chain.check_tables([here, there], ["one"])
    end = chain.wait_archived()
    for replica in (here, there):
        wait_until(lambda replica=replica: read_up_to(replica) == end, "all of it is read", 30)  # type: ignore[misc]
        assert not annotations(replica)
    asking = chain.server(source.name, ["--log-slave-updates"])
    chain.attach(asking, use_gtid=use_gtid)
    chain.check_tables([asking], ["one"])
    assert annotations(asking)


@pytest.mark.parametrize("use_gtid", ["no", "slave_pos"])
def test_cut_off_between_events_such_a_replica_loses_nothing(
    chains: ChainFactory, tmp_path: Path, use_gtid: str
) -> None:
    chain = chains("mariadb", options=["--binlog-format=ROW"])
    chain.source.execute_many(
        ["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT)"]
    )
    replica = chain.server("mariadb", WITHOUT)
    places = random.Random(160)
    with CuttingProxy(chain.relay.port) as proxy:
        chain.attach(replica, port=proxy.port, use_gtid=use_gtid)
        chain.check_tables([replica], ["one"])
        proxy.cut_after(*(places.randrange(LEAST_CUT_BYTES, 30_000) for _ in range(10)))
        proxy.cut_now_after(5_000)
        for _ in range(3):
            rows = ["INSERT INTO one.t (body) VALUES (REPEAT('z', 2000))"] * 40
            chain.source.execute_many(["BEGIN", *rows, "COMMIT"])
        wait_until(lambda: proxy.cuts_left == 0 and goes_on(replica), "it was cut off everywhere", 60)
        chain.check_tables([replica], ["one"])
    assert not annotations(replica)
    assert not chain.relay.logged("dump_refused")


def goes_on(replica: Server) -> bool:
    """True; a MariaDB replica by position that was cut off between the rows of one statement is started again."""
    if replica.replica_status()["io_errno"] == 1595:
        replica.start_replica()
    return True


def read_up_to(replica: Server) -> BinlogPosition:
    status = replica.replica_status()
    return BinlogPosition(status["source_file"], status["read_position"])


def annotations(server: Server) -> list[object]:
    """The Annotate_rows in a server's own binlogs."""
    rows = [row for path in server.binlogs() for row in server.sql(f"SHOW BINLOG EVENTS IN '{path.name}'")]
    assert any(row[2].startswith("Write_rows") for row in rows)
    return [row for row in rows if row[2] == "Annotate_rows"]
