"""Events and transactions as columns: what they say, what filters leave out, and that cuts and batches change nothing."""

import itertools
import random
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from protocol.binlog.event_type import EventType, event_type_name
from protocol.columns import column_codes
from protocol.columns.column_codes import (
    BOUNDARY_VIOLATION,
    EVENT_MALFORMED,
    PAYLOAD_UNREADABLE,
    ROWS_UNREADABLE,
    TRANSACTION_UNFINISHED,
)
from tests.corpus.expected import WITH_PAYLOADS
from tests.support.binlog_builder import MARIADB_LENGTHS, BinlogBuilder
from tests.support.event_stream import EventStream, query_body, raw_event
from tests.support.kernel_builds import KernelBuild, builds, uncompiled_kernel
from tests.support.kernel_columns import Columns, event_rows, transaction_rows

RECORDED = sorted((Path(__file__).resolve().parents[2] / "corpus" / "recorded").glob("*.binlog"))
MAGIC = b"\xfebin"
SECOND = 1_000_000


def find(name: str) -> bytes:
    return (RECORDED[0].parent / f"{name}.binlog").read_bytes()


def events_of(path: Path) -> list[tuple[int, str]]:
    """Position and kind of each event, as the server's own SHOW BINLOG EVENTS had them."""
    lines = path.with_suffix(".listing").read_text().splitlines()
    return [(int(line.split("\t")[0]), line.split("\t")[1]) for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_event_of_a_recorded_file_is_a_row_at_the_position_that_the_server_lists(
    build: KernelBuild, path: Path
) -> None:
    rows = event_rows(build, path.read_bytes()).rows
    listed = [position for position, _kind in events_of(path)]
    if path.stem in WITH_PAYLOADS:
        listed = sorted(set(listed))
    assert [row["position"] for row in rows] == listed
    assert all(a["end"] == b["position"] for a, b in itertools.pairwise(rows))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_cuts_and_batches_change_no_row(build: KernelBuild, path: Path) -> None:
    data = path.read_bytes()
    noise = random.Random(path.stem)
    cuts = [noise.randrange(4, len(data)) for _ in range(20)]
    assert event_rows(build, data, capacity=7, cuts=cuts).rows == event_rows(build, data).rows
    assert transaction_rows(build, data, capacity=3, cuts=cuts).rows == transaction_rows(build, data).rows


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_nothing_is_found_in_a_healthy_file(build: KernelBuild, path: Path) -> None:
    data = path.read_bytes()
    assert event_rows(build, data).findings == 0
    if path.stem not in WITH_PAYLOADS:  # its payloads are opened by the owner
        assert transaction_rows(build, data).findings == 0


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_events_and_transactions_agree_about_where_transactions_stand(build: KernelBuild, path: Path) -> None:
    data = path.read_bytes()
    events = event_rows(build, data).rows
    transactions = transaction_rows(build, data).rows
    of_events: dict[int, list[dict[str, Any]]] = {}
    for event in events:
        if event["transaction"] is not None:
            of_events.setdefault(event["transaction"], []).append(event)
    assert [(t["start"], t["end"], t["events"]) for t in transactions] == [
        (start, members[-1]["end"], len(members)) for start, members in of_events.items()
    ]
    assert [members[0]["transaction_ordinal"] for members in of_events.values()] == [
        *range(1, len(transactions) + 1),
    ]


# Written down from mysql56.listing: start, kind, statements, rows (inserted, updated, deleted), tables, rolled back.
MYSQL56 = [
    (120, "ddl", 1, (0, 0, 0), [], 0),
    (274, "ddl", 1, (0, 0, 0), [], 0),
    (431, "statement", 1, (0, 0, 0), [], 0),
    (681, "statement", 1, (0, 0, 0), [], 0),
    (983, "statement", 1, (0, 0, 0), [], 0),
    (1273, "row", 0, (2, 0, 0), ["test.trx"], 0),
    (1549, "row", 0, (0, 1, 0), ["test.nontrx"], 0),
    (1851, "row", 0, (2, 0, 0), ["test.trx"], 0),
    (2344, "statement", 2, (0, 0, 0), [], 0),
    (2900, "statement", 2, (0, 0, 0), [], 1),
    (3343, "mixed", 1, (7, 0, 0), ["test.copied"], 0),
    (3853, "ddl", 1, (0, 0, 0), [], 0),
    (3972, "row", 0, (1, 0, 0), ["test.trx"], 0),
    (4268, "row", 0, (1, 0, 0), ["test.trx"], 0),
]


def test_transactions_of_a_recorded_file_are_those_that_its_listing_shows(build: KernelBuild) -> None:
    kinds = build.transaction_columns.KINDS
    rows = transaction_rows(build, find("mysql56")).rows
    assert [
        (
            row["start"],
            kinds[row["kind"]],
            row["statements"],
            (row["rows_inserted"], row["rows_updated"], row["rows_deleted"]),
            row["tables"],
            row["rolled_back"],
        )
        for row in rows
    ] == MYSQL56


def test_gtids_are_written_as_the_servers_write_them(build: KernelBuild) -> None:
    mysql = [row["gtid"] for row in transaction_rows(build, find("mysql97-gtid")).rows]
    listing = (RECORDED[0].parent / "mysql97-gtid.listing").read_text()
    assert mysql == re.findall(r"GTID_NEXT= '(.*?)'", listing)
    assert any(text.count(":") == 2 for text in mysql), "no tagged GTID in the recording"
    mariadb = [row["gtid"] for row in transaction_rows(build, find("mariadb")).rows]
    listing = (RECORDED[0].parent / "mariadb.listing").read_text()
    assert mariadb == re.findall(r"GTID (\d+-\d+-\d+)", listing)
    assert {row["gtid"] for row in transaction_rows(build, find("mysql97-anonymous")).rows} == {None}


def test_compressed_rows_and_statements_of_mariadb_are_counted(build: KernelBuild) -> None:
    rows = transaction_rows(build, find("mariadb-compressed")).rows
    kinds = build.transaction_columns.KINDS
    assert [(kinds[row["kind"]], row["rows_inserted"], row["rows_updated"]) for row in rows] == [
        ("ddl", 0, 0),
        ("row", 1, 0),
        ("row", 2, 3),
        ("ddl", 0, 0),
        ("ddl", 0, 0),
        ("statement", 0, 0),
        ("statement", 0, 0),
        ("ddl", 0, 0),
    ]


def test_a_payload_that_cannot_be_opened_is_a_finding_of_its_transaction(build: KernelBuild) -> None:
    rows = transaction_rows(build, find("mysql97-compressed")).rows
    assert [row["finding"] for row in rows] == [0, PAYLOAD_UNREADABLE, PAYLOAD_UNREADABLE, 0]


def test_only_wanted_columns_have_buffers(build: KernelBuild) -> None:
    batch = build.event_columns.EventColumns(["position", "table"], 10).batch
    assert len(batch.column("position")) == 80
    with pytest.raises(KeyError):
        batch.column("time")
    with pytest.raises(ValueError, match="no column nonsense"):
        build.event_columns.EventColumns(["nonsense"], 10)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_pruning_changes_no_value(build: KernelBuild, path: Path) -> None:
    data = path.read_bytes()
    every = event_rows(build, data).rows
    for name in build.event_columns.COLUMNS:
        assert event_rows(build, data, [name]).rows == [{name: row[name]} for row in every]


FILTERS = {
    "types": (lambda c: c.keep_types({19, 30}), lambda r: r["type"] in (19, 30)),
    "positions": (lambda c: c.keep_positions(1000, 3000), lambda r: 1000 <= r["position"] <= 3000),
    "schema": (lambda c: c.keep_names([b"test", b"no"], None), lambda r: r["schema"] == "test"),
    "no schema": (lambda c: c.keep_names([], None), lambda r: False),
    "table": (lambda c: c.keep_names(None, [b"nontrx"]), lambda r: r["table"] == "nontrx"),
    "both": (lambda c: c.keep_names([b"other"], [b"nontrx"]), lambda r: False),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_keeps_the_rows_that_it_says(build: KernelBuild, name: str) -> None:
    data = find("mysql56")
    prepare, wanted = FILTERS[name]
    every = event_rows(build, data).rows
    kept = event_rows(build, data, prepare=prepare).rows
    assert kept == [row for row in every if wanted(row)]
    # a filter works without the column that it looks at
    assert event_rows(build, data, ["position"], prepare=prepare).rows == [{"position": r["position"]} for r in kept]


def test_a_time_filter_has_both_ends_included(build: KernelBuild) -> None:
    stream = EventStream()
    for second in (10, 11, 12, 13):
        stream.query("CREATE TABLE t (a INT)", timestamp=second)
    data = MAGIC + stream.data

    def prepare(columns: Any) -> None:
        columns.keep_times(11 * SECOND, 12 * SECOND)

    assert [row["time"] for row in event_rows(build, data, prepare=prepare).rows] == [11 * SECOND, 12 * SECOND]

    def first(columns: Any) -> None:
        columns.keep_times(11 * SECOND, 12 * SECOND, 0, 1 << 62)

    rows = transaction_rows(build, data, prepare=first).rows
    assert [row["first_time"] for row in rows] == [11 * SECOND, 12 * SECOND]


def test_a_stamp_and_the_inference_are_both_shown(build: KernelBuild) -> None:
    stream = EventStream()
    stream.query("BEGIN", flags=3 << 10).query("INSERT", flags=4 << 10).query("COMMIT", flags=4 << 10)
    stream.query("COMMIT", flags=5 << 10)
    rows = event_rows(build, MAGIC + stream.data).rows
    assert [(row["boundary"], row["stamped"], row["inferred"]) for row in rows[1:]] == [
        (3, 1, 3),
        (4, 1, 4),
        (4, 1, 5),
        (5, 1, 5),
    ]


def damaged(change: str) -> tuple[bytes, int]:
    """A file with one thing wrong inside its second transaction, and the position of the event that it is wrong with."""
    stream = EventStream()
    stream.query("CREATE TABLE t (a INT)")
    stream.query("BEGIN")
    at = stream.offset
    if change == "checksum":
        event = bytearray(raw_event(2, b"x" * 40, offset=stream.offset))
        event[30] ^= 1
        stream.add_raw(bytes(event))
    elif change == "position":
        stream.query("INSERT INTO t VALUES (1)", log_pos=77)
    elif change == "unknown":
        stream.add(99, b"what")
    elif change == "violation":
        stream.query("BEGIN")
    elif change == "lengths":
        stream.add(2, b"\xff" * 20)
    stream.query("INSERT INTO t VALUES (2)").query("COMMIT").query("DROP TABLE t")
    return MAGIC + stream.data, at


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("checksum", "CHECKSUM_MISMATCH"),
        ("position", "POSITION_CHAIN_BROKEN"),
        ("unknown", "UNKNOWN_EVENT_TYPE"),
        ("violation", "BOUNDARY_VIOLATION"),
        ("lengths", "EVENT_MALFORMED"),
    ],
)
def test_what_is_wrong_with_an_event_is_found_in_its_row_and_in_its_transaction(
    build: KernelBuild, change: str, finding: str
) -> None:
    data, at = damaged(change)
    code = getattr(column_codes, finding)
    events = event_rows(build, data)
    assert [(row["position"], row["finding"]) for row in events.rows if row["finding"]] == [(at, code)]
    assert events.findings == 1
    only = event_rows(build, data, prepare=lambda columns: columns.keep_findings())
    assert [row["position"] for row in only.rows] == [at]
    transactions = transaction_rows(build, data)
    found = [(row["finding"], row["finding_position"]) for row in transactions.rows if row["finding"]]
    if change == "violation":  # the first BEGIN has no end, and the second is the one that cannot stand there
        assert found == [(TRANSACTION_UNFINISHED, found[0][1]), (code, at)]
        assert found[0][1] < at
    else:
        assert found == [(code, at)]
    assert len(transaction_rows(build, data, prepare=lambda c: c.keep_findings()).rows) == len(found)


