"""Transactions into which a view with dependencies does not look, or cannot: nothing runs beside them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.kernel.codes import VIEW_LARGEST_SET
from tests.conftest import ServerFactory
from tests.support.dependency_checker import DependencyChecker, Largest, number_faults
from tests.support.key_judge import KeyJudge
from tests.support.numbered_groups import groups_of, parallel_width, renumbered
from tests.support.view_chain import REPLICA_DEFAULTS, ViewChain, add_views, view_keys
from tests.support.view_files import binlogs_in

pytestmark = pytest.mark.interop

SIXTEEN = (*REPLICA_DEFAULTS[:-1], "--replica-parallel-workers=16")
LARGEST = Largest(VIEW_LARGEST_SET, 8192)
ROW = ["--binlog-format=ROW"]


@pytest.fixture
def chain(servers: ServerFactory, tmp_path: Path) -> ViewChain:
    """Its source runs; `with` begins the relay."""
    return ViewChain(servers, "mysql56", tmp_path, options=ROW, views=[view_keys(dependencies="writeset")])


@pytest.fixture
def judge(servers: ServerFactory) -> Iterator[KeyJudge]:
    with KeyJudge(servers("mysql97").start(server_id=99)) as judge:
        yield judge


def singles(begin: int, count: int = 20) -> list[str]:
    """Transactions that have nothing in common."""
    return [f"INSERT INTO known.t VALUES ({key}, 'single')" for key in range(begin, begin + count)]


def test_large_transactions_and_rows_of_tables_that_are_older_than_the_archive_stand_alone(
    chain: ViewChain, judge: KeyJudge
) -> None:
    source = chain.source
    older = ["CREATE DATABASE older", "CREATE TABLE older.t (id INT PRIMARY KEY, n INT)"]
    source.execute_many([*older, "RESET MASTER"])
    replica = chain.server("mysql97", SIXTEEN)
    replica.execute_many(["SET sql_log_bin = 0", *older])
    many = ", ".join(f"({key}, 'many')" for key in range(100_000, 109_000))
    long = ", ".join(f"({key}, REPEAT('x', 20000))" for key in range(200_000, 200_040))
    source.execute_many(
        [
            "CREATE DATABASE known",
            "CREATE TABLE known.t (id INT PRIMARY KEY, w TEXT)",
            *singles(0),
            f"INSERT INTO known.t VALUES {many}",
            *singles(1000),
            f"INSERT INTO known.t VALUES {long}",
            *singles(2000),
            "INSERT INTO older.t VALUES (1, 1)",
            "INSERT INTO older.t VALUES (2, 1)",
            *singles(3000),
        ]
    )
    with chain:
        chain.follow_view(replica)
        chain.check_replica(replica, ["known", "older"])
    (made,) = binlogs_in(chain.view_directory())
    assert not list(number_faults(made))

    def found() -> list[str]:
        judge.forget()
        checker = DependencyChecker(judge, largest=LARGEST)
        told = [violation.why for violation in checker.violations(made)]
        assert (checker.unknown_tables, checker.large_groups) == ({("older", "t")}, 2)
        return told

    assert found() == []
    assert parallel_width(list(groups_of(made))) > 5
    count = len(list(groups_of(made)))
    made.write_bytes(renumbered(made.read_bytes(), [(min(number, 2), number + 1) for number in range(count)]))
    told = found()
    for what in ("9000 rows", "40 rows", "1 rows"):
        assert any(f"it stands alone: {what}" in why for why in told), what


def test_tables_whose_rows_are_of_other_tables_or_want_an_order_are_taken_one_by_one(chain: ViewChain) -> None:
    with chain:
        replica = chain.view_replica(options=SIXTEEN)
        source = chain.source
        source.execute_many(
            [
                "CREATE DATABASE d",
                "CREATE TABLE d.one (id INT PRIMARY KEY) ENGINE=MyISAM",
                "CREATE TABLE d.two (id INT PRIMARY KEY) ENGINE=MyISAM",
                "CREATE TABLE d.both (id INT PRIMARY KEY) ENGINE=MERGE UNION=(d.one, d.two) INSERT_METHOD=LAST",
                "CREATE TABLE d.kept (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=ARCHIVE",
                "CREATE TABLE d.read_in (FTS_DOC_ID BIGINT UNSIGNED NOT NULL PRIMARY KEY, w VARCHAR(9), FULLTEXT (w))",
                "CREATE TABLE d.plain (id INT PRIMARY KEY)",
                *(
                    f"INSERT INTO d.{table} VALUES ({key})"
                    if table != "read_in"
                    else f"INSERT INTO d.read_in VALUES ({key}, 'w')"
                    for key in range(1, 41)
                    for table in ("plain", "both", "kept", "read_in")
                ),
                *(f"DELETE FROM d.two WHERE id = {key}" for key in range(1, 41)),
                *(f"INSERT INTO d.both VALUES ({key})" for key in range(1, 41)),
            ]
        )
        chain.check_replica(replica, ["d"])
        (made,) = binlogs_in(chain.view_directory())
        groups = [
            group for group in groups_of(made) if group.rows and group.rows[0].table.name in ("both", "kept", "read_in")
        ]
        assert len(groups) == 160
        assert all(group.last_committed == group.sequence_number - 1 for group in groups)
        add_views(chain.relay, [view_keys("later", dependencies="writeset")])
        checked = chain.relay.command("view", "check", "later", "--json")
        told = json.loads(checked.stdout.splitlines()[-1])["dependencies"]["serial"]
        causes = {(one["why"], one["table"]) for one in told}
        assert {("engine", "d.kept"), ("rows_in_order", "d.read_in")} <= causes, causes
