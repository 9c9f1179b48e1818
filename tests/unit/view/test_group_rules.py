"""What becomes of a transaction in a view, rule by rule."""

import pytest

from protocol.binlog.event_type import EventType
from protocol.sql.tables.source_table import Column, Table, TableName
from relay.view.stops.stop_reason import Untranslatable
from tests.support.rule_groups import XID, Item, Other, Rows, RuleRun, Statement, settings, stopped

INNO = "CREATE TABLE i (a INT PRIMARY KEY) ENGINE=InnoDB"
ISAM = "CREATE TABLE m (a INT PRIMARY KEY) ENGINE=MyISAM"


def run(*definitions: Item, **changes: object) -> RuleRun:
    """Rules that have seen these definitions, each a group."""
    made = RuleRun(settings(**changes))
    for definition in ("CREATE DATABASE d", INNO, ISAM, *definitions):
        made.plan(definition)
    return made


def test_what_needs_no_rule_is_copied_as_it_is() -> None:
    for group in (
        ("BEGIN", "INSERT INTO i VALUES (1)", XID),
        ("BEGIN", Rows(["i"]), XID),
        ("BEGIN", Rows(["m"]), "COMMIT"),
        ("BEGIN", "INSERT INTO m VALUES (1)", "COMMIT"),
        ("INSERT INTO m VALUES (1)",),
        ("CREATE TABLE u (a INT)",),
        ("DROP TABLE u",),
        ("BEGIN", "SAVEPOINT s", "INSERT INTO i VALUES (1)", XID),
    ):
        (made,) = run().plan(*group)
        assert not [one for one in made if one.startswith("+")]
        assert len(made) == len(group)


# ---- accounts --------------------------------------------------------------------------------------------------------

ACCOUNTS = [
    "CREATE USER 'u'@'%' IDENTIFIED BY PASSWORD '*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29'",
    "DROP USER u", "ALTER USER u PASSWORD EXPIRE", "RENAME USER u TO v", "GRANT SELECT ON d.* TO u", "revoke all on *.* from u",
    "SET PASSWORD FOR 'u'@'%'='*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29'", "CREATE ROLE r", "DROP ROLE IF EXISTS r",
    "SET DEFAULT ROLE r TO u", " /* who */ GRANT\n/* what */ ALL ON *.* TO u", "/*!50001 CREATE */ /*!50001 USER u */",
]  # fmt: skip
NO_ACCOUNTS = [
    "CREATE TABLE grants (a INT)", "CREATE DEFINER=`u`@`%` VIEW user AS SELECT 1", "FLUSH PRIVILEGES", "DROP TABLE user", "SET @a = 1",
]  # fmt: skip


@pytest.mark.parametrize("statement", ACCOUNTS)
def test_an_account_statement_leaves_an_empty_transaction(statement: str) -> None:
    assert run().plan(statement) == [["+BEGIN", "+COMMIT"]]
    assert run(account_statements="keep", target="mysql-5.6").plan(statement) == [[statement]]


@pytest.mark.parametrize("statement", NO_ACCOUNTS)
def test_other_statements_are_no_account_statements(statement: str) -> None:
    assert run().plan(statement) == [[statement]]


@pytest.mark.parametrize(
    "group",
    [
        ("BEGIN", Rows(["user"], "mysql"), "COMMIT"),
        ("BEGIN", Rows(["db", "tables_priv"], "mysql"), "COMMIT"),
        ("BEGIN", "UPDATE mysql.user SET max_questions = 5", "COMMIT"),
        ("BEGIN", Statement("DELETE FROM user WHERE user = 'u'", schema="mysql"), "COMMIT"),
    ],
)
def test_changes_of_the_tables_of_accounts_leave_an_empty_transaction(group: tuple[Item, ...]) -> None:
    assert run().plan(*group) == [["+BEGIN", "+COMMIT"]]
    (kept,) = run(account_statements="keep").plan(*group)
    assert len(kept) == 3
    assert kept[0] == "BEGIN"


def test_other_tables_of_mysql_and_other_tables_called_user_are_kept() -> None:
    assert run().plan("BEGIN", Rows(["time_zone"], "mysql"), "COMMIT") == [["BEGIN", "rows of time_zone", "COMMIT"]]
    assert run().plan("BEGIN", Rows(["user"]), "COMMIT") == [["BEGIN", "rows of user", "COMMIT"]]


def test_a_password_as_a_hash_is_not_taken_for_the_password() -> None:
    reason = stopped(run(account_statements="keep"), "SET PASSWORD FOR u = '*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29'")
    assert (reason.name, reason.error) == ("password_hash", 0)
    assert "94BD" not in reason.text


# ---- rolled back -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engines", ["keep", "innodb"])
def test_of_a_rolled_back_transaction_the_changes_without_transactions_stay(engines: str) -> None:
    group = ("BEGIN", "INSERT INTO i VALUES (1)", "INSERT INTO m VALUES (1)", "INSERT INTO i VALUES (2)", "ROLLBACK")
    assert run(engines=engines).plan(*group) == [["+BEGIN", "INSERT INTO m VALUES (1)", "+COMMIT"]]
    assert run(engines=engines).plan("BEGIN", Rows(["i"]), Rows(["m"]), "ROLLBACK") == [
        ["+BEGIN", "rows of m", "+COMMIT"]
    ]


