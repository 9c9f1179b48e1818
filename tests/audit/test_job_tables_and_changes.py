"""The audits `tables` and `changes`: real servers' rows, counted as mysqlbinlog -vv shows them."""

import json
import re
import struct
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from deploy.servers import Server
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditOptions
from relay.audit.runner.row_findings import ROW_FINDINGS
from relay.audit.runner.run_job import load_job, run_job
from relay.audit.shared.group_engines import changed_groups
from tests.audit.job_runs import run
from tests.audit.test_real_servers import mysqlbinlog
from tests.audit.test_rows import shop_binlog
from tests.audit.test_splits import rows, splits_of, write
from tests.conftest import ServerFactory
from tests.support.binlog_builder import INSIDE, BinlogBuilder
from tests.support.generation_filling import two_generations

VERBS = {"INSERT INTO": "inserted", "UPDATE": "updated", "DELETE FROM": "deleted"}


@pytest.fixture(scope="module")
def changed(module_servers: ServerFactory) -> tuple[Server, Path]:
    """A 9.7 that tells everything in its row events, and its finished binlog."""
    server = module_servers("mysql97").start(
        server_id=1, options=["--binlog-row-metadata=FULL", "--binlog-rows-query-log-events=ON"]
    )
    server.execute_many(
        [
            "CREATE DATABASE shop",
            "CREATE DATABASE other",
            "FLUSH BINARY LOGS",
            "CREATE TABLE shop.orders (id INT PRIMARY KEY, what VARCHAR(20), password VARCHAR(20))",
            "CREATE TABLE shop.log (line INT)",
            "CREATE TABLE other.t (id INT PRIMARY KEY)",
            "INSERT INTO shop.orders VALUES (1, 'tea', ''), (2, 'coffee', ''), (3, 'milk', '')",
            "UPDATE shop.orders SET password = 'hunter2' WHERE id = 1",
            "DELETE FROM shop.orders WHERE id > 1",
            "INSERT INTO shop.log VALUES (1), (2)",
            "INSERT INTO other.t VALUES (7)",
            "FLUSH BINARY LOGS",
        ]
    )
    return server, server.binlogs()[-2]


@pytest.mark.interop
def test_rows_of_each_table_are_counted_as_mysqlbinlog_shows_them(
    spark: Any, tmp_path: Path, changed: tuple[Server, Path]
) -> None:
    server, path = changed
    done = run(spark, "tables", path, tmp_path)
    said: Counter[tuple[str, str]] = Counter()
    for verb, table in re.findall(
        r"^### (INSERT INTO|UPDATE|DELETE FROM) (`\w+`.`\w+`)", mysqlbinlog(server, path), re.MULTILINE
    ):
        said[table.replace("`", ""), VERBS[verb]] += 1
    counted = done.parquet("by_table_and_hour")
    found = {(f"{row['schema']}.{row['table']}", name): row[name] for row in counted for name in VERBS.values()}
    assert {place: count for place, count in found.items() if count} == said
    assert all(row["bytes"] > 0 for row in counted)
    assert [row[0] for row in done.table("Tables")] == ["shop.orders", "shop.log", "other.t"]
    assert done.names == {"no_primary_key"}
    assert [place.text for place in done.finding("no_primary_key").places] == ["shop.log"]


@pytest.mark.interop
def test_tables_can_be_chosen(spark: Any, tmp_path: Path, changed: tuple[Server, Path]) -> None:
    done = run(spark, "tables", changed[1], tmp_path, tables=("other.*",))
    assert [row[0] for row in done.table("Tables")] == ["other.t"]
    assert done.outcome.result.findings == []
    assert done.outcome.result.verdict == "1 row of 1 table changed."


@pytest.mark.interop
def test_changes_of_a_table_come_in_order_with_their_statements(
    spark: Any, tmp_path: Path, changed: tuple[Server, Path]
) -> None:
    done = run(spark, "changes", changed[1], tmp_path, tables=("orders",), limit=4)
    rows = sorted(done.parquet("changes"), key=lambda row: (row["transaction"], row["row"]))
    assert [row["operation"] for row in rows] == ["insert"] * 3 + ["update"] + ["delete"] * 2
    assert json.loads(rows[3]["after"]) == {"id": 1, "what": "tea", "password": "hunter2"}
    assert rows[3]["statement"] == "UPDATE shop.orders SET password = '***' WHERE id = 1"
    assert rows[4]["statement"] == "DELETE FROM shop.orders WHERE id > 1"
    assert rows[0]["before"] is None
    assert len(done.table("Changes")) == 4
    assert done.finding("report_is_limited").count == 2
    assert done.names == set()


@pytest.mark.interop
def test_changes_of_a_time_are_those_of_that_time(spark: Any, tmp_path: Path, changed: tuple[Server, Path]) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    done = run(spark, "changes", changed[1], tmp_path, since=tomorrow)
    assert done.parquet("changes") == []
    assert done.outcome.result.verdict == "No row of these tables was changed at that time."


