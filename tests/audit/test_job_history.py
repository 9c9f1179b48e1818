"""The audit `history`, and all audits in one session, of what a real old server wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from relay.audit.history.row_asked import RowAsked, parse_row
from relay.audit.jobs import JOBS
from relay.audit.runner.audit_result import AuditOptions
from relay.audit.runner.run_all import run_all
from relay.audit.runner.run_job import load_job
from relay.commands.outcome import CommandFailed
from tests.audit.checked_page import CheckedPage
from tests.audit.job_runs import JobRun, run
from tests.conftest import ServerFactory

pytestmark = pytest.mark.interop

CHANGED = (
    "SET binlog_format = ROW",
    "CREATE TABLE nokey (a INT) ENGINE=InnoDB",
    "INSERT INTO nokey VALUES (1)",
    "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(40), total DECIMAL(10,2)) ENGINE=InnoDB",
    "INSERT INTO orders VALUES (7, 'another', 1), (41, '<script>alert(1)</script>', 1.50)",
    "UPDATE orders SET id = 42 WHERE id = 41",
    "UPDATE orders SET total = 2.50",
    "UPDATE orders SET id = 43, note = 'later' WHERE id = 42",
    "DELETE FROM orders WHERE id = 43",
    "INSERT INTO orders VALUES (43, 'never had 42', 0)",
    "TRUNCATE TABLE orders",
    "INSERT INTO orders VALUES (42, 'the second', 9)",
    "ALTER TABLE orders CHANGE note remark VARCHAR(80)",
    "SET binlog_format = STATEMENT",
    "UPDATE orders SET remark = 'hunter2' WHERE id = 42",
)


@pytest.fixture(scope="module")
def archive(module_servers: ServerFactory) -> Path:
    """A directory with one finished binlog."""
    server = module_servers("mysql56")
    server.start(server_id=7)
    server.execute_many(["CREATE DATABASE shop", "FLUSH BINARY LOGS"])
    connection = server.connect("shop")
    try:
        with connection.cursor() as cursor:
            for statement in CHANGED:
                cursor.execute(statement)
    finally:
        connection.close()
    server.sql("FLUSH BINARY LOGS")
    return server.binlogs()[-2]


def told(done: JobRun) -> list[tuple[Any, ...]]:
    return [row[2:6] for row in done.table("Changes")]


def test_a_row_is_followed_through_its_keys_and_shown_with_what_each_change_did(
    spark: Any, archive: Path, tmp_path: Path
) -> None:
    done = run(spark, "history", archive, tmp_path, row=parse_row("shop.orders", "42"))
    assert told(done) == [
        ("CREATE TABLE", None, None, None),
        ("insert", "id = 41", "id = 41, note = <script>alert(1)</script>, total = 1.50", 1),
        ("update", "id = 42", "id: 41 → 42", 1),
        ("update", "id = 42", "total: 1.50 → 2.50", 1),
        ("update", "id = 43", "id: 42 → 43, note: <script>alert(1)</script> → later", 1),
        ("delete", "id = 43", "id = 43, note = later, total = 2.50", 1),
        ("TRUNCATE TABLE", None, None, None),
        ("insert", "id = 42", "id = 42, note = the second, total = 9.00", 2),
        ("ALTER TABLE", None, None, None),
    ]
    assert [row["life"] for row in done.parquet("history")].count(1) == 5
    assert done.names == {"changed_by_statements"}
    assert "hunter2" not in done.page.text
    assert done.figures == {"changes": 6, "rows": 2, "keys": 3}
    assert done.summary["read"]["key"] == {"id": "42"}
    assert "script" not in done.page.tags
    # a column that had another name when the rows were written
    none = run(spark, "history", archive, tmp_path, row=RowAsked("shop", "orders", (("remark", "x"),)))
    assert none.outcome.result.verdict == "No row with remark = x of shop.orders was changed in these files."
    assert none.finding("key_not_known").count == 9


@pytest.mark.parametrize(
    ("table", "key", "why"),
    [
        ("shop.order", "42", r"nobody told the primary key of shop\.order"),
        ("shop.order", '{"id": 42}', r"nothing in these files is about a table shop\.order\. There are shop\.orders"),
        ("shop.orders", '{"number": 42}', "has no column 'number'; it has id, note, remark, total"),
    ],
)
def test_a_row_that_cannot_be_looked_for_is_refused_and_nothing_is_written(
    spark: Any, archive: Path, tmp_path: Path, table: str, key: str, why: str
) -> None:
    with pytest.raises(CommandFailed, match=why):
        run(spark, "history", archive, tmp_path, row=parse_row(table, key))
    assert list(tmp_path.iterdir()) == []


def test_keys_that_change_most_are_counted_and_tables_without_a_key_are_told(
    spark: Any, archive: Path, tmp_path: Path
) -> None:
    done = run(spark, "hot-keys", archive, tmp_path, tables=("shop.*",), limit=3)
    assert [row[:3] for row in done.table("Hot keys")] == [
        ("shop.orders", "id = 42", 3),
        ("shop.orders", "id = 41", 2),
        ("shop.orders", "id = 43", 2),
    ]
    assert done.outcome.result.verdict == "The row that changed most is id = 42: 3 of 9 changes of shop.orders."
    assert done.finding("rows_without_key").places[0].text == "shop.nokey: it has no primary key"
    assert done.figures == {"changes": 10, "changes_without_key": 1, "keys": 4}
    kept = {tuple(row["key"]): row for row in done.parquet("hot_keys")}
    assert set(kept) == {("42",), ("41",), ("43",)}
    assert [kept["42",][name] for name in ("inserted", "updated", "deleted", "keys_of_table")] == [1, 2, 0, 4]


def test_all_audits_in_one_session_are_those_of_each_alone(spark: Any, archive: Path, tmp_path: Path) -> None:
    """What they share is read once, and nothing else differs; a page over them leads to each."""
    out = tmp_path / "all"
    jobs = [load_job(name) for name in JOBS]
    steps: list[str] = []
    done = run_all(spark, jobs, AuditOptions(str(archive)), out, steps.append)
    summary = json.loads((out / "audit.json").read_text())
    ran = set(JOBS) - {"history", "changes", "hot-keys"}
    assert [one["job"] for one in summary["audits"]] == [name for name in JOBS if name in ran]
    assert set(summary["left_out"]) == {"history", "changes", "hot-keys"}
    assert (summary["found"], done.found, done.report) == (True, True, out / "index.html")
    # each of these goes over all events, and each is asked for by several
    assert [steps.count(one) for one in ("Checking every event", "Counting events", "Looking at how groups end")] == [
        1,
        1,
        1,
    ]
    index = (out / "index.html").read_text()
    assert all(f'href="{name}/report.html"' in index for name in ran)
    assert "It is about one row" in CheckedPage(index).text
    for name in ran:
        page = CheckedPage((out / name / "report.html").read_text())
        assert "All audits" in page.text
        assert (out / name / "audit.json").is_file()
    alone = run(spark, "mixing", archive, tmp_path)
    (within,) = (one for one in summary["audits"] if one["job"] == "mixing")
    assert {key: within[key] for key in ("figures", "findings", "verdict", "frames")} == {
        key: alone.summary[key] for key in ("figures", "findings", "verdict", "frames")
    }