def test_each_statement_that_stayed_is_a_transaction_where_tables_keep_their_engines() -> None:
    group = ("BEGIN", "INSERT INTO m VALUES (1)", "INSERT INTO i VALUES (1)", "DELETE FROM m WHERE a = 1", "ROLLBACK")
    assert run().plan(*group) == [
        ["+BEGIN", "INSERT INTO m VALUES (1)", "+COMMIT"],
        ["+BEGIN", "DELETE FROM m WHERE a = 1", "+COMMIT"],
    ]
    assert run(engines="innodb").plan(*group) == [
        ["+BEGIN", "INSERT INTO m VALUES (1)", "DELETE FROM m WHERE a = 1", "+COMMIT"]
    ]


def test_what_belongs_to_a_statement_stays_with_it() -> None:
    seeded = Statement("INSERT INTO m VALUES (LAST_INSERT_ID(), RAND())", seeds=[EventType.INTVAR, EventType.RAND])
    group = ("BEGIN", Statement("INSERT INTO i VALUES (1)", seeds=[EventType.INTVAR]), seeded, "ROLLBACK")
    assert run().plan(*group) == [["+BEGIN", "(5)", "(13)", seeded.text, "+COMMIT"]]


def test_temporary_tables_stay_and_what_was_written_into_them_does_not() -> None:
    group = (
        "BEGIN",
        "INSERT INTO i VALUES (1)",
        "CREATE TEMPORARY TABLE t (a INT) ENGINE=InnoDB",
        "INSERT INTO t VALUES (1)",
        "ROLLBACK",
    )
    rules = run()
    assert rules.plan(*group) == [["+BEGIN", "CREATE TEMPORARY TABLE t (a INT) ENGINE=InnoDB", "+COMMIT"]]
    drop = "DROP TEMPORARY TABLE `t` /* generated by server */"
    assert rules.plan("BEGIN", "INSERT INTO i VALUES (2)", "INSERT INTO t VALUES (2)", drop, "ROLLBACK") == [
        ["+BEGIN", drop, "+COMMIT"]
    ]


def test_a_temporary_table_hides_another_only_from_its_own_connection() -> None:
    rules = run(Statement("CREATE TEMPORARY TABLE m (a INT) ENGINE=InnoDB", thread=8))
    mine, other = Statement("INSERT INTO m VALUES (1)", thread=8), Statement("INSERT INTO m VALUES (2)", thread=9)
    assert stopped(rules, "BEGIN", mine, "ROLLBACK").name == "uncertain_rollback"  # nothing stays
    assert rules.plan("BEGIN", other, "ROLLBACK") == [["+BEGIN", "INSERT INTO m VALUES (2)", "+COMMIT"]]
    rules.rules.source_started()
    assert rules.plan("BEGIN", mine, "ROLLBACK") == [["+BEGIN", "INSERT INTO m VALUES (1)", "+COMMIT"]]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("INSERT INTO m SELECT a FROM i", "it may read i"),
        ("INSERT INTO m SELECT 1 FROM w", "it is not known what d.w is"),
        ("INSERT INTO m VALUES (f())", "stored functions"),
        ("INSERT INTO m VALUES (other.f(1))", "stored functions"),
        ("INSERT INTO m VALUES ((SELECT MAX(a) FROM `i`))", "it may read i"),
        ("UPDATE i, m SET i.a = 1, m.a = 2", "with and without"),
        ("INSERT INTO unheard VALUES (1)", "it is not known which engine d.unheard has"),
        ("CALL p()", "a CALL statement"),
        ("INSERT INTO triggered VALUES (1)", "triggers"),
        (Statement("INSERT INTO m VALUES ('it''s", mode=0), "quotation"),
    ],
)
@pytest.mark.parametrize("engines", ["keep", "innodb"])
def test_what_stayed_is_not_guessed(engines: str, statement: Item, told: str) -> None:
    rules = run(
        "CREATE TABLE triggered (a INT) ENGINE=MyISAM",
        "CREATE TRIGGER tr BEFORE INSERT ON triggered FOR EACH ROW INSERT INTO i VALUES (1)",
        engines=engines,
    )
    state = rules.rules.state()
    reason = stopped(rules, "BEGIN", "INSERT INTO i VALUES (1)", statement, "ROLLBACK")
    assert (reason.name, reason.error) == ("uncertain_rollback", 0)
    assert told in reason.text
    assert "known_engines" in reason.advice
    assert rules.rules.state() == state


def test_a_rolled_back_transaction_of_which_nothing_is_known_to_stay_is_not_dropped() -> None:
    # A server writes such a group only where something stayed: so one of the tables is not what it seems.
    assert stopped(run(), "BEGIN", "INSERT INTO i VALUES (1)", "ROLLBACK").name == "uncertain_rollback"


