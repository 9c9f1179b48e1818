"""What a real MySQL 9.7 stops with at events and statements of a MariaDB that no rule touched; and that a view keeps each of them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pymysql
import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.mariadb_envelope import write_envelopes
from tests.support.mariadb_view import check_mariadb_replica, mariadb_chain
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess

pytestmark = pytest.mark.interop

CANNOT_READ, NOT_ITS_MODE, WRONG_VARIABLE, WRONG_CHARSET, NO_TABLE, NO_COLLATION = 13121, 3899, 13117, 22, 1051, 1273
ANNOTATE, CHECKPOINT, WRITE_V1 = 160, 161, 23
SESSION = (
    "SET NAMES latin1, collation_server = latin1_swedish_ci, character_set_collations = ''",
    "SET sql_mode = 'NO_ENGINE_SUBSTITUTION', binlog_format = ROW",
    "USE d",
)
BY_STATEMENT = "SET binlog_format = STATEMENT"


class Case(NamedTuple):
    """What the source does, and with which error a replica stops that gets it in MySQL's envelope. as_is: a kind of event that is not
    even put into that."""

    error: int
    statements: tuple[str, ...]
    as_is: int = 0


CASES = {
    "rows of version 1": Case(CANNOT_READ, ("INSERT INTO t VALUES (1, 1)",), WRITE_V1),
    "an annotation": Case(CANNOT_READ, ("INSERT INTO t VALUES (2, 1)",), ANNOTATE),
    "a checkpoint": Case(CANNOT_READ, ("INSERT INTO t VALUES (3, 1)",), CHECKPOINT),
    "an XA transaction": Case(
        1399, ("XA START 'x'", "INSERT INTO t VALUES (4, 1)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    ),
    "ALTER in two phases": Case(1060, ("SET binlog_alter_two_phase = ON", "ALTER TABLE t ADD added INT")),
    "CREATE TABLE … SELECT as rows": Case(1778, ("CREATE TABLE selected SELECT 1 AS a",)),
    "a table that was not there": Case(NO_TABLE, ("CREATE TABLE gone (a INT)", "DROP TABLE gone, missing")),
    "CREATE OR REPLACE": Case(1064, ("CREATE OR REPLACE TABLE replaced (a INT PRIMARY KEY)",)),
    "ADD COLUMN IF NOT EXISTS": Case(1064, ("ALTER TABLE t ADD COLUMN IF NOT EXISTS another INT",)),
    "DROP COLUMN IF EXISTS": Case(1064, ("ALTER TABLE t DROP COLUMN IF EXISTS nothing",)),
    "CREATE INDEX IF NOT EXISTS": Case(1064, ("CREATE INDEX IF NOT EXISTS i ON t (n)",)),
    "PERSISTENT": Case(1064, ("CREATE TABLE computed (a INT PRIMARY KEY, b INT AS (a + 1) PERSISTENT)",)),
    "a default that is an expression": Case(1064, ("CREATE TABLE made_up (a INT PRIMARY KEY, b VARCHAR(9) DEFAULT concat('a', 'b'))",)),
    "COMPRESSED": Case(1064, ("CREATE TABLE packed (a INT PRIMARY KEY, b TEXT COMPRESSED)",)),
    "UUID": Case(1064, ("CREATE TABLE of_uuid (a UUID PRIMARY KEY)",)),
    "INET6": Case(1064, ("CREATE TABLE of_inet (a INET6 PRIMARY KEY)",)),
    "a name that MySQL has reserved": Case(1064, ("CREATE TABLE named (a INT PRIMARY KEY, rank INT)",)),
    "a long UNIQUE key": Case(1170, ("CREATE TABLE long_key (a INT PRIMARY KEY, b TEXT UNIQUE)",)),
    "WITH SYSTEM VERSIONING": Case(1064, ("CREATE TABLE versioned (a INT PRIMARY KEY) WITH SYSTEM VERSIONING",)),
    "CREATE SEQUENCE": Case(1064, ("CREATE SEQUENCE s",)),
    "the engine Aria": Case(1286, ("CREATE TABLE of_aria (a INT PRIMARY KEY) ENGINE=Aria",)),
    "an option of MariaDB": Case(1064, ("CREATE TABLE of_pages (a INT PRIMARY KEY) PAGE_COMPRESSED=1",)),
    "a collation of MariaDB": Case(
        NO_COLLATION, ("CREATE TABLE nopad (a VARCHAR(9) PRIMARY KEY) CHARACTER SET latin1 COLLATE latin1_swedish_nopad_ci",)
    ),
    "ALGORITHM=NOCOPY": Case(1800, ("ALTER TABLE t ADD INDEX j (n), ALGORITHM=NOCOPY",)),
    "a grant that makes an account": Case(1064, ("GRANT SELECT ON d.* TO somebody IDENTIFIED BY 'word'",)),
    "a user variable of a collation of MariaDB": Case(
        WRONG_VARIABLE,
        (BY_STATEMENT, "SET NAMES utf8mb4 COLLATE utf8mb4_uca1400_ai_ci", "SET @v = '5'", "INSERT INTO t (id, n) VALUES (5, @v)"),
    ),
    "a collation of MariaDB's session": Case(
        WRONG_CHARSET,
        (BY_STATEMENT, "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin", "INSERT INTO t (id, n) VALUES (6, 1)"),
    ),
    "TIME_ROUND_FRACTIONAL": Case(
        NOT_ITS_MODE,
        (BY_STATEMENT, "SET sql_mode = 'TIME_ROUND_FRACTIONAL'", "INSERT INTO t (id, n) VALUES (7, 1)"),
    ),
}  # fmt: skip
BEFORE = ("CREATE DATABASE d CHARACTER SET latin1", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, n INT)")


class Attempt:
    """A MySQL 9.7 that follows binlogs one by one, each of them to its end or to an error."""

    def __init__(self, replica: Server, relay: RelayProcess) -> None:
        self.replica, self.relay = replica, relay

    def error(self, gtids: str, before: str) -> int:
        """Of what has these GTIDs; what is before it counts as executed."""
        self.replica.stop_replica()
        self.replica.execute_many(
            ["RESET REPLICA ALL", "RESET BINARY LOGS AND GTIDS", f"SET GLOBAL gtid_purged = '{before}'"]
        )
        self.replica.attach("127.0.0.1", self.relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1)

        def ended() -> bool:
            told = self.replica.sql(f"SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)")
            return told == [(1,)] or self._errno() != 0

        wait_until(ended, "the replica has all, or an error", 60)
        return self._errno()

    def _errno(self) -> int:
        told = self.replica.sql(
            "SELECT LAST_ERROR_NUMBER FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER <> 0"
        )
        status = self.replica.replica_status()
        return int(told[0][0]) if told else int(status["sql_errno"] or status["io_errno"] or 0)


def run(source: Server, case: Case) -> None:
    """What is logged although it failed may fail."""
    with contextlib.suppress(pymysql.err.OperationalError) if case.error == NO_TABLE else contextlib.nullcontext():
        source.execute_many([*SESSION, *case.statements])


@pytest.fixture
def source(servers: ServerFactory) -> Server:
    return servers("mariadb118").start(server_id=1)


@pytest.fixture
def relays() -> Iterator[list[RelayProcess]]:
    made: list[RelayProcess] = []
    yield made
    for relay in made:
        relay.kill()


def test_each_of_them_stops_a_replica_without_the_rules(
    source: Server, servers: ServerFactory, relays: list[RelayProcess], tmp_path: Path
) -> None:
    source.execute_many([*BEFORE, "RESET MASTER"])
    binlogs: dict[str, Path] = {}
    for name, case in CASES.items():
        source.sql("FLUSH BINARY LOGS")
        run(source, case)
        binlogs[name] = source.binlogs()[-1]
    source.sql("FLUSH BINARY LOGS")

    every = list(source.binlogs()[:-1])
    directory = tmp_path / "envelopes"
    as_is = {binlogs[name].name: case.as_is for name, case in CASES.items() if case.as_is}
    write_envelopes(every, directory, as_is)
    up_to = [write_envelopes(every[: number + 1], tmp_path / "counted") for number in range(len(every))]
    gtids = {path.name: told for path, told in zip(every, up_to, strict=True)}
    relay = RelayProcess(tmp_path / "relay", directory, port=free_port(), markers="strip")
    relays.append(relay)
    relay.start()

    replica = servers("mysql97").start(server_id=2)
    replica.execute_many(["SET sql_log_bin = 0", *BEFORE])
    attempt = Attempt(replica, relay)
    names = [path.name for path in every]
    found = {
        name: attempt.error(gtids[path.name], gtids[names[names.index(path.name) - 1]])
        for name, path in binlogs.items()
    }
    assert found == {name: case.error for name, case in CASES.items()}


def test_a_view_keeps_all_of_them(servers: ServerFactory, tmp_path: Path) -> None:
    with mariadb_chain(servers, "mariadb118", tmp_path / "relay") as chain:
        replica = chain.view_replica()
        chain.source.execute_many(list(BEFORE))
        for case in CASES.values():
            if case.error != NO_COLLATION:  # there the view stops by name, until somebody says which to take
                run(chain.source, case)
        assert check_mariadb_replica(chain, replica, ["d"], keys_left_out=("d.long_key.b",)) >= 7
