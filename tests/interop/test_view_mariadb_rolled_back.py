"""Transactions that a MariaDB logs with ROLLBACK at their end, for what outlives it: through a view, and without its rules."""

from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.mariadb_envelope import write_envelopes
from tests.support.mariadb_view import SOURCES, check_mariadb_replica, mariadb_chain
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.workload import session

pytestmark = pytest.mark.interop
ROLLED_BACK = (
    "BEGIN",
    "INSERT INTO i VALUES (10, 1)",
    "CREATE TEMPORARY TABLE passing (a INT) ENGINE=InnoDB",
    "UPDATE i SET n = 7 WHERE id = 1",
    "DROP TEMPORARY TABLE passing",
    "ROLLBACK",
)


def write(source: Server, binlog_format: str) -> None:
    source.execute_many(
        ["CREATE DATABASE d", "CREATE TABLE d.i (id INT PRIMARY KEY, n INT)", "INSERT INTO d.i VALUES (1, 1)"]
    )
    with session(source, binlog_format, "d") as execute:
        for statement in (
            *ROLLED_BACK,
            "CREATE TABLE m (id INT PRIMARY KEY) ENGINE=MyISAM",
            "INSERT INTO i VALUES (2, 2)",
        ):
            execute(statement)
        # What the table without transactions keeps stands in a group of its own, in front.
        for statement in ("BEGIN", "INSERT INTO m VALUES (1)", "INSERT INTO i VALUES (20, 1)", "ROLLBACK"):
            execute(statement)
        execute("INSERT INTO i VALUES (3, 3)")


@pytest.mark.parametrize("binlog_format", ["ROW", "STATEMENT"])
@pytest.mark.parametrize("name", SOURCES)
def test_they_change_nothing_and_their_gtids_are_executed(
    servers: ServerFactory, tmp_path: Path, name: str, binlog_format: str
) -> None:
    with mariadb_chain(servers, name, tmp_path / "relay") as chain:
        replica = chain.view_replica()
        write(chain.source, binlog_format)
        assert check_mariadb_replica(chain, replica, ["d"]) > 5
        assert replica.sql("SELECT id, n FROM d.i ORDER BY id") == [(1, 1), (2, 2), (3, 3)]
        assert replica.sql("SELECT id FROM d.m") == [(1,)]


def test_without_the_rule_the_gtid_of_such_a_transaction_is_never_executed(
    servers: ServerFactory, tmp_path: Path
) -> None:
    """A replica would wait for it for ever, and ask for it again each time it logs in."""
    source = servers("mariadb").start(server_id=1)
    replica = servers("mysql97").start(server_id=2, options=["--gtid-mode=ON", "--enforce-gtid-consistency=ON"])
    write(source, "ROW")
    source.sql("FLUSH BINARY LOGS")
    gtids = write_envelopes(source.binlogs()[:-1], tmp_path / "envelope")
    with RelayProcess(tmp_path / "relay", tmp_path / "envelope", port=free_port(), markers="strip") as relay:
        replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1)
        wait_until(lambda: has_last_row(replica), "the last row", 60)
        (missing,) = replica.sql(f"SELECT GTID_SUBTRACT('{gtids}', @@GLOBAL.gtid_executed)")[0]
    assert missing


def has_last_row(replica: Server) -> bool:
    there = replica.sql("SELECT 1 FROM information_schema.tables WHERE table_schema = 'd' AND table_name = 'i'")
    return bool(there and replica.sql("SELECT id FROM d.i WHERE id = 3"))