def test_events_that_belong_to_no_transaction_are_a_row_with_a_finding(build: KernelBuild) -> None:
    stream = EventStream()
    at = stream.offset
    stream.query("COMMIT").add(16, bytes(8))
    end = stream.offset
    stream.query("CREATE TABLE t (a INT)")
    rows = transaction_rows(build, MAGIC + stream.data).rows
    assert [(row["start"], row["end"], row["events"], row["finding"], row["violations"]) for row in rows] == [
        (at, end, 2, BOUNDARY_VIOLATION, 1),
        (end, stream.offset, 1, 0, 0),
    ]


def test_a_transaction_that_the_file_ends_in_is_a_row_with_a_finding(build: KernelBuild) -> None:
    stream = EventStream()
    at = stream.offset
    stream.query("BEGIN").query("INSERT INTO t VALUES (1)")
    (row,) = transaction_rows(build, MAGIC + stream.data).rows
    assert (row["start"], row["end"], row["finding"], row["statements"]) == (
        at,
        stream.offset,
        TRANSACTION_UNFINISHED,
        1,
    )


def test_rows_of_a_table_that_nothing_named_are_a_finding(build: KernelBuild) -> None:
    binlog = BinlogBuilder()
    binlog.begin().rows(20).xid()
    (row,) = transaction_rows(build, bytes(binlog.data)).rows
    assert (row["row_events"], row["rows_inserted"], row["finding"]) == (
        1,
        0,
        ROWS_UNREADABLE,
    )


