"""A MariaDB with lower_case_table_names = 1, whose statements name tables in any case, and a MySQL 9.7 that was set up so, too."""

import contextlib
from pathlib import Path

import pytest

from deploy.servers import SERVERS, Server
from tests.conftest import ServerFactory
from tests.support.mariadb_view import check_mariadb_replica, mariadb_chain
from tests.support.view_chain import REPLICA_DEFAULTS, ViewChain

pytestmark = pytest.mark.interop
IN_ANY_CASE = "--lower-case-table-names=1"
WORK = (
    "CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "USE shop",
    "CREATE TABLE Goods (Id INT PRIMARY KEY, Name VARCHAR(20), K UUID)",
    "SET binlog_format = ROW",
    "INSERT INTO GOODS VALUES (1, 'apple', UUID()), (2, 'pear', UUID())",
    "UPDATE SHOP.goods SET name = 'plum' WHERE ID = 2",
    "SET binlog_format = STATEMENT",
    "CREATE TABLE Plain (Id INT PRIMARY KEY, n INT)",
    "INSERT INTO PLAIN VALUES (1, 1), (2, 2)",
    "UPDATE Shop.pLAIN SET N = 7 WHERE id = 1",
    "ALTER TABLE PLAIN ADD COLUMN Added INT, RENAME TO Renamed",
    "INSERT INTO RENAMED VALUES (3, 3, 3)",
    "CREATE OR REPLACE TABLE rENAMED (id INT PRIMARY KEY, other INT)",
    "INSERT INTO Renamed VALUES (1, 1)",
    "DROP TABLE IF EXISTS Missing, GONE",
)


class Mysql97InAnyCase(SERVERS["mysql97"]):  # type: ignore[misc]
    """As `mysqld --initialize` makes it with that option; later it cannot be had."""

    name = "mysql97-any-case"

    @classmethod
    def _own_options(cls) -> list[str]:
        return [*super()._own_options(), IN_ANY_CASE]


def test_tables_are_found_by_any_name_and_are_equal(servers: ServerFactory, tmp_path: Path) -> None:
    with contextlib.ExitStack() as ending:
        chain: ViewChain = ending.enter_context(
            mariadb_chain(servers, "mariadb", tmp_path / "relay", options=(IN_ANY_CASE,))
        )
        replica: Server = ending.enter_context(Mysql97InAnyCase()).start(server_id=9, options=REPLICA_DEFAULTS)
        chain.follow_view(replica)
        chain.source.execute_many(list(WORK))
        assert check_mariadb_replica(chain, replica, ["shop"]) == 2 * 3 + 2