def test_engines_of_tables_from_before_the_archive_can_be_told() -> None:
    rules = RuleRun(settings(known_engines={"d.old": "MyISAM", "*": "InnoDB"}))
    group = ("BEGIN", "INSERT INTO old VALUES (1)", "INSERT INTO older VALUES (1)", "ROLLBACK")
    assert rules.plan(*group) == [["+BEGIN", "INSERT INTO old VALUES (1)", "+COMMIT"]]


def test_rows_of_tables_that_nobody_knows_are_undone_where_servers_put_others_apart() -> None:
    drop = "DROP TEMPORARY TABLE IF EXISTS `d`.`t` /* generated by server */"
    group = ("BEGIN", Rows(["unheard"]), drop, "ROLLBACK")
    assert run().plan(*group) == [["+BEGIN", drop, "+COMMIT"]]
    assert stopped(RuleRun(version="5.1.73-log"), *group).name == "uncertain_rollback"


@pytest.mark.parametrize(
    "back", ["ROLLBACK TO `s`", "ROLLBACK TO SAVEPOINT s", "ROLLBACK WORK TO S", "rollback /* */ to s"]
)
def test_what_a_savepoint_undid_is_left_out_and_what_stayed_is_kept(back: str) -> None:
    group = (
        "BEGIN",
        "INSERT INTO i VALUES (1)",
        "SAVEPOINT `s`",
        "INSERT INTO m VALUES (1)",
        "INSERT INTO i VALUES (2)",
        back,
        "INSERT INTO i VALUES (3)",
        XID,
    )
    assert run().plan(*group) == [
        ["+BEGIN", "INSERT INTO i VALUES (1)", "+COMMIT"],
        ["+BEGIN", "INSERT INTO m VALUES (1)", "+COMMIT"],
        ["+BEGIN", "INSERT INTO i VALUES (3)", "+COMMIT"],
    ]
    assert run(engines="innodb").plan(*group) == [
        ["+BEGIN", "INSERT INTO i VALUES (1)", "INSERT INTO m VALUES (1)", "INSERT INTO i VALUES (3)", "+COMMIT"]
    ]


def test_a_savepoint_is_known_by_its_name_however_that_is_quoted() -> None:
    insert = "INSERT INTO m VALUES (1)"
    for name in ("s", "`S`", '"s"'):
        (made,) = run(engines="innodb").plan("BEGIN", f"SAVEPOINT {name}", insert, "ROLLBACK TO `s`", XID)
        assert made == ["+BEGIN", insert, "+COMMIT"]


def test_a_savepoint_can_be_gone_back_to_twice_and_set_again() -> None:
    inserts = [f"INSERT INTO i VALUES ({number})" for number in range(6)]
    group: list[Item] = [
        "BEGIN",
        inserts[0],
        "SAVEPOINT a",
        inserts[1],
        "SAVEPOINT b",
        "INSERT INTO m VALUES (1)",
        "ROLLBACK TO b",
    ]
    group += [inserts[2], "ROLLBACK TO a", inserts[3], "SAVEPOINT a", inserts[4], "ROLLBACK TO a", inserts[5], XID]
    (made,) = run(engines="innodb").plan(*group)
    assert made == ["+BEGIN", inserts[0], "INSERT INTO m VALUES (1)", inserts[3], inserts[5], "+COMMIT"]
    assert stopped(run(), "BEGIN", inserts[0], "ROLLBACK TO nowhere", XID).name == "uncertain_rollback"


def test_savepoints_of_a_transaction_without_a_table_that_has_transactions_are_left_out() -> None:
    insert = "INSERT INTO m VALUES (1)"
    assert run().plan("BEGIN", "SAVEPOINT s", insert, "SAVEPOINT t", "COMMIT") == [["+BEGIN", insert, "+COMMIT"]]
    assert run().plan("BEGIN", insert, "COMMIT") == [["BEGIN", insert, "COMMIT"]]


# ---- engines side by side --------------------------------------------------------------------------------------------


def test_a_transaction_that_mixes_engines_is_split_in_the_order_of_its_statements() -> None:
    group = (
        "BEGIN",
        "INSERT INTO i VALUES (1)",
        "INSERT INTO i VALUES (2)",
        Statement("INSERT INTO m SELECT a FROM i", seeds=[EventType.INTVAR]),
        "INSERT INTO m VALUES (9)",
        "INSERT INTO i SELECT a + 10 FROM m",
        XID,
    )
    assert run().plan(*group) == [
        ["+BEGIN", "INSERT INTO i VALUES (1)", "INSERT INTO i VALUES (2)", "+COMMIT"],
        ["+BEGIN", "(5)", "INSERT INTO m SELECT a FROM i", "+COMMIT"],
        ["+BEGIN", "INSERT INTO m VALUES (9)", "+COMMIT"],
        ["+BEGIN", "INSERT INTO i SELECT a + 10 FROM m", "+COMMIT"],
    ]
    ((begin, *_, end),) = run(engines="innodb").plan(*group)
    assert (begin, end) == ("BEGIN", "(16)")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE i, m SET i.a = 5, m.a = 6 WHERE i.a = m.a",
        "UPDATE i AS x JOIN d.m y USING (a) SET x.a = 5, y.a = 6",
        "DELETE x, m FROM i x JOIN m ON x.a = m.a",
        "DELETE FROM i, m USING i JOIN m ON i.a = m.a",
        "INSERT INTO triggered VALUES (1)",
    ],
)
def test_one_statement_that_writes_both_engines_stops_the_view(statement: str) -> None:
    trigger = "CREATE DEFINER=`r`@`%` TRIGGER tr AFTER INSERT ON triggered FOR EACH ROW BEGIN UPDATE `m` SET a = a; END"
    rules = run("CREATE TABLE triggered (a INT) ENGINE=InnoDB", trigger)
    reason = stopped(rules, "BEGIN", statement, XID)
    assert (reason.name, reason.error) == ("statement_mixes_engines", 1785)
    assert "d.m" in reason.text
    assert 'engines = "innodb"' in reason.advice
    innodb = run("CREATE TABLE triggered (a INT) ENGINE=InnoDB", trigger, engines="innodb")
    assert innodb.plan("BEGIN", statement, XID) == [["BEGIN", statement, "(16)"]]


