"""Rows between definitions that follow faster than anybody asks: read as the source showed them, or with a finding."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from deploy.servers import Server
from relay.binlog_tables.plan import recorded
from relay.binlog_tables.plan.read_finding import BinlogUnreadable
from relay.schema_history.schema_facts import DefinedSpan, Place
from tests.audit.test_splits import rows, splits_of
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.ddl_run import OPTIONS, Outcome, RelayedHistories, plain_directory

pytestmark = pytest.mark.interop

FAST = (
    "CREATE DATABASE shop CHARACTER SET latin1",
    "CREATE TABLE shop.a_fast (id INT PRIMARY KEY, u INT UNSIGNED, c VARCHAR(9), b BINARY(3))",
    "INSERT INTO shop.a_fast VALUES (1, 4294967295, 'ÿ', 'a')",
    "ALTER TABLE shop.a_fast ADD z INT UNSIGNED FIRST",
    "INSERT INTO shop.a_fast VALUES (4294967295, 2, 4294967294, 'y', 'b')",
)
SHOWN = [
    {"id": 1, "u": 4294967295, "c": "ÿ", "b": {"base64": "YQAA"}},
    {"z": 4294967295, "id": 2, "u": 4294967294, "c": "y", "b": {"base64": "YgAA"}},
]
WITHOUT_NAMES = [
    {"@1": 1, "@2": -1, "@3": {"base64": "/w=="}, "@4": "a"},
    {"@1": -1, "@2": 2, "@3": -2, "@4": "y", "@5": "b"},
]


def fast_rows(path: Path | str, **options: Any) -> list[dict[str, Any]]:
    found = rows(splits_of(path), "rows", "after", "finding", "named", "table", **options)
    return [row for row in found if row["table"] == "a_fast"]


def after(found: Sequence[dict[str, Any]]) -> list[Any]:
    return [json.loads(row["after"]) for row in found]


@pytest.fixture
def mysql56(servers: ServerFactory) -> Server:
    """A source that writes no names and no signs."""
    server = servers("mysql56").start(server_id=1, options=OPTIONS)
    server.execute_many(FAST)
    return server


def test_rows_between_a_create_and_an_alter_that_nobody_saw_are_right(mysql56: Server) -> None:
    found = fast_rows(mysql56.datadir)
    assert after(found) == SHOWN
    assert [(row["named"], row["finding"]) for row in found] == [("ddl", None)] * 2
    assert fast_rows(mysql56.datadir, failfast=True) == found


def test_without_the_statements_the_same_values_are_a_finding(mysql56: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_arguments: object) -> tuple[list[DefinedSpan], Place]:
        return [], (0, 0)

    monkeypatch.setattr(recorded, "definition_spans", nothing)
    recorded._told.clear()
    found = fast_rows(mysql56.datadir)
    assert after(found) == WITHOUT_NAMES  # wrong, all but the keys
    assert [(row["named"], row["finding"]) for row in found] == [("none", "value_uncertain")] * 2
    with pytest.raises(BinlogUnreadable, match=r"value_uncertain in mysql-bin\.000001 at"):
        fast_rows(mysql56.datadir, failfast=True)


def test_a_table_whose_create_is_not_there_has_no_names_and_its_guessed_values_are_a_finding(mysql56: Server) -> None:
    mysql56.execute_many(
        [
            "FLUSH BINARY LOGS",
            "INSERT INTO shop.a_fast VALUES (1, 3, 1, 'x', 'c')",
            "CREATE TABLE shop.numbers (a INT, b INT UNSIGNED)",
            "INSERT INTO shop.numbers VALUES (-1, 4294967295)",
            "PURGE BINARY LOGS TO 'mysql-bin.000002'",
            "ALTER TABLE shop.a_fast ADD y INT",
            "INSERT INTO shop.a_fast VALUES (1, 4, 1, 'x', 'c', 1)",
        ]
    )
    found = rows(splits_of(mysql56.datadir), "rows", "table", "after", "named", "finding")
    assert [(row["table"], row["named"], row["finding"]) for row in found] == [
        ("a_fast", "none", "value_uncertain"),
        ("numbers", "ddl", None),
        ("a_fast", "none", "value_uncertain"),
    ]
    assert json.loads(found[1]["after"]) == {"a": -1, "b": 4294967295}


@pytest.mark.parametrize("name", ["mysql97", "mariadb"])
def test_names_that_the_binlog_has_are_said_to_be_from_there(servers: ServerFactory, name: str) -> None:
    server = servers(name).start(server_id=1, options=[*OPTIONS, "--binlog-row-metadata=FULL"])
    server.execute_many(
        [
            "CREATE DATABASE d",
            "CREATE TABLE d.t (y YEAR, i INT, u INT UNSIGNED)",
            "INSERT INTO d.t VALUES (2024, -1, 4294967295)",
        ]
    )
    found = rows(splits_of(str(server.datadir / "mysql-bin.*")), "rows", "table", "after", "named", "finding")
    assert [row for row in found if row["table"] == "t"] == [
        {"table": "t", "after": '{"y":2024,"i":-1,"u":4294967295}', "named": "binlog", "finding": None}
    ]


def check(outcome: Outcome) -> None:
    assert outcome.wrong == []
    assert outcome.unnamed == []
    assert outcome.other_keys == []
    assert outcome.rows > 20
    assert outcome.tables > 0


@pytest.mark.parametrize("name", ["mysql56", "mysql97", "mariadb"])
def test_random_definitions_between_random_changes_change_no_value(servers: ServerFactory, name: str) -> None:
    server = servers(name).start(server_id=1, options=OPTIONS)
    for seed in (1, 2):
        check(plain_directory(server, seed, 80)[1])


def test_so_it_is_at_the_live_edge_after_an_outage_and_with_a_relay_that_is_killed(
    servers: ServerFactory, tmp_path: Path
) -> None:
    server = servers("mysql56").start(server_id=1, options=OPTIONS)
    histories = RelayedHistories(server, tmp_path / "relay")
    try:
        for seed in (3, 4, 5):
            check(histories.run(seed, 60)[1])
        wait_until(lambda: (histories.relay.archive / "source-schema.jsonl").exists(), "the tables are recorded")
    finally:
        if histories.relay.running:
            histories.relay.kill()