@pytest.mark.parametrize("name", ["changes", "tables"])
def test_rows_that_cannot_be_read_or_shown_as_they_are_are_findings(spark: Any, tmp_path: Path, name: str) -> None:
    binlog = BinlogBuilder().begin()
    tables = {
        b"json": (b"\x01\xf5\x01\x04\x01", b"\x02\0\0\0\xff\xff"),  # two bytes that are no JSON
        b"strange": (b"\x01\x99\x00\x01", b"\xff"),  # a type that nobody knows
        b"cut": (b"\x01\xfc\x01\x02\x01", b"\xff\x00x"),  # a BLOB of 255 bytes, of which there is one
        b"guessed": (b"\x01\xfc\x01\x02\x01", b"\x01\x00x"),  # a BLOB, or a TEXT of who knows which characters
        b"": (b"", b"\x00"),  # no Table_map
    }
    places = []
    for number, (table, (columns, value)) in enumerate(tables.items()):
        if table:
            head = struct.pack("<IHH", 42 + number, 0, 1) + b"\x04test\0" + bytes([len(table)]) + table + b"\0"
            binlog.event(19, head + columns, INSIDE)
        places.append(f"bin.000001:{binlog.size}")
        binlog.event(30, struct.pack("<IHHH", 42 + number, 0, 1, 2) + b"\x01\xff\0" + value, INSIDE)
    binlog.xid()
    done = run(spark, name, write(tmp_path, "bin.000001", binlog.data), tmp_path, tables=("test.*",))
    found = {
        finding.name: (str(finding.places[0]), finding.places[0].text)
        for finding in done.outcome.result.findings
        if finding.name in ROW_FINDINGS
    }
    assert found == {
        **({"value_malformed": (places[0], "test.json")} if name == "changes" else {}),
        "column_type_unknown": (places[1], "test.strange"),
        "row_malformed": (places[2], "test.cut"),
        **({"value_uncertain": (places[3], "test.guessed")} if name == "changes" else {}),
        "table_map_missing": (places[4], ""),
    }
    assert "rows_unreadable" in done.names
    assert "Not everything could be read" in done.page.text
    if name == "changes":
        others = run(spark, name, tmp_path / "bin.000001", tmp_path, tables=("shop.*",))
        assert others.names & set(ROW_FINDINGS) == {"table_map_missing"}
        assert [row["finding"] for row in done.parquet("changes")] == ["value_malformed", "value_uncertain"]


def test_what_is_written_while_the_audit_runs_is_not_in_any_part_of_it(spark: Any, tmp_path: Path) -> None:
    """An audit goes over the archive several times: what it counts, lists and writes are the same changes."""
    binlog = shop_binlog(3)
    write(tmp_path, "bin.000001", binlog.data)
    steps = []

    def grow(step: str) -> None:
        steps.append(step)
        write(tmp_path, f"bin.{1 + len(steps):06}", shop_binlog(2).data)

    outcome = run_job(spark, load_job("changes"), AuditOptions(str(tmp_path)), tmp_path / "out", grow)
    assert len(steps) >= 2
    written = spark.read.parquet(str(tmp_path / "out" / "changes.parquet"))
    assert {row["file"] for row in written.select("file").distinct().collect()} == {"bin.000001"}
    assert outcome.result.verdict.startswith(f"{written.count()} changes")


def test_a_file_that_is_purged_while_the_audit_runs_is_a_finding(spark: Any, tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path, f"bin.{number:06}", BinlogBuilder().transaction(20).data)

    def purge(step: str) -> None:
        (tmp_path / "bin.000001").unlink(missing_ok=True)

    outcome = run_job(spark, load_job("changes"), AuditOptions(str(tmp_path)), tmp_path / "out", purge)
    gone = {finding.name: [str(place) for place in finding.places] for finding in outcome.result.findings}
    assert gone.pop("value_uncertain")  # in the file that is left
    assert gone == {"file_purged": ["bin.000001"]}
    assert outcome.complete.startswith("Not everything could be read")


def test_tables_of_which_nobody_told_the_key_are_only_noted(spark: Any, tmp_path: Path) -> None:
    path = write(tmp_path, "bin.000001", BinlogBuilder().transaction(20).data)
    done = run(spark, "tables", path, tmp_path)
    assert done.names == set()
    assert [place.text for place in done.finding("primary_key_unknown").places] == ["test.t"]


async def test_what_a_later_source_repeats_is_counted_once(spark: Any, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    await (await two_generations(archive)).close()  # 11 transactions, two of them in both sources' files
    three = [
        row["end"] - row["position"] for row in rows(splits_of(archive / "mysql-bin.000001"), "events") if row["table"]
    ]
    (found,) = run(spark, "tables", archive, tmp_path).parquet("by_table_and_hour")
    assert found["bytes"] == sum(three) * 11 / 3
    groups = changed_groups(Audit(spark, AuditOptions(str(archive))))
    assert groups.judged.count() == groups.all.where("kind = 'row'").count() == 11