@pytest.mark.parametrize(
    "statement",
    ["UPDATE i, m SET i.a = 5 WHERE i.a = m.a", "DELETE i FROM i JOIN m USING (a)", "INSERT INTO i SELECT a FROM m"],
)
def test_a_statement_that_only_reads_the_other_engine_is_kept(statement: str) -> None:
    assert run().plan("BEGIN", statement, XID) == [["BEGIN", statement, "(16)"]]


def test_temporary_tables_may_be_of_any_engine() -> None:
    rules = run("CREATE TEMPORARY TABLE t (a INT) ENGINE=MEMORY")
    group = ("BEGIN", "INSERT INTO i VALUES (1)", "INSERT INTO t VALUES (1)", "INSERT INTO i VALUES (2)", XID)
    assert len(rules.plan(*group)) == 1


def test_a_transaction_with_a_gtid_of_its_own_does_not_become_two() -> None:
    rules = run()
    gtid = Other(EventType.GTID, bytes(25))
    group = ("BEGIN", "INSERT INTO i VALUES (1)", "INSERT INTO m VALUES (1)", XID)
    assert stopped(rules, gtid, *group).name == "transaction_not_splittable"
    assert rules.plan(gtid, "BEGIN", "INSERT INTO i VALUES (1)", XID) == [
        ["(33)", "BEGIN", "INSERT INTO i VALUES (1)", "(16)"]
    ]
    anonymous = rules.plan(Other(EventType.ANONYMOUS_GTID, bytes(25)), *group)
    assert [made[0] for made in anonymous] == ["(34)", "+BEGIN"]


def test_where_nothing_gets_a_gtid_nothing_must_be_split() -> None:
    rules = run(gtids="keep")
    for group in (
        ("BEGIN", "INSERT INTO i VALUES (1)", "INSERT INTO m VALUES (1)", "ROLLBACK"),
        ("BEGIN", "INSERT INTO i VALUES (1)", "INSERT INTO m VALUES (1)", XID),
        ("BEGIN", "UPDATE i, m SET i.a = 1, m.a = 1", XID),
        ("CREATE TABLE s ENGINE=MyISAM SELECT 1",),
    ):
        assert len(rules.plan(*group)) == 1


def test_what_replicas_may_give_numbers_of_their_own_is_split_too() -> None:
    group = ("BEGIN", "INSERT INTO i VALUES (1)", "INSERT INTO m VALUES (1)", XID)
    assert len(run(gtids="anonymous").plan(*group)) == 2
    assert len(run(gtids="anonymous", target="mysql-5.7").plan(*group)) == 2
    assert len(run(gtids="anonymous", target="mysql-5.6").plan(*group)) == 1


def test_rows_outside_of_a_transaction_are_put_into_one() -> None:
    # 5.1 wrote them so; a 9.7 with GTIDs waits for ever for more, or dies.
    assert run().plan(Rows(["m"])) == [["+BEGIN", "rows of m", "+COMMIT"]]
    assert run().plan(Statement("INSERT INTO m VALUES (1)", seeds=[EventType.INTVAR])) == [
        ["(5)", "INSERT INTO m VALUES (1)"]
    ]


def test_before_8_0_temporary_tables_are_made_and_dropped_between_transactions() -> None:
    group = ("BEGIN", "INSERT INTO i VALUES (1)", "CREATE TEMPORARY TABLE t (a INT)", "INSERT INTO t VALUES (1)", XID)
    assert len(run().plan(*group)) == 1
    assert len(run(target="mysql-5.6", gtids="anonymous").plan(*group)) == 1
    assert run(target="mysql-5.6").plan(*group) == [
        ["+BEGIN", "INSERT INTO i VALUES (1)", "+COMMIT"],
        ["CREATE TEMPORARY TABLE t (a INT)"],
        ["+BEGIN", "INSERT INTO t VALUES (1)", "+COMMIT"],
    ]


