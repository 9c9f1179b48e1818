"""A source that logs statements, a replica of its version that logs rows, a relay after it: 9.7 has the source's rows."""

from pathlib import Path

import pytest

from deploy.migration import ROW_REPLICA
from relay.archive_inspection.listing import read_ledger
from tests.conftest import ServerFactory
from tests.support.free_port import free_port
from tests.support.hex_values import hex_differences, hex_tables
from tests.support.relay_process import RelayProcess
from tests.support.view_chain import (
    REPLICA_DEFAULTS,
    VIEW,
    account_of,
    add_views,
    follow,
    listen_with_tls,
    view_keys,
    wait_executed,
)
from tests.support.view_seeding import wait_made

pytestmark = pytest.mark.interop

# What 9.7 computes otherwise, or refuses: the order of GROUP BY, REGEXP, a text in a trigger, MD5, REPLACE over what a trigger fills.
STATEMENTS = (
    "CREATE DATABASE d DEFAULT CHARACTER SET utf8",
    "USE d",
    "CREATE TABLE s (a INT, t VARCHAR(20)) ENGINE=InnoDB",
    "CREATE TABLE counted (n INT PRIMARY KEY AUTO_INCREMENT, a INT, c INT) ENGINE=InnoDB",
    "CREATE TABLE log (n INT PRIMARY KEY AUTO_INCREMENT, what VARCHAR(40)) ENGINE=InnoDB",
    "CREATE TRIGGER after_counted AFTER INSERT ON counted FOR EACH ROW INSERT INTO log (what) VALUES (CONCAT(NEW.a, ' ', MD5(NEW.c)))",
    "INSERT INTO s VALUES (3, 'a\\nb'), (1, 'axb'), (3, 'ab'), (2, 'ä')",
    "INSERT INTO counted (a, c) SELECT a, COUNT(*) FROM s GROUP BY a",
    "SET @r = 0",
    "UPDATE s SET a = (@r := @r + 1) WHERE t REGEXP 'a.b' ORDER BY t",
    "REPLACE INTO counted VALUES (1, 9, 9)",
    "DELETE FROM log WHERE what LIKE '1 %'",
)


@pytest.mark.parametrize("name", ["mysql56", "mariadb"])
def test_statements_and_what_triggers_do_become_rows_and_9_7_is_equal(
    servers: ServerFactory, tmp_path: Path, name: str
) -> None:
    source = servers(name).start(server_id=1, options=["--binlog-format=STATEMENT"])
    between = servers(name).start(server_id=2, options=list(ROW_REPLICA))
    between.attach_to(source)
    relay = RelayProcess(tmp_path / "relay", between, port=free_port(), sections={"listen": listen_with_tls(tmp_path)})
    add_views(relay, [view_keys()])
    with relay:
        source.execute_many(STATEMENTS)
        between.wait_for_source(source)
        events = between.sql(f"SHOW BINLOG EVENTS IN '{between.master_status().file}'")
        written = [str(event[5]) for event in events if event[2] == "Query"]
        assert not [text for text in written if " INTO " in text and "CREATE" not in text]
        wait_made(relay, *between.master_status())
        replica = servers("mysql97").start(server_id=3, options=list(REPLICA_DEFAULTS))
        follow(replica, relay.port)
        wait_executed(replica, str(relay.sql("SELECT @@GLOBAL.gtid_executed", account_of(VIEW))[0][0]), relay)
        assert hex_differences(hex_tables(source, ["d"]), hex_tables(replica, ["d"])) == []
        assert "view_stopped" not in {row.kind for row in read_ledger(relay.archive)}
