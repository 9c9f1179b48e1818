"""What a MySQL 9.7 makes of a MariaDB's transactions without an error, and wrongly, in MySQL's envelope alone; and through a view."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pymysql
import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.hex_values import hex_differences, hex_tables
from tests.support.mariadb_envelope import domain_uuid, write_envelopes
from tests.support.mariadb_view import last_of_domains
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess, wait_for_line
from tests.support.view_chain import REPLICA_DEFAULTS, UUID_OF_VIEW, executed_by

pytestmark = pytest.mark.interop
VIEW: Final = {"[view]": {"name": "gtid", "gtids": "assign", "uuid": str(UUID_OF_VIEW)}}
TABLE: Final = "CREATE TABLE d.t (id INT PRIMARY KEY, a VARCHAR(30), b VARCHAR(30), c TIME, e DATETIME(6))"
CASES: Final[dict[str, Sequence[str]]] = {
    # 11.8's own default: number 2304
    "statements in a collation from 2048 on are passed over": (
        "SET NAMES utf8mb4 COLLATE utf8mb4_uca1400_ai_ci",
        TABLE,
        "INSERT INTO d.t (id) VALUES (1)",
    ),
    "a lower number of a domain is passed over": (
        "SET NAMES latin1",
        TABLE,
        "SET gtid_seq_no = 1000",
        "INSERT INTO d.t (id) VALUES (1)",
        "SET gtid_seq_no = 1000",
        "SET server_id = 77",
        "INSERT INTO d.t (id) VALUES (2)",
    ),
    "fractions of a second are rounded": (
        "SET NAMES latin1",
        TABLE,
        "INSERT INTO d.t (id, c, e) VALUES (1, '10:00:00.9', NOW(6))",
    ),
    "an empty text stays one": (
        "SET NAMES latin1",
        TABLE,
        "SET sql_mode = 'EMPTY_STRING_IS_NULL'",
        "INSERT INTO d.t (id, a) VALUES (1, '')",
    ),
    "columns in executable comments are missing, and values go elsewhere": (
        "SET NAMES latin1",
        "CREATE TABLE d.t (id INT PRIMARY KEY /*M! , d VARCHAR(9) */, f VARCHAR(9), g VARCHAR(9))",
        "SET binlog_format = ROW",
        "INSERT INTO d.t VALUES (1, 'd', 'f', 'g')",
    ),
    "TIMESTAMP columns have other attributes": (
        "SET NAMES latin1",
        "SET explicit_defaults_for_timestamp = OFF",
        "CREATE TABLE d.t (id INT PRIMARY KEY, s TIMESTAMP)",
    ),
    "a trigger's function gives another value": (
        "SET NAMES latin1",
        TABLE,
        "CREATE TRIGGER d.tr BEFORE INSERT ON d.t FOR EACH ROW SET NEW.a = REGEXP_REPLACE(NEW.a, '(b)', '[\\\\1]')",
        "INSERT INTO d.t (id, a) VALUES (1, 'abc')",
    ),
    # The replicas of a MariaDB keep it, too.
    "a column that REPLACE gives its default keeps its value": (
        "SET NAMES latin1",
        "CREATE TABLE d.t (id INT PRIMARY KEY, u INT UNIQUE, a VARCHAR(9))",
        "SET binlog_format = ROW",
        "SET binlog_row_image = MINIMAL",
        "INSERT INTO d.t VALUES (1, 9, 'kept')",
        "REPLACE INTO d.t (id, u) VALUES (5, 9)",
    ),
    "groups that a variable numbers come in another order": (
        "SET NAMES latin1",
        "CREATE TABLE d.s (k INT)",
        "CREATE TABLE d.t (k INT PRIMARY KEY, n INT)",
        "INSERT INTO d.s VALUES (3), (1), (2), (3), (1)",
        "SET @n := 0",
        "INSERT INTO d.t SELECT k, @n := @n + 1 FROM (SELECT k FROM d.s GROUP BY k) x",
    ),
    "a text with an offset is another moment": (
        "SET NAMES latin1",
        TABLE,
        "SET sql_mode = ''",
        "INSERT INTO d.t (id, e) VALUES (1, '2020-01-01 10:00:00+02:00')",
    ),
    "the first value of an ENUM is not stored for NULL": (
        "SET NAMES latin1",
        "CREATE TABLE d.t (id INT PRIMARY KEY, a ENUM('x', 'y') NOT NULL)",
        "SET sql_mode = ''",
        "INSERT INTO d.t VALUES (1, NULL), (2, NULL)",
    ),
    "a literal of bytes is another number": (
        "SET NAMES latin1",
        TABLE,
        "INSERT INTO d.t (id) VALUES (1), (2)",
        "UPDATE d.t SET a = IF(x'30', 'yes', 'no')",
    ),
    "patterns have other sets of letters": (
        "SET NAMES latin1",
        TABLE,
        "INSERT INTO d.t (id, a) VALUES (1, '&'), (2, 'x')",
        "DELETE FROM d.t WHERE a REGEXP '[a&&b]'",
    ),
    # 11.8 makes them uca1400_ai_ci, in which ı is no i
    "texts of utf8mb3 without a collation are compared otherwise": (
        "SET NAMES latin1",
        "CREATE TABLE d.t (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET utf8mb3)",
        "SET binlog_format = ROW",
        "INSERT INTO d.t VALUES (1, CONVERT(0xC4B1 USING utf8mb3)), (2, 'i')",
        "SET binlog_format = STATEMENT",
        "DELETE FROM d.t WHERE a = 'i'",
    ),
}
ACCESS_DENIED: Final = 1045
STOPPED: Final = {
    "a lower number of a domain is passed over": "sequence_not_increasing",
    "a column that REPLACE gives its default keeps its value": "partial_replace_image",
    "an empty text stays one": "sql_mode_not_in_target",
    "a trigger's function gives another value": "statement_differs_in_target",
    "groups that a variable numbers come in another order": "statement_differs_in_target",
    "a text with an offset is another moment": "statement_differs_in_target",
    "the first value of an ENUM is not stored for NULL": "statement_differs_in_target",
    "a literal of bytes is another number": "statement_differs_in_target",
    "patterns have other sets of letters": "statement_differs_in_target",
}


@pytest.fixture(scope="module")
def both(module_servers: ServerFactory) -> tuple[Server, Server]:
    """A MariaDB 11.8 that writes statements, and a MySQL 9.7 with its defaults."""
    options = ["--binlog-format=STATEMENT", "--character-set-server=latin1", "--collation-server=latin1_swedish_ci"]
    source = module_servers("mariadb118").start(server_id=1, options=options)
    return source, module_servers("mysql97").start(server_id=2, options=REPLICA_DEFAULTS)


def begin_anew(source: Server, replica: Server) -> None:
    replica.stop_replica()
    replica.execute_many(["RESET REPLICA ALL", "DROP DATABASE IF EXISTS d", "RESET BINARY LOGS AND GTIDS"])
    source.execute_many(["DROP DATABASE IF EXISTS d", "RESET MASTER", "SET NAMES latin1", "CREATE DATABASE d"])


def apply(replica: Server, relay: RelayProcess, user: str, gtids: str) -> None:
    """The replica has executed all of that, without an error."""
    replica.attach("127.0.0.1", relay.port, user, REPLICA_PASSWORD, auto_position=1, ssl=0)

    def has_all() -> bool:
        status = replica.replica_status()
        assert not status["sql_errno"], status
        return bool(replica.sql(f"SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)")[0][0])

    wait_until(has_all, f"the replica executes {gtids}; it has {executed_by(replica)}", 60)
    replica.stop_replica()


def has_statements(texts: Sequence[str]) -> bool:
    """Whether some change rows while the source writes statements, as it does where nothing else is said."""
    writes_rows = False
    for text in texts:
        if text.startswith("SET binlog_format"):
            writes_rows = text.endswith("ROW")
        elif text.startswith(("INSERT", "DELETE")) and not writes_rows:
            return True
    return False


@pytest.mark.parametrize("case", CASES)
def test_without_the_rule_nobody_reports_it_and_with_it_the_view_keeps_it_or_stops(
    both: tuple[Server, Server], tmp_path: Path, case: str
) -> None:
    source, replica = both
    begin_anew(source, replica)
    source.execute_many(CASES[case])
    wanted = f"{domain_uuid(UUID_OF_VIEW, 0)}:1-{last_of_domains(source)[0]}"
    source.sql("FLUSH BINARY LOGS")
    written = source.binlogs()[:-1]
    held = hex_tables(source, ["d"])

    gtids = write_envelopes(written, tmp_path / "envelope")
    with RelayProcess(tmp_path / "without", tmp_path / "envelope", port=free_port(), markers="strip") as relay:
        apply(replica, relay, REPLICA_USER, gtids)
    assert hex_differences(held, hex_tables(replica, ["d"]))

    replica.execute_many(["RESET REPLICA ALL", "DROP DATABASE IF EXISTS d", "RESET BINARY LOGS AND GTIDS"])
    (tmp_path / "source").mkdir()
    for path in written:
        (tmp_path / "source" / path.name).write_bytes(path.read_bytes())
    relay = RelayProcess(tmp_path / "with", tmp_path / "source", port=free_port(), sections=VIEW)
    relay.add_account(user="viewer", password=REPLICA_PASSWORD, view="gtid")
    with relay:
        if case in STOPPED:
            wait_until(lambda: relay.logged("view_stopped"), "the view stops", 20)
            assert relay.logged("view_stopped")[0]["reason"] == STOPPED[case]
            return
        wait_for_line(relay, "view_served")
        apply(replica, relay, "viewer", wanted)
        # Once a start, whatever comes of it.
        told = relay.logged("view_has_statements")
        assert len(told) == has_statements(CASES[case]), told
    assert hex_differences(held, hex_tables(replica, ["d"])) == []


COMPARED: Final = "CREATE TABLE d.t (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET utf8mb4 COLLATE {}, n INT)"
INSERTED: Final = "INSERT INTO d.t VALUES (1, 'a', 0), (2, 'a ', 0), (3, 'A', 0)"
COMPARES: Final = "UPDATE d.t SET n = n + 1 WHERE a = 'a'"


def test_a_comparison_in_another_collation_finds_other_rows_and_the_view_stops_before_it(
    both: tuple[Server, Server], tmp_path: Path
) -> None:
    source, replica = both
    begin_anew(source, replica)
    source.execute_many([COMPARED.format("utf8mb4_uca1400_swedish_ai_ci"), INSERTED, COMPARES])
    source.sql("FLUSH BINARY LOGS")
    (tmp_path / "source").mkdir()
    for path in source.binlogs()[:-1]:
        (tmp_path / "source" / path.name).write_bytes(path.read_bytes())
    relay = RelayProcess(tmp_path / "with", tmp_path / "source", port=free_port(), sections=VIEW)
    relay.add_account(user="viewer", password=REPLICA_PASSWORD, view="gtid")
    with relay:
        wait_until(lambda: relay.logged("view_stopped"), "the view stops", 20)
        stopped = relay.logged("view_stopped")[0]
        assert stopped["reason"] == "statement_differs_in_target"
        assert "utf8mb4_uca1400_swedish_ai_ci" in str(stopped), stopped
        # All before it is there: the table as the view makes it, with its rows.
        replica.attach("127.0.0.1", relay.port, "viewer", REPLICA_PASSWORD, auto_position=1, ssl=0)

        def has_rows() -> bool:
            tables = replica.sql("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'd'")
            return tables == [(1,)] and replica.sql("SELECT COUNT(*) FROM d.t") == [(3,)]

        wait_until(has_rows, "the rows arrive", 60)
        replica.stop_replica()
    replica.sql(COMPARES)
    assert replica.sql("SELECT id FROM d.t WHERE n ORDER BY id") == [(1,), (3,)]
    assert source.sql("SELECT id FROM d.t WHERE n ORDER BY id") == [(1,), (2,), (3,)]


def test_without_the_rule_the_hash_of_a_password_is_the_password_and_with_it_there_is_no_account(
    both: tuple[Server, Server], tmp_path: Path
) -> None:
    source, replica = both
    begin_anew(source, replica)
    replica.sql("DROP USER IF EXISTS somebody@'%'")
    source.sql("DROP USER IF EXISTS somebody@'%'")
    source.sql("RESET MASTER")
    source.execute_many(
        [
            "SET NAMES latin1",
            "CREATE USER somebody@'%' IDENTIFIED BY 'first'",
            "SET PASSWORD FOR somebody@'%' = PASSWORD('second')",
        ]
    )
    (known,) = source.sql("SELECT PASSWORD('second')")
    wanted = f"{domain_uuid(UUID_OF_VIEW, 0)}:1-{last_of_domains(source)[0]}"
    source.sql("FLUSH BINARY LOGS")
    written = source.binlogs()[:-1]

    gtids = write_envelopes(written, tmp_path / "envelope")
    with RelayProcess(tmp_path / "without", tmp_path / "envelope", port=free_port(), markers="strip") as relay:
        apply(replica, relay, REPLICA_USER, gtids)
    assert logs_in(replica, str(known[0])) and not logs_in(replica, "second")

    replica.execute_many(["RESET REPLICA ALL", "DROP USER somebody@'%'", "RESET BINARY LOGS AND GTIDS"])
    (tmp_path / "source").mkdir()
    for path in written:
        (tmp_path / "source" / path.name).write_bytes(path.read_bytes())
    relay = RelayProcess(tmp_path / "with", tmp_path / "source", port=free_port(), sections=VIEW)
    relay.add_account(user="viewer", password=REPLICA_PASSWORD, view="gtid")
    with relay:
        wait_for_line(relay, "view_served")
        apply(replica, relay, "viewer", wanted)
    assert not replica.sql("SELECT user FROM mysql.user WHERE user = 'somebody'")


def logs_in(server: Server, password: str) -> bool:
    """As somebody."""
    encrypted = {"check_hostname": False, "verify_mode": "none"}
    try:
        pymysql.connect(host="127.0.0.1", port=server.port, user="somebody", password=password, ssl=encrypted).close()
    except pymysql.err.OperationalError as error:
        assert error.args[0] == ACCESS_DENIED, error
        return False
    return True
