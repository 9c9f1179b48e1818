"""What statements of a real MySQL 5.6 set off in triggers and functions, and by views, on a real MySQL 9.7: without the rules other
rows are there than at the source and no server says so; with them the view stops."""

import re

import pytest

from deploy.servers import Server
from relay.audit.readiness.view_checks import OLDER_TABLES
from relay.view.rules.group_rules import MysqlRules
from tests.conftest import ServerFactory
from tests.interop.conftest import TrialFactory
from tests.interop.test_view_foreign_keys import CASCADE, DEEP, LOG, PARENT, ROWS
from tests.support.rule_groups import settings
from tests.support.view_trial import REPLICA_OPTIONS, reason_of
from tests.support.view_writer import AsItIs

pytestmark = pytest.mark.interop

W = "CREATE TABLE w (a INT PRIMARY KEY, b INT)"
ON_INSERT = "CREATE TRIGGER tr AFTER INSERT ON w FOR EACH ROW "
FUNCTION = "CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN {}; RETURN x; END"
PROCEDURE = "CREATE PROCEDURE q(x INT) REPLACE INTO p VALUES (x, x * 10, 7)"
REPLACES = "REPLACE INTO p VALUES (NEW.a, NEW.b, 7)"
INSERT = "INSERT INTO w VALUES (1, 10)"
TWO = "CREATE TABLE {0} (id INT PRIMARY KEY, k INT, v INT)"
ON_UPDATE = "CREATE TRIGGER u_{0} AFTER UPDATE ON {0} FOR EACH ROW INSERT INTO log (a) VALUES (NEW.id {1})"
JOINED = [
    *PARENT[:2], LOG, TWO.format("a"), TWO.format("b"), ON_UPDATE.format("a", ""), ON_UPDATE.format("b", "+ 100"),
    "INSERT INTO a VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0)",
    "INSERT INTO b VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 4, 0), (5, 5, 0)",
]  # fmt: skip
VIEW = "CREATE VIEW vp AS SELECT * FROM p"

REPLACES_PARENT = "replace_in_parent_table"
BY_FOREIGN_KEYS = [
    (REPLACES_PARENT, [*CASCADE, W, ON_INSERT + REPLACES], INSERT),
    (REPLACES_PARENT, [*CASCADE, W, FUNCTION.format("REPLACE INTO p VALUES (x, x * 10, 7)")], "INSERT INTO w VALUES (f(1), 10)"),
    (REPLACES_PARENT, [*CASCADE, W, FUNCTION.format("REPLACE INTO p VALUES (x, x * 10, 7)")], "SELECT f(1)"),
    (REPLACES_PARENT, [*CASCADE, W, PROCEDURE, ON_INSERT + "CALL q(NEW.a)"], INSERT),
    (REPLACES_PARENT, [*CASCADE, W, ON_INSERT + REPLACES, "CREATE VIEW vw AS SELECT * FROM w"], "INSERT INTO vw VALUES (1, 10)"),
    (REPLACES_PARENT, [*CASCADE, VIEW], "REPLACE INTO vp VALUES (1, 10, 7)"),
    ("incomplete_cascade", [*DEEP, W, ON_INSERT + "DELETE FROM p WHERE id = NEW.a"], INSERT),
    ("incomplete_cascade", [*DEEP, VIEW], "DELETE FROM vp WHERE id = 1"),
]  # fmt: skip
DELETED = "CREATE TRIGGER c_tr AFTER DELETE ON c FOR EACH ROW INSERT INTO log (a) VALUES (OLD.id)"
BOTH = "DELETE p, c FROM p JOIN c ON c.p = p.id WHERE p.id = NEW.a"
BY_ORDER = [
    ("multi_table_delete", [*CASCADE, LOG, W, DELETED, ON_INSERT + BOTH], INSERT),
    ("multi_table_update", JOINED, "UPDATE a JOIN b ON a.k = b.id SET a.v = 1, b.v = 1 WHERE b.v = 0"),
]  # fmt: skip
KEPT = [
    # A cascade fires no triggers, on neither.
    ([*CASCADE, LOG, DELETED], "DELETE FROM p WHERE id = 1"),
    ([*CASCADE, W, ON_INSERT + "DELETE FROM p WHERE id = NEW.a"], INSERT),
    ([*CASCADE, W, ON_INSERT + "REPLACE INTO c VALUES (NEW.a, 2)"], INSERT),
    ([*PARENT, ROWS[0], W, ON_INSERT + REPLACES], INSERT),
    ([*CASCADE, W, ON_INSERT + REPLACES], "UPDATE w SET b = 5"),
    ([*CASCADE, W, ON_INSERT + REPLACES, "DROP TRIGGER tr"], INSERT),
    ([*CASCADE, W, FUNCTION.format("REPLACE INTO p VALUES (x, x * 10, 7)"), "DROP FUNCTION f"], INSERT),
    (JOINED, "UPDATE a JOIN b ON a.k = b.id SET a.v = 1"),
    (JOINED, "UPDATE b SET v = 1 WHERE id > 2"),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def source(trial_servers: tuple[Server, Server]) -> Server:
    trial_servers[0].sql("SET GLOBAL log_bin_trust_function_creators = 1")
    return trial_servers[0]


@pytest.fixture(scope="module")
def native(module_servers: ServerFactory) -> Server:
    """A replica with the setting that makes it do as the source."""
    return module_servers("mysql97").start(server_id=3, options=[*REPLICA_OPTIONS, "--innodb-native-foreign-keys=ON"])


@pytest.mark.parametrize(("name", "made", "statement"), [*BY_FOREIGN_KEYS, *BY_ORDER])
def test_without_the_rule_other_rows_are_there_than_at_the_source(
    trial: TrialFactory, name: str, made: list[str], statement: str
) -> None:
    here = trial()
    file = here.write([*made, statement])
    assert here.apply(AsItIs(), file) == 0
    assert not here.equal
    reason = reason_of(MysqlRules(settings()), file)
    assert (reason.name, reason.error) == (name, 0)
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write([*made, statement], "ROW")) == 0  # rows need no rule
    assert here.equal


@pytest.mark.parametrize(("name", "made", "statement"), BY_FOREIGN_KEYS)
def test_a_replica_whose_innodb_carries_out_foreign_keys_has_the_rows_of_the_source(
    trial: TrialFactory, native: Server, name: str, made: list[str], statement: str
) -> None:
    here = trial(native)
    assert here.apply(MysqlRules(settings(foreign_keys="innodb")), here.write([*made, statement])) == 0
    assert here.equal
    assert here.whole


@pytest.mark.parametrize(("made", "statement"), KEPT)
def test_what_is_the_same_on_both_goes_on(trial: TrialFactory, made: list[str], statement: str) -> None:
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write([*made, statement])) == 0
    assert here.equal
    assert here.whole


def test_what_readiness_says_to_ask_the_source_names_what_the_binlogs_do_not_tell(
    trial: TrialFactory, source: Server
) -> None:
    trial().write([*CASCADE, W, ON_INSERT + REPLACES, FUNCTION.format("DELETE FROM p")])
    asked = [
        f"SELECT {words}" for words in re.split(r"SELECT |; |\. ", OLDER_TABLES.advice) if " FROM information_" in words
    ]
    assert [source.sql(words) for words in asked] == [[("d", "c", "p", "CASCADE")], [("d", "tr")], [("d", "f")]]