def test_a_transaction_of_hundreds_of_tables_names_each_once(build: KernelBuild) -> None:
    stream = EventStream()
    stream.query("BEGIN")
    names = [f"table_{number:04}" for number in range(300)]  # more than a batch has room for at first
    for table_id, name in [*enumerate(names, 100), *enumerate(names, 5000)]:
        text = name.encode()
        body = struct.pack("<IHH", table_id, 0, 1) + b"\x04test\0" + bytes([len(text)]) + text + b"\0\x01\x03\0\x01"
        stream.add(19, body)
        stream.add(30, struct.pack("<IHHH", table_id, 0, 1, 2) + b"\x01\xff" + b"\0\1\0\0\0" * 2)
    stream.add(16, bytes(8))
    data = MAGIC + stream.data
    for capacity in (1, 100):
        (row,) = transaction_rows(build, data, capacity=capacity).rows
        assert row["tables"] == [f"test.{name}" for name in names]
        assert (row["row_events"], row["rows_inserted"], row["finding"]) == (600, 1200, 0)


def test_table_maps_that_open_a_group_are_its_first_event_once_however_many_there_are(build: KernelBuild) -> None:
    # 5.1 writes autocommitted changes without BEGIN; the maps of 300 tables are more than there is room for at first
    stream = EventStream()
    for table_id in range(300):
        name = f"t{table_id}".encode() + b"x" * 200
        body = struct.pack("<IHH", table_id, 0, 1) + b"\x04test\0" + bytes([len(name)]) + name + b"\0\x01\x03\0\x01"
        stream.add(19, body)
        stream.add(23, struct.pack("<IHH", table_id, 0, 1) + b"\x01\xff" + b"\0\1\0\0\0")
    found = transaction_rows(build, MAGIC + stream.data)
    assert found.findings == 0
    assert [(row["events"], row["rows_inserted"], len(row["tables"])) for row in found.rows] == [(2, 1, 1)] * 300


