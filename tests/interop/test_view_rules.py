"""Transactions of a real MySQL 5.6, by the rules of a view, on a real MySQL 9.7 with its defaults; and without the rules."""

from pathlib import Path

import pymysql
import pytest

from deploy.servers import Server
from relay.view.rules.group import OutGroup, SourceGroup
from relay.view.rules.group_parts import read_parts
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.synthesized_events import changed
from tests.conftest import ServerFactory
from tests.interop.conftest import TrialFactory
from tests.support.only_engines import OnlyEngines
from tests.support.rule_groups import Rows, RuleRun, settings
from tests.support.view_trial import REPLICA_OPTIONS, ViewTrial, reason_of
from tests.support.view_writer import AsItIs

pytestmark = pytest.mark.interop

TABLES = [
    "CREATE DATABASE d",
    "USE d",
    "CREATE TABLE i (a INT PRIMARY KEY, v INT) ENGINE=InnoDB",
    "CREATE TABLE m (a INT PRIMARY KEY, v INT) ENGINE=MyISAM",
    "CREATE TABLE counted (a INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=MEMORY",
]
WORK = [
    *TABLES,
    # both engines in one transaction, each reading what the other wrote
    *("BEGIN", "INSERT INTO i VALUES (1, 1), (2, 1)", "INSERT INTO m SELECT a, v + 1 FROM i"),
    *("INSERT INTO i SELECT a + 10, v FROM m", "UPDATE m SET v = v * 10", "DELETE FROM i WHERE a = 2", "COMMIT"),
    # rolled back
    *("BEGIN", "INSERT INTO m VALUES (20, 1)", "INSERT INTO i VALUES (20, 1)", "INSERT INTO m VALUES (21, 1)", "ROLLBACK"),
    *("BEGIN", "INSERT INTO i VALUES (22, 1)", "UPDATE m SET v = 7 WHERE a = 20", "INSERT INTO m VALUES (22, 1)", "ROLLBACK"),
    # and with what statements are written with
    *("BEGIN", "INSERT INTO counted (v) VALUES (1), (2)", "INSERT INTO i VALUES (LAST_INSERT_ID() + 100, RAND() * 1000)"),
    *("SET @x = 5", "INSERT INTO counted (v) VALUES (@x), (RAND() * 1000)", "ROLLBACK"),
    # back to savepoints
    *("BEGIN", "INSERT INTO i VALUES (30, 1)", "SAVEPOINT s", "INSERT INTO m VALUES (30, 1)", "INSERT INTO i VALUES (31, 1)"),
    *("ROLLBACK TO s", "INSERT INTO i VALUES (32, 1)", "SAVEPOINT `t t`", "INSERT INTO m VALUES (33, 1)"),
    *("ROLLBACK TO SAVEPOINT `t t`", "INSERT INTO i VALUES (34, 1)", "COMMIT"),
    # temporary tables
    *("BEGIN", "INSERT INTO i VALUES (40, 1)", "CREATE TEMPORARY TABLE t (a INT, v INT) ENGINE=InnoDB"),
    *("INSERT INTO t VALUES (41, 1)", "ROLLBACK", "INSERT INTO t VALUES (42, 1)", "INSERT INTO i SELECT * FROM t"),
    *("BEGIN", "CREATE TEMPORARY TABLE u (a INT, v INT) ENGINE=MyISAM", "INSERT INTO u VALUES (43, 1)"),
    *("INSERT INTO i VALUES (44, 1)", "INSERT INTO u VALUES (45, 1)", "ROLLBACK", "INSERT INTO i SELECT * FROM u"),
    *("BEGIN", "INSERT INTO i VALUES (46, 1)", "DROP TEMPORARY TABLE t", "ROLLBACK"),
    # triggers
    "CREATE TRIGGER tr AFTER INSERT ON i FOR EACH ROW UPDATE other SET v = v + NEW.a",
    "CREATE TABLE other (v INT) ENGINE=InnoDB",
    "INSERT INTO other VALUES (0)",
    *("BEGIN", "INSERT INTO i VALUES (50, 1)", "INSERT INTO m VALUES (50, 1)", "COMMIT", "DROP TRIGGER tr"),
    # definitions
    "CREATE TABLE selected (a INT PRIMARY KEY) ENGINE=InnoDB SELECT a FROM i ORDER BY a",
    "CREATE TABLE none (a INT PRIMARY KEY) ENGINE=InnoDB SELECT a FROM i WHERE a < 0",
    "CREATE TABLE alike LIKE m",
    *("BEGIN", "INSERT INTO i VALUES (60, 1)", "INSERT INTO alike VALUES (60, 1)", "ROLLBACK"),
    "ALTER TABLE alike ADD COLUMN engine INT DEFAULT 3, ENGINE=InnoDB",
    *("BEGIN", "INSERT INTO i VALUES (61, 1)", "INSERT INTO alike VALUES (61, 1, 1)", "COMMIT"),
    *("RENAME TABLE m TO n", "BEGIN", "INSERT INTO i VALUES (62, 1)", "INSERT INTO n VALUES (62, 1)", "COMMIT"),
    *("DROP TABLE alike, counted", "ALTER TABLE n ENGINE=CSV, DROP PRIMARY KEY, MODIFY v INT NOT NULL"),
    *("BEGIN", "INSERT INTO i VALUES (63, 1)", "INSERT INTO n VALUES (63, 1)", "COMMIT"),
    # accounts
    "GRANT SELECT ON d.* TO 'u'@'%' IDENTIFIED BY 'p'",
    "SET PASSWORD FOR 'u'@'%' = PASSWORD('q')",
    "UPDATE mysql.user SET max_questions = 5 WHERE user = 'u'",
    *("RENAME USER 'u'@'%' TO 'w'@'%'", "REVOKE ALL ON d.* FROM 'w'@'%'", "DROP USER 'w'@'%'", "FLUSH PRIVILEGES"),
    "CREATE USER 'x'@'%' IDENTIFIED BY 'y'",
    "DROP USER 'x'@'%'",
    "INSERT INTO i VALUES (99, 99)",
]  # fmt: skip


