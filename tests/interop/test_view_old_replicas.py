"""A MySQL 5.6 that follows a view for newer replicas: it does not know all that stands in statements there, and loses nothing else."""

from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess, wait_for_line

pytestmark = pytest.mark.interop

# Each hangs on a status variable: time zone, sql_mode, character sets, auto_increment, lc_time_names, the statement's microseconds.
STATEMENTS = (
    "CREATE DATABASE d",
    "USE d",
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP(6) NULL, made TIMESTAMP, a VARCHAR(50) CHARACTER SET utf8mb4)",
    "SET time_zone = '+07:00'",
    "INSERT INTO t (at, a) VALUES ('2024-01-01 00:00:00', 'at seven')",
    "SET time_zone = '-03:00'",
    "INSERT INTO t (at, a) VALUES ('2024-01-01 00:00:00', 'behind'), (FROM_UNIXTIME(86400), 'early')",
    "SET SESSION sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'",
    """INSERT INTO "t" (a) VALUES ('one' || 'two'), ('back\\slash')""",
    "CREATE TABLE \"quoted\" (\"made\" TIMESTAMP, \"b\" INT)",
    "SET SESSION sql_mode = ''",
    "SET NAMES latin1",
    "INSERT INTO t (a) VALUES ('\u00e9t\u00e9')",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "INSERT INTO t (a) SELECT IF('a' = 'A', 'same', 'other')",
    "SET auto_increment_increment = 10, auto_increment_offset = 5",
    "INSERT INTO t (a) VALUES ('five'), ('more')",
    "SET lc_time_names = 'de_DE'",
    "INSERT INTO t (a) VALUES (MONTHNAME('2024-03-01'))",
    "SET timestamp = 1700000000.123456",
    "INSERT INTO t (at, a) VALUES (NOW(6), 'micro')",
    "SET collation_database = utf8mb4_bin",
    "INSERT INTO t (a) VALUES ('last')",
)  # fmt: skip


@pytest.mark.parametrize("target", ["mysql-8.0", "mysql-9.7"])
def test_statements_are_run_as_they_were_by_a_replica_older_than_the_views(
    servers: ServerFactory, tmp_path: Path, target: str
) -> None:
    source = servers("mysql56").start(server_id=1, options=("--binlog-format=STATEMENT",))
    old = servers("mysql56").start(server_id=2)
    new = servers("mysql97").start(server_id=3, options=("--gtid-mode=OFF",))
    sections = {"[view]": {"name": "newer", "gtids": "anonymous", "for": target}}
    relay = RelayProcess(tmp_path / "relay", source, port=free_port(), sections=sections)
    relay.add_account(user="viewer", password="viewer-password", view="newer")
    with relay:
        wait_for_line(relay, "view_served")
        source.execute_many(STATEMENTS)
        source.sql("CREATE DATABASE last_of_all")
        wanted = source.checksum_tables(["d"])
        for replica in (old, new):
            replica.attach("127.0.0.1", relay.port, "viewer", "viewer-password", source.binlogs()[0].name, 4)

            def has_last(replica: Server = replica) -> bool:
                status = replica.replica_status()
                assert status["sql_running"] and status["io_running"] != "No", status
                return bool(replica.sql("SHOW DATABASES LIKE 'last_of_all'"))

            wait_until(has_last, "the last statement", 60)
            assert replica.checksum_tables(["d"]) == wanted
    rows = "SELECT id, UNIX_TIMESTAMP(at), UNIX_TIMESTAMP(made), HEX(a) FROM d.t ORDER BY id"
    assert len(source.sql(rows)) == 12
    assert source.sql(rows) == old.sql(rows) == new.sql(rows)
    nulls = "SELECT table_name, column_name, is_nullable FROM information_schema.columns WHERE table_schema = 'd' ORDER BY 1, 2"
    assert source.sql(nulls) == old.sql(nulls) == new.sql(nulls)
