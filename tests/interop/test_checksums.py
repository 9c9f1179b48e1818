"""Checksums of the source, and what a replica announced: the relay sends what the source would have sent."""

import pymysql
import pytest

from deploy.servers import Server
from tests.interop.conftest import ChainFactory
from tests.support.binlog_comparison import FORMAT_DESCRIPTION, IN_USE_BIT
from tests.support.chain import Chain
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER
from tests.support.replica_client import ReplicaClient
from tests.support.workload import light_workload

pytestmark = pytest.mark.interop

REPLICAS = {"mysql56": ("mysql56", "mysql97", "mariadb"), "mariadb": ("mariadb",)}
NON_BLOCK_AND_ANNOTATE = 3
WORK = ["CREATE DATABASE one", "CREATE TABLE one.t (id INT NOT NULL PRIMARY KEY)"]


@pytest.mark.parametrize("first", ["CRC32", "NONE"])
@pytest.mark.parametrize("source_name", list(REPLICAS))
def test_replicas_stay_attached_while_the_source_changes_its_checksums(
    chains: ChainFactory, source_name: str, first: str
) -> None:
    chain = chains(source_name, options=[f"--binlog-checksum={first}", "--binlog-format=MIXED"])
    replicas = chain.replicas(REPLICAS[source_name])
    chain.source.execute_many(WORK)
    other = {"CRC32": "NONE", "NONE": "CRC32"}[first]
    for number, checksum in enumerate((other, first, other, other, first)):
        chain.source.sql(f"INSERT INTO one.t VALUES ({number})")
        chain.source.sql(f"SET GLOBAL binlog_checksum = {checksum}")
        light_workload(chain.source, database=f"after{number}")
    chain.check_tables(replicas, ["one", *(f"after{number}" for number in range(5))])
    chain.check_archive()
    assert len(chain.relay.logged("dump_started")) == len(replicas)
    assert chain.relay.logged("archive_ledger") == []


@pytest.fixture(scope="module", params=list(REPLICAS))
def changed(request: pytest.FixtureRequest, module_chains: ChainFactory) -> Chain:
    """A source whose files have and have no checksums in turn, the last without; its archive; original bytes."""
    chain = module_chains(request.param, markers="strip")
    chain.source.execute_many(WORK)
    for number, checksum in enumerate(("NONE", "CRC32", "NONE")):
        chain.source.execute_many(f"INSERT INTO one.t VALUES ({10 * number + row})" for row in range(10))
        chain.source.sql(f"SET GLOBAL binlog_checksum = {checksum}")
    chain.source.sql("INSERT INTO one.t VALUES (100)")
    chain.wait_published()
    return chain


def sent(port: int, user: str, password: str, announced: str | None, file: str, offset: int) -> list[bytes]:
    """All events up to the end, as a server on `port` sends them to a client that announced this."""
    client = ReplicaClient(port, user=user, password=password)
    try:
        client.query("SET @mariadb_slave_capability = 4")
        if announced is not None:
            client.query(f"SET @master_binlog_checksum = '{announced}'")
        client.ask_dump(file, offset, server_id=990, flags=NON_BLOCK_AND_ANNOTATE)
        return [comparable(event.data) for event in client.events_to_eof()]
    finally:
        client.cut()


def comparable(event: bytes) -> bytes:
    """A format description without in-use bit and CRC32: a source leaves the latter as it was where there are no checksums."""
    if event[4] != FORMAT_DESCRIPTION:
        return event
    return event[:17] + bytes((event[17] & ~IN_USE_BIT,)) + event[18:-4]


def from_both(chain: Chain, announced: str | None, file: str, offset: int) -> tuple[list[bytes], list[bytes]]:
    """(what the relay sends, what the source sends)."""
    source: Server = chain.source
    return (
        sent(chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, announced, file, offset),
        sent(source.port, source.replication_user, source.replication_password, announced, file, offset),
    )


@pytest.mark.parametrize("announced", ["CRC32", "NONE"])
def test_the_stream_over_all_files_is_the_sources_byte_for_byte(changed: Chain, announced: str) -> None:
    for path in changed.source.binlogs():
        ours, theirs = from_both(changed, announced, path.name, 4)
        assert ours == theirs, path.name


@pytest.mark.parametrize("announced", ["CRC32", "NONE"])
def test_a_stream_from_the_middle_of_each_file_is_the_sources_byte_for_byte(changed: Chain, announced: str) -> None:
    compared = 0
    for path in changed.source.binlogs():
        rows = changed.source.sql(f"SHOW BINLOG EVENTS IN '{path.name}'")
        middle = next((int(row[4]) for row in rows if row[2] == "Xid"), None)
        if middle is not None:
            ours, theirs = from_both(changed, announced, path.name, middle)
            assert ours == theirs, f"{path.name}:{middle}"
            compared += 1
    assert compared == 4


def test_a_client_that_knows_no_checksums_is_served_where_there_are_none(changed: Chain) -> None:
    last = changed.source.binlogs()[-1].name
    ours, theirs = from_both(changed, None, last, 4)
    assert ours == theirs


@pytest.mark.parametrize("which", ["relay", "source"])
def test_a_client_that_knows_no_checksums_is_refused_where_there_are_some(changed: Chain, which: str) -> None:
    first = changed.first_position().file
    source = changed.source
    port, user, password = (
        (changed.relay.port, REPLICA_USER, REPLICA_PASSWORD)
        if which == "relay"
        else (source.port, source.replication_user, source.replication_password)
    )
    with pytest.raises(pymysql.MySQLError) as caught:
        sent(port, user, password, None, first, 4)
    assert caught.value.args[0] == 1236
    assert "can not handle replication events with the checksum" in caught.value.args[1]
