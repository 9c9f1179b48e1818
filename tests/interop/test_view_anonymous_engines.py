"""Transactions without GTIDs that change tables with and without transactions, on a MySQL 9.7 that follows by file and position."""

from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.relay_process import REPLICA_PASSWORD
from tests.support.table_values import check_equal
from tests.support.view_chain import ViewChain, account_of, view_keys

pytestmark = pytest.mark.interop

WORK = [
    "CREATE DATABASE d",
    "CREATE TABLE d.i (a INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE d.m (a INT PRIMARY KEY) ENGINE=MyISAM",
    *("BEGIN", "INSERT INTO d.i VALUES (1)", "INSERT INTO d.m VALUES (1)", "INSERT INTO d.i VALUES (2)", "COMMIT"),
    "INSERT INTO d.i VALUES (3)",
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "extra"),
    [
        (("--gtid-mode=ON", "--enforce-gtid-consistency=ON"), {"assign_gtids_to_anonymous_transactions": "LOCAL"}),
        (("--gtid-mode=OFF_PERMISSIVE", "--enforce-gtid-consistency=ON"), {}),
        (("--gtid-mode=OFF_PERMISSIVE", "--enforce-gtid-consistency=OFF"), {}),
    ],
    ids=["local", "permissive, consistent", "permissive"],
)
def test_a_transaction_that_mixes_engines_is_applied_by_all_that_follow_without_gtids(
    servers: ServerFactory, tmp_path: Path, options: tuple[str, ...], extra: dict[str, str]
) -> None:
    keys = view_keys(gtids="anonymous")
    with ViewChain(servers, "mysql56", tmp_path, options=("--binlog-format=STATEMENT",), views=[keys]) as chain:
        chain.source.execute_many(WORK)
        end = chain.wait_viewed().view
        replica = chain.server("mysql97", options)
        oldest = chain.view_sql("SHOW BINARY LOGS")[0][0]
        replica.attach(
            "127.0.0.1", chain.relay.port, account_of("gtid"), REPLICA_PASSWORD, str(oldest), 4, ssl=1, **extra
        )

        def applied() -> bool:
            status = replica.replica_status()
            assert not status["sql_errno"] and not status["io_errno"], status
            return (status["exec_file"], status["exec_position"]) == (end.file, end.offset)

        wait_until(applied, "the replica has all")
        check_equal(chain.source, replica, ["d"])
