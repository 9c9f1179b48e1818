"""The levels `statements` and `table_maps`: what the source ran, and which tables its rows were of."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from relay.binlog_tables.plan.read_finding import BinlogUnreadable
from relay.binlog_tables.plan.schemas import LEVELS
from tests.audit.test_splits import rows, splits_of, write
from tests.support.binlog_builder import CLOSES, OPENS, BinlogBuilder

RECORDED = Path(__file__).resolve().parents[1] / "corpus" / "recorded"
EVERY = sorted(RECORDED.glob("*.binlog"))


def listed(path: Path) -> list[list[str]]:
    lines = [line.split("\t") for line in path.with_suffix(".listing").read_text().splitlines()]
    return [line for line in lines if line[0].isdecimal()]


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_statements_and_tables_are_those_that_the_server_lists(path: Path) -> None:
    statements = rows(splits_of(path), "statements")
    kinds = Counter(line[1] for line in listed(path))
    assert Counter(row["type"] for row in statements) == Counter(
        {kind: kinds[kind] for kind in ("Query", "Query_compressed", "Execute_load_query") if kinds[kind]}
    )
    named = {re.search(r"\((.*?)\)", line[2])[1] for line in listed(path) if line[1] == "Table_map"}  # type: ignore[index]
    maps = rows(splits_of(path), "table_maps")
    assert {f"{row['schema']}.{row['table']}" for row in maps} == named
    assert not [row for row in statements + maps if row["finding"]]


def test_a_damaged_payload_is_a_row_or_an_error(tmp_path: Path) -> None:
    binlog = BinlogBuilder().query("SELECT 1").event(34, bytes(42), OPENS)
    binlog.event(40, b"\x02\x01\x07\x01\x01\x00\x00xxx", CLOSES)
    path = write(tmp_path, "bin.000001", binlog.data)
    found: list[dict[str, Any]] = rows(splits_of(path), "statements", "position", "finding", "finding_text")
    assert [(row["position"], row["finding"]) for row in found] == [
        (binlog.events[1].start, None),
        (binlog.events[3].start, "payload_unreadable"),
    ]
    assert "cannot be unpacked" in found[1]["finding_text"]
    with pytest.raises(BinlogUnreadable, match=f"payload_unreadable in bin.000001 at {binlog.events[3].start}"):
        rows(splits_of(path), "statements", failfast=True)


def test_a_file_that_ends_in_an_event_is_told(tmp_path: Path) -> None:
    binlog = BinlogBuilder().query("SELECT 1").query("SELECT 2")
    path = write(tmp_path, "bin.000001", binlog.data[:-5])
    found = rows(splits_of(path), "statements")
    assert [(row["digest_text"], row["finding"]) for row in found] == [("SELECT ?", None), (None, "event_truncated")]


def test_what_is_wrong_is_told_once_whatever_columns_are_asked_for(tmp_path: Path) -> None:
    binlog = BinlogBuilder().query("SELECT 1").query("SELECT 2").transaction()
    data = bytearray(binlog.data)
    for event in (binlog.events[1], binlog.events[-1]):  # one that is a statement, and one that is none
        data[event.start + 20] ^= 1
    path = write(tmp_path, "bin.000001", data)
    whole = rows(splits_of(path), "statements")
    assert [row["finding"] for row in whole].count("checksum_mismatch") == 2
    for column in LEVELS["statements"]:
        assert rows(splits_of(path), "statements", column) == [{column: row[column]} for row in whole]
