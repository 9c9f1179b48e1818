"""ON DELETE and ON UPDATE behind MATCH, of which a source before 8.0 makes nothing: no replica acts by them."""

import pytest

from relay.view.stops.stop_reason import Untranslatable
from tests.support.rule_groups import RuleRun, Statement, settings

UNCHECKED = 1 << 26
CREATED = "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id){0}, KEY (p))"
ADDED = "ALTER TABLE c ADD q INT, ADD CONSTRAINT k FOREIGN KEY i (p) REFERENCES d.p (id){0}"
COLUMN = "CREATE TABLE c (p INT REFERENCES p (id){0}, q INT)"
MATCH = " MATCH FULL ON DELETE CASCADE ON UPDATE SET NULL"


def made(text: str, version: str = "5.6.24-log", *, checked: bool = True, **changes: object) -> str:
    """What becomes of a definition."""
    run = RuleRun(settings(**changes), version)
    ((shown,),) = run.plan(Statement(text, options=0 if checked else UNCHECKED))
    return shown.removeprefix("+")


@pytest.mark.parametrize("target", ["mysql-5.7", "mysql-8.0", "mysql-8.4", "mysql-9.7"])
@pytest.mark.parametrize("form", [CREATED, ADDED])
@pytest.mark.parametrize(
    ("clause", "stays"),
    [
        (MATCH, ""),
        (" match simple on delete no action", ""),
        (" MATCH PARTIAL ON UPDATE CASCADE", ""),
        (" ON DELETE CASCADE MATCH FULL ON UPDATE CASCADE", " ON DELETE CASCADE"),  # as 5.1 could be told
        (" MATCH FULL", None),
        (" ON DELETE CASCADE", None),
        ("", None),
    ],
)
def test_what_the_source_forgets_is_taken_out(form: str, clause: str, stays: str | None, target: str) -> None:
    assert made(form.format(clause), target=target) == form.format(clause if stays is None else stays)


def test_a_parent_or_a_column_called_match_is_none() -> None:
    text = "CREATE TABLE c (`match` INT, FOREIGN KEY (`match`) REFERENCES `match` (`match`) ON DELETE CASCADE)"
    assert made(text) == text
    text = "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES d.match (id) ON DELETE CASCADE)"
    assert made(text) == text


@pytest.mark.parametrize("version", ["8.0.11", "8.4.3", "9.7.4"])
@pytest.mark.parametrize("form", [CREATED, ADDED])
def test_a_source_that_acts_by_it_keeps_it(form: str, version: str) -> None:
    for checked in (True, False):
        assert made(form.format(MATCH), version, checked=checked) == form.format(MATCH)


@pytest.mark.parametrize("version", ["5.0.96-log", "5.1.73-log", "5.5.62-log"])
def test_a_source_that_copies_every_table_that_it_alters_forgets_it_always(version: str) -> None:
    for checked in (True, False):
        assert made(ADDED.format(MATCH), version, checked=checked) == ADDED.format("")


def test_behind_a_column_all_of_it_goes_or_stays() -> None:
    assert made(COLUMN.format(MATCH)) == "CREATE TABLE c (p INT, q INT)"
    assert made(COLUMN.format(MATCH), target="mysql-8.4") == COLUMN.format(MATCH)


@pytest.mark.parametrize("target", ["mysql-8.4", "mysql-9.7"])
@pytest.mark.parametrize(
    ("text", "checked"),
    [
        (ADDED.format(MATCH), False),
        (CREATED.format(" /*!50000 MATCH FULL */ ON DELETE CASCADE"), True),
        ("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) MATCH FULL ON DELETE CASCADE) COMMENT 'x", True),
    ],
)
def test_where_nobody_knows_what_the_source_made_the_view_stops(text: str, checked: bool, target: str) -> None:
    with pytest.raises(Untranslatable) as raised:
        made(text, checked=checked, target=target)
    assert raised.value.reason.name == "definition_not_parsed"


def test_an_older_replica_makes_of_it_what_the_source_made() -> None:
    assert made(ADDED.format(MATCH), checked=False, target="mysql-5.7") == ADDED.format(MATCH)
