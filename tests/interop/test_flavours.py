"""A replica that cannot read the source's events is told so before the first one."""

import pytest

from tests.interop.conftest import ChainFactory
from tests.support.chain import wait_until

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
