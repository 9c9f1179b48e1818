"""What real servers compute otherwise than the source in silence: the view stops before it by name, and passes it on if accepted."""

from pathlib import Path

import pytest

from deploy.servers import Server
from relay.view.rules.group_rules import MysqlRules
from tests.support.rule_groups import settings
from tests.support.view_trial import ViewTrial, reason_of
from tests.support.view_writer import AsItIs

pytestmark = pytest.mark.interop

NULLS = (
    "CREATE TABLE d.t (pk INT PRIMARY KEY, c TINYINT NOT NULL)",
    "CREATE TRIGGER d.b BEFORE INSERT ON d.t FOR EACH ROW SET NEW.c = IFNULL(NEW.c, 5)",
    "SET sql_mode = ''",
    "INSERT INTO d.t VALUES (1, NULL), (2, NULL)",
)
REGEXP = (
    "CREATE TABLE d.t (id INT PRIMARY KEY, s VARCHAR(20) CHARACTER SET utf8, found INT DEFAULT 0)",
    "INSERT INTO d.t (id, s) VALUES (1, 'a\\nb'), (3, 'ä')",
    "UPDATE d.t SET found = 1 WHERE s REGEXP 'a.b'",
    "DELETE FROM d.t WHERE s REGEXP '^..$'",
)
NUMBERED = (
    "CREATE TABLE d.s (k INT)",
    "INSERT INTO d.s VALUES (3), (1), (2), (3), (1)",
    "CREATE TABLE d.counted (k INT PRIMARY KEY, n INT)",
    "SET @n := 0",
    "INSERT INTO d.counted SELECT k, @n := @n + 1 FROM (SELECT k FROM d.s GROUP BY k) x",
)
NO_DATES = (
    "CREATE TABLE d.t (id INT PRIMARY KEY, d DATE, x INT DEFAULT 0)",
    "INSERT INTO d.t (id, d) VALUES (1, '2020-02-10'), (3, '2020-02-29')",
    "UPDATE d.t SET x = 1 WHERE d BETWEEN '2020-02-01' AND '2020-02-31'",
    "DELETE FROM d.t WHERE d BETWEEN '2020-02-15' AND '2020-02-31'",
)
OFFSETS = (
    "CREATE TABLE d.t (id INT PRIMARY KEY, at DATETIME)",
    "SET sql_mode = ''",
    "INSERT INTO d.t VALUES (1, '2020-01-01 10:00:00+02:00')",
)
CONVERTED = (
    "CREATE TABLE d.t (id INT PRIMARY KEY, at VARCHAR(30))",
    "SET sql_mode = ''",
    "INSERT INTO d.t VALUES (1, '2020-01-01 10:10:10+02:00')",
    "ALTER TABLE d.t MODIFY at DATETIME",
)
FRACTIONS = (
    "CREATE TABLE d.t (id INT PRIMARY KEY, x DOUBLE)",
    "INSERT INTO d.t VALUES (1, 0.1), (2, 0.7), (3, 0)",
    "DELETE FROM d.t WHERE 1 AND x",
)
BOTH = (
    "CREATE TABLE d.s (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)",
    "INSERT INTO d.s VALUES (1, 5)",
    "INSERT INTO d.t VALUES (1, 7)",
    "UPDATE d.s JOIN d.t USING (id) SET d.s.n = 9, d.t.n = d.s.n",
)
HEX = (
    "CREATE TABLE d.s (id INT PRIMARY KEY)",
    "CREATE TABLE d.t (id INT PRIMARY KEY, a VARCHAR(20) CHARACTER SET utf8, b VARCHAR(20) CHARACTER SET latin1)",
    "CREATE TABLE d.c (id INT PRIMARY KEY, a VARCHAR(20) CHARACTER SET ascii)",
    "SET sql_mode = ''",
    "INSERT INTO d.s VALUES (1)",
    "INSERT INTO d.t VALUES (1, 'x', 'y')",
)
IN_STRICT_MODE = (
    "CREATE TABLE d.t (id INT PRIMARY KEY, s VARCHAR(20) CHARACTER SET utf8, n INT, at DATE)",
    "SET sql_mode = 'STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
    "INSERT INTO d.t VALUES (1, '12', 1, '2020-01-01'), (2, '5', 1, NULL), (3, '7', 1, '2020-01-02'), (4, NULL, 1, NULL)",
    "UPDATE d.t SET n = 2 WHERE s = 5",
    "UPDATE d.t SET n = n + 10 WHERE CAST(s AS UNSIGNED) = 7",
    "INSERT INTO d.t (id, n) SELECT id + 10, n FROM d.t WHERE s > 4",
    "UPDATE d.t SET n = n + 5 WHERE NOT 2 = at",
    "DELETE FROM d.t WHERE at = 20200102",
)
NO_VALUE = (
    "CREATE TABLE d.t (pk INT PRIMARY KEY, c TINYINT NOT NULL, n INT)",
    "CREATE TRIGGER d.b BEFORE INSERT ON d.t FOR EACH ROW SET NEW.n = IFNULL(NEW.c, 5)",
    "SET sql_mode = ''",
    "INSERT INTO d.t (pk) VALUES (1)",
)
DERIVED = (
    "CREATE TABLE d.s (k INT, by_this INT)",
    "INSERT INTO d.s VALUES (3, 1), (1, 3), (2, 2)",
    "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, k INT)",
    "INSERT INTO d.t (k) SELECT k FROM (SELECT k FROM d.s ORDER BY by_this) x",
)