# ---- CREATE ... SELECT -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["COMMIT", XID])
def test_the_definition_in_front_of_the_rows_of_create_select_is_a_transaction_of_its_own(end: Item) -> None:
    create = "CREATE TABLE `s` (\n  `a` int(11) NOT NULL\n) ENGINE=InnoDB"
    assert run().plan("BEGIN", create, Rows(["s"]), end) == [[create], ["+BEGIN", "rows of s", "+COMMIT"]]
    assert run().plan("BEGIN", create, end) == [[create]]


def test_create_select_as_a_statement_is_kept_where_the_table_has_transactions() -> None:
    into = "CREATE TABLE s {} SELECT a FROM i"
    assert run().plan(into.format("ENGINE=InnoDB")) == [[into.format("ENGINE=InnoDB")]]
    reason = stopped(run(), into.format("(b INT) ENGINE = 'MEMORY'"))
    assert (reason.name, reason.error) == ("create_select", 1786)
    innodb = run(engines="innodb").plan(into.format("(b INT) ENGINE = 'MEMORY'"))
    assert innodb == [["+" + into.format("(b INT) ENGINE = InnoDB")]]
    temporary = "CREATE TEMPORARY TABLE s ENGINE=MyISAM SELECT a FROM i"
    assert run().plan(temporary) == [[temporary]]


# ---- definitions -----------------------------------------------------------------------------------------------------

REWRITTEN = [
    ("CREATE TABLE t (a INT) ENGINE=MyISAM", "CREATE TABLE t (a INT) ENGINE=InnoDB"),
    ("CREATE TABLE t (engine INT, type INT) type = heap", "CREATE TABLE t (engine INT, type INT) ENGINE = InnoDB"),
    ("CREATE TABLE t (a INT) COMMENT 'ENGINE=MyISAM' /*!40100 ENGINE=MEMORY */ MAX_ROWS=5",
     "CREATE TABLE t (a INT) COMMENT 'ENGINE=MyISAM' /*!40100 ENGINE=InnoDB */ MAX_ROWS=5"),
    ("CREATE TABLE t (a INT) ENGINE `MyISAM`, ROW_FORMAT=FIXED", "CREATE TABLE t (a INT) ENGINE InnoDB, ROW_FORMAT=DEFAULT"),
    ("CREATE TABLE t (a INT) ENGINE=Archive KEY_BLOCK_SIZE=1024", "CREATE TABLE t (a INT) ENGINE=InnoDB KEY_BLOCK_SIZE=0"),
    ("CREATE TABLE t (a INT) ENGINE=MyISAM DATA DIRECTORY='/x' INDEX DIRECTORY = '/y'", "CREATE TABLE t (a INT) ENGINE=InnoDB  "),
    ("CREATE TABLE t (a INT) ENGINE=MyISAM PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5) ENGINE = MyISAM)",
     "CREATE TABLE t (a INT) ENGINE=InnoDB PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5) ENGINE = InnoDB)"),
    ("ALTER TABLE t ADD engine INT, ADD COLUMN type VARCHAR(3), ENGINE=myisam",
     "ALTER TABLE t ADD engine INT, ADD COLUMN type VARCHAR(3), ENGINE=InnoDB"),
    ("ALTER TABLE t COMMENT='x' ENGINE csv", "ALTER TABLE t COMMENT='x' ENGINE InnoDB"),
    ("CREATE TABLE t ENGINE=MyISAM AS SELECT 'ENGINE=MyISAM' AS engine",
     "CREATE TABLE t ENGINE=InnoDB AS SELECT 'ENGINE=MyISAM' AS engine"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "made"), REWRITTEN)
def test_engines_without_transactions_become_innodb_and_nothing_else_changes(text: str, made: str) -> None:
    assert run(engines="innodb").plan(text) == [["+" + made]]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT) ENGINE=InnoDB",
        "CREATE TABLE t (a INT) ENGINE=BLACKHOLE",
        "CREATE TEMPORARY TABLE t (a INT) ENGINE=MEMORY",
        "CREATE TABLE t LIKE m",
        "ALTER TABLE t ADD COLUMN engine INT",
        "CREATE VIEW v AS SELECT 'ENGINE=MyISAM'",
        "CREATE PROCEDURE p () CREATE TABLE x (a INT) ENGINE=MyISAM",
    ],
)
def test_other_definitions_stay_as_they_are(text: str) -> None:
    assert run(engines="innodb").plan(text) == [[text]]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE TABLE t (a INT, b INT AUTO_INCREMENT, PRIMARY KEY (a, b)) ENGINE=MyISAM", 1075),
        ("CREATE TABLE t (a INT) ENGINE=MERGE UNION=(x, y)", 1168),
        ("CREATE TABLE t (a INT) ENGINE=FEDERATED CONNECTION='mysql://u:secret@h/d/t'", 1286),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (a) ON DELETE CASCADE) ENGINE=MyISAM", 0),
    ],
)
def test_what_innodb_cannot_or_does_otherwise_stops_the_view(text: str, error: int) -> None:
    reason = stopped(run(engines="innodb"), text)
    assert reason.error == error
    assert "secret" not in reason.text


