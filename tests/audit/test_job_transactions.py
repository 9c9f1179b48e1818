"""The audit `transactions`: sums as the reader of splits gives them, and each of its findings."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

import relay.audit.jobs.transactions as transactions_job
from relay.archive.archive import Archive
from relay.audit.jobs.transaction_waits import WAYS_ON
from relay.report.content import OverTime
from relay.view.translate.wait_counts import EVERY_CAUSE, OF_PLANS, WaitCounts
from tests.audit.job_runs import JobRun, run
from tests.audit.spark_environment import ROOT
from tests.audit.test_splits import add_transaction, rows, splits_of, write
from tests.support.archive_filling import fill
from tests.support.binlog_builder import INSIDE, BinlogBuilder
from tests.support.keyed_binlog import KeyedBinlog
from tests.support.view_making import made_view, settings, until_made

RECORDED = Path(__file__).resolve().parents[1] / "corpus" / "recorded"
BEGUN = 1_700_000_000


def test_sums_and_lists_are_those_of_the_transactions(spark: Any, tmp_path: Path) -> None:
    path = RECORDED / "mysql56.binlog"
    found = rows(splits_of(path), "transactions")
    done = run(spark, "transactions", path, tmp_path, limit=3)
    rates = done.parquet("rates")
    for name in ("events", "bytes", "statements", "rows_inserted", "rows_updated", "rows_deleted"):
        assert sum(row[name] for row in rates) == sum(row[name] for row in found)
    assert sum(row["transactions"] for row in rates) == len(found) == 14
    chart = next(section for section in done.outcome.result.sections if section.title == "Rates").charts[0]
    assert sum(value for series in chart.series.values() for _, value in series) == 14  # type: ignore[union-attr]
    largest = sorted(found, key=lambda row: (-row["bytes"], row["start"]))[:3]
    assert [row["start"] for row in done.parquet("largest")] == [row["start"] for row in largest]
    kinds = {(row[0], row[1]): row[2] for row in done.table("By kind, and by what closes them")}
    assert sum(kinds.values()) == 14
    assert kinds[("ddl", "STATEMENT")] == 3
    rolled_back = [row["start"] for row in found if row["rolled_back"]]
    assert done.names == {"rolled_back"}
    assert done.finding("rolled_back").count == len(rolled_back) == 1
    assert done.places("rolled_back") == [f"{path.name}:{rolled_back[0]}"]


def test_times_far_apart_and_transactions_without_tables(spark: Any, tmp_path: Path) -> None:
    """A chart has few steps whatever times are in a file, and all of them; --tables says what it leaves out."""
    binlog = BinlogBuilder(timestamp=BEGUN)
    for number in range(3):
        binlog.timestamp = BEGUN + number * 40 * 365 * 86400
        binlog.transaction(20)
    binlog.query("DELETE FROM t")
    done = run(spark, "transactions", write(tmp_path, "bin.000001", binlog.data), tmp_path, tables=("t",))
    chart = next(section for section in done.outcome.result.sections if section.title == "Rates").charts[0]
    assert isinstance(chart, OverTime)
    assert sum(value for series in chart.series.values() for _, value in series) == 3
    assert 80 * 365 * 86400 / chart.step_s <= 121
    assert (done.finding("tables_unknown").count, done.names) == (1, set())


def test_long_and_large_transactions_are_notes(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions_job, "_LARGE_BYTES", 5000)
    binlog = BinlogBuilder(timestamp=BEGUN)
    binlog.transaction(20)
    large = binlog.size
    add_transaction(binlog, 6000)
    long = binlog.size
    binlog.begin().table_map()
    binlog.timestamp += 4000
    binlog.rows().xid()
    write(tmp_path, "bin.000001", binlog.data)
    done = run(spark, "transactions", tmp_path / "bin.000001", tmp_path, tables=("test.*",))
    assert done.names == set()
    assert done.places("large_transaction") == [f"bin.000001:{large}"]
    assert done.places("long_transaction") == [f"bin.000001:{long}"]
    assert [row["start"] for row in done.parquet("longest")] == [long]
    none = run(spark, "transactions", tmp_path / "bin.000001", tmp_path, tables=("shop.*", "orders"))
    assert none.outcome.result.verdict == "No transaction of these tables was read."
    assert none.outcome.result.findings == []
    until = run(
        spark, "transactions", tmp_path / "bin.000001", tmp_path, since=datetime.fromtimestamp(BEGUN + 4000, UTC)
    )
    assert [row["start"] for row in until.parquet("largest")] == [long]


def test_a_cut_file_gives_what_is_whole_and_says_so(spark: Any, tmp_path: Path) -> None:
    binlog = BinlogBuilder()
    for _ in range(5):
        binlog.transaction()
    open_at = binlog.size
    binlog.begin().table_map().query("SELECT 1", INSIDE)
    write(tmp_path, "bin.000001", binlog.data[:-9])
    done = run(spark, "transactions", tmp_path / "bin.000001", tmp_path)
    assert {"event_truncated", "transaction_unfinished"} <= done.names
    assert (done.finding("dependencies_unread").severity, done.parquet("dependencies")[0]["transactions"]) == (
        "note",
        5,
    )
    assert done.places("transaction_unfinished") == [f"bin.000001:{open_at}"]
    assert "Not everything could be read" in done.page.text
    assert done.outcome.found


def counted(done: JobRun) -> dict[str, Any]:
    """As `WaitCounts.record` has it, in an order of its own."""
    (total,) = done.parquet("dependencies")
    return {**total, "serial": in_order(done.parquet("serial"))}


def in_order(serial: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(serial, key=lambda one: (one["why"], one["table"] or ""))


def keyed(number: int) -> bytes:
    """A file of which only the first defines the tables."""
    return KeyedBinlog(number, 600, begins=number == 1).make()


def test_dependencies_are_those_of_a_view_of_the_same_archive(spark: Any, tmp_path: Path) -> None:
    names = [f"mysql-bin.{number:06}" for number in (1, 2, 3)]
    archive = tmp_path / "source"

    async def made() -> WaitCounts | None:
        await fill(archive, *((name, keyed(number)) for number, name in enumerate(names, 1)))
        mirror = await Archive.open(archive)
        async with made_view(mirror, settings(dependencies="writeset")) as view:
            await until_made(view)
        await mirror.close()
        return view.status.waits

    of_view = asyncio.run(made())
    assert of_view is not None and of_view.width > 1.5
    expected = of_view.record()
    expected["serial"] = in_order(expected["serial"])
    done = run(spark, "transactions", archive, tmp_path)
    assert counted(done) == expected
    assert {row[:3] for row in done.table("Why they wait")} == {
        (one["why"], one["table"], one["transactions"]) for one in expected["serial"]
    }
    assert of_view.told() in done.page.text
    own = run(spark, "transactions", archive / names[1], tmp_path)  # of which nobody says what the tables are
    assert own.parquet("dependencies")[0]["beside_the_one_before"] < expected["beside_the_one_before"] / 10
    assert ("table_unknown", "d.a") in {row[:2] for row in own.table("Why they wait")}


def test_files_of_mariadb_have_no_dependencies_that_a_view_would_give(spark: Any, tmp_path: Path) -> None:
    done = run(spark, "transactions", RECORDED / "mariadb.binlog", tmp_path)
    assert not {"dependencies", "serial"} & set(done.summary["frames"])


def test_for_every_cause_there_is_a_way_on_here_and_in_the_documentation() -> None:
    """Also for those that plans of tables name."""
    plans = (ROOT / "relay" / "view" / "dependencies" / "key_plans.py").read_text()
    assert set(re.findall(r'serial_plan\("(\w+)"\)', plans)) == set(OF_PLANS)
    assert set(WAYS_ON) == set(EVERY_CAUSE)
    page = (ROOT / "docs" / "VIEWS.md").read_text()
    assert [why for why in EVERY_CAUSE if f"`{why}`" not in page] == []
