"""CHECK constraints that a source before 8.0.16 reads and forgets: no replica gets one."""

import pytest

from tests.support.rule_groups import RuleRun, Statement, settings

CREATED = [
    ("(a INT CHECK (a > 0))", "(a INT)"),
    ("(a INT CHECK (a > 0), b INT)", "(a INT, b INT)"),
    ("(a INT, CHECK (a > 0))", "(a INT)"),
    ("(CHECK (a > 0), a INT)", "( a INT)"),
    ("(a INT, CHECK (a > 0), b INT)", "(a INT, b INT)"),
    ("(CHECK (1), a INT, CHECK (2), CHECK (3), b INT, CHECK (4))", "( a INT, b INT)"),
    ("(CHECK (1), CHECK (2), a INT, b INT CHECK (3) )", "( a INT, b INT )"),
    ("(a INT, CONSTRAINT CHECK (a > 0))", "(a INT)"),
    ("(a INT, CONSTRAINT positive CHECK (a > 0) )", "(a INT )"),
    ("(a INT, CONSTRAINT `check` check(a > 0), KEY (a))", "(a INT, KEY (a))"),
    ("(a INT CONSTRAINT c CHECK (a > 0) NOT ENFORCED)", "(a INT)"),
    ("(a INT, CHECK (a > 0) NOT ENFORCED, CHECK (a) ENFORCED)", "(a INT)"),
    ("(a INT NOT NULL COMMENT 'CHECK (a > 0), b' CHECK (a IN (1, (3))))", "(a INT NOT NULL COMMENT 'CHECK (a > 0), b')"),
    ("(a CHAR(9) CHECK (a <> '), (' AND a <> \"it\\\"s)\"), b INT)", "(a CHAR(9), b INT)"),
    ("(`check` INT, `CHECK (x)` INT CHECK (`CHECK (x)` > (`check`)))", "(`check` INT, `CHECK (x)` INT)"),
    ("(a INT CHECK (a > 0 -- )\n), b INT CHECK # (\n(b > 0))", "(a INT, b INT)"),
    ("(a INT) COMMENT 'CHECK (a > 0)'", None),
    ("(a INT, t.check INT, KEY (t.check(1)))", None),
    ("LIKE checked", None),
    ("(a INT, CHECK (a > 0)) ENGINE=InnoDB PARTITION BY HASH (a) (PARTITION p VALUES LESS THAN (3), PARTITION q)",
     "(a INT) ENGINE=InnoDB PARTITION BY HASH (a) (PARTITION p VALUES LESS THAN (3), PARTITION q)"),
    ("(CHECK (a > 0)) ENGINE=InnoDB SELECT 1 AS a", " ENGINE=InnoDB SELECT 1 AS a"),
    ("(CHECK (a > 0), CHECK (a < 9)) SELECT 1 AS a", " SELECT 1 AS a"),
    ("(a INT, FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE, CHECK (a > 0))",
     "(a INT, FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE)"),
    ("(a INT REFERENCES p (id), b INT CHECK (b > 0))", "(a INT, b INT)"),
]  # fmt: skip
ALTERED = [
    ("ADD CHECK (a > 0)", ""),
    ("ADD CONSTRAINT c CHECK (a > 0)", ""),
    ("ADD CONSTRAINT CHECK (a > 0), ADD CHECK (a > 1)", ""),
    ("ADD CHECK (a > 0), ADD b INT", " ADD b INT"),
    ("ADD b INT, ADD CHECK (b > 0)", " ADD b INT"),
    ("ADD b INT, ADD CHECK (b > 0), ADD c INT", " ADD b INT, ADD c INT"),
    ("ADD COLUMN b INT CHECK (b > 0) AFTER a", " ADD COLUMN b INT AFTER a"),
    ("ADD (b INT CHECK (b > 0), CHECK (b < 9), c INT)", " ADD (b INT, c INT)"),
    ("ADD COLUMN (CHECK (a > 0)), ALGORITHM = COPY", " ALGORITHM = COPY"),
    ("ADD CHECK (a > 0) PARTITION BY HASH (a)", " PARTITION BY HASH (a)"),
    ("ADD b INT, ADD CHECK (a > 0) REMOVE PARTITIONING", " ADD b INT REMOVE PARTITIONING"),
    ("CHECK PARTITION p", None),
    ("ADD b INT COMMENT 'CHECK (b > 0)', DROP c", None),
    ("ADD CHECK (a > 0);", ";"),
]  # fmt: skip


