"""What a real MySQL 9.7 makes of rows of a MariaDB as they are: errors, and values in wrong columns without any; and by the rules."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from deploy.servers import SERVERS, Server
from protocol.sql.tables.source_table import Column, Table
from relay.source_tables.known_table import KnownTable
from relay.view.rules.mariadb.rows.mariadb_tables import MariadbTables
from relay.view.stops.stop_reason import Untranslatable
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.mariadb_envelope import domain_uuid, write_envelopes
from tests.support.mariadb_view import last_of_domains, mariadb_chain
from tests.support.mysql_rows import as_mysql
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.view_chain import UUID_OF_VIEW, wait_executed

pytestmark = pytest.mark.interop

CANNOT_READ, CORRUPT, NO_CONVERSION, NO_TABLE, TWICE, CHECK_BROKEN = 13121, 1610, 13146, 1146, 1062, 3819
SESSION = ("SET sql_mode = ''", "SET binlog_format = ROW", "USE d")


class Trial:
    """A MariaDB 11.8 and a MySQL 9.7 whose tables are made by hand, and rows that go from the one to the other as they are."""

    def __init__(self, servers: ServerFactory, directory: Path) -> None:
        self.source = servers("mariadb118").start(server_id=1, options=("--binlog-row-metadata=FULL",))
        self.replica = servers("mysql97").start(server_id=2)
        self._directory = directory
        self._relays: list[RelayProcess] = []
        for server in (self.source, self.replica):
            unlogged(server, ["CREATE DATABASE d"])

    def write(self, statements: Sequence[str]) -> Path:
        """The binlog of statements that change rows."""
        self.source.sql("FLUSH BINARY LOGS")
        self.source.execute_many([*SESSION, *statements, "FLUSH BINARY LOGS"])
        return self.source.binlogs()[-2]

    def error(self, binlog: Path) -> int:
        """Of the replica that follows the binlog in MySQL's envelope to its end; 0: none."""
        made = self._directory / f"envelopes{len(self._relays)}"
        gtids = write_envelopes([binlog], made)
        relay = RelayProcess(self._directory / f"relay{len(self._relays)}", made, port=free_port(), markers="strip")
        self._relays.append(relay)
        relay.start()
        self.replica.stop_replica()
        self.replica.execute_many(["RESET REPLICA ALL", "RESET BINARY LOGS AND GTIDS"])
        self.replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1)

        def ended() -> bool:
            told = self.replica.sql(f"SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)")
            return told == [(1,)] or self._errno() != 0

        wait_until(ended, "the replica has all, or an error", 60)
        return self._errno()

    def _errno(self) -> int:
        told = self.replica.sql(
            "SELECT LAST_ERROR_NUMBER FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER <> 0"
        )
        return int(told[0][0]) if told else int(self.replica.replica_status()["sql_errno"] or 0)

    def close(self) -> None:
        """Ends the relays."""
        for relay in self._relays:
            relay.kill()


def unlogged(server: Server, statements: Sequence[str]) -> None:
    server.execute_many(["SET sql_log_bin = 0", *statements])


@pytest.fixture
def trial(servers: ServerFactory, tmp_path: Path) -> Iterator[Trial]:
    made = Trial(servers, tmp_path)
    yield made
    made.close()


def known(*columns: tuple[str, str], name: str = "t") -> MariadbTables:
    tables = MariadbTables(lambda collation: collation)
    tables.put(("d", name), KnownTable(Table("d", name, columns=tuple(Column(*column) for column in columns))))
    return tables


