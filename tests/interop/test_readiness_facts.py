"""What the audit `readiness` believes, asked of real servers: what MySQL 9.7 refuses, and what MySQL 5.6 calls unsafe."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from deploy.servers import CatchUpError, Server
from relay.audit.readiness.check import Effect
from relay.audit.readiness.checks import found_in
from relay.audit.readiness.logged_statement import LoggedStatement
from tests.conftest import ServerFactory
from tests.support.readiness_cases import HARMLESS, MAY_DIFFER, NOT_WARNED, SETUP, STOPS, UNSAFE, UNSAFE_TO_KNOW, Case

pytestmark = pytest.mark.interop

_UNSAFE_WARNING = 1592


@pytest.fixture(scope="module")
def new(module_servers: ServerFactory) -> Server:
    return module_servers("mysql97").start(server_id=2, options=[])


@pytest.fixture(scope="module")
def old(module_servers: ServerFactory) -> Server:
    return module_servers("mysql56").start(server_id=1, options=["--binlog-format=STATEMENT"])


@contextlib.contextmanager
def prepared(server: Server) -> Iterator[Any]:
    """A cursor in a schema with the cases' tables, and the sql_mode of a 5.6 of its time: none."""
    connection = server.connect()
    try:
        with connection.cursor() as cursor:
            for statement in (
                "SET sql_mode = ''",
                "DROP DATABASE IF EXISTS ready",
                "CREATE DATABASE ready",
                "USE ready",
                *SETUP,
            ):
                cursor.execute(statement)
            yield cursor
    finally:
        connection.close()


def error_of(cursor: Any, statement: str) -> int:
    """The error's number; 0: the server takes the statement."""
    try:
        cursor.execute(statement)
        cursor.fetchall()
    except pymysql.MySQLError as error:
        return int(error.args[0])
    return 0


def test_mysql_97_refuses_what_is_said_to_stop_it_and_takes_the_rest(new: Server) -> None:
    with prepared(new) as cursor:
        for account in ("g1", "r1"):
            cursor.execute(f"CREATE USER IF NOT EXISTS {account}@localhost")
        said: dict[str, int] = {}
        for case in (*STOPS, *MAY_DIFFER, *NOT_WARNED, *map(Case, HARMLESS)):
            cursor.execute(f"SET sql_mode = '{case.sql_mode}'")
            said[case.statement] = error_of(cursor, case.statement)
    stopping = {case.statement for case in STOPS}
    assert {statement for statement, error in said.items() if error} == stopping, said


def test_mysql_56_warns_of_what_is_said_to_differ_and_of_nothing_else(old: Server) -> None:
    warned = set()
    cases = [*(case.statement for case in (*UNSAFE, *NOT_WARNED)), *UNSAFE_TO_KNOW, *HARMLESS]
    with prepared(old) as cursor:
        for statement in cases:
            assert error_of(cursor, statement) == 0, statement
            # SHOW WARNINGS keeps the last statement's where the next one touches no table
            if cursor.execute("SHOW WARNINGS") and _UNSAFE_WARNING in {row[1] for row in cursor.fetchall()}:
                warned.add(statement)
            cursor.execute("SELECT 1 FROM t LIMIT 0")
    assert warned == {case.statement for case in UNSAFE} | set(UNSAFE_TO_KNOW)


def test_engines_are_those_of_mysql_97(new: Server) -> None:
    there = {row[0].lower() for row in new.sql("SELECT engine FROM information_schema.engines WHERE support <> 'NO'")}
    for engine in (*there, "TokuDB", "BDB", "FEDERATED"):
        names = {check.name for check in found_in(LoggedStatement(f"CREATE TABLE k (a INT) ENGINE={engine}"), "mysql")}
        assert ("engine_replaced" in names) == (engine not in there), engine


def stops_in(path: Path) -> dict[int, str]:
    """Start of each transaction that readiness says will stop a newer MySQL, with its statement."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
    from tests.audit.test_splits import rows, splits_of

    found = {}
    for row in rows(splits_of(path), "statements"):
        statement = LoggedStatement(row["digest_text"], row["schema"], row["sql_mode"] or 0)
        if any(check.effect is Effect.STOPS for check in found_in(statement, "mysql")):
            found[row["transaction"]] = row["digest_text"]
    return found


def follow_over_errors(replica: Server, source: Server, most: int) -> dict[int, str]:
    """Follows to the source's end, over each transaction that stops it: their positions, with the errors."""
    stopped: dict[int, str] = {}
    while True:
        with contextlib.suppress(CatchUpError):
            replica.wait_for_source(source)
            return stopped
        status = replica.replica_status()
        assert status["sql_errno"], status
        assert len(stopped) < most, stopped
        errors = replica.sql(
            "SELECT last_error_message FROM performance_schema.replication_applier_status_by_worker WHERE last_error_number"
        )
        stopped[status["exec_position"]] = f"{status['sql_errno']} {errors}"
        replica.execute_many(["STOP REPLICA", "SET GLOBAL sql_replica_skip_counter = 1", "START REPLICA"])


def test_a_replica_of_56_stops_where_it_is_said_to_stop_and_nowhere_else(old: Server, new: Server) -> None:
    old.sql("FLUSH LOGS")
    start = old.master_status()
    with prepared(old) as cursor:
        for case in (*STOPS, *MAY_DIFFER, *NOT_WARNED, *map(Case, HARMLESS)):
            if case.on_old:
                assert error_of(cursor, case.statement) == 0, case.statement
    expected = stops_in(old.binlogs()[-1])
    assert len(expected) >= 25
    new.sql("DROP DATABASE IF EXISTS ready")
    new.attach_to(old, start)
    stopped = follow_over_errors(new, old, len(expected) + 5)
    new.stop_replica()
    assert set(stopped) == set(expected), {at: stopped.get(at) or expected[at] for at in set(stopped) ^ set(expected)}
