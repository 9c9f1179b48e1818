"""What a MySQL 9.7 would make otherwise than its MySQL 5.6 source, in silence, of statements that are hard to read."""

import pytest

from relay.view.rules.group import OutGroup, SourceGroup
from relay.view.rules.group_parts import read_parts
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.synthesized_events import changed
from tests.interop.conftest import TrialFactory
from tests.support.only_engines import OnlyEngines
from tests.support.rule_groups import settings
from tests.support.view_trial import reason_of
from tests.support.view_writer import AsItIs

pytestmark = pytest.mark.interop

TABLES = [
    "CREATE DATABASE d",
    "USE d",
    "CREATE TABLE i (a INT PRIMARY KEY, v INT) ENGINE=InnoDB",
    "CREATE TABLE m (a INT PRIMARY KEY, v INT) ENGINE=MyISAM",
    "CREATE TABLE n (a INT PRIMARY KEY, w INT UNIQUE) ENGINE=MyISAM",
    "INSERT INTO m VALUES (3, 30), (1, 10), (2, 20)",
    "INSERT INTO n VALUES (3, 3), (1, 1), (2, 2)",
]
CASCADES = "ON DELETE CASCADE"
NEWER = 90704
"""A version in GTID events, as replicas of a replica get it."""


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE m STRAIGHT_JOIN n ON m.a = n.a SET w = (@x := @x + v)", "row_order"),
        ("INSERT INTO i SELECT a, v FROM m ORDER BY NULL LIMIT 2", "row_order"),
        ("REPLACE INTO i SELECT 1, v FROM m", "row_order"),
        ("INSERT IGNORE INTO i SELECT 1, v FROM m", "row_order"),
        ("INSERT INTO i SELECT 1, v FROM m ON DUPLICATE KEY UPDATE v = VALUES(v)", "row_order"),
        ("INSERT INTO i SELECT 1, LEFT(GROUP_CONCAT(v), 2) FROM m", "row_order"),
        ("UPDATE IGNORE m SET a = a + 1", "row_order"),
        ("UPDATE m STRAIGHT_JOIN n ON m.a = n.a SET w = 50", "statement_failed_partway"),
    ],
)
def test_without_the_rule_innodb_ends_with_other_rows(trial: TrialFactory, statement: str, reason: str) -> None:
    here = trial()
    file = here.write([*TABLES, "SET @x = 0", statement])
    assert here.apply(OnlyEngines(), file) == 0
    assert not here.equal
    assert reason_of(MysqlRules(settings(engines="innodb")), file).name == reason
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write([*TABLES, "SET @x = 0", statement])) == 0
    assert here.equal


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        # Definitions are statements whatever the source's binlog_format.
        (["ALTER TABLE m ADD id INT NOT NULL AUTO_INCREMENT UNIQUE"], "row_order"),
        (["ALTER TABLE m ENGINE=InnoDB, ADD (w INT, id SERIAL)"], "row_order"),
        (["DELETE FROM m /*!40000LIMIT 1*/"], "row_order"),
        (["CREATE VIEW w AS SELECT * FROM m", "DELETE FROM w LIMIT 1"], "row_order"),
        (["CREATE VIEW w AS SELECT * FROM m", "INSERT INTO i SELECT 1, v FROM w LIMIT 1"], "row_order"),
        (
            ["CREATE TRIGGER t AFTER INSERT ON i FOR EACH ROW DELETE FROM m LIMIT 1", "INSERT INTO i VALUES (1, 1)"],
            "row_order",
        ),
        (["INSERT INTO i SELECT 1, a FROM m GROUP BY v > 0"], "row_order"),
        (["INSERT INTO i VALUES (1, 0)", "UPDATE m, i SET i.v = m.a WHERE m.v > i.v"], "row_order"),
        (
            [
                "CREATE TABLE f (a INT PRIMARY KEY, t TEXT, FULLTEXT (t)) ENGINE=MyISAM",
                "INSERT INTO f VALUES (1, 'the cat sat'), (2, 'one cat'), (3, 'words')",
                "DELETE FROM f WHERE MATCH (t) AGAINST ('cat')",
            ],
            "fulltext_search",
        ),
    ],
)
def test_without_the_rule_numbers_and_rows_behind_others_are_not_those_of_the_source(
    trial: TrialFactory, work: list[str], reason: str
) -> None:
    here = trial()
    file = here.write([*TABLES, *work])
    assert here.apply(OnlyEngines(), file) == 0
    assert not here.equal
    assert reason_of(MysqlRules(settings(engines="innodb")), file).name == reason


@pytest.mark.parametrize(
    "definition",
    [
        f"CREATE TABLE c (a INT PRIMARY KEY, b INT REFERENCES i (a) {CASCADES}) ENGINE=InnoDB",
        f"CREATE TABLE c (a INT PRIMARY KEY, b INT /*!50000REFERENCES i (a) {CASCADES}*/) ENGINE=InnoDB",
        f"CREATE TABLE c (a INT PRIMARY KEY, b INT /*!50000 REFERENCES i (a) {CASCADES} */) ENGINE=InnoDB",
        f"CREATE TABLE c (a INT PRIMARY KEY, b INT REFERENCES i (a) {CASCADES}) ENGINE=MyISAM",
    ],
)
@pytest.mark.parametrize("engines", ["keep", "innodb"])
def test_references_behind_a_column_are_forgotten_by_replicas_of_replicas_too(
    trial: TrialFactory, definition: str, engines: str
) -> None:
    work = [*TABLES, definition, "INSERT INTO i VALUES (1, 1)", "INSERT INTO c VALUES (1, 1)", "DELETE FROM i"]
    here = trial()
    file = here.write(work)
    plain = AsItIs() if engines == "keep" else _Replaced()
    assert here.apply(plain, file, version=NEWER) == 0
    assert here.equal == ("MyISAM" in definition and engines == "keep")
    here = trial()
    file = here.write(work)
    assert here.apply(MysqlRules(settings(engines=engines)), file, version=NEWER) == 0
    assert here.equal
    ((_, at_source),), ((_, made),) = (
        here.source.sql("SHOW CREATE TABLE d.c"),
        here.replica.sql("SHOW CREATE TABLE d.c"),
    )
    assert ("REFERENCES" in at_source, "REFERENCES" in made) == (False, False)


class _Replaced:
    """The word MyISAM becomes InnoDB."""

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        first = read_parts(group)[0]
        if first.query is None or b"MyISAM" not in first.query.raw:
            return AsItIs().plan(group)
        return [OutGroup([changed(first.event, first.query.with_text(first.query.raw.replace(b"MyISAM", b"InnoDB")))])]


def test_a_foreign_key_that_myisam_forgot_stops_a_view_that_would_make_it(trial: TrialFactory) -> None:
    work = [
        *TABLES,
        f"ALTER TABLE n ADD FOREIGN KEY (w) REFERENCES m (a) {CASCADES}",
        "DELETE FROM m WHERE a = 2",
    ]  # fmt: skip
    here = trial()
    file = here.write(work)
    assert here.apply(_Replaced(), file) == 0
    assert not here.equal
    assert reason_of(MysqlRules(settings(engines="innodb")), file).name == "definition_not_for_innodb"
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write(work)) == 0
    assert here.equal