def test_what_mysql_lacks_stops_a_replica(trial: Trial) -> None:
    """Sequences, compressed columns, JSON, vectors, times of the old formats and more: each with the error that the stops name."""
    cases: list[tuple[Sequence[str], Sequence[str], str, int]] = [
        (["CREATE TABLE c (a VARCHAR(20) COMPRESSED)"], ["CREATE TABLE c (a VARCHAR(20))"], "INSERT INTO c VALUES ('x')", CANNOT_READ),
        (["CREATE TABLE b (a TEXT COMPRESSED)"], ["CREATE TABLE b (a TEXT)"], "INSERT INTO b VALUES ('x')", CANNOT_READ),
        (["CREATE TABLE j (a JSON)"], ["CREATE TABLE j (a JSON)"], "INSERT INTO j VALUES ('1')", NO_CONVERSION),
        (["CREATE TABLE v (a VECTOR(3))"], ["CREATE TABLE v (a VECTOR(3))"], "INSERT INTO v VALUES (REPEAT('x', 12))", NO_CONVERSION),
        (["CREATE SEQUENCE s"], [], "SELECT NEXTVAL(s)", NO_TABLE),
        (["SET GLOBAL mysql56_temporal_format = OFF", "CREATE TABLE o (a DATETIME)"], ["CREATE TABLE o (a DATETIME)"],
         "INSERT INTO o VALUES ('2020-02-02 02:02:02')", CORRUPT),
        (["CREATE TABLE u (a UUID)"], ["CREATE TABLE u (a CHAR(36))"], "INSERT INTO u VALUES (UUID())", NO_CONVERSION),
        (["CREATE TABLE h (a INT PRIMARY KEY, b INT) WITH SYSTEM VERSIONING", "INSERT INTO h VALUES (1, 1)"],
         ["CREATE TABLE h (a INT PRIMARY KEY, b INT)", "INSERT INTO h VALUES (1, 1)"], "UPDATE h SET b = 2", TWICE),
        # A view cannot mend it: MySQL looks at each row.
        (["CREATE TABLE k (a INT CHECK (a > 0))"], ["CREATE TABLE k (a INT CHECK (a > 0))"],
         "SET STATEMENT check_constraint_checks = 0 FOR INSERT INTO k VALUES (-1)", CHECK_BROKEN),
    ]  # fmt: skip
    found = []
    for source, replica, change, _ in cases:
        unlogged(trial.source, ["USE d", *source])
        unlogged(trial.replica, ["USE d", *replica])
        found.append(trial.error(trial.write([change])))
    assert found == [error for *_, error in cases]


def test_without_the_guard_values_stand_in_wrong_columns(trial: Trial) -> None:
    """As where a definition ran on the source only, or in an executable comment: no error, no warning."""
    unlogged(trial.source, ["USE d", "CREATE TABLE t (a INT, d INT, f INT)"])
    unlogged(trial.replica, ["USE d", "CREATE TABLE t (a INT, f INT)"])
    binlog = trial.write(["INSERT INTO t VALUES (1, 2, 3)"])
    assert trial.error(binlog) == 0
    assert trial.replica.sql("SELECT a, f FROM d.t") == [(1, 2)]
    with pytest.raises(Untranslatable) as stopped:
        as_mysql(binlog.read_bytes(), known(("a", "int"), ("f", "int")))
    assert stopped.value.reason.name == "table_differs"


def test_without_the_guard_the_history_of_a_versioned_table_becomes_rows(trial: Trial) -> None:
    """MySQL passes over columns that its table does not have; where no key says no, old rows stand beside the new ones."""
    unlogged(trial.source, ["USE d", "CREATE TABLE t (a INT) WITH SYSTEM VERSIONING"])
    unlogged(trial.replica, ["USE d", "CREATE TABLE t (a INT)"])
    binlog = trial.write(["INSERT INTO t VALUES (1)", "UPDATE t SET a = 2"])
    assert trial.error(binlog) == 0
    assert trial.source.sql("SELECT a FROM d.t") == [(2,)]
    assert sorted(trial.replica.sql("SELECT a FROM d.t")) == [(1,), (2,)]
    with pytest.raises(Untranslatable) as stopped:
        as_mysql(binlog.read_bytes(), known(("a", "int")))
    assert stopped.value.reason.name == "table_differs"


