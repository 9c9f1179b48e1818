"""Views of a real MariaDB source, which stock replicas of MySQL 9.7 follow by auto-position."""

import json
from pathlib import Path
from uuid import UUID

import pytest

from deploy.servers import Server
from relay.view.rules.mariadb.assigned_gtids import domain_uuid
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.view_chain import (
    REPLICA_DEFAULTS,
    UUID_OF_VIEW,
    VIEW,
    ViewChain,
    executed_by,
    view_keys,
    wait_executed,
)

pytestmark = pytest.mark.interop

SOURCES = ["mariadb", "mariadb118"]
TABLES = [
    "CREATE DATABASE d CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE TABLE d.i (a INT PRIMARY KEY, t VARCHAR(40), KEY (t)) ENGINE=InnoDB",
    "CREATE TABLE d.m (a INT PRIMARY KEY, t VARCHAR(40)) ENGINE=MyISAM",
    "CREATE SEQUENCE d.s",
    "CREATE TABLE d.u (a INT PRIMARY KEY, u UUID, x INET6) ENGINE=InnoDB",
]


def replicate(chain: ViewChain, replica: Server) -> None:
    """Waits until the replica has all of the view, and compares."""
    chain.wait_viewed()
    wait_executed(replica, chain.gtids_of_view(), chain.relay)
    assert executed_by(replica) == chain.gtids_of_view()


@pytest.mark.parametrize("name", SOURCES)
def test_transactions_of_all_kinds_arrive(name: str, servers: ServerFactory, tmp_path: Path) -> None:
    with ViewChain(servers, name, tmp_path, options=("--binlog-format=ROW",)) as chain:
        replica = chain.view_replica()
        source = chain.source
        source.execute_many([
            *TABLES,
            "INSERT INTO d.i VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO d.m VALUES (1, 'a'), (2, 'b')",
            "UPDATE d.i SET t = 'c' WHERE a = 1",
            "DELETE FROM d.i WHERE a = 2",
            "INSERT INTO d.u VALUES (1, '123e4567-e89b-12d3-a456-426655440000', '::1')",
            # all of it is left out
            "SELECT NEXT VALUE FOR d.s",
            "INSERT INTO d.i VALUES (NEXT VALUE FOR d.s + 10, 'sequence')",
            # XA
            "XA START 'x','b',7", "INSERT INTO d.i VALUES (100, 'xa')", "XA END 'x','b',7", "XA PREPARE 'x','b',7",
            "XA COMMIT 'x','b',7",
            "XA START 'y'", "INSERT INTO d.i VALUES (101, 'xa')", "XA END 'y'", "XA PREPARE 'y'", "XA ROLLBACK 'y'",
            "XA START 'z'", "INSERT INTO d.i VALUES (102, 'xa')", "XA END 'z'", "XA COMMIT 'z' ONE PHASE",
            # two phases
            "SET SESSION binlog_alter_two_phase = ON", "ALTER TABLE d.i ADD COLUMN n INT", "SET SESSION binlog_alter_two_phase = OFF",
            # packed
            "SET GLOBAL log_bin_compress = ON", "INSERT INTO d.i VALUES (200, REPEAT('x', 40), 1), (201, REPEAT('y', 40), 2)",
            "CREATE TABLE d.long_name_of_a_table_that_is_packed (a INT PRIMARY KEY COMMENT 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')",
            "SET GLOBAL log_bin_compress = OFF",
            # two transactions of one, and one of rows and a definition
            "CREATE OR REPLACE TABLE d.m (a INT PRIMARY KEY, v INT) ENGINE=MyISAM",
            "CREATE TABLE d.c (PRIMARY KEY (a)) SELECT a, t FROM d.i",
            "CREATE OR REPLACE TABLE d.c (PRIMARY KEY (a)) SELECT a FROM d.i",
            "CREATE TABLE d.none (a INT NOT NULL PRIMARY KEY) SELECT a FROM d.i WHERE a < 0",
            # a name in double quotes
            "SET SESSION sql_mode = 'ANSI_QUOTES'", "BEGIN", "INSERT INTO d.i VALUES (400, 'kept', 0)", 'SAVEPOINT "s1"',
            "INSERT INTO d.m VALUES (400, 1)", "INSERT INTO d.i VALUES (401, 'undone', 0)", "ROLLBACK TO s1", "COMMIT",
            # other domains
            "SET SESSION gtid_domain_id = 7", "INSERT INTO d.i VALUES (300, 'seven', 0)", "SET SESSION gtid_domain_id = 0",
            "FLUSH BINARY LOGS",
            "INSERT INTO d.i VALUES (301, 'next file', 0)",
        ])  # fmt: skip
        replicate(chain, replica)
        tables = ["d.i", "d.m", "d.c", "d.none", "d.long_name_of_a_table_that_is_packed"]
        for table in tables:
            rows = f"SELECT * FROM {table} ORDER BY a"
            assert replica.sql(rows) == source.sql(rows), table
        assert replica.sql("SELECT HEX(u), HEX(x) FROM d.u") == [("123E4567E89B12D3A456426655440000", "0" * 31 + "1")]
        assert not replica.sql("XA RECOVER")
        uuids = {UUID(member.split(":")[0].strip()) for member in executed_by(replica).split(",")}
        assert uuids == {domain_uuid(UUID_OF_VIEW, 0), domain_uuid(UUID_OF_VIEW, 7), domain_uuid(UUID_OF_VIEW, 0, 1)}


