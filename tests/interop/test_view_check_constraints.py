"""CHECK constraints, which a real MySQL 5.6 forgets and a real MySQL 9.7 enforces.

A replica forgets them, too, where the GTID event says that the transaction is of a server before 8.0.16, as a view's does. Where nobody
tells it, as in `mysqlbinlog | mysql`, it does not: so a view has none.
"""

import subprocess
from pathlib import Path

import pytest

from deploy.servers import Server
from relay.view.rules.group_rules import MysqlRules
from tests.conftest import ServerFactory
from tests.interop.conftest import TrialFactory
from tests.support.chain import wait_until
from tests.support.rule_groups import settings
from tests.support.view_chain import VIEW, ViewChain
from tests.support.view_trial import REPLICA_OPTIONS, ViewTrial
from tests.support.view_writer import AsItIs

pytestmark = pytest.mark.interop

NEWER = 90704
"""A version whose definitions with CHECK make constraints."""
DATABASE = ["CREATE DATABASE d", "USE d"]
TABLE = "CREATE TABLE t (a INT, CHECK (a > 0))"
PLAIN = "CREATE TABLE t (a INT)"
STOPS = [
    (3819, [TABLE, "INSERT INTO t VALUES (-1)"]),
    (3819, ["CREATE TABLE t (a INT CHECK (a > 0))", "INSERT INTO t VALUES (-1)"]),
    (3819, [PLAIN, "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)", "INSERT INTO t VALUES (-1)"]),
    (3819, [PLAIN, "INSERT INTO t VALUES (-1)", "ALTER TABLE t ADD CHECK (a > 0)"]),
    (3819, [TABLE, "CREATE TABLE u LIKE t", "INSERT INTO u VALUES (-1)"]),
    (3819, ["CREATE TABLE t (a INT /*!50000 CHECK (a > 0) */)", "INSERT INTO t VALUES (-1)"]),
    (3819, ["CREATE TABLE t (a INT, CHECK (a > 0)) ENGINE=MyISAM", "INSERT INTO t VALUES (-1)"]),
    (3822, ["CREATE TABLE t (a INT, CONSTRAINT c CHECK (a > 0))", "CREATE TABLE u (a INT, CONSTRAINT c CHECK (a > 0))"]),
    (3959, ["CREATE TABLE t (a INT, b INT, CHECK (a > b))", "ALTER TABLE t DROP COLUMN b"]),
    (3814, ["CREATE TABLE t (a INT, CHECK (a > RAND()))", "INSERT INTO t VALUES (-1)"]),
    (3820, ["CREATE TABLE t (a INT, CHECK (nothing > a))", "INSERT INTO t VALUES (-1)"]),
]  # fmt: skip
SILENT = [
    [TABLE, "INSERT IGNORE INTO t VALUES (-1), (1)"],
    [TABLE, "INSERT INTO t VALUES (1), (2)", "UPDATE IGNORE t SET a = a - 2"],
]
FORMS = [
    "CREATE TABLE t (CHECK (a > 0), a INT, CONSTRAINT CHECK (a < 9) , b INT CHECK (b > a), CHECK (b <> ')'))",
    "CREATE TEMPORARY TABLE t (a INT CHECK (a > 0 -- )\n), b INT)",
    "CREATE TABLE t (CHECK (a > 0)) SELECT 1 AS a, 2 AS b",
    "CREATE TABLE t (a INT, b INT /*!50000 , CHECK (b /* ( */ > 0) */)",
    "CREATE TABLE t (a INT, b INT /*!50000 CHECK (b > 0) */) /*!80016 CHECK (b > 0) */",
]
ALTERS = [
    "ALTER TABLE t ADD CHECK (a > 0), ADD CHECK (a > 1)",
    "ALTER TABLE t ADD c INT CHECK (c > 0) FIRST, ADD CONSTRAINT x CHECK (a > 0)",
    "ALTER TABLE t ADD (c INT CHECK (c > 0), CHECK (a > 0), e INT)",
    "ALTER TABLE t ADD CHECK (a > 0) PARTITION BY HASH (a)",
]


def constraints(server: Server) -> list[tuple[object, ...]]:
    """Those that a replica has."""
    return server.sql("SELECT constraint_name FROM information_schema.check_constraints WHERE constraint_schema = 'd'")


def followed(here: ViewTrial, work: list[str], binlog_format: str = "STATEMENT") -> None:
    """With the rule there is what the source has, and no constraint, whatever the server is told of the version."""
    assert here.apply(MysqlRules(settings()), here.write([*DATABASE, *work], binlog_format), version=NEWER) == 0
    assert here.equal
    assert here.whole
    assert constraints(here.replica) == []