def test_without_the_rule_texts_behind_a_geometry_have_other_character_sets_in_mysqlbinlog(
    trial: Trial, tmp_path: Path
) -> None:
    unlogged(
        trial.source,
        ["USE d", "CREATE TABLE t (id INT, g POINT, t TEXT CHARACTER SET latin1, v VARCHAR(9) CHARACTER SET ascii)"],
    )
    binlog = trial.write(["INSERT INTO t VALUES (1, POINT(1, 2), 'x', 'y')"])
    write_envelopes([binlog], tmp_path / "without")
    by_rules = tmp_path / "by_rules"
    by_rules.write_bytes(as_mysql(binlog.read_bytes(), MariadbTables(lambda collation: collation)))
    assert "TEXT CHARSET latin1" not in columns_of(tmp_path / "without" / binlog.name)
    shown = columns_of(by_rules)
    assert "TEXT CHARSET latin1 COLLATE latin1_swedish_ci" in shown
    assert "VARCHAR(9) CHARSET ascii COLLATE ascii_general_ci" in shown


def columns_of(binlog: Path) -> str:
    """The line of columns that the replica's mysqlbinlog prints."""
    program = [*SERVERS["mysql97"].mysqlbinlog(), "--no-defaults", "--print-table-metadata", "-vv", str(binlog)]
    done = subprocess.run(program, capture_output=True, check=True)
    lines = done.stdout.decode(errors="replace").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("# Columns("))
    return " ".join(lines[start : start + 6])


def test_a_view_stops_before_rows_of_a_table_that_only_the_source_changed(
    servers: ServerFactory, tmp_path: Path
) -> None:
    """With the names of binlog_row_metadata = FULL also where number and types of the columns are the same."""
    with mariadb_chain(
        servers, "mariadb", tmp_path / "relay", options=("--binlog-format=ROW", "--binlog-row-metadata=FULL")
    ) as chain:
        chain.source.execute_many(
            ["CREATE DATABASE d", "CREATE TABLE d.t (a INT, b INT)", "INSERT INTO d.t VALUES (1, 2)"]
        )
        unlogged(chain.source, ["ALTER TABLE d.t MODIFY b INT FIRST"])
        chain.source.execute_many(["INSERT INTO d.t (a, b) VALUES (3, 4)"])
        stop: dict[str, Any] = chain.wait_stopped()
        assert stop["reason"] == "table_differs"
        assert "column 1 is `b` at the source, and `a` on replicas" in str(stop)


def test_json_as_binary_is_the_document_that_mysql_makes_of_the_text(servers: ServerFactory, tmp_path: Path) -> None:
    texts = [
        '{"a": 1, "b":[1,2.50],"a":2}', "[-0, 5000000000, -5000000000, 70000, -129, 1e10, 0.1]", '"é😀"', "null", "[]", "{}",
        '{"long": "' + "x" * 70_000 + '", "é": [true, false, null, -1]}', "[" + "[1]," * 20_000 + "-1]", "12345678901234567890123",
    ]  # fmt: skip
    with mariadb_chain(
        servers, "mariadb118", tmp_path / "relay", options=("--binlog-format=ROW",), json_columns="binary"
    ) as chain:
        replica = chain.view_replica()
        chain.source.execute_many(
            ["SET NAMES utf8mb4", "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, j JSON)"]
        )
        with chain.source.connect() as connection, connection.cursor() as cursor:
            for number, text in enumerate(texts):
                cursor.execute("INSERT INTO d.t VALUES (%s, %s)", (number, text))
            connection.commit()
        last = last_of_domains(chain.source)[0]
        wait_executed(replica, f"{domain_uuid(UUID_OF_VIEW, 0)}:1-{last}", chain.relay)
        with replica.connect() as connection, connection.cursor() as cursor:
            for number, text in enumerate(texts):
                cursor.execute(
                    "SELECT j = CAST(%s AS JSON), CAST(j AS CHAR) = CAST(CAST(%s AS JSON) AS CHAR), JSON_TYPE(j),"
                    " JSON_TYPE(CAST(%s AS JSON)), JSON_STORAGE_SIZE(j) = JSON_STORAGE_SIZE(CAST(%s AS JSON)) FROM d.t WHERE id = %s",
                    (text, text, text, text, number),
                )
                equal, same_text, kind, wanted_kind, same_size = cursor.fetchone()
                assert (equal, same_text, kind, same_size) == (1, 1, wanted_kind, 1), text[:60]
        chain.source.sql("INSERT INTO d.t VALUES (100, '1e400')")
        assert chain.wait_stopped()["reason"] == "json_not_in_target"
