"""The same rules, asked of single statements."""

import pytest

from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.single_statement import SingleStatement, why_not
from tests.support.rule_groups import settings


def asked(rules: MysqlRules, text: str, **more: int) -> str | None:
    reason = why_not(rules, SingleStatement(text.encode(), "d", "5.6.24-log", **more))
    return reason.name if reason is not None else None


@pytest.mark.parametrize(
    ("text", "keep", "innodb"),
    [
        ("CREATE TABLE t (a INT) ENGINE=InnoDB", None, None),
        ("CREATE TABLE t ENGINE=MyISAM SELECT 1", "create_select", None),
        ("CREATE TABLE t (a INT, b INT AUTO_INCREMENT, KEY (a, b)) ENGINE=MyISAM", None, "definition_not_for_innodb"),
        ("UPDATE i, m SET i.a = 1, m.a = 1", "statement_mixes_engines", None),
        ("DELETE FROM m LIMIT 1", None, "row_order"),
        ("GRANT ALL ON *.* TO u", None, None),
    ],
)
def test_a_statement_by_itself_is_judged_as_in_a_group(text: str, keep: str | None, innodb: str | None) -> None:
    for engines, wanted in (("keep", keep), ("innodb", innodb)):
        rules = MysqlRules(settings(engines=engines))
        for definition in ("CREATE TABLE i (a INT) ENGINE=InnoDB", "CREATE TABLE m (a INT) ENGINE=MyISAM"):
            assert asked(rules, definition) is None
        assert asked(rules, text) == wanted


def test_what_a_refused_statement_defines_is_known_all_the_same() -> None:
    rules = MysqlRules(settings())
    assert asked(rules, "CREATE TABLE t (a INT) ENGINE=MyISAM PARTITION BY HASH (a)") == "partitions_not_supported"
    assert rules.wants_statements


def test_a_statement_that_failed_half_way_is_judged_by_its_error() -> None:
    rules = MysqlRules(settings(engines="innodb"))
    assert asked(rules, "INSERT INTO t VALUES (1), (1)", error=1062) == "failed_half_way"
