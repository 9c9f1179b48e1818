"""Changed rows as the kernel's columns: images as JSON, statements, positions, and what cannot be read."""

import json
from pathlib import Path
from typing import Any

import pytest

from protocol.binlog.column_description import ColumnDescription, encode_columns
from tests.support.kernel_builds import KernelBuild, builds
from tests.support.kernel_columns import changed_rows

RECORDED = Path(__file__).resolve().parents[2] / "corpus" / "recorded"
BUILDS = pytest.mark.parametrize("build", builds(), ids=lambda build: str(build.name))


def recording(name: str) -> bytes:
    return (RECORDED / f"{name}.binlog").read_bytes()


def events_of(data: bytes) -> list[tuple[int, int]]:
    """Offset and type of each event."""
    found, at = [], 4
    while at < len(data):
        found.append((at, data[at + 4]))
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    return found


def shown(rows: list[dict[str, Any]], build: KernelBuild) -> list[tuple[str, str, Any, Any]]:
    """Operation, table, and both images as values."""
    return [
        (
            build.row_columns.OPERATIONS[row["operation"]],
            row["table"],
            *(json.loads(row[name]) if row[name] else None for name in ("before", "after")),
        )
        for row in rows
    ]


@BUILDS
def test_rows_have_their_images_their_statement_and_their_gtid(build: KernelBuild) -> None:
    result = changed_rows(build, recording("mariadb118"))
    assert result.findings == 0
    assert shown(result.rows, build)[:3] == [
        ("insert", "trx", None, {"@1": 3, "@2": "four"}),
        ("insert", "trx", None, {"@1": 4, "@2": "five"}),
        ("update", "nontrx", {"@1": 1, "@2": "two"}, {"@1": 1, "@2": "six"}),
    ]
    assert [row["statement"] for row in result.rows[:3]] == [
        "INSERT INTO trx (b) VALUES ('four'), ('five')",
        "INSERT INTO trx (b) VALUES ('four'), ('five')",
        "UPDATE nontrx SET b = 'six'",
    ]
    assert [(row["gtid"], row["row"]) for row in result.rows[:3]] == [("0-7-7", 0), ("0-7-7", 1), ("0-7-8", 0)]


@BUILDS
def test_batches_and_cuts_change_nothing(build: KernelBuild) -> None:
    data = recording("mariadb")
    whole = changed_rows(build, data)
    small = changed_rows(build, data, capacity=2, cuts=range(4, len(data), 700))
    assert small.batches > whole.batches
    assert small.rows == whole.rows


@BUILDS
def test_compressed_rows_are_opened(build: KernelBuild) -> None:
    result = changed_rows(build, recording("mariadb-compressed"))
    assert result.findings == 0
    assert shown(result.rows, build)[:2] == [
        ("insert", "trx", None, {"@1": 1, "@2": "x" * 1500}),
        ("insert", "trx", None, {"@1": 2, "@2": "a"}),
    ]


@BUILDS
def test_columns_have_the_names_that_were_described(build: KernelBuild) -> None:
    asked = []

    def describe(schema: bytes, table: bytes, types: bytes) -> bytes | None:
        asked.append((schema, table, types))
        if table != b"trx":
            return None
        return encode_columns([ColumnDescription("id", "int(11)"), ColumnDescription("b", "text", "utf8")])

    result = changed_rows(build, recording("mariadb"), describe=describe)
    images = [(table, after) for _, table, _, after in shown(result.rows, build) if after]
    assert ("trx", {"id": 3, "b": "four"}) in images
    assert ("nontrx", {"@1": 1, "@2": "six"}) in images
    assert (b"test", b"trx") in {(schema, table) for schema, table, _ in asked}


@BUILDS
def test_filters_leave_rows_out_and_keep_their_ordinals(build: KernelBuild) -> None:
    everything = changed_rows(build, recording("mysql56")).rows
    named = changed_rows(build, recording("mysql56"), prepare=lambda c: c.keep_names(None, [b"trx"])).rows
    assert named == [row for row in everything if row["table"] == "trx"]
    updated = changed_rows(build, recording("mysql56"), prepare=lambda c: c.keep_operations(["update"])).rows
    assert updated == [row for row in everything if row["operation"] == 2] != []


@BUILDS
def test_rows_without_their_table_map_are_a_finding_and_the_walk_goes_on(build: KernelBuild) -> None:
    data = bytearray(recording("mysql56"))
    at = next(at for at, code in events_of(data) if code == 19)
    data[at + 19] ^= 0x7F  # another table id
    result = changed_rows(build, bytes(data))
    names = [build.row_columns.FINDINGS.get(row["finding"]) for row in result.rows]
    assert "table_map_missing" in names
    assert names.count(None) > 5
