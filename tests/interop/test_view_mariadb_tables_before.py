"""A MariaDB with its defaults (MIXED), whose tables were there before the archive, and a 9.7 that follows a view of it."""

from pathlib import Path

import pytest

from deploy.servers import Server
from relay.archive.storage.files import SCHEMA_NAME
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.hex_values import check_equal_bytes
from tests.support.mariadb_view import mariadb_chain
from tests.support.view_chain import REPLICA_DEFAULTS, ViewChain, wait_executed

pytestmark = pytest.mark.interop
RECORDING = {"source": {"record_schema": True}}
BEFORE = (
    "CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "CREATE TABLE shop.goods (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(8,2))",
    "CREATE TABLE shop.sold (id INT AUTO_INCREMENT PRIMARY KEY, good INT, FOREIGN KEY (good) REFERENCES shop.goods (id))",
    "INSERT INTO shop.goods VALUES (1, 'apple', 1.5), (2, 'pear', 2)",
)
STATEMENTS = (
    "INSERT INTO shop.goods VALUES (3, 'plum', 3)",
    "UPDATE shop.goods SET price = price * 1.1 WHERE name LIKE '%p%'",
    "INSERT INTO shop.sold (good) SELECT id FROM shop.goods ORDER BY id",
    "ALTER TABLE shop.goods ADD stock INT NOT NULL DEFAULT 5",
    "UPDATE shop.goods SET stock = id WHERE name <> 'pear'",
    "CREATE TABLE shop.copied LIKE shop.goods",
    "INSERT INTO shop.copied SELECT * FROM shop.goods ORDER BY id",
    "DELETE FROM shop.sold WHERE good = 3",
)
NOTED = (
    "CREATE TABLE shop.noted (n INT PRIMARY KEY)",
    "CREATE TRIGGER shop.notes AFTER UPDATE ON shop.noted FOR EACH ROW SET @n = 1",
)
ALL = "PROCESS, TRIGGER, REFERENCES"


def chain_of(servers: ServerFactory, name: str, directory: Path) -> ViewChain:
    """Its relay does not run yet."""
    return mariadb_chain(servers, name, directory / "relay", options=("--binlog-format=MIXED",), sections=RECORDING)


def set_up(chain: ViewChain, *more: str, grants: str = ALL) -> Server:
    """A replica with the tables of the source, which are in no binlog that the relay gets."""
    account = f"'{chain.source.replication_user}'@'%'"
    chain.source.execute_many([f"GRANT {grants} ON *.* TO {account}", *BEFORE, *more, "RESET MASTER"])
    replica = chain.server("mysql97", REPLICA_DEFAULTS)
    replica.execute_many(["SET sql_log_bin = 0", *BEFORE, *more])
    return replica


def recorded(chain: ViewChain) -> str:
    """What the relay has recorded of the source's tables."""
    path = chain.relay.archive / SCHEMA_NAME
    return path.read_text() if path.exists() else ""


def check(chain: ViewChain, replica: Server) -> int:
    """Bytes of all tables once the replica has the whole view; how many values were compared."""
    chain.wait_viewed()
    wait_executed(replica, chain.gtids_of_view(), chain.relay)
    return check_equal_bytes(chain.source, replica, ["shop"])


@pytest.mark.parametrize("name", ["mariadb", "mariadb118"])
def test_statements_over_tables_from_before_the_archive_pass(servers: ServerFactory, tmp_path: Path, name: str) -> None:
    chain = chain_of(servers, name, tmp_path)
    replica = set_up(chain)
    with chain:
        wait_until(lambda: '"triggers"' in recorded(chain), "the tables are recorded")
        chain.source.execute_many(list(STATEMENTS))
        chain.follow_view(replica)
        assert check(chain, replica) > 20
        chain.source.execute_many(
            ["INSERT INTO shop.goods VALUES (9, 'fig', 1, 2)", "DELETE FROM shop.copied WHERE id = 1"]
        )
        chain.relay.kill()
        chain.relay.start()
        assert check(chain, replica) > 20
        assert not chain.relay.logged("view_stopped")


def test_without_the_privilege_to_see_triggers_the_view_stops_and_goes_on_once_it_is_there(
    servers: ServerFactory, tmp_path: Path
) -> None:
    chain = chain_of(servers, "mariadb", tmp_path)
    replica = set_up(chain, *NOTED, grants="PROCESS, REFERENCES")
    with chain:
        chain.source.sql("UPDATE shop.goods SET price = 7 WHERE id = 1")
        stop = chain.wait_stopped()
        assert stop["reason"] == "unknown_table_definition"
        assert "PROCESS, TRIGGER and REFERENCES on *.*" in stop["advice"]
        chain.source.sql(f"GRANT TRIGGER ON *.* TO '{chain.source.replication_user}'@'%'")
        chain.source.sql("CREATE TABLE shop.asked_again (id INT PRIMARY KEY)")
        chain.follow_view(replica)
        assert check(chain, replica) > 5
        # The trigger's changes are in no binlog as statements: both servers run it, and may do other things.
        chain.source.sql("UPDATE shop.noted SET n = 1")
        assert "shop.noted" in chain.wait_stopped()["what"]