def test_a_place_is_found_by_gtid_slave_pos_and_a_new_replica_is_seeded_there(
    servers: ServerFactory, tmp_path: Path
) -> None:
    with ViewChain(servers, "mariadb", tmp_path, options=("--binlog-format=ROW",)) as chain:
        source = chain.source
        source.execute_many([*TABLES[:2], "SET SESSION gtid_domain_id = 3", "INSERT INTO d.i VALUES (1, 'a')"])
        taken, at = str(source.sql("SELECT @@GLOBAL.gtid_binlog_pos")[0][0]), source.master_status()
        replica = chain.server("mysql97", REPLICA_DEFAULTS)
        replica.execute_many([TABLES[0], TABLES[1], "INSERT INTO d.i VALUES (1, 'a')"])
        source.execute_many(["SET SESSION gtid_domain_id = 3", "INSERT INTO d.i VALUES (2, 'b')", "FLUSH BINARY LOGS"])
        source.sql("INSERT INTO d.i VALUES (3, 'c')")
        chain.wait_viewed()
        found = [
            json.loads(chain.relay.command("view", "find", VIEW, *where, "--json").stdout)
            for where in (["--source", f"{at.file}:{at.position}"], ["--gtid", taken])
        ]
        assert found[0] == found[1]
        before = domain_uuid(UUID_OF_VIEW, 3)
        assert f"{before}:1" in found[0]["executed"]
        one = chain.relay.command("view", "find", VIEW, "--gtid", taken.split(",")[1])
        assert one.returncode and "says nothing of" in one.stdout + one.stderr
        seeded = chain.relay.command("view", "seed", VIEW, "--at", taken, "--json")
        statements = [one for one in json.loads(seeded.stdout)["statements"] if "gtid_purged" in one or "RESET" in one]
        replica.execute_many(statements)
        chain.follow_view(replica)
        replicate(chain, replica)
        assert replica.sql("SELECT a FROM d.i ORDER BY a") == [(1,), (2,), (3,)]
        verified = chain.relay.command("view", "verify", VIEW)
        assert not verified.returncode, verified.stdout + verified.stderr


def test_numbers_that_do_not_rise_stop_the_view_until_somebody_decides(servers: ServerFactory, tmp_path: Path) -> None:
    with ViewChain(servers, "mariadb", tmp_path, options=("--binlog-format=ROW",)) as chain:
        replica = chain.view_replica()
        source = chain.source
        source.execute_many([*TABLES[:2], "INSERT INTO d.i VALUES (1, 'a')"])
        replicate(chain, replica)
        source.execute_many(["SET SESSION gtid_seq_no = 1", "INSERT INTO d.i VALUES (2, 'twice')"])
        source.execute_many(["SET SESSION gtid_seq_no = 50", "INSERT INTO d.i VALUES (3, 'c')"])
        stop = chain.wait_stopped()
        assert stop["reason"] == "sequence_not_increasing", stop
        chain.relay.stop()
        done = chain.relay.command("view", "skip", VIEW, "--at", f"{stop['file']}:{stop['offset']}", "--yes")
        assert not done.returncode, done.stdout + done.stderr
        chain.relay.start()
        replicate(chain, replica)
        assert replica.sql("SELECT a FROM d.i ORDER BY a") == [(1,), (3,)]


def test_settings_that_no_view_of_mariadb_can_have_are_refused_at_the_start(
    servers: ServerFactory, tmp_path: Path
) -> None:
    views = [
        view_keys("anonymous", gtids="anonymous"),
        view_keys("old", **{"for": "mysql-5.7"}),
        view_keys("sets", dependencies="writeset"),
    ]
    with ViewChain(servers, "mariadb", tmp_path, views=[view_keys(), *views]) as chain:
        chain.source.execute_many(TABLES[:2])
        chain.wait_viewed()
        wait_until(lambda: len(chain.relay.logged("view_not_served")) == len(views), "the others are refused", 20)
        refused = {line["view"]: line["what"] for line in chain.relay.logged("view_not_served")}
        assert set(refused) == {keys["name"] for keys in views}
        assert all("the source is a MariaDB server" in what for what in refused.values())
