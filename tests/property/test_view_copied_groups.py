"""What the kernel copies without asking the rules, the rules would have left as it is: of transactions made at random."""

import random
from typing import Any

import pytest

from relay.view.rules.group import Copy, OutGroup, SourceGroup
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.settings import ViewSettings
from relay.view.stops.stop_reason import Untranslatable
from relay.view.stops.view_stop import ViewStopped
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from tests.support.rule_groups import XID, Item, Rows, RuleRun, Statement, settings
from tests.support.view_making import marked

GROUPS = 120
DEFINITIONS = (
    "CREATE DATABASE d",
    "CREATE TABLE m (a INT PRIMARY KEY, v INT, x TEXT) ENGINE=MyISAM",
    "CREATE TABLE m2 (a INT PRIMARY KEY, v INT) ENGINE=MEMORY",
    "CREATE TABLE i (a INT PRIMARY KEY, v INT)",
    "CREATE TABLE p (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
    "CREATE TABLE g (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES c (id) ON DELETE CASCADE)",
    "CREATE TABLE h (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES g (id) ON DELETE CASCADE)",
    "CREATE TABLE t (a INT, v INT)",
    "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW DELETE FROM m LIMIT 1",
    "CREATE VIEW w AS SELECT * FROM m",
    "CREATE VIEW q AS SELECT id, v FROM p",
)
TABLES = (
    "m", "m2", "i", "p", "c", "g", "h", "t", "w", "q", "other", "`m`", "d.m", "`d`.`p`", "M", "d . m", "`old er`", "mysql.user",
    "`mysql`.db", "i/*x*/",
)  # fmt: skip
FORMS = (
    "INSERT INTO {0} VALUES (1, 2)", "insert {0} values (1,2)", "INSERT IGNORE INTO {0} (a) VALUES (1),(2)", "REPLACE {0} SET a = 1",
    "REPLACE INTO {0} VALUES (1, 2)", "UPDATE {0} SET v = 1", "UPDATE {0} SET v = v + 1 WHERE a = 5", "UPDATE {0} SET v = 1 LIMIT 1",
    "UPDATE {0} AS z SET v = 1", "UPDATE {0}, {1} SET {1}.v = 1", "UPDATE {0} JOIN {1} USING (a) SET {0}.v = {1}.v", "DELETE FROM {0}",
    "DELETE FROM {0} WHERE a = 1", "DELETE FROM {0} ORDER BY a LIMIT 1", "DELETE FROM {0} LIMIT 1", "DELETE {0} FROM {0} JOIN {1}",
    "DELETE FROM {0}, {1} USING {0} JOIN {1}", "INSERT INTO {0} SELECT * FROM {1}", "INSERT INTO {0} SELECT * FROM {1} LIMIT 1",
    "REPLACE INTO {0} SELECT * FROM {1}", "INSERT INTO {0} VALUES ('select limit')", "UPDATE IGNORE {0} SET a = a + 1",
    "DELETE FROM {0} WHERE MATCH (x) AGAINST ('y')", "INSERT INTO {0} VALUES (@a := 1)", "UPDATE {0} SET v = (@a := @a + 1)",
    "INSERT INTO {0} VALUES (1) ON DUPLICATE KEY UPDATE v = 2", "DELETE QUICK FROM {0}", "INSERT DELAYED INTO {0} VALUES (1)",
)  # fmt: skip
NEWER_FORMS = ("INSERT INTO {0} (a) TABLE {1} LIMIT 1", "WITH z AS (SELECT 1) DELETE FROM {0}")


class AskedRules(MysqlRules):
    """They note whether they were asked."""

    is_asked = False

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        self.is_asked = True
        return super().plan(group)


def spelled(chance: random.Random, statement: str) -> str:
    """The statement as an application may write it."""
    words = statement.split(" ")
    number = chance.randrange(len(words))
    conditional = [*words[:number], f"/*!50000{words[number]}*/", *words[number + 1 :]]
    return chance.choice([
        *[statement] * 8, f"/* app */ {statement}", f"-- app\n{statement}", f" \n{statement}", f"{statement} /* limit */",
        statement.lower(), statement.replace(" ", "\n\t", 1), " ".join(conditional), f"/*!50000{statement}*/",
    ])  # fmt: skip


def transaction(chance: random.Random, forms: tuple[str, ...]) -> list[Item]:
    """Of statements and rows."""
    inside: list[Item] = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if chance.random() < 0.25:
            inside.append(Rows(chance.sample(("m", "i", "m2", "p", "t"), chance.choice((1, 1, 2)))))
        else:
            statement = chance.choice(forms).format(chance.choice(TABLES), chance.choice(TABLES))
            inside.append(Statement(spelled(chance, statement), error=chance.choice([0] * 20 + [1062])))
    if chance.random() < 0.1:
        inside.insert(chance.randrange(len(inside) + 1), "SAVEPOINT s")
    return ["BEGIN", *inside, XID]


def is_copied(given: ViewSettings, state: bytes, run: RuleRun, group: SourceGroup) -> bool:
    """Whether the group came into the view, or was refused, without a look of the rules."""
    data = marked(run.data)

    def read_into(view: memoryview, offset: int) -> int:
        count = min(len(view), max(0, len(data) - offset))
        view[:count] = data[offset : offset + count]
        return count

    rules = AskedRules(given)
    begin = ViewCheckpoint(group.start, group.start, 50, 1, state)
    made = FileTranslation(group.file, read_into, given, rules, begin, {})
    try:
        made.fill(bytearray(1 << 20), 0, len(data), sealed=True)
    except ViewStopped:
        assert rules.is_asked
    return not rules.is_asked


@pytest.mark.parametrize("version", ["5.6.24-log", "8.0.35"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"engines": "innodb"},
        {"foreign_keys": "innodb"},
        {"plain_tables": ("*",)},
        {"known_engines": {"d.other": "MyISAM"}},
        {"known_engines": {"*": "MyISAM"}},
    ],
)
def test_the_rules_would_leave_it_as_it_is(changes: dict[str, Any], version: str) -> None:
    chance = random.Random(f"{changes} {version}")
    given = settings(**changes)
    run = RuleRun(given, version)
    for definition in DEFINITIONS:
        run.plan(definition)
    state = run.rules.state()
    forms = FORMS if version < "8" else (*FORMS, *NEWER_FORMS)
    for _ in range(GROUPS):
        items = transaction(chance, forms)
        (group,) = run.groups(*items)
        if not is_copied(given, state, run, group):
            continue
        rules = MysqlRules(given)
        rules.restore(state)
        try:
            (made,) = rules.plan(group)
        except Untranslatable as stopped:
            raise AssertionError(items) from stopped
        assert list(made.pieces) == [Copy(group.start, group.stop)], items
        assert rules.state() == state, items
