"""Changed rows as the kernel's columns: images as JSON, statements, positions, and what cannot be read."""

import contextlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from protocol.binlog.schema.column_description import ColumnDescription, encode_columns
from protocol.columns.codes.column_codes import FINDINGS
from tests.support.event_stream import EventStream, query_body
from tests.support.kernel_builds import KernelBuild, builds, imported_kernel
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
    assert {FINDINGS.get(row["finding"]) for row in result.rows} == {"value_uncertain"}
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
    assert {FINDINGS.get(row["finding"]) for row in result.rows} == {"value_uncertain"}
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
    names = [FINDINGS.get(row["finding"]) for row in result.rows]
    assert "table_map_missing" in names
    assert names.count("value_uncertain") > 5


def as_text(data: bytes) -> str:
    """The bytes as text, each that is of no whole UTF-8 sequence as U+FFFD."""
    text, at = "", 0
    while at < len(data):
        for size in range(1, 5):
            with contextlib.suppress(UnicodeDecodeError):
                text, at = text + data[at : at + size].decode(), at + size
                break
        else:
            text, at = text + "\N{REPLACEMENT CHARACTER}", at + 1
    return text


@BUILDS
def test_statements_are_shown_whatever_their_bytes_are_and_wherever_they_stand(build: KernelBuild) -> None:
    middles = (
        b"",
        b'"\\\x00\x1f\x7f',
        "äß€😀".encode(),
        b"\x80",
        b"\xff\xfe",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
        b"\xed\xa0\x80",
    )
    texts = [
        b"a" * before + middle + b"z" * behind for middle in middles for before in range(10) for behind in (0, 7, 9)
    ]
    stream = EventStream(checksum=False, version="9.7.4")
    stream.add(2, query_body("BEGIN"))
    for text in texts:
        stream.add(29, b"\0" + text)
        stream.add(19, struct.pack("<IHH", 9, 0, 0) + b"\1d\0\1u\0\1\1\0\0")
        stream.add(30, struct.pack("<IHHH", 9, 0, 1, 2) + b"\1\1\0\x2a")
    stream.add(16, bytes(8))
    result = changed_rows(build, b"\xfebin" + stream.data)
    assert [row["statement"] for row in result.rows] == [as_text(text) for text in texts]


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
    return [(row["table"], row["after"], FINDINGS.get(row["finding"])) for row in rows]


GOOD = ("u", '{"@1":42}', None)


def document_rows(*documents: bytes | None) -> bytes:
    """Rows of one JSON column; None: SQL's NULL."""
    return b"".join(b"\1" if d is None else b"\0" + struct.pack("<I", len(d)) + d for d in documents)


@BUILDS
def test_a_row_that_passes_the_events_end_is_a_finding_behind_the_rows_before_it(build: KernelBuild) -> None:
    data = made(b"\xfc", b"\4", b"\0\1\0\0\0x" + b"\0\xff\xff\xff\xffx")
    assert told(build, data) == [("t", '{"@1":"x"}', "value_uncertain"), ("t", None, "row_malformed"), GOOD]


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


def small_object(key: bytes, value: bytes) -> bytes:
    """A JSON object with one key, whose value stands in its entry."""
    size = 4 + 4 + 3 + len(key)
    return b"\0" + struct.pack("<HH", 1, size) + struct.pack("<HH", 11, len(key)) + value + key


@BUILDS
def test_a_json_null_is_told_from_sqls_null_and_a_document_from_what_looks_like_one(build: KernelBuild) -> None:
    null, true = b"\4\0", b"\4\1\0"
    documents = [
        None, null, b"", b"\4\1", small_object(b"$diffs", true), small_object(b"$json", true),
        small_object(b"base64", true), small_object(b"$", true), small_object(b"a", b"\4\0\0"), small_object(b"", true),
    ]  # fmt: skip
    images = [image for _, image, _ in told(build, made(b"\xf5", b"\4", document_rows(*documents)))[:-1]]
    assert [str(image)[6:-1] for image in images] == [
        "null",
        '{"$json":null}',
        '{"$json":null}',
        "true",
        '{"$json":{"$diffs":true}}',
        '{"$json":{"$json":true}}',
        '{"$json":{"base64":true}}',
        '{"$json":{"$":true}}',
        '{"a":null}',
        '{"":true}',
    ]


