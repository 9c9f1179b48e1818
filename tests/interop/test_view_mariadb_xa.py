"""XA transactions of a real MariaDB that change nothing, through a view: MySQL 9.7 prepares none, and stops at what ends them."""

import contextlib
from pathlib import Path

import pymysql
import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.mariadb_view import SOURCES, check_mariadb_replica
from tests.support.view_chain import VIEW, ViewChain

pytestmark = pytest.mark.interop
TABLES = [
    "CREATE DATABASE d",
    "CREATE TABLE d.t (id INT PRIMARY KEY, a INT) ENGINE=InnoDB",
    "CREATE TABLE d.m (id INT PRIMARY KEY) ENGINE=MyISAM",
    "CREATE SEQUENCE d.s",
    "INSERT INTO d.t VALUES (1, 1), (2, 2)",
]
LAST_ERROR = (
    "SELECT DISTINCT LAST_ERROR_NUMBER FROM performance_schema.replication_applier_status_by_worker"
    " WHERE LAST_ERROR_NUMBER <> 0"
)
XA_REPLICATION_FILTERS = 3898
NOTHING = {
    "'same'": "UPDATE d.t SET a = 1 WHERE id = 1",
    "'none','at all',7": "DELETE FROM d.t WHERE id > 100",
    "X'00ff','',1": "UPDATE d.t SET a = a",
    "'other engine'": "INSERT INTO d.m VALUES (1)",
}


def prepared(xid: str, *statements: str) -> list[str]:
    return [f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}"]


def end(source: Server, how: str, xid: str) -> None:
    """By another session than the one that prepared it: MariaDB may say that it has rolled it back (1402), and writes that it ended."""
    with contextlib.suppress(pymysql.err.OperationalError):
        source.sql(f"XA {how} {xid}")
    assert all(xid.split(",")[0].strip("X'") not in str(row) for row in source.sql("XA RECOVER"))


@pytest.mark.parametrize("name", SOURCES)
def test_one_that_changes_nothing_is_an_empty_transaction_and_so_is_what_ends_it(
    name: str, servers: ServerFactory, tmp_path: Path
) -> None:
    with ViewChain(servers, name, tmp_path, options=("--binlog-format=ROW",)) as chain:
        replica, source = chain.view_replica(), chain.source
        source.execute_many(TABLES)
        for xid, statement in NOTHING.items():
            for how in ("COMMIT", "ROLLBACK"):
                source.execute_many([*prepared(xid, statement), f"XA {how} {xid}"])
                source.sql("DELETE FROM d.m")
            source.execute_many([*prepared(xid, statement, "SAVEPOINT one")])
        source.execute_many([*prepared("'kept'", "INSERT INTO d.t VALUES (3, 3)"), "XA ROLLBACK 'kept'"])
        source.execute_many(prepared("'kept'", "INSERT INTO d.t VALUES (4, 4)"))
        source.sql("FLUSH BINARY LOGS")
        source.sql("INSERT INTO d.t VALUES (5, 5)")
        chain.wait_viewed()
        chain.relay.kill()
        chain.relay.start()
        source.sql("XA COMMIT 'kept'")
        for xid, how in zip(NOTHING, ("COMMIT", "ROLLBACK", "COMMIT", "ROLLBACK"), strict=True):
            end(source, how, xid)
            # The same name again, and with a change.
            source.execute_many([*prepared(xid, "UPDATE d.t SET a = a + 1"), f"XA COMMIT {xid}"])
        check_mariadb_replica(chain, replica, ["d"])
        assert not replica.sql("XA RECOVER")
        verified = chain.relay.command("view", "verify", VIEW)
        assert not verified.returncode, verified.stdout + verified.stderr


def test_a_statement_that_changes_nothing_stops_a_replica_as_nobody_can_know_it_before(
    servers: ServerFactory, tmp_path: Path
) -> None:
    """What MySQL does where rows would have told it."""
    with ViewChain(servers, "mariadb", tmp_path, options=("--binlog-format=STATEMENT",)) as chain:
        replica = chain.view_replica()
        chain.source.execute_many([*TABLES, *prepared("'same'", NOTHING["'same'"]), "XA COMMIT 'same'"])
        wait_until(lambda: replica.replica_status()["sql_errno"], "the replica stops", 30)
        assert replica.sql(LAST_ERROR) == [(XA_REPLICATION_FILTERS,)]
