"""REPLACE and DELETE of a real MySQL 5.6 on a real MySQL 9.7, where foreign keys and triggers are concerned: without the rules other
rows are there than at the source and no server says so; with them the view stops, and each way on ends with the source's rows."""

import pytest

from deploy.servers import Server
from relay.view.rules.group_rules import MysqlRules
from tests.conftest import ServerFactory
from tests.interop.conftest import TrialFactory
from tests.support.rule_groups import settings
from tests.support.view_trial import REPLICA_OPTIONS, reason_of
from tests.support.view_writer import AsItIs

pytestmark = pytest.mark.interop

PARENT = ["CREATE DATABASE d", "USE d", "CREATE TABLE p (id INT PRIMARY KEY, u INT, v INT, UNIQUE (u))"]
ROWS = ["INSERT INTO p VALUES (1, 10, 0), (2, 20, 0), (3, 30, 0)", "INSERT INTO c VALUES (11, 1), (12, 1), (22, 2)"]


def child(name: str, parent: str, on_delete: str) -> str:
    """A table whose column p refers to the key of another."""
    return f"CREATE TABLE {name} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {parent} (id) {on_delete})"


CASCADE = [*PARENT, child("c", "p", "ON DELETE CASCADE"), *ROWS]
SET_NULL = [*PARENT, child("c", "p", "ON DELETE SET NULL"), *ROWS]
UPDATED = [*PARENT, child("c", "p", "ON UPDATE CASCADE"), *ROWS]
EMPTIED = [*PARENT, child("c", "p", "ON UPDATE SET NULL"), *ROWS]
BY_ANOTHER_KEY = [
    *PARENT,
    "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (u) ON UPDATE CASCADE)",
    ROWS[0],
    "INSERT INTO c VALUES (11, 10), (12, 10), (22, 20)",
]
LATER = [
    *PARENT,
    "CREATE TABLE c (id INT PRIMARY KEY, p INT, KEY (p))",
    "ALTER TABLE c ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE",
    *ROWS,
]
RENAMED = [
    *PARENT[:2],
    "CREATE TABLE q (id INT PRIMARY KEY, u INT, v INT)",
    child("c", "q", "ON DELETE CASCADE"),
    "RENAME TABLE q TO p",
    *ROWS,
]
ITSELF = [*PARENT[:2], child("p", "p", "ON DELETE CASCADE"), "INSERT INTO p VALUES (1, NULL), (2, 1), (3, 2)"]
ELSEWHERE = [
    *PARENT,
    "CREATE DATABASE IF NOT EXISTS other",
    "USE other",
    child("d.c", "p", "ON DELETE CASCADE"),
    "USE d",
    *ROWS,
]
DEEP = [
    *CASCADE,
    child("g", "c", "ON DELETE CASCADE"),
    child("h", "g", "ON DELETE SET NULL"),
    "INSERT INTO g VALUES (1, 11), (2, 12), (3, 22)",
    "INSERT INTO h VALUES (1, 1), (2, 2)",
]
TWO_WAYS = [
    *PARENT,
    "CREATE TABLE c (id INT PRIMARY KEY, a INT, b INT, FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE, "
    "FOREIGN KEY (b) REFERENCES p (id) ON DELETE SET NULL)",
    child("g", "c", "ON DELETE CASCADE"),
    ROWS[0],
    "INSERT INTO c VALUES (1, 1, NULL), (2, NULL, 1), (3, 1, 2), (4, 2, 1)",
]
RING = [
    "CREATE DATABASE d",
    "USE d",
    "CREATE TABLE p (id INT PRIMARY KEY, c INT)",
    child("c", "p", "ON DELETE CASCADE"),
    "ALTER TABLE p ADD FOREIGN KEY (c) REFERENCES c (id) ON DELETE CASCADE",
    "INSERT INTO p VALUES (1, NULL), (2, NULL)",
    "INSERT INTO c VALUES (1, 1), (2, 2)",
    "UPDATE p SET c = 3 - id",
]