def test_a_definition_that_cannot_be_read_is_not_left_half_changed() -> None:
    assert (
        stopped(run(engines="innodb"), "CREATE TABLE t (a INT COMMENT 'x) ENGINE=MyISAM").name
        == "definition_not_parsed"
    )
    assert len(run().plan("CREATE TABLE t (a INT COMMENT 'x) ENGINE=MyISAM")) == 1


def test_partitions_of_engines_that_have_none_any_more_stop_the_view() -> None:
    text = "CREATE TABLE t (a INT) ENGINE=MyISAM PARTITION BY HASH (a) PARTITIONS 2"
    assert stopped(run(), text).error == 1178
    assert run(target="mysql-5.7").plan(text) == [[text]]


@pytest.mark.parametrize(
    "action", ["ADD c INT", "ADD COLUMN c INT DEFAULT (1) AFTER a", "ADD KEY (a)", "MODIFY a BIGINT", "ADD (c INT)"]
)
def test_partitions_behind_a_column_are_seen(action: str) -> None:
    text = f"ALTER TABLE t {action} PARTITION BY HASH (a) (PARTITION p ENGINE = MyISAM, PARTITION q ENGINE = MyISAM)"
    assert stopped(run(), text).error == 1178
    assert run(target="mysql-5.7").plan(text) == [[text]]
    assert run(engines="innodb").plan(text) == [["+" + text.replace("MyISAM", "InnoDB")]]


# ---- statements that failed --------------------------------------------------------------------------------------------


def test_a_statement_that_failed_half_way_is_kept_only_where_its_table_keeps_what_it_did() -> None:
    failed = Statement("INSERT INTO m VALUES (1), (2), (1)", error=1062)
    assert run().plan("BEGIN", failed, "COMMIT") == [["BEGIN", failed.text, "COMMIT"]]
    reason = stopped(run(engines="innodb"), "BEGIN", failed, "COMMIT")
    assert (reason.name, reason.error) == ("statement_failed_partway", 0)
    unknown = Statement("INSERT INTO unheard VALUES (1), (2), (1)", error=1062)
    assert stopped(run(engines="innodb"), "BEGIN", unknown, "COMMIT").name == "statement_failed_partway"
    assert len(run().plan("BEGIN", unknown, "COMMIT")) == 1


@pytest.mark.parametrize("statement", ["UPDATE m JOIN n USING (a) SET v = 1", "UPDATE m SET a = 'not closed"])
def test_a_failed_statement_whose_tables_cannot_be_told_is_not_taken_for_harmless(statement: str) -> None:
    failed = Statement(statement, error=1062)
    assert stopped(run(engines="innodb"), "BEGIN", failed, "COMMIT").name == "statement_failed_partway"
    assert len(run().plan("BEGIN", failed, "COMMIT")) == 1
    dropped = Statement("DROP TABLE m, unheard", error=1051)
    assert run(engines="innodb").plan(dropped) == [[dropped.text]]


# ---- the order of rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM m LIMIT 1",
        "UPDATE m SET a = a + 10 WHERE a > 3 LIMIT 2",
        "INSERT INTO i SELECT a FROM m LIMIT 3",
        "UPDATE m SET a = (@n := @n + 1)",
        "INSERT INTO i (b) SELECT a FROM m",
    ],
)
def test_what_hangs_on_the_order_of_rows_is_not_left_to_another_engine(statement: str) -> None:
    seeds = [EventType.INTVAR] if "(b)" in statement else []
    reason = stopped(run(engines="innodb"), "BEGIN", Statement(statement, seeds=seeds), XID)
    assert (reason.name, reason.error) == ("row_order", 0)
    assert len(run().plan("BEGIN", Statement(statement, seeds=seeds), XID)) == 1
    before, limit, count = statement.partition(" LIMIT")
    ordered = Statement(f"{before} ORDER BY a{limit}{count}", seeds=seeds)
    assert len(run(engines="innodb").plan("BEGIN", ordered, XID)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM i LIMIT 1",
        "DELETE FROM m WHERE a < 5",
        "INSERT INTO i SELECT a FROM m",
        "INSERT INTO m VALUES (':= LIMIT SELECT')",
    ],
)
def test_other_statements_do_not_hang_on_the_order_of_rows(statement: str) -> None:
    assert run(engines="innodb").plan("BEGIN", statement, XID) == [["BEGIN", statement, "(16)"]]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE m JOIN n USING (a) SET v = (@x := @x + 1)",  # whose column v is nobody tells
        "UPDATE m, n SET m.v = (@x := @x + 1) WHERE m.a = n.a",
        "INSERT INTO i SELECT a FROM m ORDER BY NULL LIMIT 5",
        "DELETE FROM m ORDER BY 1 LIMIT 5",
        "DELETE FROM m ORDER BY RAND() LIMIT 5",
        "UPDATE m SET a = 1 WHERE a IN (SELECT a FROM i ORDER BY a) LIMIT 1",
        "INSERT INTO i SELECT x.a FROM (SELECT a FROM m LIMIT 5) AS x ORDER BY x.a",
        "INSERT INTO i SELECT GROUP_CONCAT(a ORDER BY a) FROM m GROUP BY v LIMIT 1",
        "INSERT INTO i SELECT GROUP_CONCAT(a) FROM m ORDER BY 1",
        "INSERT IGNORE INTO i SELECT a FROM m",
        "REPLACE INTO i SELECT a FROM m",
        "INSERT INTO i SELECT a FROM m ON DUPLICATE KEY UPDATE a = VALUES(a)",
        "CREATE TABLE c (a INT PRIMARY KEY) REPLACE SELECT a FROM m",
        "UPDATE IGNORE m SET a = a + 1",
        "DELETE FROM m WHERE a = 'not closed LIMIT 1",
    ],
)
def test_what_cannot_be_told_of_the_order_of_rows_stops_the_view_too(statement: str) -> None:
    assert stopped(run(engines="innodb"), "BEGIN", statement, XID).name == "row_order"
    without = RuleRun(settings(engines="innodb", plain_tables=("*",), accept=("unread",)))
    assert len(without.plan("BEGIN", statement, XID)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE m JOIN n USING (a) SET v = 1",
        "INSERT IGNORE INTO i VALUES ((SELECT MAX(a) FROM m))",
        "REPLACE INTO m VALUES (1), (1)",
        "INSERT IGNORE INTO i SELECT a FROM m ORDER BY a",
        "INSERT INTO i SELECT GROUP_CONCAT(a ORDER BY a DESC SEPARATOR ',') FROM m",
        "CREATE VIEW w AS SELECT a FROM m LIMIT 1",
        "CREATE TABLE c SELECT a FROM m",
        "INSERT INTO i SELECT a FROM m IGNORE INDEX (v)",
        "UPDATE m SET a = 1 WHERE a = 2 ORDER BY a LIMIT 1",
    ],
)
def test_what_can_be_told_not_to_hang_on_the_order_of_rows_is_kept(statement: str) -> None:
    assert len(run(engines="innodb").plan(statement)) == 1


