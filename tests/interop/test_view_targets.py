"""A MySQL 9.7's transactions, made readable for a real MySQL 5.6; and what 5.6 makes of what is not."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pymysql
import pytest

from deploy.servers import BinlogPosition, Server
from relay.view.rules.group import Copy, GroupRules, OutGroup, SourceGroup
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.settings import ViewSettings
from relay.view.rules.targets.known.target_collations import collation_name
from relay.view.rules.targets.target_rules import TargetRules
from relay.view.stops.stop_reason import Untranslatable
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess, wait_for_line
from tests.support.target_view import write_target_view
from tests.support.target_workload import DATABASE, EVERYTHING, WITHOUT_GTIDS
from tests.support.workload import DATABASE as WORKLOAD
from tests.support.workload import light_workload

pytestmark = pytest.mark.interop

VIEW_UUID = UUID("11111111-2222-3333-4444-555555555555")
GTIDS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
GTIDS_56 = ("--gtid-mode=ON", "--enforce-gtid-consistency", "--log-slave-updates", "--binlog-format=ROW")


def view(gtids: str = "anonymous", **changes: object) -> ViewSettings:
    return ViewSettings("v", gtids, VIEW_UUID, target="mysql-5.6", collations={255: 45}, **changes)  # type: ignore[arg-type]


def rules_of(settings: ViewSettings) -> TargetRules:
    return TargetRules(settings, MysqlRules(settings))


def run(source: Server, connections: Sequence[Sequence[str]]) -> None:
    for statements in connections:
        source.execute_many([f"USE {DATABASE}", *statements])


class ServedView(NamedTuple):
    """The relay, the number of the newest GTID that was assigned, and where the view ends."""

    relay: RelayProcess
    gno: int
    end: BinlogPosition


@contextlib.contextmanager
def served(source: Server, directory: Path, settings: ViewSettings, rules: GroupRules) -> Iterator[ServedView]:
    """The view of all that the source has written."""
    source.sql("FLUSH LOGS")
    gno = write_target_view(source.binlogs()[:-1], directory / "view", rules, settings)
    newest = sorted((directory / "view").iterdir())[-1]
    end = BinlogPosition(newest.name, newest.stat().st_size)
    with RelayProcess(directory / "relay", directory / "view", port=free_port(), markers="strip") as relay:
        # A 5.6 that asks for the mode of GTIDs before the relay has read any comes again after a minute.
        wait_until(
            lambda: [row[:2] for row in relay.sql("SHOW MASTER STATUS")] == [tuple(end)], f"all up to {end} is there"
        )
        yield ServedView(relay, gno, end)


def follow(replica: Server, relay: RelayProcess, source: Server, *, by_gtid: bool) -> None:
    if by_gtid:
        replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1)
    else:
        replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, source.binlogs()[0].name, 4)


def tables(server: Server) -> dict[str, list[str]]:
    """The rows of every table, as texts in order."""
    names = server.sql(
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{DATABASE}' AND table_type = 'BASE TABLE'"
    )
    return {name: sorted(map(repr, server.sql(f"SELECT * FROM {DATABASE}.`{name}`"))) for (name,) in names}


@pytest.mark.parametrize(
    ("gtids", "options", "by_gtid"),
    [
        ("anonymous", ("--gtid-mode=OFF", "--binlog-row-metadata=FULL"), False),
        ("anonymous", (*GTIDS, "--binlog-format=MIXED", "--binlog-transaction-compression=ON"), False),
        ("keep", ("--gtid-mode=OFF", "--binlog-format=STATEMENT", "--binlog-checksum=NONE"), False),
        ("keep", (*GTIDS, "--binlog-row-metadata=FULL", "--binlog-transaction-compression=ON"), True),
        ("assign", ("--gtid-mode=OFF", "--binlog-row-metadata=MINIMAL"), True),
    ],
    ids=[
        "anonymous",
        "anonymous, of GTIDs, mixed, compressed",
        "as it is, statements, no checksums",
        "GTIDs, compressed",
        "assigned",
    ],
)
def test_5_6_has_the_tables_of_9_7(
    servers: ServerFactory, tmp_path: Path, gtids: str, options: tuple[str, ...], by_gtid: bool
) -> None:
    source = servers("mysql97").start(server_id=1, options=options)
    replica = servers("mysql56").start(server_id=2, options=GTIDS_56 if by_gtid else ())
    source.sql(f"CREATE DATABASE {DATABASE}")
    run(source, EVERYTHING)
    if "--gtid-mode=ON" not in options and "--binlog-format=STATEMENT" not in options:
        run(source, WITHOUT_GTIDS)
    settings = view(gtids)
    with served(source, tmp_path, settings, rules_of(settings)) as (relay, gno, end):
        follow(replica, relay, source, by_gtid=by_gtid)
        if by_gtid:
            wanted = (
                f"{VIEW_UUID}:1-{gno}" if gtids == "assign" else str(source.sql("SELECT @@GLOBAL.gtid_executed")[0][0])
            )

            def is_executed() -> bool:
                status = replica.replica_status()
                assert not (status["io_errno"] or status["sql_errno"]), status
                return replica.sql("SELECT @@GLOBAL.gtid_executed") == [(wanted,)]

            wait_until(is_executed, f"all of {wanted}", 60)
        else:
            # the Rotate at the end waits for a file that is not there
            replica.wait_caught_up(end.file, last_group_end(relay, end))
        assert tables(replica) == tables(source)


def wait_for_last(source: Server, replica: Server) -> None:
    """Returns when the replica has all that the source wrote before: tables may be gone while they are read earlier."""
    source.sql("CREATE DATABASE last_of_all")

    def has_last() -> bool:
        status = replica.replica_status()
        # A receiver that has an error and connects again is none of the view's.
        assert status["sql_running"] and status["io_running"] != "No", status
        return bool(replica.sql("SHOW DATABASES LIKE 'last_of_all'"))

    wait_until(has_last, "the last statement", 60)


def last_group_end(relay: RelayProcess, end: BinlogPosition) -> int:
    return max(
        int(row[4]) for row in relay.sql(f"SHOW BINLOG EVENTS IN '{end.file}'") if row[2] not in ("Rotate", "Stop")
    )


SECTIONS = {"[view]": {"name": "old", "gtids": "anonymous", "for": "mysql-5.6", "collations": {'"255"': 45}}}
VIEWER = {"user": "viewer", "password": "viewer-password", "view": "old"}


@pytest.mark.parametrize(
    ("gtids", "options", "by_gtid"),
    [
        ("anonymous", ("--gtid-mode=OFF", "--binlog-row-metadata=FULL"), False),
        ("anonymous", (*GTIDS, "--binlog-transaction-compression=ON"), False),
        # 5.6 itself refuses a source with this mode: 1593, "has an unknown @@GLOBAL.GTID_MODE"
        ("anonymous", ("--gtid-mode=OFF_PERMISSIVE",), False),
        ("assign", ("--gtid-mode=OFF_PERMISSIVE",), True),
        ("keep", GTIDS, True),
    ],
    ids=["anonymous", "GTIDs taken away", "on the way to GTIDs", "assigned", "GTIDs"],
)
def test_5_6_follows_a_view_of_9_7_as_it_is_made(
    servers: ServerFactory, tmp_path: Path, gtids: str, options: tuple[str, ...], by_gtid: bool
) -> None:
    source = servers("mysql97").start(server_id=1, options=options)
    replica = servers("mysql56").start(server_id=2, options=GTIDS_56 if by_gtid else ())
    source.sql(f"CREATE DATABASE {DATABASE}")
    sections = {"[view]": {**SECTIONS["[view]"], "gtids": gtids}}
    relay = RelayProcess(tmp_path / "relay", source, port=free_port(), sections=sections)
    relay.add_account(**VIEWER)
    with relay:
        run(source, EVERYTHING[:6])
        wait_for_line(relay, "view_served")
        if by_gtid:
            replica.attach("127.0.0.1", relay.port, "viewer", "viewer-password", auto_position=1)
        else:
            replica.attach("127.0.0.1", relay.port, "viewer", "viewer-password", source.binlogs()[0].name, 4)
        source.sql("FLUSH LOGS")
        run(source, EVERYTHING[6:])

        wait_for_last(source, replica)
        assert tables(replica) == tables(source)
        if gtids == "keep":
            assert replica.sql("SELECT @@GLOBAL.gtid_executed") == source.sql("SELECT @@GLOBAL.gtid_executed")


@pytest.mark.parametrize("binlog_format", ["ROW", "MIXED", "STATEMENT"])
def test_5_6_has_the_tables_of_the_whole_workload(servers: ServerFactory, tmp_path: Path, binlog_format: str) -> None:
    source = servers("mysql97").start(server_id=1)
    replica = servers("mysql56").start(server_id=2)
    # A file that is loaded as a statement may have texts with a time offset for its DATETIME; this one has none.
    accept = ["store datetime"] if binlog_format == "STATEMENT" else []
    sections = {"[view]": {**SECTIONS["[view]"], "accept": accept}}
    relay = RelayProcess(tmp_path / "relay", source, port=free_port(), sections=sections)
    relay.add_account(**VIEWER)
    with relay:
        wait_for_line(relay, "view_served")
        replica.attach("127.0.0.1", relay.port, "viewer", "viewer-password", source.binlogs()[0].name, 4)
        light_workload(source, binlog_format)
        wanted = source.checksum_tables([WORKLOAD])
        wait_for_last(source, replica)
        assert replica.checksum_tables([WORKLOAD]) == wanted
        # and its files are binlogs for stock tools
        files = sorted(relay.archive.glob("**/views/old/**/mysql-bin.0000??"))
        assert len(files) == len(source.binlogs())
        command = [*source.mysqlbinlog(), "--verify-binlog-checksum", *map(str, files)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)


# ---- what 5.6 makes of what the rules stop at -----------------------------------------------------------------------


class WithoutStops(TargetRules):
    """Rules that pass on as it is what they should stop at, and say why."""

    def __init__(self, settings: ViewSettings) -> None:
        super().__init__(settings)
        self.names: list[str] = []
        self.errors: list[int] = []

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        try:
            return super().plan(group)
        except Untranslatable as stop:
            self.names.append(stop.reason.name)
            self.errors.append(stop.reason.error)
            return [OutGroup([Copy(group.start, group.stop)], "source")]


OLD_TABLE = "CREATE TABLE d.j (id INT PRIMARY KEY, a BLOB)"
JSON_TABLE = (
    "SET sql_log_bin = 0",
    "CREATE TABLE j (id INT PRIMARY KEY, a JSON)",
    """INSERT INTO j VALUES (1, '{"a": 1, "b": "12345678901234567890"}')""",
    "SET sql_log_bin = 1",
)
PLAIN_TABLE = ("SET sql_log_bin = 0", "CREATE TABLE j (id INT PRIMARY KEY, a BLOB)", "SET sql_log_bin = 1")


@pytest.mark.parametrize(
    ("name", "statements"),
    [
        ("column_type_not_in_target", (*JSON_TABLE, "INSERT INTO j VALUES (2, '{}')")),
        ("partial_update_rows", (*JSON_TABLE, "SET binlog_row_value_options = PARTIAL_JSON", "UPDATE j SET a = JSON_SET(a, '$.a', 2)")),
        ("xa_prepared_transaction", (*PLAIN_TABLE, "XA START 'x'", "INSERT INTO j VALUES (1, '')", "XA END 'x'", "XA PREPARE 'x'")),
        ("tagged_gtid", (*PLAIN_TABLE, "SET gtid_next = 'AUTOMATIC:blue'", "INSERT INTO j VALUES (1, '')")),
        ("definition_not_in_target", ("CREATE TABLE k (a INT INVISIBLE, b INT)",)),
        ("collation_not_in_target", ("CREATE TABLE k (a CHAR(3) COLLATE utf8mb4_0900_as_cs)",)),
        ("create_select_with_gtid", ("CREATE TABLE k SELECT 1 AS a",)),
    ],
)  # fmt: skip
def test_5_6_stops_at_what_the_view_stops_at(
    servers: ServerFactory, tmp_path: Path, name: str, statements: tuple[str, ...]
) -> None:
    source = servers("mysql97").start(server_id=1, options=(*GTIDS, "--character-set-server=latin1"))
    replica = servers("mysql56").start(server_id=2, options=GTIDS_56)
    source.execute_many(["SET sql_log_bin = 0", "CREATE DATABASE d"])
    replica.execute_many(["CREATE DATABASE d", OLD_TABLE])
    run(source, [("SET NAMES latin1", "SET default_collation_for_utf8mb4 = utf8mb4_general_ci", *statements)])
    rules = WithoutStops(view("keep"))
    with served(source, tmp_path, view("keep"), rules) as (relay, _, _):
        # the type of a column is met before the type of the event
        assert rules.names == [name if name != "partial_update_rows" else "column_type_not_in_target"]
        follow(replica, relay, source, by_gtid=True)

        # Not of the connection: under load it is tried again, and goes on.
        def is_stopped() -> bool:
            status = replica.replica_status()
            assert status["io_running"] != "No" or status["sql_errno"], f"{status}\n{relay.log_tail(20)}"
            return bool(status["sql_errno"])

        wait_until(is_stopped, "the error of an applier")
        error = replica.replica_status()["sql_errno"]
        assert error == (
            1273 if name == "collation_not_in_target" else 1594 if name == "partial_update_rows" else rules.errors[0]
        )


@pytest.fixture(scope="module")
def both(module_servers: ServerFactory) -> tuple[Server, Server]:
    """A 9.7 and a 5.6 that follow nobody, with a table p in the schema d."""
    made = module_servers("mysql97").start(server_id=1), module_servers("mysql56").start(server_id=2)
    for server in made:
        server.execute_many(["CREATE DATABASE d", "CREATE TABLE d.p (id INT PRIMARY KEY, a INT)"])
    return made


def definition(server: Server, statement: str) -> str:
    """What SHOW CREATE TABLE says of d.t behind it."""
    server.execute_many(["DROP TABLE IF EXISTS d.t", "USE d", statement])
    return str(server.sql("SHOW CREATE TABLE d.t")[0][1])


@pytest.mark.parametrize(
    ("statement", "clause"),
    [
        ("CREATE TABLE t (a INT CHECK (a > 0))", "CHECK"),
        ("CREATE TABLE t (a INT, CONSTRAINT c CHECK (a > 0))", "CHECK"),
        ("CREATE TABLE t (a INT, KEY (a DESC))", "DESC"),
        ("CREATE TABLE t (a INT REFERENCES p (id) ON DELETE CASCADE)", "REFERENCES"),
        ("CREATE TABLE t (a INT /*!80023 INVISIBLE */, b INT)", "INVISIBLE"),
        ("CREATE TABLE t (a INT, KEY (a) /*!80000 INVISIBLE */)", "INVISIBLE"),
    ],
)
def test_5_6_ignores_in_silence_what_the_view_stops_at(
    both: tuple[Server, Server], statement: str, clause: str
) -> None:
    source, old = both
    assert clause in definition(source, statement)
    assert clause not in definition(old, statement)


def test_a_foreign_key_that_5_6_ignores_leaves_rows_that_9_7_deletes(both: tuple[Server, Server]) -> None:
    left = []
    for server in both:
        definition(server, "CREATE TABLE t (a INT REFERENCES p (id) ON DELETE CASCADE)")
        server.execute_many(
            ["DELETE FROM d.p", "INSERT INTO d.p VALUES (1, 1)", "INSERT INTO d.t VALUES (1)", "DELETE FROM d.p"]
        )
        left.append(server.sql("SELECT * FROM d.t"))
        server.sql("DROP TABLE d.t")
    assert left == [[], [(1,)]] or left == [(), ((1,),)]


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        # TIMESTAMP: explicit_defaults_for_timestamp is OFF in 5.6
        ("CREATE TABLE t (a TIMESTAMP)", "`a` timestamp NULL DEFAULT NULL"),
        # what is named before the set is gone with it before 8.0
        ("CREATE TABLE t (a CHAR(3)) COLLATE latin1_bin CHARSET latin1", "COLLATE=latin1_bin"),
        # functions have other types
        ("CREATE TABLE t SELECT CAST(1 AS UNSIGNED) AS a", "bigint"),
    ],
)
def test_5_6_defines_other_columns_by_the_same_statement(
    both: tuple[Server, Server], statement: str, column: str
) -> None:
    source, old = both
    assert column in definition(source, statement)
    assert column not in definition(old, statement)


@pytest.mark.parametrize(
    "expression",
    [
        "_utf8mb4'ä' REGEXP '^.$'",
        "HEX(_binary'ab' & _binary'cd')",
        "HEX(_binary'ab' & 0xFF00)",
        "HEX(BIT_OR(_binary'ab'))",
        "BIT_COUNT(_binary'ab')",
        "CAST('x' AS CHAR CHARACTER SET utf8mb4 BINARY) = 'X'",
        "COLLATION(CONVERT('x' USING utf8mb4))",
        "COLLATION(CAST('x' AS CHAR CHARACTER SET utf8mb4))",
        "CAST('2020-01-01 10:00:00+05:30' AS DATETIME)",
        "HEX(ST_GeomFromText('POINT(1 2)', 4326))",
    ],
)
def test_5_6_has_another_result_for_what_the_view_stops_at(both: tuple[Server, Server], expression: str) -> None:
    source, old = both
    statement = f"SELECT {expression}"
    assert source.sql(statement) != old.sql(statement)


@pytest.mark.parametrize(
    "expression",
    ["HEX(0xFF00 & 0xF000)", "HEX(~0xFF)", "HEX(0xFF00 << 2)", "BIT_COUNT(0xFF00)", "HEX(_binary'ab' & 5)"],
)
def test_5_6_has_the_same_result_for_numbers(both: tuple[Server, Server], expression: str) -> None:
    source, old = both
    assert source.sql(f"SELECT {expression}") == old.sql(f"SELECT {expression}")


def test_5_6_takes_a_hint_for_a_comment(both: tuple[Server, Server]) -> None:
    statement = "SELECT /*+ SET_VAR(sql_mode = 'PIPES_AS_CONCAT') */ @@sql_mode"
    source, old = both
    assert source.sql(statement) != source.sql("SELECT @@sql_mode")
    assert old.sql(statement) == old.sql("SELECT @@sql_mode")


REFUSED = [
    "CREATE TABLE t (a JSON)", "CREATE TABLE t (a INT INVISIBLE, b INT)", "CREATE TABLE t (a INT, b INT AS (a + 1))",
    "CREATE TABLE t (a INT DEFAULT (1 + 1))", "CREATE TABLE t (a INT, KEY ((a + 1)))", "CREATE TABLE t (a POINT SRID 4326)",
    "ALTER TABLE p RENAME COLUMN a TO b", "ALTER TABLE p DROP CONSTRAINT c", "CREATE TABLE t (a INT) START TRANSACTION",
    "CREATE VIEW v AS WITH c AS (SELECT 1) SELECT * FROM c", "CREATE VIEW v AS SELECT ROW_NUMBER() OVER () AS r FROM p",
    "CREATE ROLE r", "INSERT INTO p VALUES (1, 2) AS n ON DUPLICATE KEY UPDATE a = n.a",
    "REPLACE INTO p TABLE p", "CREATE TABLE t TABLE p",
    "INSERT INTO p VALUES ROW(1, 2)", "DELETE FROM p AS x", "ALTER INSTANCE ROTATE INNODB MASTER KEY",
    "UPDATE p SET a = CAST(a AS DOUBLE)",
    "CREATE PROCEDURE IF NOT EXISTS pr() SELECT 1", "UPDATE p SET a = 1 MEMBER OF ('[1]')",
    "INSERT INTO p SELECT 1, 2 EXCEPT SELECT 1, 2",
]  # fmt: skip


@pytest.mark.parametrize("statement", REFUSED)
def test_5_6_refuses_other_new_clauses_aloud(both: tuple[Server, Server], statement: str) -> None:
    with pytest.raises(pymysql.err.ProgrammingError) as refused:
        both[1].execute_many(["DROP TABLE IF EXISTS d.t", "USE d", statement])
    assert refused.value.args[0] == 1064


CHOSEN = 246
COLLATIONS: Sequence[str] = (
    "CREATE TABLE a (x VARCHAR(9), b VARCHAR(9)) CHARSET=latin1",
    "ALTER TABLE a CONVERT TO CHARACTER SET utf8mb4, MODIFY b VARCHAR(10) COLLATE utf8mb4_bin",
    "CREATE TABLE c (x VARCHAR(9), b VARCHAR(9)) CHARSET=latin1",
    "ALTER TABLE c DEFAULT CHARSET utf8mb4, ADD d VARCHAR(9) COLLATE latin1_bin",
    "ALTER TABLE c ADD e VARCHAR(9)",
    "CREATE TABLE g (x VARCHAR(9) BINARY CHARACTER SET utf8mb4, y VARCHAR(9) CHARACTER SET utf8mb4 BINARY,"
    " z VARCHAR(9) CHARSET utf8mb4)",
    "CREATE FUNCTION h(a VARCHAR(9) CHARSET utf8mb4, b VARCHAR(9) BINARY CHARSET latin1) RETURNS VARCHAR(99) DETERMINISTIC"
    " RETURN CONCAT(COLLATION(a), COLLATION(b))",
)


def test_5_6_has_the_collations_that_the_view_chooses(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql97").start(server_id=1, options=("--gtid-mode=OFF", "--log-bin-trust-function-creators=ON"))
    replica = servers("mysql56").start(server_id=2, options=("--log-bin-trust-function-creators=ON",))
    source.sql(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
    run(source, [COLLATIONS, ("SET binlog_format = STATEMENT", "INSERT INTO g (z) VALUES ('a') /*!90000 , ('b') */")])
    settings = replace(view(), collations={255: CHOSEN})
    with served(source, tmp_path, settings, rules_of(settings)) as (relay, _, end):
        follow(replica, relay, source, by_gtid=False)
        replica.wait_caught_up(end.file, last_group_end(relay, end))
    columns = (
        "SELECT table_name, column_name, collation_name FROM information_schema.columns"
        f" WHERE table_schema = '{DATABASE}' AND collation_name IS NOT NULL ORDER BY 1, 2"
    )
    chosen = collation_name(CHOSEN)
    wanted = [
        (table, column, name.replace("utf8mb4_0900_ai_ci", chosen)) for table, column, name in source.sql(columns)
    ]
    assert list(replica.sql(columns)) == wanted
    assert any(name == chosen for _, _, name in wanted)
    asked = f"SELECT {DATABASE}.h('a', 'b')"
    assert replica.sql(asked)[0][0] == source.sql(asked)[0][0].replace("utf8mb4_0900_ai_ci", chosen)
    assert sorted(replica.sql(f"SELECT z FROM {DATABASE}.g")) == [("a",), ("b",)]


def test_what_ends_a_compressed_xa_transaction_that_was_skipped_stops_no_replica(
    servers: ServerFactory, tmp_path: Path
) -> None:
    source = servers("mysql97").start(server_id=1, options=(*GTIDS, "--binlog-transaction-compression=ON"))
    replica = servers("mysql56").start(server_id=2)
    source.execute_many([f"CREATE DATABASE {DATABASE}", f"CREATE TABLE {DATABASE}.t (a INT PRIMARY KEY, b TEXT)"])
    relay = RelayProcess(tmp_path / "relay", source, port=free_port(), sections=SECTIONS)
    relay.add_account(**VIEWER)
    with relay:
        wait_for_line(relay, "view_served")
        run(source, [["XA START 'x'", "INSERT INTO t VALUES (1, REPEAT('a', 2000))", "XA END 'x'", "XA PREPARE 'x'"]])
        wait_until(lambda: relay.logged("view_stopped"), "the view's stop")
        (stopped,) = relay.logged("view_stopped")
        assert stopped["reason"] == "xa_prepared_transaction"
        relay.stop()
        at = f"{stopped['file']}:{stopped['offset']}"
        done = relay.command("view", "skip", "old", "--at", at, "--yes")
        assert done.returncode == 0, done.stderr
        relay.start()
        wait_for_line(relay, "view_served")
        run(source, [["XA COMMIT 'x'"], ["INSERT INTO t VALUES (2, '')"]])
        replica.attach("127.0.0.1", relay.port, "viewer", "viewer-password", source.binlogs()[0].name, 4)

        def has_all() -> bool:
            status = replica.replica_status()
            assert not (status["io_errno"] or status["sql_errno"]), status
            with contextlib.suppress(pymysql.err.ProgrammingError):
                return replica.sql(f"SELECT a FROM {DATABASE}.t") == [(2,)]
            return False

        wait_until(has_all, "what follows", 60)
        assert source.sql(f"SELECT a FROM {DATABASE}.t") == [(1,), (2,)]