def made(text: str | bytes, version: str = "5.6.24-log", mode: int = 0, client: int = 8, **changes: object) -> str:
    """What becomes of a definition."""
    run = RuleRun(settings(**changes), version)
    ((shown,),) = run.plan(Statement(text, mode=mode, client=client))
    return shown.removeprefix("+")


@pytest.mark.parametrize(("body", "expected"), CREATED)
@pytest.mark.parametrize("head", ["CREATE TABLE t", "CREATE TEMPORARY TABLE IF NOT EXISTS d.t", "create table `t`"])
def test_checks_of_a_new_table_are_taken_away(head: str, body: str, expected: str | None) -> None:
    want = body if expected is None else expected
    assert made(f"{head} {body}") == (head + want if want.startswith(" ") else f"{head} {want}")


@pytest.mark.parametrize(("actions", "expected"), ALTERED)
@pytest.mark.parametrize("head", ["ALTER TABLE t", "ALTER TABLE d.t"])
def test_checks_of_an_altered_table_are_taken_away(head: str, actions: str, expected: str | None) -> None:
    assert made(f"{head} {actions}") == (f"{head} {actions}" if expected is None else f"{head}{expected}")


@pytest.mark.parametrize("version", ["5.0.96-log", "5.1.73", "5.7.44-log", "8.0.15"])
@pytest.mark.parametrize("target", ["mysql-8.0", "mysql-8.4", "mysql-9.7"])
def test_every_server_that_forgets_them_is_followed_by_those_that_do_not(version: str, target: str) -> None:
    assert made("CREATE TABLE t (a INT, CHECK (a > 0))", version, target=target) == "CREATE TABLE t (a INT)"


@pytest.mark.parametrize(
    ("version", "target"), [("8.0.16", "mysql-9.7"), ("9.7.4", "mysql-9.7"), ("5.6.24-log", "mysql-5.7")]
)
def test_where_source_and_replicas_do_the_same_with_them_they_stay(version: str, target: str) -> None:
    kept = "CREATE TABLE t (a INT, CHECK (a > 0))"
    assert made(kept, version, target=target) == kept


@pytest.mark.parametrize("engines", ["keep", "innodb"])
def test_engines_change_beside_them(engines: str) -> None:
    shown = made("CREATE TABLE t (a INT REFERENCES p (id), CHECK (a > 0)) ENGINE=MyISAM, COMMENT=''", engines=engines)
    assert shown == f"CREATE TABLE t (a INT) ENGINE={'InnoDB' if engines == 'innodb' else 'MyISAM'}, COMMENT=''"


def test_a_comment_for_servers_around_them_stays_whole() -> None:
    text = made("CREATE TABLE t (a INT /*!50000 CHECK (a > 0) */, b INT /*!50000 , CHECK (b /* ( */ > 0), c INT */)")
    assert text.replace(" ", "") == "CREATETABLEt(aINT/*!50000*/,bINT/*!50000/*(*/,cINT*/)"
    text = made("CREATE TABLE t (a INT /* , */, /*! CHECK */ (a > 0))")
    assert text.replace(" ", "") == "CREATETABLEt(aINT/*,*//*!*/)"


def test_texts_are_read_as_their_session_meant_them() -> None:
    ansi, no_backslash = 4, 1 << 20
    text = 'CREATE TABLE t (a INT CHECK (a <> ")"), "CHECK (" INT)'
    assert made(text, mode=ansi) == 'CREATE TABLE t (a INT, "CHECK (" INT)'
    text = r"CREATE TABLE t (a CHAR(3) CHECK (a <> '\'), b INT COMMENT ')')"
    assert made(text, mode=no_backslash) == "CREATE TABLE t (a CHAR(3), b INT COMMENT ')')"
    gbk = 28
    wide = b"CREATE TABLE t (a CHAR(3) CHECK (a <> '\xc4\x5c'), b INT)"
    assert made(wide, client=gbk) == "CREATE TABLE t (a CHAR(3), b INT)"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT CHECK (a > 0) COMMENT 'x)",
        "CREATE TABLE t (a INT, CHECK (a > 0",
        "CREATE TABLE t (a INT, CHECK (a > 0) and more)",
        "ALTER TABLE t ADD CHECK (a > 0) and more",
        "ALTER TABLE t ADD CHECK (a > 0))",
        "CREATE TABLE t (a INT, b (c",
    ],
)
def test_what_cannot_be_read_is_left_to_the_replica(text: str) -> None:
    # It forgets CHECK itself, by the version that the GTID event names.
    assert made(text) == text