@BUILDS
def test_bits_of_partial_updates_count_json_columns_behind_a_type_that_nobody_knows(build: KernelBuild) -> None:
    # columns: INT, unknown, 9 times JSON; the images have only the first, and two bytes of bits stand before the second
    types = b"\3\x63" + b"\xf5" * 9
    stream = EventStream(checksum=False, version="9.7.4")
    stream.add(2, query_body("BEGIN"))
    metadata = b"\4" * 9
    table = struct.pack("<IHH", 7, 0, 0) + b"\1d\0\1t\0" + bytes([11]) + types + bytes([9]) + metadata + bytes(2)
    stream.add(19, table)
    rows = b"\0\1\0\0\0" + b"\1\xff\1" + b"\0\2\0\0\0"
    stream.add(39, struct.pack("<IHHH", 7, 0, 1, 2) + b"\x0b" + b"\1\0\1\0" + rows * 2)
    stream.add(16, bytes(8))
    found = changed_rows(build, b"\xfebin" + stream.data)
    assert [(row["before"], row["after"], row["finding"]) for row in found.rows] == [
        ('{"@1":1}', '{"@1":2}', 0),
        ('{"@1":1}', '{"@1":2}', 0),
    ]


@BUILDS
def test_behind_a_malformed_table_map_nothing_is_read_by_the_older_one(build: KernelBuild) -> None:
    stream = EventStream(checksum=False, version="9.7.4")
    stream.add(2, query_body("BEGIN"))
    stream.add(19, struct.pack("<IHH", 7, 0, 0) + b"\1d\0\1t\0\1\3\0\0")
    rows = struct.pack("<IHHH", 7, 0, 0, 2) + b"\1\1\0\1\0\0\0"
    stream.add(30, rows)
    stream.add(19, struct.pack("<IHH", 7, 0, 0) + b"\1d\0\1t\0\5\2\2")  # five columns, types of two
    stream.add(30, rows)
    for number in range(300):  # until the slots are moved
        stream.add(19, struct.pack("<IHH", 1000 + number, 0, 0) + b"\1d\0\1u\0\1\3\0\0")
    stream.add(30, rows)
    stream.add(19, struct.pack("<IHH", 7, 0, 0) + b"\1d\0\1t\0\1\3\0\0")
    stream.add(30, rows)
    stream.add(16, bytes(8))
    assert told(build, b"\xfebin" + stream.data) == [
        ("t", '{"@1":1}', None),
        (None, None, "event_malformed"),
        (None, None, "table_map_missing"),
        (None, None, "table_map_missing"),
        ("t", '{"@1":1}', None),
    ]


@BUILDS
def test_a_value_longer_than_its_native_type_is_shown_as_its_bytes(build: KernelBuild) -> None:
    def describe(schema: bytes, table: bytes, types: bytes) -> bytes:
        return encode_columns([ColumnDescription("c", "inet4" if table == b"t" else "int")])

    optional = b"\2\1\x3f"  # the default collation is binary
    data = made(b"\xfe", b"\xfe\4", b"\0\4\1\2\3\4" + b"\0\5\1\2\3\4\5", optional=optional)
    rows = changed_rows(build, data, describe=describe).rows
    names = [FINDINGS.get(row["finding"]) for row in rows]
    assert [row["after"] for row in rows[:2]] == ['{"c":"1.2.3.4"}', '{"c":{"base64":"AQIDBAU="}}']
    assert names == [None, "value_malformed", None]


@BUILDS
@pytest.mark.parametrize(
    ("code", "kind"), [(11, "time(3)"), (12, "datetime(6) /* mariadb-5.3 */"), (7, "timestamp(2)")]
)
def test_a_time_with_a_fraction_in_the_type_without_one_is_not_read(build: KernelBuild, code: int, kind: str) -> None:
    # MariaDB's of mysql56_temporal_format=OFF: no binlog tells how long it is
    def describe(schema: bytes, table: bytes, types: bytes) -> bytes:
        return encode_columns([ColumnDescription("c", kind if table == b"t" else "int")])

    rows = changed_rows(build, made(bytes([code]), b"", b"\0" + bytes(8)), describe=describe).rows
    names = [FINDINGS.get(row["finding"]) for row in rows]
    assert names == ["column_type_unknown", None]


def test_what_goes_wrong_inside_the_compiled_walk_is_raised_and_not_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(data: bytes, most_bytes: int) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("protocol.columns.rows.row_values.unpack_column", interrupted)
    data = made(b"\x8d", b"\x0a\0", b"\0\2\0x")
    with pytest.raises(KeyboardInterrupt):
        changed_rows(imported_kernel(), data)
