"""ON DELETE and ON UPDATE behind MATCH, which a real MySQL 5.6 forgets and a real MySQL 9.7 acts by: a replica that is promoted would
delete rows with their parents that the source refuses to delete. The same with parts of foreign keys in comments for servers."""

import pytest

from deploy.servers import Server
from relay.view.rules.group_rules import MysqlRules
from tests.interop.conftest import TrialFactory
from tests.support.rule_groups import settings
from tests.support.view_trial import ViewTrial, reason_of
from tests.support.view_writer import AsItIs

pytestmark = pytest.mark.interop

DATABASE = ["CREATE DATABASE d", "USE d", "CREATE TABLE p (id INT PRIMARY KEY, v INT)"]
KEY = "FOREIGN KEY (p) REFERENCES p (id)"
ACTIONS = "ON DELETE CASCADE ON UPDATE SET NULL"
CHILD = f"CREATE TABLE c (p INT, {KEY} MATCH FULL {ACTIONS})"
PLAIN = "CREATE TABLE c (p INT)"
ADDED = f"ALTER TABLE c ADD CONSTRAINT k {KEY} MATCH SIMPLE {ACTIONS}"
COPIED = f"ALTER TABLE c ADD {KEY} MATCH FULL {ACTIONS}, ALGORITHM = COPY"
UNCHECKED = "SET foreign_key_checks = 0"
FORGOTTEN = [
    [CHILD],
    [CHILD.replace("FULL", "PARTIAL").replace("ON UPDATE SET NULL", "")],
    [CHILD.replace("FULL", "/* all of it */ simple").replace(") MATCH", ")MATCH")],
    [UNCHECKED, CHILD],
    [PLAIN, ADDED],
    [PLAIN, f"ALTER TABLE c ADD q INT, ADD {KEY} ON DELETE CASCADE, ADD CONSTRAINT k {KEY} MATCH FULL {ACTIONS}"],
]
NOT_KNOWN = [
    [PLAIN, UNCHECKED, ADDED],
    [PLAIN, UNCHECKED, COPIED],
    [f"CREATE TABLE c (p INT, {KEY} /*!50000 MATCH FULL */ {ACTIONS})"],
]
COMMENTED = [
    [f"CREATE TABLE c (p INT, {KEY} /*!50000 ON DELETE CASCADE */)"],
    [f"CREATE TABLE c (p INT /*!50000 , {KEY} */)"],
    [f"CREATE TABLE c (p INT, /*!50000 CONSTRAINT named */ {KEY})"],
    [PLAIN, f"ALTER TABLE c ADD {KEY} /*!50000 ON DELETE CASCADE */"],
]


def rules_of_keys(server: Server) -> list[tuple[object, ...]]:
    """Each foreign key with what it does; a new server says NO ACTION where nothing is said, which is RESTRICT."""
    return server.sql(
        "SELECT table_name, constraint_name, REPLACE(delete_rule, 'NO ACTION', 'RESTRICT'), "
        "REPLACE(update_rule, 'NO ACTION', 'RESTRICT') FROM information_schema.referential_constraints "
        "WHERE constraint_schema = 'd' ORDER BY table_name, constraint_name"
    )


def same_keys(here: ViewTrial) -> bool:
    assert rules_of_keys(here.source)
    return rules_of_keys(here.source) == rules_of_keys(here.replica)


@pytest.mark.parametrize("work", FORGOTTEN)
def test_a_replica_has_the_foreign_keys_that_the_source_made(trial: TrialFactory, work: list[str]) -> None:
    here = trial()
    assert here.apply(AsItIs(), here.write([*DATABASE, *work])) == 0
    assert not same_keys(here)
    here = trial()
    assert here.apply(MysqlRules(settings()), here.write([*DATABASE, *work])) == 0
    assert same_keys(here)
    assert here.whole


@pytest.mark.parametrize("work", NOT_KNOWN)
def test_where_the_text_does_not_tell_what_the_source_made_the_view_stops(trial: TrialFactory, work: list[str]) -> None:
    here = trial()
    assert reason_of(MysqlRules(settings()), here.write([*DATABASE, *work])).name == "definition_not_parsed"


@pytest.mark.parametrize("work", COMMENTED)
def test_a_foreign_key_in_a_comment_would_differ_and_the_view_stops(trial: TrialFactory, work: list[str]) -> None:
    here = trial()
    file = here.write([*DATABASE, *work])
    assert here.apply(AsItIs(), file) == 0
    assert rules_of_keys(here.source) != rules_of_keys(here.replica)
    assert reason_of(MysqlRules(settings()), file).name == "definition_not_parsed"


def test_what_the_source_makes_of_a_key_without_checks_hangs_on_how_it_alters_the_table(trial: TrialFactory) -> None:
    seen = []
    for work in NOT_KNOWN[:2]:
        here = trial()
        here.write([*DATABASE, *work])
        seen += [rule for _table, _name, *rule in rules_of_keys(here.source)]
    assert seen == [["CASCADE", "SET NULL"], ["RESTRICT", "RESTRICT"]]


def test_a_replace_of_a_parent_goes_on_as_at_the_source(trial: TrialFactory) -> None:
    here = trial()
    rows = ["INSERT INTO p VALUES (1, 0), (2, 0)", "INSERT INTO c VALUES (1)", "REPLACE INTO p VALUES (2, 5)"]
    refused = "REPLACE INTO p VALUES (1, 5)"  # no row goes with it at the source
    assert here.apply(MysqlRules(settings()), here.write([*DATABASE, CHILD, *rows, refused])) == 0
    assert here.equal
    assert same_keys(here)
    assert here.whole