@pytest.mark.parametrize("engines", ["keep", "innodb"])
@pytest.mark.parametrize("binlog_format", ["STATEMENT", "MIXED", "ROW"])
def test_a_new_replica_ends_with_the_tables_of_the_source_and_without_a_hole(
    trial: TrialFactory, binlog_format: str, engines: str
) -> None:
    here = trial()
    file = here.write(WORK, binlog_format)
    rules = MysqlRules(settings(engines=engines))
    assert here.apply(rules, file) == 0
    assert here.tables(here.replica) == here.tables(here.source)
    assert here.whole, here.executed
    made = here.replica.sql(
        "SELECT engine FROM information_schema.tables WHERE table_schema = 'd' AND table_name = 'n'"
    )
    assert made == [("InnoDB" if engines == "innodb" else "CSV",)]
    assert here.replica.sql("SELECT COUNT(*) FROM mysql.user WHERE user IN ('u', 'w', 'x')") == [(0,)]


def prepared(name: str, *statements: str) -> list[str]:
    """An XA transaction up to where it is to be ended."""
    return [f"XA START '{name}'", *statements, f"XA END '{name}'", f"XA PREPARE '{name}'"]


@pytest.mark.parametrize("engines", ["keep", "innodb"])
@pytest.mark.parametrize("binlog_format", ["STATEMENT", "ROW"])
def test_loaded_files_and_distributed_transactions_are_taken_apart_as_others_are(
    trial: TrialFactory, trial_servers: tuple[Server, Server], binlog_format: str, engines: str
) -> None:
    path = trial_servers[0].directory / "rows.tsv"
    path.write_text("".join(f"{number}\t{number % 7}\n" for number in range(100, 30_000)))
    path.chmod(0o644)
    load, insert = f"LOAD DATA INFILE '{path}' INTO TABLE {{}} (a, v)", "INSERT INTO {} VALUES ({}, 1)"
    work = [
        *TABLES,
        "CREATE TABLE j LIKE i",
        "CREATE TABLE n LIKE m",
        *("BEGIN", insert.format("i", 1), load.format("m"), insert.format("i", 2), load.format("i"), "COMMIT"),
        *("BEGIN", load.format("j"), load.format("n"), insert.format("j", 3), "ROLLBACK"),
        *prepared("x", insert.format("i", 4), insert.format("m", 4)),
        "XA COMMIT 'x'",
        *prepared("y", insert.format("i", 5), insert.format("m", 5)),
        "XA ROLLBACK 'y'",
        insert.format("n", 6),
    ]
    here = trial()
    file = here.write(work, binlog_format)
    assert here.apply(MysqlRules(settings(engines=engines)), file) == 0
    tables = here.tables(here.replica)
    assert tables == here.tables(here.source)
    assert {name: len(rows) for name, rows in tables.items()} == {
        "i": 29903,
        "j": 0,
        "m": 29902,
        "n": 29901,
        "counted": 0,
    }
    assert here.whole