def test_what_is_packed_or_lies_inside_a_payload_is_a_finding_of_its_transaction(build: KernelBuild) -> None:
    lying = bytearray(query_body("INSERT INTO t VALUES (1)"))
    lying[8] = 200
    inner = {
        raw_event(165, query_body(b"\x81\1"), checksum=False): PAYLOAD_UNREADABLE,
        raw_event(2, bytes(lying), checksum=False): EVENT_MALFORMED,
    }
    for events, finding in inner.items():
        stream = EventStream(version="9.7.4").add(33, bytes(44)).add(40, b"\0")
        rows = transaction_rows(build, MAGIC + stream.data, unpack_payload=lambda _, events=events: events).rows
        assert [row["finding"] for row in rows] == [finding]


def test_events_do_not_keep_table_maps_longer_than_transactions_need_them() -> None:
    # a server whose table cache is small gives a table another id for nearly every statement
    stream = EventStream()
    for table_id in range(100):
        stream.query("BEGIN")
        body = struct.pack("<IHH", table_id, 0, 1) + b"\x04test\0\x01t\0\x01\x03\0\x01"
        stream.add(19, body + b"\x63\xfd" + (100_000).to_bytes(3, "little") + bytes(100_000))
        stream.add(16, bytes(8))
    used: list[Any] = []
    event_rows(uncompiled_kernel(), MAGIC + stream.data, prepare=used.append)
    assert used[0].tables.used < 60
    assert used[0].tables.arena_size <= 8 << 20


