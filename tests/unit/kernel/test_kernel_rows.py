"""Changed rows as the kernel's columns: images as JSON, statements, positions, and what cannot be read."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from protocol.binlog.column_description import ColumnDescription, encode_columns
from tests.support.event_stream import EventStream, query_body
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


def made(types: bytes, metadata: bytes, rows: bytes, kind: int = 30, optional: bytes = b"") -> bytes:
    """A transaction with a Table_map and a rows event that has all columns, then one more that is good."""
    good = struct.pack("<IHHH", 9, 0, 1, 2) + b"\1\1\0\x2a"
    stream = EventStream(checksum=False, version="9.7.4")
    stream.add(2, query_body("BEGIN"))
    stream.add(
        19,
        struct.pack("<IHH", 7, 0, 0)
        + b"\1d\0\1t\0"
        + bytes([len(types)])
        + types
        + bytes([len(metadata)])
        + metadata
        + bytes((len(types) + 7) // 8)
        + optional,
    )
    bitmap = bytes([(1 << len(types)) - 1])
    stream.add(kind, struct.pack("<IHHH", 7, 0, 0, 2) + bytes([len(types)]) + bitmap + rows)
    stream.add(19, struct.pack("<IHH", 9, 0, 0) + b"\1d\0\1u\0\1\1\0\0")
    stream.add(30, good)
    stream.add(16, bytes(8))
    return b"\xfebin" + stream.data


def told(build: KernelBuild, data: bytes) -> list[tuple[str, str | None, str | None]]:
    """Table, image and finding of each row."""
    rows = changed_rows(build, data).rows
    return [(row["table"], row["after"], build.row_columns.FINDINGS.get(row["finding"])) for row in rows]


GOOD = ("u", '{"@1":42}', None)


@BUILDS
def test_a_row_that_passes_the_events_end_is_a_finding_behind_the_rows_before_it(build: KernelBuild) -> None:
    data = made(b"\xfc", b"\4", b"\0\1\0\0\0x" + b"\0\xff\xff\xff\xffx")
    assert told(build, data) == [("t", '{"@1":"x"}', None), ("t", None, "row_malformed"), GOOD]


@BUILDS
def test_a_column_type_that_nobody_knows_is_a_finding(build: KernelBuild) -> None:
    assert told(build, made(b"\3\x63", b"", b"\0\1\0\0\0\1")) == [("t", None, "column_type_unknown"), GOOD]


@BUILDS
def test_a_value_that_is_not_of_its_type_is_shown_as_its_bytes(build: KernelBuild) -> None:
    # a JSON document whose object says that it is longer than it is
    data = made(b"\xf5\3", b"\4", b"\0\5\0\0\0\0\1\0\xff\0" + b"\7\0\0\0")
    assert told(build, data) == [("t", '{"@1":{"base64":"AAEA/wA="},"@2":7}', "value_malformed"), GOOD]


@BUILDS
def test_a_json_document_that_refers_to_itself_does_not_grow(build: KernelBuild) -> None:
    # an array whose ten elements all are the array behind them, whose ten elements ...: ten levels would be ten billion values
    level = b"".join(b"\2" + struct.pack("<H", 34) for _ in range(10))
    document = b"\2" + b"".join(struct.pack("<HH", 10, 34 * (10 - i)) + level for i in range(10))
    data = made(b"\xf5", b"\4", b"\0" + struct.pack("<I", len(document)) + document)
    ((_, image, finding), good) = told(build, data)
    assert finding == "value_malformed"
    assert image is not None and image.startswith('{"@1":{"base64":')
    assert good == GOOD


@BUILDS
def test_optional_metadata_that_is_cut_is_a_finding_and_its_rows_are_there(build: KernelBuild) -> None:
    data = made(b"\3", b"", b"\0\7\0\0\0", optional=b"\4\x20\x03ab")
    assert told(build, data) == [(None, None, "event_malformed"), ("t", '{"@1":7}', None), GOOD]


@BUILDS
def test_images_that_are_not_wanted_are_not_made(build: KernelBuild) -> None:
    wanted = ["operation", "table", "position"]
    everything = changed_rows(build, recording("mariadb")).rows
    rows = changed_rows(build, recording("mariadb"), wanted).rows
    assert rows == [{name: row[name] for name in wanted} for row in everything]