# ---- events ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "error"), [(6, 13121), (12, 13121), (20, 13121), (22, 13121), (162, 13121), (26, 1590)]
)
def test_events_that_no_replica_reads_stop_the_view(kind: int, error: int) -> None:
    rules = run()
    assert rules.rules.look_at[kind] == 1
    (group,) = run().groups("BEGIN", "INSERT INTO i VALUES (1)", XID)
    event = group.events[0]._replace(type=kind)
    with pytest.raises(Untranslatable) as raised:
        rules.rules.plan(group._replace(events=(event, *group.events[1:])))
    assert raised.value.reason.error == error
    assert sum(rules.rules.look_at[kind] for kind in range(1, 42)) == 8


# ---- what is known -----------------------------------------------------------------------------------------------------


def test_what_is_known_survives_and_is_the_same_bytes() -> None:
    rules = run(
        Statement("CREATE TEMPORARY TABLE t (a INT) ENGINE=MEMORY", thread=5),
        "CREATE TRIGGER tr AFTER INSERT ON i FOR EACH ROW INSERT INTO m VALUES (1)",
    )
    state = rules.rules.state()
    again = RuleRun(settings())
    again.rules.restore(state)
    assert again.rules.state() == state
    assert again.rules.wants_statements
    assert stopped(again, "BEGIN", "INSERT INTO i VALUES (1)", XID).name == "statement_mixes_engines"
    again.rules.restore(b"")
    assert again.rules.state() == b""


@pytest.mark.parametrize(
    "gone",
    [
        "DROP TABLE m",
        "DROP DATABASE d",
        "ALTER TABLE m ENGINE=InnoDB",
        "CREATE TABLE M (a INT)",
        "RENAME TABLE m TO e.m, e.m TO d.m2",
    ],
)
def test_statements_matter_only_while_there_are_tables_without_transactions(gone: str) -> None:
    # A source of the target's version: of another one every statement is judged.
    rules = RuleRun(version="9.7.4")
    for definition in ("CREATE DATABASE d", INNO, ISAM):
        rules.plan(definition)
    assert rules.rules.wants_statements
    rules.plan(gone)
    # A server that takes M for m would have refused to create it.
    assert rules.rules.wants_statements == gone.startswith(("RENAME", "CREATE"))


def test_an_engine_follows_its_table() -> None:
    rules = run("RENAME TABLE m TO n", "CREATE TABLE o LIKE n", "ALTER TABLE o RENAME TO p")
    for name in ("n", "p"):
        group = ("BEGIN", "INSERT INTO i VALUES (1)", f"INSERT INTO {name} VALUES (1)", XID)
        assert len(rules.plan(*group)) == 2
    assert len(rules.plan("BEGIN", "INSERT INTO i VALUES (1)", "INSERT INTO m VALUES (1)", XID)) == 1


def test_of_a_definition_that_nobody_understands_nothing_is_known() -> None:
    rules = run("CREATE TABLE IF NOT EXISTS m (a INT) ENGINE=InnoDB", "ALTER TABLE m RENAME")
    assert stopped(rules, "BEGIN", "INSERT INTO m VALUES (1)", "ROLLBACK").name == "uncertain_rollback"


