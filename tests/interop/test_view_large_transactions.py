"""Transactions of so many events that nobody holds them: a view makes of them what it makes of small ones."""

import contextlib
from pathlib import Path

import pymysql
import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.table_values import check_equal
from tests.support.view_chain import ViewChain, view_keys, wait_executed

pytestmark = pytest.mark.interop

KEEP = view_keys()
INNODB = view_keys("innodb", engines="innodb", uuid="5a3c1b9e-7d20-5c44-8f61-0d2e4b6a8c11")
# Far more events than a view holds of a transaction, 2000; and some MiB, of which it holds one.
EVENTS = 10_000
SMALL_EVENTS = ("--binlog-row-event-max-size=256",)
TABLES = [
    "CREATE DATABASE d",
    "CREATE TABLE d.i (a INT PRIMARY KEY, v INT) ENGINE=InnoDB",
    "CREATE TABLE d.m (a INT PRIMARY KEY, v INT) ENGINE=MyISAM",
    "CREATE PROCEDURE d.fill_blindly(start INT, stop INT) WHILE start < stop DO"
    " IF start % 10 = 9 THEN INSERT INTO d.m VALUES (start, 1);"
    " ELSE INSERT INTO d.i VALUES (start, start); END IF; SET start = start + 1; END WHILE",
    # Rows of both kinds of tables: one of d.m behind each nine of d.i.
    "CREATE PROCEDURE d.fill(start INT, stop INT) WHILE start < stop DO"
    " IF start % 10 = 9 THEN INSERT INTO d.m SELECT start, COUNT(*) FROM d.i WHERE a = start - 1;"
    " ELSE INSERT INTO d.i VALUES (start, start); END IF; SET start = start + 1; END WHILE",
]  # fmt: skip


def chain_of(servers: ServerFactory, directory: Path, binlog_format: str) -> ViewChain:
    """With views for both engine policies, and the tables at the source."""
    chain = ViewChain(
        servers, "mysql56", directory, options=(f"--binlog-format={binlog_format}", *SMALL_EVENTS), views=[KEEP, INNODB]
    )
    chain.source.execute_many(TABLES)
    return chain


def engine_of(server: Server, table: str) -> str:
    query = f"SELECT engine FROM information_schema.tables WHERE table_schema = 'd' AND table_name = '{table}'"
    return str(server.sql(query)[0][0])


def test_create_select_in_row_format_is_two_transactions(servers: ServerFactory, tmp_path: Path) -> None:
    with chain_of(servers, tmp_path, "ROW") as chain:
        doubled = "INSERT INTO d.wide SELECT a + {0}, pad FROM d.wide"
        chain.source.execute_many([
            "CREATE TABLE d.wide (a INT PRIMARY KEY, pad VARCHAR(255)) ENGINE=InnoDB",
            "INSERT INTO d.wide VALUES (0, REPEAT('x', 200))",
            *(doubled.format(2**power) for power in range(15)),
            "CREATE TABLE d.copied (PRIMARY KEY (a)) ENGINE=InnoDB SELECT * FROM d.wide",
            "CREATE TABLE d.plain (PRIMARY KEY (a)) ENGINE=MyISAM SELECT * FROM d.wide",
        ])  # fmt: skip
        kept, innodb = chain.view_replica(), chain.view_replica("innodb")
        chain.check_replica(kept, ["d"])
        check_innodb(chain, innodb)
        assert (engine_of(kept, "plain"), engine_of(innodb, "plain")) == ("MyISAM", "InnoDB")


def check_innodb(chain: ViewChain, replica: Server) -> None:
    """Waits until a replica of that view has all of it, and compares the rows."""
    chain.wait_viewed("innodb")
    wait_executed(replica, chain.gtids_of_view("innodb"), chain.relay)
    check_equal(chain.source, replica, ["d"])


@pytest.mark.parametrize(
    ("fill", "events", "ends"), [("fill", 3 * EVENTS, "COMMIT"), ("fill_blindly", EVENTS, "ROLLBACK")]
)
def test_a_transaction_that_mixes_engines_is_split(
    servers: ServerFactory, tmp_path: Path, fill: str, events: int, ends: str
) -> None:
    with chain_of(servers, tmp_path, "STATEMENT") as chain:
        chain.source.execute_many(
            ["BEGIN", f"CALL d.{fill}(0, {events})", ends, f"CALL d.fill({events}, {events + 10})"]
        )
        kept, innodb = chain.view_replica(), chain.view_replica("innodb")
        assert chain.check_replica(kept, ["d"]) > events // 10
        check_innodb(chain, innodb)
        assert chain.gtids_of_view("innodb").endswith(":1-16")


@pytest.mark.parametrize(
    ("statement", "reason"),
    [("DELETE FROM d.m LIMIT 1", "row_order"), ("INSERT INTO d.m VALUES (-1, 1), (-1, 2)", "statement_failed_partway")],
)
def test_what_innodb_does_otherwise_stops_the_view(
    servers: ServerFactory, tmp_path: Path, statement: str, reason: str
) -> None:
    with chain_of(servers, tmp_path, "STATEMENT") as chain:
        with chain.source.connect() as connection, connection.cursor() as cursor:
            for one in ("BEGIN", f"CALL d.fill(0, {EVENTS})", statement, "COMMIT"):
                with contextlib.suppress(pymysql.IntegrityError):
                    cursor.execute(one)
        assert chain.wait_stopped("innodb")["reason"] == reason
        chain.check_replica(chain.view_replica(), ["d"])