BY_FOREIGN_KEYS = [
    ("replace_in_parent_table", CASCADE, "REPLACE INTO p VALUES (1, 10, 5)"),
    ("replace_in_parent_table", CASCADE, "REPLACE p SET id = 1, u = 99"),
    ("replace_in_parent_table", CASCADE, "REPLACE INTO d.p SELECT id, u, v + 1 FROM p WHERE id < 3"),
    ("replace_in_parent_table", CASCADE, "LOAD DATA INFILE '{}' REPLACE INTO TABLE p (id, u)"),
    ("replace_in_parent_table", SET_NULL, "REPLACE INTO p VALUES (1, 10, 5)"),
    ("replace_in_parent_table", SET_NULL, "LOAD DATA INFILE '{}' REPLACE INTO TABLE `p` (id, u)"),
    ("replace_in_parent_table", LATER, "REPLACE INTO p VALUES (1, 10, 5)"),
    ("replace_in_parent_table", RENAMED, "REPLACE INTO p VALUES (1, 10, 5)"),
    ("replace_in_parent_table", ELSEWHERE, "REPLACE INTO p VALUES (1, 10, 5)"),
    ("replace_in_parent_table", ITSELF, "REPLACE INTO p VALUES (1, NULL)"),
    ("incomplete_cascade", DEEP, "DELETE FROM p WHERE id = 1"),
    ("incomplete_cascade", DEEP, "DELETE x FROM p x JOIN c ON c.p = x.id"),
    ("replace_in_parent_table", CASCADE, "/*!40000REPLACE*/ INTO p VALUES (1, 10, 5)"),
    ("replace_in_parent_table", CASCADE, f"/* {'of an application ' * 300} */ REPLACE INTO p VALUES (1, 10, 5)"),
    ("incomplete_cascade", DEEP, "DELETE p FROM p JOIN (SELECT 1 AS id) AS few ON few.id = p.id"),
    ("incomplete_cascade", [*DEEP, "CREATE VIEW w AS SELECT * FROM p WHERE id = 1"], "DELETE FROM w"),
    ("incomplete_cascade", TWO_WAYS, "DELETE FROM p WHERE id = 1"),
    ("incomplete_cascade", RING, "DELETE FROM p WHERE id = 1"),
    ("upsert_ignored", UPDATED, "INSERT IGNORE INTO c VALUES (11, 99) ON DUPLICATE KEY UPDATE p = 3"),
    ("ignored_update", UPDATED, "UPDATE IGNORE p SET id = 2 WHERE id = 1"),
    ("ignored_update", EMPTIED, "UPDATE IGNORE p SET v = 7, d.p.id = 2 WHERE id = 1"),
    ("ignored_update", BY_ANOTHER_KEY, "UPDATE IGNORE p SET u = 20 WHERE u = 10"),
    ("ignored_update", UPDATED, "INSERT IGNORE INTO p VALUES (1, 99, 0) ON DUPLICATE KEY UPDATE id = 2"),
    ("ignored_update", [*UPDATED, "CREATE VIEW w AS SELECT * FROM p"], "UPDATE IGNORE w SET id = 3 WHERE id = 1"),
]  # fmt: skip

LOG = "CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, a INT)"
LOGGED = "CREATE TRIGGER {0}_tr AFTER DELETE ON {0} FOR EACH ROW INSERT INTO log (a) VALUES (OLD.id)"
BY_ORDER = [
    ("multi_table_delete", [*CASCADE, LOG, LOGGED.format("c")], "DELETE p, c FROM p JOIN c ON c.p = p.id WHERE p.id = 1"),
    ("multi_table_delete", [*CASCADE, LOG, LOGGED.format("c")], "DELETE FROM p, c USING p LEFT JOIN c ON c.p = p.id WHERE p.id = 1"),
]  # fmt: skip


@pytest.fixture(scope="module")
def source(trial_servers: tuple[Server, Server]) -> Server:
    return trial_servers[0]


@pytest.fixture(scope="module")
def native(module_servers: ServerFactory) -> Server:
    """A replica with the setting that makes it do as the source."""
    return module_servers("mysql97").start(server_id=3, options=[*REPLICA_OPTIONS, "--innodb-native-foreign-keys=ON"])


def with_file(work: list[str], source: Server) -> list[str]:
    path = source.directory / "rows.tsv"
    path.write_text("1\t10\n")
    path.chmod(0o644)
    return [statement.format(path) if statement.startswith("LOAD") else statement for statement in work]


@pytest.mark.parametrize(("name", "made", "statement"), [*BY_FOREIGN_KEYS, *BY_ORDER])
def test_without_the_rule_other_rows_are_there_than_at_the_source(
    trial: TrialFactory, source: Server, name: str, made: list[str], statement: str
) -> None:
    here = trial()
    file = here.write(with_file([*made, statement], source))
    assert here.apply(AsItIs(), file) == 0
    assert not here.equal
    reason = reason_of(MysqlRules(settings()), file)
    assert (reason.name, reason.error) == (name, 0)
    here = trial()
    file = here.write(with_file([*made, statement], source), "ROW")  # rows need no rule
    assert here.apply(MysqlRules(settings()), file) == 0
    assert here.equal