@pytest.mark.parametrize(("error", "work"), STOPS)
@pytest.mark.parametrize("binlog_format", ["STATEMENT", "ROW"])
def test_a_server_that_is_told_of_no_old_version_stops_at_what_the_source_took(
    trial: TrialFactory, error: int, work: list[str], binlog_format: str
) -> None:
    here = trial()
    file = here.write([*DATABASE, *work], binlog_format)
    assert here.apply(AsItIs(), file, version=NEWER) == error
    followed(trial(), work, binlog_format)


@pytest.mark.parametrize("work", SILENT)
def test_a_server_that_is_told_of_no_old_version_leaves_out_rows_in_silence(
    trial: TrialFactory, work: list[str]
) -> None:
    here = trial()
    assert here.apply(AsItIs(), here.write([*DATABASE, *work]), version=NEWER) == 0
    assert not here.equal
    followed(trial(), work)


@pytest.mark.parametrize("work", [*(work for _error, work in STOPS), *SILENT])
def test_a_replica_that_is_told_the_source_version_forgets_them_too(trial: TrialFactory, work: list[str]) -> None:
    here = trial()
    assert here.apply(AsItIs(), here.write([*DATABASE, *work])) == 0
    assert here.equal
    assert here.whole
    assert constraints(here.replica) == []


@pytest.mark.parametrize("work", [STOPS[0][1], *SILENT])
def test_what_is_restored_with_mysqlbinlog_is_what_the_source_has(trial: TrialFactory, work: list[str]) -> None:
    for rules, same in ((AsItIs(), False), (MysqlRules(settings()), True)):
        here = trial()
        file = here.write([*DATABASE, *work])
        assert here.apply(rules, file) == 0
        assert here.equal
        here.replica.execute_many(["RESET REPLICA ALL", "DROP DATABASE d", "RESET BINARY LOGS AND GTIDS"])
        replay(here.replica, here.directory / "view" / file.name)
        assert here.equal == same


def replay(server: Server, file: Path) -> None:
    """Puts a binlog of a view into a server as a restore does, and goes on behind errors."""
    words = subprocess.run([*server.mysqlbinlog(), str(file)], capture_output=True, check=True).stdout
    client = [*server.mysql_client(), "--no-defaults", "--host=127.0.0.1", "--protocol=TCP", f"--port={server.port}"]
    subprocess.run([*client, "--user=root", "--force"], input=words, capture_output=True, check=False)


@pytest.mark.parametrize("definition", FORMS)
def test_every_form_of_a_new_table_is_taken_as_the_source_took_it(trial: TrialFactory, definition: str) -> None:
    rows = "INTO t (a, b) VALUES (-1, -1)"
    followed(trial(), [definition, f"INSERT {rows}", f"INSERT IGNORE {rows}"])


@pytest.mark.parametrize("alter", ALTERS)
def test_every_form_of_an_altered_table_is_taken_as_the_source_took_it(trial: TrialFactory, alter: str) -> None:
    made = ["CREATE TABLE t (a INT, b INT)", "INSERT INTO t VALUES (-1, -1)"]
    followed(trial(), [*made, alter, "INSERT INTO t (a, b) VALUES (-2, -2)"])


def test_a_view_and_a_replica_of_its_replica_have_none(servers: ServerFactory, tmp_path: Path) -> None:
    with ViewChain(servers, "mysql56", tmp_path / "relay") as chain:
        chain.source.execute_many([*DATABASE, TABLE, "INSERT INTO t VALUES (-1)", "CREATE TABLE u LIKE t"])
        first = chain.view_replica()
        chain.check_replica(first, ["d"])
        second = servers("mysql97").start(server_id=9, options=list(REPLICA_OPTIONS))
        second.attach("127.0.0.1", first.port, first.replication_user, first.replication_password, auto_position=1)
        chain.source.execute_many(["USE d", "ALTER TABLE u ADD CHECK (a > 1)", "INSERT INTO u VALUES (1)"])
        chain.check_replica(first, ["d"])
        wait_until(
            lambda: second.sql("SELECT @@GLOBAL.gtid_executed") == first.sql("SELECT @@GLOBAL.gtid_executed"),
            "all of it",
        )
        for replica in (first, second):
            assert (replica.sql("SELECT a FROM d.u"), constraints(replica)) == ([(1,)], [])
        chain.relay.stop()
        verified = chain.relay.command("view", "verify", VIEW)
        assert verified.returncode == 0, verified.stdout + verified.stderr
