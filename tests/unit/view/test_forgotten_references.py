"""Foreign keys that a source reads and forgets: no replica gets one."""

import pytest

from relay.view.stops.stop_reason import Untranslatable
from tests.support.rule_groups import RuleRun, Statement, settings

COLUMN = "CREATE TABLE c (a INT PRIMARY KEY, b INT{0}, c INT) ENGINE={1}"


def made(text: str, version: str = "5.6.24-log", **changes: object) -> str:
    """What becomes of a definition."""
    run = RuleRun(settings(**changes), version)
    for one in ("CREATE DATABASE d", "CREATE TABLE i (a INT) ENGINE=InnoDB", "CREATE TABLE m (a INT) ENGINE=MyISAM"):
        run.plan(one)
    ((shown,),) = run.plan(text)
    return shown.removeprefix("+")


@pytest.mark.parametrize(
    "clause",
    [
        " REFERENCES p(id)",
        " REFERENCES d.p (id, x)",
        " REFERENCES `p` (id) MATCH FULL ON DELETE CASCADE ON UPDATE SET NULL",
        " references p (id) on update no action on delete set default",
        " REFERENCES p",
        " REFERENCES p(id) -- which it is\n ON DELETE RESTRICT",
    ],
)
@pytest.mark.parametrize("engine", ["InnoDB", "MyISAM"])
def test_references_of_a_column_are_taken_away_where_the_source_forgets_them(clause: str, engine: str) -> None:
    assert made(COLUMN.format(clause, engine)) == COLUMN.format("", engine)
    kept = COLUMN.format(clause, engine)
    assert made(kept, target="mysql-8.4") == kept
    assert made(COLUMN.format(clause, engine), engines="innodb") == COLUMN.format("", "InnoDB")


def test_a_comment_for_servers_around_them_stays_whole() -> None:
    text = made(
        "CREATE TABLE c (a INT /*!50000 REFERENCES p(id) */, b INT REFERENCES p(id) /*!50000 ON DELETE CASCADE */)"
    )
    assert text.replace(" ", "") == "CREATETABLEc(aINT/*!50000*/,bINT/*!50000*/)"


def test_where_the_source_makes_foreign_keys_of_them_they_stay() -> None:
    kept = COLUMN.format(" REFERENCES p(id)", "InnoDB")
    assert made(kept, "9.7.4") == kept
    assert made(COLUMN.format(" REFERENCES p(id)", "MyISAM"), "9.7.4", engines="innodb") == COLUMN.format("", "InnoDB")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALTER TABLE i ADD COLUMN p INT REFERENCES p (id) AFTER a", "ALTER TABLE i ADD COLUMN p INT AFTER a"),
        ("ALTER TABLE i ADD (p INT REFERENCES p (id), q INT)", "ALTER TABLE i ADD (p INT, q INT)"),
        ("ALTER TABLE i CHANGE a b BIGINT REFERENCES p (id) FIRST, ADD c INT", "ALTER TABLE i CHANGE a b BIGINT FIRST, ADD c INT"),
        ("ALTER TABLE i MODIFY COLUMN a BIGINT NOT NULL REFERENCES p", "ALTER TABLE i MODIFY COLUMN a BIGINT NOT NULL"),
        ("CREATE TABLE c (a INT REFERENCES p) SELECT r.references a FROM r", "CREATE TABLE c (a INT) SELECT r.references a FROM r"),
        ("ALTER TABLE i DROP FOREIGN KEY f, ADD p INT REFERENCES p (id)", "ALTER TABLE i DROP FOREIGN KEY f, ADD p INT"),
        ("CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES i (a))", None),
        ("CREATE TABLE c (a INT COMMENT 'REFERENCES p (id)', `references` INT)", None),
        ("ALTER TABLE i ADD CONSTRAINT x FOREIGN KEY f (a) REFERENCES p (id) ON DELETE CASCADE", None),
    ],
)  # fmt: skip
def test_foreign_keys_of_tables_stay(text: str, expected: str | None) -> None:
    assert made(text) == (expected or text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ALTER TABLE m ADD FOREIGN KEY (a) REFERENCES i (a) ON DELETE CASCADE", "MyISAM reads FOREIGN KEY"),
        (
            "ALTER TABLE m ADD COLUMN b INT, ADD CONSTRAINT x FOREIGN KEY (b) REFERENCES i (a)",
            "MyISAM reads FOREIGN KEY",
        ),
        ("ALTER TABLE unheard ADD FOREIGN KEY (a) REFERENCES i (a)", "nobody knows the engine of d.unheard"),
    ],
)
def test_a_foreign_key_that_the_source_did_not_make_stops_a_view_that_would_make_it(text: str, told: str) -> None:
    with pytest.raises(Untranslatable) as raised:
        made(text, engines="innodb")
    assert raised.value.reason.name == "definition_not_for_innodb"
    assert told in raised.value.reason.text
    assert made(text) == text
    becomes = text.replace("ADD FOREIGN", "ENGINE=InnoDB, ADD FOREIGN")
    assert becomes == text or made(becomes, engines="innodb") == becomes


def test_what_cannot_be_read_is_not_taken_for_harmless() -> None:
    text = "CREATE TABLE c (a INT REFERENCES p (id) ON 'b)"
    with pytest.raises(Untranslatable) as raised:
        made(text)
    assert raised.value.reason.name == "definition_not_parsed"
    assert RuleRun(settings(target="mysql-8.4")).plan(Statement(text)) == [[text]]
