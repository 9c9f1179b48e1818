"""With engines = "innodb": which statements hang on the order of rows in a table that becomes another, and which do not."""

import pytest

from relay.view.stops.stop_reason import Untranslatable
from tests.support.rule_groups import Item, RuleRun, Statement, settings

M = "CREATE TABLE m (a INT PRIMARY KEY, v INT, t TEXT) ENGINE=MyISAM"
INNO = "CREATE TABLE i (a INT PRIMARY KEY, v INT) ENGINE=InnoDB"
V = "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW `w` AS SELECT a, v FROM `d`.`m`"
GROUPS_ARE_FULL = 1 << 5
NO_BACKSLASH = 1 << 20


def reason_of(statement: Item, *before: str, version: str = "5.6.24-log") -> str:
    """Why the view stops there; "": it does not."""
    run = RuleRun(settings(engines="innodb"), version)
    for definition in ("CREATE DATABASE d", M, INNO, *before):
        run.plan(definition)
    known = run.rules.state()
    try:
        run.plan(statement)
    except Untranslatable as raised:
        assert run.rules.state() == known
        return raised.reason.name
    return ""


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE m ADD id INT AUTO_INCREMENT PRIMARY KEY",
        "ALTER TABLE m ADD COLUMN (w INT, `id` BIGINT NOT NULL AUTO_INCREMENT, KEY (id))",
        "/* of an application */ ALTER TABLE m ADD id SERIAL FIRST, ADD w INT",
        "ALTER TABLE m /*!50000ADD id INT AUTO_INCREMENT UNIQUE*/",
        "ALTER IGNORE TABLE m ADD UNIQUE (v)",
        "UPDATE i JOIN m ON m.v = i.v SET i.a = m.a",
        "UPDATE i, m SET i.a = a + 1 WHERE m.v = i.v",
        "/* x */ UPDATE m AS x JOIN m AS y ON x.v = y.v SET x.a = y.a",
        "UPDATE i JOIN d.m ON m.v = i.v SET d.i.a = d.m.a",
        "INSERT INTO i SELECT a, v FROM m GROUP BY v",
        "INSERT INTO i SELECT MAX(a), v FROM m",
        "INSERT INTO i SELECT MAX(a), YEAR FROM m",
        "INSERT INTO i SELECT MAX(a) + v AS total FROM m",
        "INSERT INTO i SELECT * FROM m GROUP BY a + 1",
        "UPDATE i SET a = (SELECT m.a FROM m WHERE m.v = 3 GROUP BY m.v HAVING COUNT(*) > 1)",
        "DELETE FROM m /*!50000LIMIT 1*/",
        "LOAD DATA INFILE 'x' INTO TABLE i (a) SET v = (SELECT v FROM m LIMIT 1)",
        "REPLACE INTO m SELECT a, 'a\\'; -- ', t FROM m",
    ],
)
def test_what_hangs_on_the_order_of_rows_stops_the_view(statement: str) -> None:
    assert reason_of(statement) == "row_order"


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE i ADD id INT AUTO_INCREMENT UNIQUE",
        "ALTER TABLE m MODIFY a INT NOT NULL AUTO_INCREMENT, AUTO_INCREMENT = 7",
        "ALTER TABLE m ADD w INT COMMENT 'AUTO_INCREMENT', AUTO_INCREMENT=5",
        "ALTER TABLE m ADD `serial` INT, ADD serial_number INT",
        "ALTER TABLE older ADD id INT AUTO_INCREMENT UNIQUE",
        "UPDATE i JOIN m ON m.v = i.v SET i.a = 5, i.v = NOW() - INTERVAL 1 DAY",
        "UPDATE m JOIN i ON m.v = i.v SET m.a = i.a",
        "INSERT INTO i SELECT v, COUNT(*) + MAX(m.a) FROM m GROUP BY m.v",
        "INSERT INTO i SELECT LOWER(t) x, SUM(v) AS total FROM m GROUP BY x",
        "INSERT INTO i SELECT v + 1, 3 FROM m GROUP BY 1",
        "INSERT INTO i SELECT MAX(a), 'v' FROM m WHERE v IN (SELECT i.v FROM i)",
        "INSERT INTO i SELECT COUNT(*), 5 FROM m",
        "INSERT INTO i SELECT CAST(v AS CHAR), SUM(a) FROM m GROUP BY v",
        "INSERT INTO i SELECT @x, MAX(a) FROM m",
        "INSERT INTO i SELECT v COLLATE utf8_bin, TIMESTAMPDIFF(DAY, v, NOW()) + COUNT(*) n FROM m GROUP BY v",
        "INSERT INTO i SELECT EXTRACT(YEAR FROM NOW()), COUNT(DISTINCT a) FROM m GROUP BY v",
        "INSERT INTO i SELECT TRIM(t), CASE WHEN v IS NULL THEN 1 ELSE v END, MIN(a) FROM m GROUP BY t, v",
        "UPDATE i JOIN m ON m.v = i.v SET i.v = i.a + @x",
        Statement("INSERT INTO i SELECT a, v FROM m GROUP BY a", mode=GROUPS_ARE_FULL),
        "INSERT INTO m VALUES (1, 2, 'there is a limit to what people select'), (2, 3, '\\' LIMIT 1')",
        Statement("INSERT INTO m VALUES (1, 2, 'C:\\'), (2, 3, ' LIMIT 1')", mode=NO_BACKSLASH),
        "LOAD DATA INFILE 'x' INTO TABLE m (a, @b) SET v = (@n := @n + 1)",
        "DELETE FROM i LIMIT 1",
    ],
)
def test_what_does_not_goes_on(statement: Item) -> None:
    assert reason_of(statement) == ""


