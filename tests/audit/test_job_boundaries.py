"""The audit `boundaries`: each of its findings, and an archive in which there is nothing to find."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from protocol.kernel.ingest import Ingest
from tests.audit.job_runs import run
from tests.audit.test_splits import write
from tests.support.archive_filling import fill
from tests.support.binlog_builder import INSIDE, BinlogBuilder

RECORDED = Path(__file__).resolve().parents[1] / "corpus" / "recorded"


def stamped(data: bytes | bytearray) -> bytearray:
    """The same file as a relay stamps it."""
    ingest = Ingest(packets=False, stamp=True)
    ingest.begin_file(4)
    buffer = bytearray(data[4:])
    assert ingest.feed(buffer, 0, len(buffer)) < 16
    assert ingest.consumed == len(buffer)
    return bytearray(data[:4]) + buffer


def ordinary(transactions: int = 3) -> BinlogBuilder:
    binlog = BinlogBuilder()
    for _ in range(transactions):
        binlog.transaction(20, 30)
    return binlog.ddl()


async def test_a_stamped_archive_has_nothing_to_find(spark: Any, tmp_path: Path) -> None:
    binlog = ordinary()
    await fill(tmp_path / "archive", ("bin.000001", stamped(binlog.data)))
    done = run(spark, "boundaries", tmp_path / "archive", tmp_path)
    assert done.outcome.result.findings == []
    assert done.outcome.result.verdict == "17 events, 17 stamps: no boundary is wrong."
    assert "All bytes of this file were read." in done.page.text
    assert done.table("By file") == [("bin.000001", 17, 17, 0, 0)]
    counted = {(row["type"], row["boundary"]): row["events"] for row in done.parquet("by_file_and_type")}
    assert counted[("Xid", "End Transaction")] == 3
    assert sum(counted.values()) == len(binlog.events)


def test_files_of_real_servers_have_no_wrong_boundary(spark: Any, tmp_path: Path) -> None:
    done = run(spark, "boundaries", RECORDED / "*.binlog", tmp_path)
    assert done.names == set()
    assert [finding.name for finding in done.outcome.result.findings] == ["never_stamped"]


def test_stamps_against_the_inference_and_stretches_without_stamps_are_found(spark: Any, tmp_path: Path) -> None:
    binlog = ordinary(2)
    first_xid = next(event for event in binlog.events if event.kind == 16)
    inside = 4
    begun = binlog.size
    binlog.event(2, _query("BEGIN"), "opens", flags=3 << 10).table_map()
    wrong = binlog.size
    binlog.event(16, bytes(8), "closes", flags=inside << 10)
    binlog.query("COMMIT", INSIDE)
    write(tmp_path, "bin.000001", binlog.data)
    write(tmp_path, "bin.000002", ordinary(1).data)
    done = run(spark, "boundaries", tmp_path / "bin.*", tmp_path)
    assert first_xid.end < begun
    assert done.names == {"stamp_differs", "unstamped_stretch"}
    assert done.places("stamp_differs") == [f"bin.000001:{wrong}"]
    assert (
        done.finding("stamp_differs").places[0].text
        == "Xid is stamped Inside Transaction, by its content it is End Transaction"
    )
    stretches = [
        (row["file"], row["position"], row["end"], row["events"]) for row in done.parquet("unstamped_stretches")
    ]
    assert stretches[0] == ("bin.000001", 4, begun, 12)
    assert stretches[-1] == ("bin.000002", 4, None, 7)
    assert done.finding("unstamped_stretch").count == len(stretches)


def _query(text: str) -> bytes:
    return b"\x07\0\0\0\0\0\0\0\x04\0\0\0\0test\0" + text.encode()


def test_a_transition_that_cannot_be_names_both_sides(spark: Any, tmp_path: Path) -> None:
    binlog = ordinary(1)
    stray = binlog.size
    binlog.query("COMMIT", INSIDE).transaction()
    binlog.begin().table_map()
    again = binlog.size
    binlog.query("BEGIN", INSIDE).rows()
    write(tmp_path, "bin.000001", binlog.data)
    write(tmp_path, "bin.000002", ordinary(1).data)
    done = run(spark, "boundaries", tmp_path / "bin.*", tmp_path, limit=1)
    assert done.names == {"boundary_violation", "transaction_unfinished"}
    found = done.finding("boundary_violation")
    assert (found.count, [str(place) for place in found.places]) == (2, [f"bin.000001:{stray}"])
    assert found.places[0].text == "Query: unable to change boundary parser from Self Contained to End Transaction"
    assert "1 row more left out by --limit." in done.page.text
    full = run(spark, "boundaries", tmp_path / "bin.000001", tmp_path).finding("boundary_violation")
    assert str(full.places[1]) == f"bin.000001:{again}"
    assert full.places[1].text == "Query: unable to change boundary parser from Inside Transaction to Start Transaction"
    assert done.table("By file")[0][0] == "bin.000001"


def test_what_cannot_be_read_is_a_finding_of_every_job(spark: Any, tmp_path: Path) -> None:
    binlog = ordinary(5)
    data = bytearray(binlog.data)
    data[binlog.events[8].start + 9 : binlog.events[8].start + 13] = b"\x01\0\0\0"
    write(tmp_path, "bin.000001", data)
    write(tmp_path, "bin.000002", ordinary().data[:-9])
    write(tmp_path, "bin.000003", b"\xfdbin" + bytes(100))
    done = run(spark, "boundaries", tmp_path / "bin.*", tmp_path)
    assert {"event_length_wrong", "event_truncated", "file_encrypted"} <= done.names
    assert done.places("event_length_wrong") == [f"bin.000001:{binlog.events[8].start}"]
    assert "Not everything could be read" in done.page.text
    written = {(row["name"], row["file"], row["position"]) for row in done.parquet("findings")}
    assert ("event_length_wrong", "bin.000001", binlog.events[8].start) in written