# type, metadata, bytes of one value (text and numbers do not matter, only how long they are)
WIDTHS = {
    "tiny": (1, b"", b"\x01"),
    "short": (2, b"", b"\x01\x02"),
    "int24": (9, b"", b"\x01\x02\x03"),
    "long": (3, b"", bytes(4)),
    "longlong": (8, b"", bytes(8)),
    "float": (4, b"\x04", bytes(4)),
    "double": (5, b"\x08", bytes(8)),
    "decimal(10,0)": (246, b"\x0a\x00", bytes(5)),
    "decimal(65,30)": (246, b"\x41\x1e", bytes(30)),
    "decimal(4,4)": (246, b"\x04\x04", bytes(2)),
    "year": (13, b"", b"\x01"),
    "date": (10, b"", bytes(3)),
    "time": (11, b"", bytes(3)),
    "datetime": (12, b"", bytes(8)),
    "timestamp": (7, b"", bytes(4)),
    "time(0)": (19, b"\x00", bytes(3)),
    "time(6)": (19, b"\x06", bytes(6)),
    "datetime(3)": (18, b"\x03", bytes(7)),
    "timestamp(1)": (17, b"\x01", bytes(5)),
    "bit(1)": (16, b"\x01\x00", bytes(1)),
    "bit(64)": (16, b"\x00\x08", bytes(8)),
    "varchar(255)": (15, b"\xff\x00", b"\x03abc"),
    "varchar(256)": (15, b"\x00\x01", b"\x03\x00abc"),
    "char(10)": (254, b"\xfe\x1e", b"\x02ab"),
    "char(255) of 3 bytes": (254, b"\xee\xfd", b"\x02\x00ab"),
    "enum": (254, b"\xf7\x01", b"\x01"),
    "enum of many": (254, b"\xf7\x02", b"\x01\x00"),
    "set": (254, b"\xf8\x08", bytes(8)),
    "tinyblob": (252, b"\x01", b"\x01a"),
    "blob": (252, b"\x02", b"\x01\x00a"),
    "mediumblob": (252, b"\x03", b"\x01\x00\x00a"),
    "longblob": (252, b"\x04", b"\x01\x00\x00\x00a"),
    "json": (245, b"\x04", b"\x02\x00\x00\x00ab"),
    "geometry": (255, b"\x04", b"\x02\x00\x00\x00ab"),
    "vector": (242, b"\x04", b"\x04\x00\x00\x00" + bytes(4)),
    "compressed blob": (140, b"\x02", b"\x01\x00a"),
    "compressed varchar": (141, b"\x00\x01", b"\x03\x00abc"),
    "null": (6, b"", b""),
}


