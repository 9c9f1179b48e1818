"""Foreign keys in comments for servers, which InnoDB of a source before 8.0 passes over and newer servers act by: the view stops."""

import pytest

from relay.view.stops.stop_reason import Untranslatable
from tests.support.rule_groups import RuleRun, Statement, settings

KEY = "FOREIGN KEY (p) REFERENCES p (id)"
COMMENTED = [
    f"CREATE TABLE c (p INT, {KEY} /*!50000 ON DELETE CASCADE */, q INT)",
    f"CREATE TABLE c (p INT, {KEY} ON DELETE /*! CASCADE */)",
    f"CREATE TABLE c (p INT, {KEY} ON DELETE /* x */ /*!50000 SET NULL*/)",
    f"CREATE TABLE c (p INT, {KEY} /*!80000 ON DELETE CASCADE */)",  # a newer server reads it
    f"CREATE TABLE c (p INT, {KEY} /*!50000 MATCH FULL */)",
    f"CREATE TABLE c (p INT /*!50000 , {KEY} */)",
    f"CREATE TABLE c (p INT, /*!50000 CONSTRAINT k */ {KEY})",
    "CREATE TABLE c (p INT, FOREIGN KEY /*!50000 i */ (p) REFERENCES p (id))",
    "CREATE TABLE c (p INT, FOREIGN KEY (p) /*!50000 REFERENCES p (id) */)",
    "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (/*! id */))",
    f"ALTER TABLE c ADD q INT, ADD /*!50000 CONSTRAINT */ {KEY}",
    f"ALTER TABLE c /*!50000 ADD {KEY} */",
    "ALTER TABLE c /*!50000 DROP FOREIGN KEY k */",
    "ALTER TABLE c /*!50000DROP FOREIGN KEY k*/",
    f"CREATE TABLE c (p INT, {KEY}/*!50000ON DELETE CASCADE*/)",
    f"/*!50000 CREATE TABLE c (p INT, {KEY}) */",
    f"CREATE TABLE c (p INT, {KEY}) /*! COMMENT 'x' */ COMMENT 'y",  # cannot be read
]
NO_KEYS = [
    f"/*!50000 CREATE */ TABLE c (p INT, {KEY} ON DELETE CASCADE)",
    f"CREATE TABLE c (p INT, {KEY} /* ON DELETE CASCADE */, q INT) /*!40100 DEFAULT CHARSET=latin1 */",
    f"CREATE TABLE c (p INT, q INT /*!50606 STORAGE DISK */, {KEY} ON DELETE CASCADE, r INT /*!50606 STORAGE DISK */)",
    f"CREATE TABLE c (p INT, -- /*! it's\n {KEY} # /*!50000 x\n ON DELETE CASCADE)",
    f"CREATE TABLE c (p INT, {KEY}) COMMENT '/*!50000 ON DELETE CASCADE */'",
    "CREATE TABLE c (p INT) /*!50100 PARTITION BY LIST (p) (PARTITION `match` VALUES IN (1) COMMENT 'REFERENCES') */",
    "CREATE TABLE c (a TIMESTAMP /*!40100 ON UPDATE CURRENT_TIMESTAMP */, b DATETIME /*!50605 ON UPDATE NOW() */)",
    "CREATE TABLE c (p INT /*!50000 REFERENCES p (id) ON DELETE CASCADE */)",
    f"ALTER TABLE c ADD {KEY} ON DELETE CASCADE, /*!50000 ADD q INT */",
    "/*!40101 SET @a = 1 */",
]


def made(text: str, version: str = "5.6.24-log", target: str = "mysql-8.4") -> str:
    """What becomes of a statement."""
    ((shown,),) = RuleRun(settings(target=target), version).plan(Statement(text))
    return shown.removeprefix("+")


@pytest.mark.parametrize("target", ["mysql-8.0", "mysql-9.7"])
@pytest.mark.parametrize("text", COMMENTED)
def test_a_foreign_key_in_a_comment_stops_the_view(text: str, target: str) -> None:
    with pytest.raises(Untranslatable) as raised:
        made(text, target=target)
    assert raised.value.reason.name == "definition_not_parsed"


@pytest.mark.parametrize("text", NO_KEYS)
def test_comments_elsewhere_do_not(text: str) -> None:
    assert made(text) == text


@pytest.mark.parametrize("text", COMMENTED[:-1])
def test_servers_that_read_the_same_keep_it(text: str) -> None:
    assert made(text, target="mysql-5.7") == text
    assert made(text, "8.0.36") == text
