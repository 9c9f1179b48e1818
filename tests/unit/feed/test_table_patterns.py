"""Which tables a pattern names, also where names have dots."""

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[feed]'")

from relay.feed.lake.lake_names import namespace
from relay.feed.settings.fed_tables import FedTables


@pytest.mark.parametrize(
    ("pattern", "named", "others"),
    [
        ("*.*", [("a", "b"), ("a.b", "c")], [("mysql", "user")]),
        ("a.*", [("a", "b"), ("a", "b.c")], [("a.b", "c"), ("ab", "c")]),
        ("a.b.*", [("a.b", "c"), ("a", "b.c")], [("a", "c"), ("a.c", "b")]),
        ("a.b", [("a", "b")], [("a", "B"), ("a.b", "a.b")]),
        ("*.t", [("a", "t"), ("a.b", "t")], [("a", "t.u")]),
        ("s?.t*", [("s1", "t.u")], [("s", "t")]),
    ],
)
def test_a_pattern_names_schema_and_table_each(
    pattern: str, named: list[tuple[str, str]], others: list[tuple[str, str]]
) -> None:
    choice = FedTables((pattern,))
    assert [choice(key) for key in named] == [True] * len(named)
    assert [choice(key) for key in others] == [False] * len(others)
    assert not any(map(FedTables(("*.*",), (pattern,)), named))


@pytest.mark.parametrize(
    ("patterns", "schemas"),
    [(["shop.*", "crm.t"], ["crm", "shop"]), (["a.b.*"], ["a", "a.b"]), (["shop.*", "*.t"], None), (["a.b*.t"], None)],
)
def test_rows_are_read_of_each_schema_that_a_pattern_may_name(patterns: list[str], schemas: list[str] | None) -> None:
    assert FedTables(tuple(patterns)).schemas == schemas


def test_no_two_of_icebergs_namespaces_are_one() -> None:
    names = ["shop", "shop_", "binlog_relay", "binlog_relay_"]
    names += [f"{one}__changes{end}" for one in names for end in ("", "_", "__", "__changes")]
    made = [namespace(kind, one) for kind in ("current", "changes") for one in names]
    assert len({*made, "binlog_relay"}) == len(made) + 1
    assert (namespace("current", "shop"), namespace("changes", "shop")) == ("shop", "shop__changes")