# ---- what would differ in silence --------------------------------------------------------------------------------------


def test_without_the_rule_a_rolled_back_transaction_leaves_a_hole(trial: TrialFactory) -> None:
    work = [
        *TABLES,
        "BEGIN",
        "INSERT INTO i VALUES (1, 1)",
        "CREATE TEMPORARY TABLE t (a INT)",
        "ROLLBACK",
        "INSERT INTO i VALUES (2, 2)",
    ]
    here = trial()
    file = here.write(work)
    assert here.apply(AsItIs(), file) == 0
    assert here.equal
    assert not here.whole, here.executed
    here = trial()
    file = here.write(work)
    assert here.apply(MysqlRules(settings()), file) == 0
    assert here.equal
    assert here.whole, here.executed


@pytest.mark.parametrize(
    "group",
    [
        ("BEGIN", "INSERT INTO i VALUES (1, 1)", "INSERT INTO m VALUES (1, 1)", "ROLLBACK"),
        (
            "BEGIN",
            "INSERT INTO i VALUES (1, 1)",
            "SAVEPOINT s",
            "INSERT INTO m VALUES (1, 1)",
            "ROLLBACK TO s",
            "COMMIT",
        ),
    ],
)
def test_without_the_rule_innodb_loses_what_was_kept_of_what_was_rolled_back(
    trial: TrialFactory, group: tuple[str, ...]
) -> None:
    here = trial()
    assert here.apply(OnlyEngines(), here.write([*TABLES, *group])) == 0
    assert here.tables(here.replica)["m"] == []
    assert here.tables(here.source)["m"] == [(1, 1)]
    here = trial()
    assert here.apply(MysqlRules(settings(engines="innodb")), here.write([*TABLES, *group])) == 0
    assert here.equal
    assert here.whole


def test_without_the_rule_innodb_loses_what_a_failed_statement_had_done(trial: TrialFactory) -> None:
    work = [*TABLES, "INSERT INTO m VALUES (1, 1)", "INSERT INTO m VALUES (2, 2), (1, 1), (3, 3)"]
    here = trial()
    file = here.write(work)
    assert here.apply(OnlyEngines(), file) == 0
    assert here.tables(here.replica)["m"] == [(1, 1)]
    assert here.tables(here.source)["m"] == [(1, 1), (2, 2)]
    reason = reason_of(MysqlRules(settings(engines="innodb")), file)
    assert (reason.name, reason.error) == ("statement_failed_partway", 0)
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write(work)) == 0
    assert here.equal


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM m LIMIT 1", "INSERT INTO counted (v) SELECT v FROM m", "UPDATE m SET v = (@n := IFNULL(@n, 0) + 1)"],
)
def test_without_the_rule_innodb_takes_rows_in_another_order(trial: TrialFactory, statement: str) -> None:
    work = [*TABLES, "INSERT INTO m VALUES (3, 30), (1, 10), (2, 20)", statement]
    here = trial()
    file = here.write(work)
    assert here.apply(OnlyEngines(), file) == 0
    assert not here.equal
    assert reason_of(MysqlRules(settings(engines="innodb")), file).name == "row_order"
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write(work)) == 0
    assert here.equal


class MyisamFirst(MysqlRules):
    """Splits, with what changes tables without transactions first."""

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        made = super().plan(group)
        return made if len(made) < 2 else [made[1], made[0], *made[2:]]


def test_in_another_order_a_split_transaction_would_read_what_is_not_there_yet(trial: TrialFactory) -> None:
    work = [*TABLES, "BEGIN", "INSERT INTO i VALUES (1, 1)", "INSERT INTO m SELECT * FROM i", "COMMIT"]
    here = trial()
    assert here.apply(MyisamFirst(settings()), here.write(work)) == 0
    assert here.tables(here.replica)["m"] == []
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write(work)) == 0
    assert here.equal


@pytest.mark.parametrize("binlog_format", ["STATEMENT", "ROW"])
def test_references_of_a_column_become_a_foreign_key_only_where_gtid_events_name_a_new_server(
    trial: TrialFactory, binlog_format: str
) -> None:
    work = [
        *TABLES,
        "CREATE TABLE c (a INT PRIMARY KEY, b INT REFERENCES i (a) ON DELETE CASCADE) ENGINE=InnoDB",
        *("INSERT INTO i VALUES (1, 1)", "INSERT INTO c VALUES (1, 1)", "DELETE FROM i"),
    ]  # fmt: skip
    here = trial()
    assert here.apply(AsItIs(), here.write(work, binlog_format), version=90704) == 0
    assert (here.tables(here.source)["c"], here.tables(here.replica)["c"]) == ([(1, 1)], [])
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write(work, binlog_format), version=50624) == 0
    assert here.equal


