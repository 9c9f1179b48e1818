"""A replica that cannot read the source's events is told so before the first one."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import ServerFactory
from tests.interop.conftest import ChainFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess

pytestmark = pytest.mark.interop


def test_mysql_replicas_behind_a_mariadb_source_are_refused_by_name(chains: ChainFactory) -> None:
    chain = chains("mariadb")
    chain.source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY)"])
    chain.wait_archived()
    for replica, number in zip(chain.replicas(["mysql56", "mysql97"]), (1236, 13114), strict=True):
        errno, text = replica.wait_io_error()
        assert errno == number
        assert "from a MariaDB source" in text
        assert "MySQL cannot read" in text
        assert replica.replica_status()["io_running"] == "No"
        assert replica.sql("SHOW DATABASES LIKE 'one'") == []


def test_mysql_replicas_are_refused_before_the_archive_has_its_first_file(chains: ChainFactory) -> None:
    chain = chains("mariadb")
    first = chain.first_position()
    wait_until(lambda: chain.relay.logged("source_attached"), "the relay knows its source")
    chain.source.stop()
    replica = chain.replica("mysql56", first)
    wait_until(lambda: "from a MariaDB source" in replica.replica_status()["io_error"], "the refusal")


@pytest.mark.parametrize("options", [["--binlog-checksum=CRC32"], ["--binlog-checksum=NONE"]])
def test_a_mariadb_replica_behind_a_mysql_source_gets_its_annotations_wish_ignored(
    chains: ChainFactory, options: list[str]
) -> None:
    chain = chains("mysql56", options=[*options, "--binlog-format=ROW", "--binlog-rows-query-log-events=ON"])
    replicas = chain.replicas(["mariadb", "mysql56", "mysql97"])
    chain.source.execute_many(
        ["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO one.t VALUES (1)"]
    )
    chain.check_tables(replicas, ["one"])


@pytest.mark.parametrize("source_name", ["mariadb", "mariadb118"])
@pytest.mark.parametrize(("version", "mode"), [("10.5.99", "Slave_Pos"), ("5.7.99", "No")])
def test_a_mariadb_that_calls_itself_otherwise_is_one(
    chains: ChainFactory, source_name: str, version: str, mode: str
) -> None:
    chain = chains(source_name, options=[f"--version={version}"])
    chain.source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY)"])
    chain.wait_archived()
    (attached,) = chain.relay.logged("source_attached")
    assert (attached["flavour"], attached["version"]) == ("mariadb", version)
    # By a major version below 10 a MariaDB replica takes its source for one without GTIDs, here as there.
    replicas = [chain.replica(name, use_gtid="slave_pos") for name in ("mariadb", "mariadb118")]
    chain.source.sql("INSERT INTO one.t VALUES (1)")
    chain.check_tables(replicas, ["one"])
    assert [replica.replica_status()["raw"]["Using_Gtid"] for replica in replicas] == [mode, mode]
    assert chain.relay.sql("SELECT VERSION(), @@GLOBAL.gtid_domain_id") == [(version, 0)]
    mysql = chain.replica("mysql56")
    assert "from a MariaDB source" in mysql.wait_io_error()[1]
    chain.check_archive()


def test_the_binlogs_of_a_mariadb_that_calls_itself_otherwise_are_relayed_from_a_directory(
    servers: ServerFactory, tmp_path: Path
) -> None:
    source = servers("mariadb").start(server_id=1, options=["--version=5.7.99"])
    source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY)"])
    source.stop()
    copies = tmp_path / "copies"
    copies.mkdir()
    for path in source.binlogs():
        shutil.copy(path, copies)
    with RelayProcess(tmp_path / "relay", copies, port=free_port()) as relay:
        wait_until(relay.archived, "the relay has a binlog")
        assert relay.sql("SELECT VERSION(), @@GLOBAL.gtid_domain_id") == [("5.7.99", 0)]
        replica = servers("mariadb").start(server_id=2)
        first = source.binlogs()[0].name
        replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, first, 4)
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'one'"
        wait_until(lambda: replica.sql(tables) == [("t",)], "the table is there")


def test_a_relay_behind_a_relay_knows_the_mariadb_in_front_of_both(chains: ChainFactory, tmp_path: Path) -> None:
    chain = chains("mariadb", options=["--version=10.5.99"])
    chain.wait_archived()
    first = SimpleNamespace(port=chain.relay.port, replication_user=REPLICA_USER, replication_password=REPLICA_PASSWORD)
    with RelayProcess(tmp_path / "second", first, port=free_port(), server_id=4343) as second:
        wait_until(lambda: second.logged("source_attached"), "it is attached")
        assert second.logged("source_attached")[0]["flavour"] == "mariadb"