def one_table(columns: list[str], images: bytes, kind: int = 30) -> bytes:
    """A file with one row event of a table with these columns (all of them present)."""
    stream = EventStream(version="9.7.4")
    types = bytes(WIDTHS[name][0] for name in columns)
    metadata = b"".join(WIDTHS[name][1] for name in columns)
    nullable = b"\xff" * ((len(columns) + 7) // 8)
    stream.query("BEGIN")
    stream.add(
        19,
        struct.pack("<IHH", 42, 0, 1)
        + b"\x04test\0\x01t\0"
        + bytes([len(types)])
        + types
        + bytes([len(metadata)])
        + metadata
        + nullable,
    )
    bitmaps = nullable * (2 if kind in (31, 39) else 1)
    stream.add(kind, struct.pack("<IHHH", 42, 0, 1, 2) + bytes([len(columns)]) + bitmaps + images)
    stream.add(16, bytes(8))
    return MAGIC + stream.data


@pytest.mark.parametrize("name", WIDTHS)
def test_rows_of_every_column_type_are_counted(build: KernelBuild, name: str) -> None:
    value = WIDTHS[name][2]
    row = b"\0" + value + b"\x07" + b"\x01" + b"\x07"  # once with the value, once NULL; a TINY behind it
    (transaction,) = transaction_rows(build, one_table([name, "tiny"], row)).rows
    assert (transaction["rows_inserted"], transaction["finding"]) == (2, 0)
    (cut,) = transaction_rows(build, one_table([name, "tiny"], row[:-1])).rows
    assert cut["finding"] == ROWS_UNREADABLE


def test_rows_of_an_update_are_counted_by_their_pairs_of_images(build: KernelBuild) -> None:
    columns = list(WIDTHS)
    image = bytes((len(columns) + 7) // 8) + b"".join(WIDTHS[name][2] for name in columns)
    (row,) = transaction_rows(build, one_table(columns, image * 6, 31)).rows
    assert (row["rows_updated"], row["finding"]) == (3, 0)
    (odd,) = transaction_rows(build, one_table(columns, image * 5, 31)).rows
    assert odd["finding"] == ROWS_UNREADABLE


def test_rows_with_partial_json_updates_are_counted(build: KernelBuild) -> None:
    before = b"\0" + WIDTHS["json"][2]
    after = b"\x01\x01" + before  # value options: partial, one bit for the JSON column, then the image
    (row,) = transaction_rows(build, one_table(["json"], (before + after) * 2 + before + b"\0" + before, 39)).rows
    assert (row["rows_updated"], row["finding"]) == (3, 0)


def test_a_column_type_that_nobody_knows_is_a_finding(build: KernelBuild) -> None:
    body = struct.pack("<IHH", 42, 0, 1) + b"\x04test\0\x01t\0" + b"\x01\xc8\0\x01"
    stream = EventStream().query("BEGIN").add(19, body)
    stream.add(30, struct.pack("<IHHH", 42, 0, 1, 2) + b"\x01\xff\0abc").add(16, bytes(8))
    (row,) = transaction_rows(build, MAGIC + stream.data).rows
    assert row["finding"] == ROWS_UNREADABLE


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("INSERT INTO t VALUES (1)", "statement"),
        ("  \n/* app:1 */ -- why\n# what\n(insert into t values (1))", "statement"),
        ("/*!50003 UPDATE t SET a = 1 */", "statement"),
        ("LOAD DATA INFILE 'x' INTO TABLE t", "statement"),
        ("INSERTED", "ddl"),
        ("CREATE TABLE t (a INT)", "ddl"),
        ("/*!40000 DROP TABLE t */", "ddl"),
        ("GRANT ALL ON *.* TO a", "ddl"),
        ("/* never closed", "ddl"),
        ("", "ddl"),
    ],
)
def test_a_statement_is_told_from_ddl_by_its_first_word(build: KernelBuild, text: str, kind: str) -> None:
    stream = EventStream().query(text)
    (row,) = transaction_rows(build, MAGIC + stream.data).rows
    assert build.transaction_columns.KINDS[row["kind"]] == kind


def test_every_event_type_has_a_name_and_a_row(build: KernelBuild) -> None:
    stream = EventStream(version="10.11.19-MariaDB")
    for kind in EventType:
        if kind not in (EventType.UNKNOWN, EventType.FORMAT_DESCRIPTION, EventType.ROTATE, EventType.START_ENCRYPTION):
            stream.add(kind, bytes(40))
    rows = event_rows(build, MAGIC + stream.data).rows
    assert len(rows) == len(stream.events)
    assert "Unknown" not in {event_type_name(row["type"]).partition("(")[0] for row in rows}
    assert len(MARIADB_LENGTHS) == 171


@pytest.mark.parametrize("seed", range(150))
def test_both_builds_give_the_same_columns_for_damaged_files(seed: int) -> None:
    noise = random.Random(f"columns-{seed}")
    data = bytearray(noise.choice(RECORDED).read_bytes())
    for _ in range(noise.choice([1, 2, 5])):
        at = noise.randrange(4, len(data))
        data[at] = noise.choice([0, 1, 0xFF, noise.randrange(256)])
    if noise.random() < 0.2:
        del data[noise.randrange(30, len(data)) :]
    results: list[tuple[Columns, Columns]] = []
    for build in builds():
        results.append((event_rows(build, bytes(data)), transaction_rows(build, bytes(data))))
    assert results.count(results[0]) == len(results)