@pytest.mark.parametrize(
    ("statements", "accepted"),
    [
        (FRACTIONS, "condition"),
        (BOTH, "multi-table update, column set before it is read"),
        (NO_VALUE, "trigger before insert, implicit default"),
        (DERIVED, "derived table order"),
        (NULLS, "trigger before insert, null into not null"),
        (REGEXP, "regexp"),
        (NO_DATES, "between"),
        (OFFSETS, "store datetime"),
        (CONVERTED, "convert datetime"),
    ],
)
def test_the_view_stops_before_what_differs_and_passes_it_on_if_accepted(
    trial_servers: tuple[Server, Server], tmp_path: Path, statements: tuple[str, ...], accepted: str
) -> None:
    here = ViewTrial(*trial_servers, tmp_path)
    file = here.write(["CREATE DATABASE d", *statements])
    reason = reason_of(MysqlRules(settings()), file)
    assert reason.name == "statement_differs_in_target"
    assert f'accept = ["{accepted}"]' in reason.advice
    assert here.apply(MysqlRules(settings(accept=(accepted,))), file) == 0
    assert not here.equal  # what the stop is for


def test_what_the_replica_refuses_in_strict_mode_runs_without_it(
    trial_servers: tuple[Server, Server], tmp_path: Path
) -> None:
    here = ViewTrial(*trial_servers, tmp_path)
    file = here.write(["CREATE DATABASE d", *IN_STRICT_MODE])
    assert here.apply(AsItIs(), file) == 1292
    again = ViewTrial(*trial_servers, tmp_path / "rules")
    file = again.write(["CREATE DATABASE d", *IN_STRICT_MODE])
    assert again.apply(MysqlRules(settings()), file) == 0
    assert again.equal


def test_a_literal_that_is_no_text_of_the_column_stops_the_view_and_one_that_is_passes(
    trial_servers: tuple[Server, Server], tmp_path: Path
) -> None:
    """A replica refuses an UPDATE of several tables with such a literal, and stores another in a column of ascii."""
    here = ViewTrial(*trial_servers, tmp_path / "passed")
    texts = ["x'C3A9'", "0x41", "b'01000001'", "x''"]
    passed = [f"UPDATE d.s, d.t SET a = {one}, b = {one}" for one in texts]
    passed += [f"INSERT INTO d.t VALUES ({at}, {one}, {one})" for at, one in enumerate(texts[1:], 2)]
    assert here.apply(MysqlRules(settings()), here.write(["CREATE DATABASE d", *HEX, *passed])) == 0
    assert here.equal
    here = ViewTrial(*trial_servers, tmp_path / "stopped")
    file = here.write(["CREATE DATABASE d", *HEX, "UPDATE d.s, d.t SET a = 0xFF"])
    reason = reason_of(MysqlRules(settings()), file)
    assert (reason.name, reason.error) == ("statement_not_in_target", 3854)
    assert here.apply(MysqlRules(settings(accept=("store varchar",))), file) == 3854
    here = ViewTrial(*trial_servers, tmp_path / "silent")
    file = here.write(["CREATE DATABASE d", *HEX, "INSERT INTO d.c VALUES (1, 0xFF)"])
    assert reason_of(MysqlRules(settings()), file).name == "statement_not_in_target"
    assert here.apply(MysqlRules(settings(accept=("store varchar",))), file) == 0
    assert not here.equal


def test_the_order_of_groups_that_the_view_writes_is_that_of_the_source(
    trial_servers: tuple[Server, Server], tmp_path: Path
) -> None:
    here = ViewTrial(*trial_servers, tmp_path)
    file = here.write(
        [
            "CREATE DATABASE d",
            *NUMBERED,
            "DELETE FROM d.counted WHERE n > 2",
            "CREATE TABLE d.numbered (a INT AUTO_INCREMENT PRIMARY KEY, k INT, n INT)",
            "INSERT INTO d.numbered (k, n) SELECT k, COUNT(*) FROM d.s GROUP BY k",
            "INSERT IGNORE INTO d.counted SELECT k, COUNT(*) FROM d.s GROUP BY k LIMIT 2",
            "SET @m := 0",
            "INSERT INTO d.numbered (k, n) SELECT k, @m := @m + 1 FROM (SELECT k FROM d.s GROUP BY k) x WHERE k > 1",
            "INSERT INTO d.numbered (k, n) SELECT * FROM (SELECT k, COUNT(*) FROM d.s GROUP BY k) x",
            "INSERT INTO d.numbered (k, n) SELECT k, COUNT(*) c FROM d.s WHERE k > 0 GROUP BY k % 2, k HAVING c > 0",
        ]
    )
    assert here.apply(MysqlRules(settings()), file) == 0
    assert here.equal
