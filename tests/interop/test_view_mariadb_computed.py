"""What a MySQL 9.7 computes, converts or sorts otherwise than a MariaDB: other data without an error, in MySQL's envelope alone; a view
stops by name before each of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from relay.view.inspect.dry_run_stops import StopsFound, find_stops
from relay.view.rules.settings import MARIADB, ViewSettings
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.hex_values import hex_tables
from tests.support.mariadb_envelope import write_envelopes
from tests.support.memory_file import looked_at
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.view_chain import REPLICA_DEFAULTS, UUID_OF_VIEW, executed_by

pytestmark = pytest.mark.interop

DEFINITION, STATEMENT = "definition_differs_in_target", "statement_differs_in_target"
BY_ROWS, BY_STATEMENT, LENIENT = "SET binlog_format = ROW", "SET binlog_format = STATEMENT", "SET sql_mode = ''"


class Case(NamedTuple):
    """columns: of the table. changes: statements about it, which is `{}`. stop: before the one that makes the difference."""

    stop: str
    columns: str
    changes: Sequence[str]


CASES: Final = {
    "divides": Case(DEFINITION, "id INT PRIMARY KEY, g DECIMAL(20,10) AS (id / 3) STORED", ["INSERT INTO {} (id) VALUES (1)"]),
    "pads": Case(DEFINITION, "id INT PRIMARY KEY, g VARCHAR(9) AS (lpad(id, 5, ''))", ["INSERT INTO {} (id) VALUES (1)"]),
    "cuts_seconds": Case(
        DEFINITION,
        "id INT PRIMARY KEY, a DATETIME(6), g DATETIME AS (a)",
        ["INSERT INTO {} (id, a) VALUES (1, '2020-01-01 00:00:00.9')"],
    ),
    "has_hours": Case(
        DEFINITION, "id INT PRIMARY KEY, a TIME, g INT AS (extract(hour FROM a))", ["INSERT INTO {} (id, a) VALUES (1, '100:00:00')"]
    ),
    "by_default": Case(
        DEFINITION, "id INT PRIMARY KEY", ["INSERT INTO {} VALUES (1)", "ALTER TABLE {} ADD a DECIMAL(20,10) DEFAULT (7 / 3)"]
    ),
    "time_to_number": Case(
        DEFINITION, "id INT PRIMARY KEY, a TIME(3)", ["INSERT INTO {} VALUES (1, '10:11:12.9')", "ALTER TABLE {} MODIFY a INT"]
    ),
    "text_to_number": Case(
        DEFINITION, "id INT PRIMARY KEY, a VARCHAR(9)", ["INSERT INTO {} VALUES (1, '1e3')", LENIENT, "ALTER TABLE {} MODIFY a INT"]
    ),
    "date_to_year": Case(
        DEFINITION, "id INT PRIMARY KEY, a DATE", [LENIENT, "INSERT INTO {} VALUES (1, '2020-01-01')", "ALTER TABLE {} MODIFY a YEAR"]
    ),
    "numbered": Case(
        DEFINITION,
        "a VARCHAR(9) CHARACTER SET utf8mb4 PRIMARY KEY",
        ["INSERT INTO {} VALUES ('-'), ('_'), ('1'), ('b'), (' x')", "ALTER TABLE {} ADD n INT AUTO_INCREMENT UNIQUE"],
    ),
    "computed": Case(STATEMENT, "id INT PRIMARY KEY, a DECIMAL(20,10)", [BY_STATEMENT, "INSERT INTO {} VALUES (1, 7 / 3)"]),
    "found": Case(STATEMENT, "id INT PRIMARY KEY, a INT", [BY_STATEMENT, "INSERT INTO {} VALUES (1, locate('', 'abc', 4))"]),
    "updated": Case(
        STATEMENT,
        "id INT PRIMARY KEY, a INT",
        ["INSERT INTO {} VALUES (1, 2)", "CREATE TABLE {}_2 (id INT PRIMARY KEY, b INT)", "INSERT INTO {}_2 VALUES (1, 9)",
         BY_STATEMENT,
         "UPDATE {0} JOIN {0}_2 USING (id) SET {0}.a = b, b = {0}.a + 1"],
    ),
    "selected": Case(STATEMENT, "id INT PRIMARY KEY", [BY_STATEMENT, "CREATE TABLE {}_2 AS SELECT NULL AS n FROM {}"]),
}  # fmt: skip
PARTITIONED: Final = (
    "CREATE TABLE partitioned (a VARCHAR(9) CHARACTER SET utf8mb4 PRIMARY KEY) PARTITION BY KEY (a) PARTITIONS 4",
    "INSERT INTO partitioned SELECT concat('row', seq) FROM seq_1_to_50",
    "ALTER TABLE partitioned TRUNCATE PARTITION p1",
)
SESSION: Final = ("USE d", "SET NAMES latin1", "SET sql_mode = DEFAULT", BY_ROWS)


def stops_of(binlogs: Sequence[Path]) -> StopsFound:
    settings = ViewSettings("gtid", "assign", UUID_OF_VIEW, flavour=MARIADB)
    return find_stops([looked_at(path.name, path.read_bytes()) for path in binlogs], settings)


def test_without_the_rules_nobody_reports_it_and_with_them_the_view_stops(
    servers: ServerFactory, tmp_path: Path
) -> None:
    options = ["--character-set-server=latin1", "--collation-server=latin1_swedish_ci"]
    source = servers("mariadb118").start(server_id=1, options=options)
    replica = servers("mysql97").start(server_id=2, options=REPLICA_DEFAULTS)
    source.execute_many(["SET NAMES latin1", "CREATE DATABASE d"])
    for name, case in CASES.items():
        made = f"CREATE TABLE {name} ({case.columns})"
        source.execute_many([*SESSION, made, *(text.format(name, name) for text in case.changes)])
    source.execute_many([*SESSION, *PARTITIONED])
    source.sql("FLUSH BINARY LOGS")
    written = source.binlogs()[:-1]

    gtids = write_envelopes(written, tmp_path / "envelope")
    with RelayProcess(tmp_path / "without", tmp_path / "envelope", port=free_port(), markers="strip") as relay:
        replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1, ssl=0)

        def has_all() -> bool:
            assert not replica.replica_status()["sql_errno"], replica.replica_status()
            return bool(replica.sql(f"SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)")[0][0])

        wait_until(has_all, f"the replica executes {gtids}; it has {executed_by(replica)}", 60)
    held, there = hex_tables(source, ["d"]), hex_tables(replica, ["d"])
    other = {name.partition(".")[2].removesuffix("_2") for name in held if held[name] != there[name]}
    assert other == {*CASES, "partitioned"}

    found = stops_of(written)
    named = [(stop.reason.name, stop.reason.error) for stop in found.stops]
    assert named == [*((case.stop, 0) for case in CASES.values()), (DEFINITION, 0)], found.stops