def test_a_group_that_was_skipped_is_known_all_the_same() -> None:
    rules = run()
    text = "CREATE TABLE t (a INT) ENGINE=MyISAM PARTITION BY HASH (a) PARTITIONS 2"
    stopped(rules, text)
    assert rules.group is not None
    rules.rules.skipped(rules.group)
    assert b'"table":"t","engine":"MyISAM"' in rules.rules.state()


# ---- what clients write in front of words ------------------------------------------------------------------------------

NOTES = ["/* ApplicationName=x */ ", "/**/\n", "-- x\n", "# x\n ", "/*!40000 */", "/* " + "x" * 5000 + " */"]


@pytest.mark.parametrize("note", NOTES)
def test_a_comment_in_front_hides_no_return_to_a_savepoint(note: str) -> None:
    first, undone, kept = (f"INSERT INTO {table} VALUES ({number})" for table, number in (("i", 1), ("i", 2), ("m", 3)))
    group = ("BEGIN", first, f"{note}SAVEPOINT s", kept, undone, f"{note}ROLLBACK TO s", XID)
    assert run(engines="innodb").plan(*group) == [["+BEGIN", first, kept, "+COMMIT"]]
    assert run(engines="keep").plan(*group) == [["+BEGIN", first, "+COMMIT"], ["+BEGIN", kept, "+COMMIT"]]
    inside = f"{note}ROLLBACK /* x */ WORK/**/TO\tSAVEPOINT `s` /* and so on */"
    assert run(engines="innodb").plan(*group[:-2], inside, XID) == [["+BEGIN", first, kept, "+COMMIT"]]


class Recorded:
    """What the relay recorded of tables from before the archive."""

    def __init__(self, *tables: Table) -> None:
        self.tables = {(table.schema, table.name): table for table in tables}
        self.asked: list[TableName] = []
        self.named: list[TableName] = []
        self.existing: dict[TableName, bool] = {}

    def exists(self, name: TableName, _file: str, _offset: int) -> bool | None:
        self.named.append(name)
        return self.existing.get(name)

    def around(self, name: TableName, _file: str, _offset: int) -> list[Table] | None:
        self.asked.append(name)
        return [self.tables[name]] if name in self.tables else None


def test_a_table_from_before_the_archive_is_what_the_relay_recorded() -> None:
    rules = run()
    rules.rules.before = recorded = Recorded(Table("d", "unheard", "MyISAM", (Column("a", "int"),), foreign_keys=()))
    group = ("BEGIN", "INSERT INTO unheard VALUES (1)", "ROLLBACK")
    kept = [["+BEGIN", "INSERT INTO unheard VALUES (1)", "+COMMIT"]]
    assert (rules.plan(*group), rules.plan(*group)) == (kept, kept)
    assert set(recorded.asked) == {("d", "unheard")}
    again = run()
    again.rules.restore(rules.rules.state())
    assert again.plan(*group) == kept


def test_nothing_is_looked_up_where_the_rules_do_not_stop() -> None:
    rules = run()
    rules.rules.before = recorded = Recorded(Table("d", "unheard", "MyISAM"))
    rules.plan("BEGIN", "INSERT INTO unheard VALUES (1)", "COMMIT")
    assert recorded.asked == []
    assert stopped(rules, "BEGIN", "INSERT INTO another VALUES (1)", "ROLLBACK").name == "uncertain_rollback"
    assert set(recorded.asked) == {("d", "another")}


def test_if_not_exists_is_decided_by_what_was_recorded() -> None:
    rules = run()
    rules.rules.before = recorded = Recorded(Table("d", "old", "InnoDB", (Column("a", "int"),), foreign_keys=()))
    recorded.existing = {("new", ""): False, ("d", "made"): False, ("d", "old"): True}
    for text in (
        "CREATE DATABASE IF NOT EXISTS new", "CREATE TABLE IF NOT EXISTS new.t (a INT PRIMARY KEY)",
        "CREATE TABLE IF NOT EXISTS made (a INT PRIMARY KEY)", "CREATE TABLE IF NOT EXISTS old (a INT PRIMARY KEY)",
    ):  # fmt: skip
        rules.plan(text)
    assert recorded.named.count(("new", "")) == 2  # it is planned again with events that are not held
    assert ("new", "t") not in recorded.named
    for name in ("new.t", "made", "old"):
        assert rules.plan("BEGIN", f"REPLACE INTO {name} VALUES (1)", XID)
    assert stopped(rules, "BEGIN", "REPLACE INTO unheard VALUES (1)", XID).name == "replace_in_parent_table"


def test_if_not_exists_of_what_nobody_recorded_stays_unknown() -> None:
    rules = run()
    rules.rules.before = recorded = Recorded()
    rules.plan("CREATE DATABASE IF NOT EXISTS new")
    rules.plan("CREATE TABLE IF NOT EXISTS new.t (a INT PRIMARY KEY)")
    assert set(recorded.named) == {("new", ""), ("new", "t")}
    assert stopped(rules, "BEGIN", "REPLACE INTO new.t VALUES (1)", XID).name == "replace_in_parent_table"