def test_without_the_rule_innodb_enforces_foreign_keys_that_myisam_forgets(trial: TrialFactory) -> None:
    work = [
        *TABLES,
        "CREATE TABLE c (a INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES i (a) ON DELETE CASCADE) ENGINE=MyISAM",
        *("INSERT INTO i VALUES (1, 1)", "INSERT INTO c VALUES (1, 1)", "DELETE FROM i"),
    ]  # fmt: skip
    here = trial()
    file = here.write(work)

    class Replaced(AsItIs):
        def plan(self, group: SourceGroup) -> list[OutGroup]:
            parts = read_parts(group)
            query = parts[0].query
            if query is None or b"MyISAM" not in query.raw:
                return super().plan(group)
            return [OutGroup([changed(parts[0].event, query.with_text(query.raw.replace(b"MyISAM", b"InnoDB")))])]

    assert here.apply(Replaced(), file) == 0
    assert (here.tables(here.source)["c"], here.tables(here.replica)["c"]) == ([(1, 1)], [])
    reason = reason_of(MysqlRules(settings(engines="innodb")), file)
    assert (reason.name, reason.error) == ("definition_not_for_innodb", 0)
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write(work)) == 0
    assert here.equal


# ---- what stops a replica, with the number that the view says ---------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "name", "error"),
    [
        (["BEGIN", "UPDATE i, m SET i.v = 5, m.v = 6", "COMMIT"], "statement_mixes_engines", 1785),
        (
            [
                "CREATE TRIGGER tr AFTER INSERT ON i FOR EACH ROW DELETE FROM m WHERE a = 1",
                "INSERT INTO i VALUES (5, 5)",
            ],
            "statement_mixes_engines",
            1785,
        ),
        (["CREATE TABLE s ENGINE=MyISAM SELECT * FROM i"], "create_select", 1786),
        (["CREATE TABLE s (a INT) ENGINE=MyISAM PARTITION BY HASH (a) PARTITIONS 2"], "partitions_not_supported", 1178),
        (
            ["CREATE TABLE s (a INT) ENGINE=InnoDB", "ALTER TABLE s ENGINE=MEMORY PARTITION BY KEY (a)"],
            "partitions_not_supported",
            1178,
        ),
        (
            [
                "CREATE TABLE s (a INT) ENGINE=MyISAM",
                "ALTER TABLE s ADD c INT PARTITION BY HASH (a) (PARTITION p ENGINE = MyISAM, PARTITION q ENGINE = MyISAM)",
            ],
            "partitions_not_supported",
            1178,
        ),
    ],
)
def test_what_a_replica_refuses_stops_the_view_by_the_same_number(
    trial: TrialFactory, work: list[str], name: str, error: int
) -> None:
    work = [*TABLES, "INSERT INTO i VALUES (1, 1)", "INSERT INTO m VALUES (1, 1)", *work]
    here = trial()
    file = here.write(work)
    assert here.apply(AsItIs(), file) == error
    reason = reason_of(MysqlRules(settings()), file)
    assert (reason.name, reason.error) == (name, error)
    here = trial()
    assert here.apply(MysqlRules(settings(engines="innodb")), here.write(work)) == 0
    assert here.equal


@pytest.mark.parametrize(
    ("work", "error"),
    [
        ("CREATE TABLE s (a INT, b INT AUTO_INCREMENT, PRIMARY KEY (a, b)) ENGINE=MyISAM", 1075),
        ("CREATE TABLE s (a INT) ENGINE=FEDERATED CONNECTION='mysql://u@127.0.0.1/d/t'", 1286),
    ],
)
def test_what_innodb_refuses_stops_the_view_by_the_same_number(trial: TrialFactory, work: str, error: int) -> None:
    here = trial()
    file = here.write([*TABLES, work.replace("FEDERATED", "MyISAM")])
    source = file.read_bytes()
    assert b"MyISAM" in source

    class Replaced(AsItIs):
        def plan(self, group: SourceGroup) -> list[OutGroup]:
            parts = read_parts(group)
            query = parts[0].query
            if query is None or b"TABLE s" not in query.raw:
                return super().plan(group)
            engine = b"FEDERATED" if error == 1286 else b"InnoDB"
            return [OutGroup([changed(parts[0].event, query.with_text(query.raw.replace(b"MyISAM", engine)))])]

    assert here.apply(Replaced(), file) == error
    if error == 1075:
        assert reason_of(MysqlRules(settings(engines="innodb")), file).error == error


