"""The audit `definitions`: what statements changed in tables, and what is another in the end."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from tests.audit.job_runs import run
from tests.audit.test_job_mixing import statement
from tests.audit.test_splits import write
from tests.support.binlog_builder import ALONE, BinlogBuilder

BEGUN = 1_700_000_000
DEFINED = (
    "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(9)) ENGINE=MyISAM",
    "INSERT INTO orders VALUES (1, 'hunter2')",
    "CREATE DATABASE IF NOT EXISTS other",
    "/* app */ ALTER TABLE test.orders ADD total DECIMAL(10,2) NOT NULL AFTER id",
    "CREATE UNIQUE INDEX by_note ON orders (note)",
    "TRUNCATE TABLE `orders`",
    "CREATE TABLE short_lived (a INT)",
    "RENAME TABLE orders TO bills",
    "DROP TABLE IF EXISTS short_lived",
    "CREATE TABLE copied SELECT 1 AS a",
    "CREATE TABLE t SOMEHOW",
)


def test_definitions_stand_in_order_with_what_they_changed(spark: Any, tmp_path: Path) -> None:
    binlog = BinlogBuilder(timestamp=BEGUN)
    places = {}
    for number, text in enumerate(DEFINED):
        binlog.timestamp = BEGUN + number
        places[text] = binlog.size
        statement(binlog, text, ALONE, 1064 if "SOMEHOW" in text else 0)
    path = write(tmp_path, "bin.000001", binlog.data)
    done = run(spark, "definitions", path, tmp_path)
    told = [(row["what"], row["table"], row["changes"]) for row in done.parquet("definitions")]
    expected: list[tuple[str, str | None, list[str] | None]] = [
        ("CREATE TABLE", "test.orders", ["columns id int, note varchar(9); primary key id; MyISAM"]),
        ("CREATE DATABASE", None, None),
        ("ALTER TABLE", "test.orders", ["column total decimal(10,2) added behind id"]),
        ("CREATE INDEX", "test.orders", ["unique key by_note (note) added"]),
        ("TRUNCATE TABLE", "test.orders", None),
        ("CREATE TABLE", "test.short_lived", ["columns a int; no primary key"]),
        (
            "RENAME TABLE",
            "test.bills",
            ["columns id int, total decimal(10,2), note varchar(9); primary key id; MyISAM"],
        ),
        ("RENAME TABLE", "test.orders", ["not known any more"]),
        ("DROP TABLE", "test.short_lived", ["not known any more"]),
        ("CREATE TABLE", "test.copied", None),
        ("CREATE TABLE", "test.t", None),
    ]
    assert sorted(told, key=str) == sorted(expected, key=str)
    timeline = done.table("Timeline")
    assert done.figures["definitions"] == 11
    assert [row[0] for row in timeline if row[2] == "ALTER TABLE"] == [f"bin.000001:{places[DEFINED[3]]}"]
    assert done.names == set()
    assert done.places("definition_not_followed") == [f"bin.000001:{places[DEFINED[-2]]}"]
    assert (done.finding("definition_failed").count, done.places("definition_failed")) == (
        1,
        [f"bin.000001:{places[DEFINED[-1]]}"],
    )
    assert "hunter2" not in done.page.text

    since, until = (datetime.fromtimestamp(BEGUN + second, UTC) for second in (2, 5))
    part = run(spark, "definitions", path, tmp_path, since=since, until=until, tables=("orders",))
    section = next(one for one in part.outcome.result.sections if one.title == "At the end and at the beginning")
    assert [(row[0], row[3]) for row in section.tables[0].rows] == [
        ("test.orders", "column total decimal(10,2) added behind id; unique key by_note (note) added")
    ]