def test_rows_of_a_dump_need_not_be_read_for_the_words_in_their_texts() -> None:
    row = "(1, 2, 'it\\'s a select; limit 5 := 7 -- /* \"')"
    statement = f"/* it's a dump */ INSERT INTO m VALUES {', '.join([row] * 60_000)}"
    assert reason_of(statement) == ""
    assert reason_of(statement.replace("dump */", "dump */ /*!999999 x */")) == "definition_not_parsed"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("DELETE FROM m LIMIT 1", "row_order"),
        ("BEGIN DELETE FROM m ORDER BY a LIMIT 1; UPDATE m SET v = 1 LIMIT 1; END", "row_order"),
        ("BEGIN DECLARE c CURSOR FOR SELECT a FROM m; OPEN c; END", "row_order"),
        ("SET NEW.v = (SELECT GROUP_CONCAT(t) FROM m)", "row_order"),
        ("INSERT INTO further VALUES (NEW.a)", "row_order"),
        ("BEGIN SET @n := NEW.a; SET @m := 2; UPDATE m SET v = 1 ORDER BY a LIMIT 1; END", ""),
        ("INSERT INTO i2 SELECT a FROM i LIMIT 1", ""),
        ("UPDATE m SET v = v + 1 WHERE a = NEW.a", ""),
    ],
)
def test_what_triggers_do_counts(body: str, reason: str) -> None:
    further = (
        "CREATE TABLE further (a INT)",
        "CREATE TRIGGER f AFTER INSERT ON further FOR EACH ROW DELETE FROM m LIMIT 1",
    )
    trigger = f"CREATE TRIGGER tr BEFORE INSERT ON i FOR EACH ROW {body}"
    assert reason_of("INSERT INTO i VALUES (1, 2)", *further, trigger) == reason
    assert reason_of("INSERT INTO i VALUES (1, 2)", *further, trigger, "DROP TRIGGER tr") == ""


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ((), "row_order"),
        (("CREATE VIEW x AS SELECT * FROM w",), "row_order"),
        (("RENAME TABLE w TO other, m TO q", "RENAME TABLE other TO w, q TO m"), "row_order"),
        (("ALTER VIEW w AS SELECT * FROM i",), ""),
        (("CREATE OR REPLACE VIEW w AS SELECT * FROM i",), ""),
        (("DROP VIEW IF EXISTS x, w",), ""),
        (("DROP DATABASE d", "CREATE DATABASE d", M), ""),
    ],
)
def test_views_stand_for_what_they_read(more: tuple[str, ...], reason: str) -> None:
    name = "x" if more and "VIEW x AS" in more[0] else "w"
    assert reason_of(f"DELETE FROM {name} LIMIT 1", V, *more) == reason
    assert reason_of(f"INSERT INTO i SELECT 1, v FROM {name} LIMIT 1", V, *more) == reason


def test_views_are_known_behind_a_restart() -> None:
    run = RuleRun(settings(engines="innodb"))
    for definition in ("CREATE DATABASE d", M, INNO, V, "CREATE VIEW x AS SELECT 1 FROM w, i"):
        run.plan(definition)
    state = run.rules.state()
    other = RuleRun(settings(engines="innodb"))
    other.rules.restore(state)
    assert other.rules.state() == state
    with pytest.raises(Untranslatable):
        other.plan("DELETE FROM x LIMIT 1")


def test_what_match_finds_is_of_the_engine() -> None:
    assert reason_of("DELETE FROM m WHERE MATCH (t) AGAINST ('cat')") == "fulltext_search"
    assert (
        reason_of("INSERT INTO i SELECT a, v FROM m WHERE MATCH (t) AGAINST ('cat' IN BOOLEAN MODE)")
        == "fulltext_search"
    )
    assert reason_of("DELETE FROM i WHERE MATCH (v) AGAINST ('cat')", version="9.7.4") == ""


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("INSERT INTO i (a, v) TABLE m LIMIT 1", "row_order"),
        ("INSERT INTO i (a, v) TABLE m ORDER BY a LIMIT 1", ""),
        ("REPLACE INTO i TABLE m", "row_order"),
        ("INSERT INTO i TABLE m", ""),
        ("WITH few AS (SELECT a FROM m LIMIT 2) DELETE FROM i WHERE a IN (SELECT a FROM few)", "row_order"),
        ("WITH few AS (SELECT a FROM m) UPDATE i SET v = 1 WHERE a IN (SELECT a FROM few)", ""),
    ],
)
def test_words_of_newer_sources_count(statement: str, reason: str) -> None:
    assert reason_of(statement, version="8.0.35") == reason