@pytest.mark.parametrize(
    "options",
    [
        "ROW_FORMAT=FIXED",
        "KEY_BLOCK_SIZE=1024",
        "ROW_FORMAT=DYNAMIC PACK_KEYS=1 DELAY_KEY_WRITE=1 CHECKSUM=1 MAX_ROWS=10 AVG_ROW_LENGTH=5",
        "DATA DIRECTORY='/tmp' INDEX DIRECTORY='/tmp'",
        "PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5) ENGINE = MyISAM, PARTITION q VALUES LESS THAN (9))",
        "COMMENT='ENGINE=MyISAM' INSERT_METHOD=LAST",
    ],
)
def test_options_that_only_myisam_has_are_no_error_with_innodb(trial: TrialFactory, options: str) -> None:
    here = trial()
    work = [
        *TABLES,
        f"CREATE TABLE s (a INT NOT NULL, KEY (a) USING HASH) ENGINE=MyISAM {options}",
        "INSERT INTO s VALUES (1), (7)",
    ]
    assert here.apply(MysqlRules(settings(engines="innodb")), here.write(work)) == 0
    assert here.equal
    assert here.replica.sql("SELECT engine FROM information_schema.tables WHERE table_name = 's'") == [("InnoDB",)]


@pytest.mark.parametrize(
    ("work", "binlog_format", "errors"),
    [
        ("GRANT SELECT ON d.* TO 'u'@'%' IDENTIFIED BY 'p'", "STATEMENT", {1064}),
        ("CREATE USER 'u'@'%' IDENTIFIED BY 'p'", "STATEMENT", {1064}),
        ("CREATE TABLE s (a INT PRIMARY KEY) SELECT 1 AS a", "ROW", {1778}),
    ],
)
def test_what_stops_a_replica_without_the_rule_and_not_with_it(
    trial: TrialFactory, work: str, binlog_format: str, errors: set[int]
) -> None:
    after = ["INSERT INTO i VALUES (1, 1)"]
    if "'u'" in work:
        after.append("DROP USER 'u'@'%'")
    here = trial()
    assert here.apply(AsItIs(), here.write([*TABLES, work, *after], binlog_format)) in errors
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write([*TABLES, work, *after], binlog_format)) == 0
    assert here.equal
    assert here.whole


# ---- what old servers wrote --------------------------------------------------------------------------------------------


def test_rows_outside_of_a_transaction_are_applied_only_in_one(servers: ServerFactory, tmp_path: Path) -> None:
    old = RuleRun()
    old.groups(
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT) ENGINE=MyISAM",
        Rows(["t"]),
        Rows(["t"]),
        "INSERT INTO t VALUES (7)",
    )
    file = tmp_path / "mysql-bin.000001"
    file.write_bytes(old.data)
    source = servers("mysql56").start(server_id=1)
    replica = servers("mysql97").start(server_id=2, options=list(REPLICA_OPTIONS))
    here = ViewTrial(source, replica, tmp_path / "with")
    assert here.apply(MysqlRules(settings()), file) == 0
    assert here.tables(replica) == {"t": [(1,), (1,), (7,)]}
    assert here.whole
    # It waits for the end of a transaction that has none, or dies.
    here = ViewTrial(source, replica, tmp_path / "without")
    with pytest.raises((AssertionError, pymysql.err.OperationalError)):
        here.apply(AsItIs(), file, timeout_s=5, stop=False)


def test_the_option_type_of_old_servers_is_engine(trial: TrialFactory) -> None:
    old = RuleRun()
    old.groups(
        "CREATE DATABASE d", "CREATE TABLE d.t (type INT, engine INT) TYPE = MyISAM", "INSERT INTO t VALUES (1, 1)"
    )
    here = trial()
    file = here.directory / "mysql-bin.000001"
    file.write_bytes(old.data)
    assert here.apply(AsItIs(), file) == 1064
    here = trial()
    assert here.apply(MysqlRules(settings()), file) == 0
    assert here.tables(here.replica) == {"t": [(1, 1)]}