@pytest.mark.parametrize(("name", "made", "statement"), BY_FOREIGN_KEYS)
def test_a_replica_whose_innodb_carries_out_foreign_keys_has_the_rows_of_the_source(
    trial: TrialFactory, source: Server, native: Server, name: str, made: list[str], statement: str
) -> None:
    here = trial(native)
    file = here.write(with_file([*made, statement], source))
    assert here.apply(MysqlRules(settings(foreign_keys="innodb")), file) == 0
    assert here.equal
    assert here.whole


def test_mixed_format_writes_statements_too(trial: TrialFactory) -> None:
    for name, made, statement in (BY_FOREIGN_KEYS[0], BY_FOREIGN_KEYS[9]):
        assert reason_of(MysqlRules(settings()), trial().write([*made, statement], "MIXED")).name == name


KEPT = [
    (CASCADE, "REPLACE INTO c VALUES (11, 2)"),
    (CASCADE, "INSERT INTO p VALUES (1, 10, 5) ON DUPLICATE KEY UPDATE v = 6"),
    (CASCADE, "DELETE FROM p WHERE id = 1"),
    (CASCADE, "DELETE IGNORE FROM p"),
    (CASCADE, "DELETE p FROM p JOIN c ON c.p = p.id WHERE p.id = 1"),
    (SET_NULL, "DELETE FROM p"),
    ([*PARENT, child("c", "p", "ON DELETE RESTRICT"), *ROWS], "REPLACE INTO p VALUES (3, 30, 5)"),
    ([*PARENT, child("c", "p", "ON UPDATE CASCADE"), *ROWS], "UPDATE p SET id = 7 WHERE id = 1"),
    ([*LATER, "ALTER TABLE c DROP FOREIGN KEY k"], "REPLACE INTO p VALUES (1, 10, 5)"),
    ([*CASCADE, "ALTER TABLE c DROP FOREIGN KEY c_ibfk_1"], "REPLACE INTO p VALUES (1, 10, 5)"),
    ([*CASCADE, "ALTER TABLE c DROP FOREIGN KEY c_ibfk_1, ADD FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE",
      "ALTER TABLE c DROP FOREIGN KEY c_ibfk_2"], "REPLACE INTO p VALUES (1, 10, 5)"),
    ([*CASCADE, "DROP TABLE c"], "REPLACE INTO p VALUES (1, 10, 5)"),
    ([*PARENT, child("c", "p", "ON DELETE CASCADE") + " ENGINE=BLACKHOLE", ROWS[0]], "REPLACE INTO p VALUES (1, 10, 5)"),
    ([*CASCADE, "CREATE TABLE q LIKE p", "INSERT INTO q VALUES (1, 10, 0)"], "REPLACE INTO q VALUES (1, 10, 5)"),
    ([*CASCADE, "SET foreign_key_checks = 0"], "REPLACE INTO p VALUES (1, 10, 5)"),
    ([*DEEP, "SET foreign_key_checks = 0"], "DELETE FROM p WHERE id = 1"),
    (DEEP, "DELETE FROM c WHERE p = 1"),
    ([*CASCADE, child("g", "c", "ON DELETE CASCADE"), "INSERT INTO g VALUES (1, 11), (2, 12)"], "DELETE FROM p"),
    (BY_ANOTHER_KEY, "UPDATE IGNORE p SET id = 2 WHERE id = 1"),
    (UPDATED, "UPDATE IGNORE p SET u = 20 WHERE id = 1"),
    ([*UPDATED, "SET foreign_key_checks = 0"], "UPDATE IGNORE p SET id = 2 WHERE id = 1"),
    # The row that is not inserted refers to none, which 9.6 and later refuse (1452).
    (CASCADE, "INSERT INTO c VALUES (11, 99) ON DUPLICATE KEY UPDATE p = 2"),
    (CASCADE, "INSERT INTO c VALUES (11, 99), (12, NULL), (23, 2) ON DUPLICATE KEY UPDATE p = VALUES(p) - 97"),
    ([*DEEP, "SET sql_mode = 'STRICT_ALL_TABLES'"], "INSERT INTO c SELECT id + 10, 99 FROM p ON DUPLICATE KEY UPDATE c.p = 2"),
    ([*PARENT, ROWS[0], LOG, LOGGED.format("p")], "REPLACE INTO p VALUES (1, 10, 5)"),
    ([*PARENT, "CREATE TABLE c (id INT PRIMARY KEY, p INT)", *ROWS], "DELETE p, c FROM p JOIN c ON c.p = p.id"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "statement"), KEPT)
def test_what_is_the_same_on_both_goes_on(trial: TrialFactory, made: list[str], statement: str) -> None:
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write([*made, statement])) == 0
    assert here.equal
    assert here.whole
