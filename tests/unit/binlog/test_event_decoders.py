"""The readable decoders: whole bodies, bodies cut at every byte, bodies with bytes behind them."""

import contextlib
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.binlog.description import describe_event
from protocol.binlog.format_description import (
    FormatDescription,
    decode_format_description,
    decode_start_v3,
    has_checksum_field,
)
from protocol.binlog.gtid_tagged import decode_gtid_tagged
from protocol.binlog.header import EventHeader, decode_header
from protocol.binlog.query import decode_query
from protocol.binlog.statement_text import one_line
from protocol.errors import Malformed, Truncated
from tests.corpus.build import mariadb100_long
from tests.corpus.expected import BUILT, RECORDED

CORPUS = Path(__file__).parents[2] / "corpus"
LENGTHS = bytes(
    [56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 95, 0, 4, 26, 8, 0, 0, 0, 8, 8, 8, 2, 0, 0, 0, 10, 10, 10]
)
FORMAT = FormatDescription(4, "5.6.24-log", 0, 19, LENGTHS, 1, True)
UUID = bytes(range(16))
UUID_TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"


def header(event_type: int, body: bytes = b"", *, log_pos: int = 500) -> EventHeader:
    return EventHeader(1_700_000_000, event_type, 7, 19 + len(body) + 4, log_pos, 0)


def described(event_type: int, body: bytes, *, log_pos: int = 500) -> str:
    return describe_event(header(event_type, body, log_pos=log_pos), body, FORMAT)


def query(text: bytes, schema: bytes = b"shop", status: bytes = b"\x00\x01\x02\x03\x04", error: int = 0) -> bytes:
    return struct.pack("<IIBHH", 9, 0, len(schema), error, len(status)) + status + schema + b"\0" + text


def packed(text: bytes) -> bytes:
    return query(b"\x82" + len(text).to_bytes(2, "big") + zlib.compress(text))


def variable(value: int) -> bytes:
    return bytes([value << 1]) if value < 128 else struct.pack("<H", value << 2 | 1)


TAGGED = b"".join(
    [
        variable(1) + variable(60) + variable(0),
        variable(0) + variable(1),
        variable(1) + b"".join(variable(byte) for byte in range(240, 256)),
        variable(2) + variable(300 << 1),
        variable(3) + variable(5) + b"mytag",
        variable(4) + variable(6),
        variable(5) + variable(8),
    ]
)
GTID_57 = b"\x01" + UUID + struct.pack("<qBqq", 5, 2, 3, 4)
GTID_80 = GTID_57 + (123 | 1 << 55).to_bytes(7, "little") + (99).to_bytes(7, "little") + b"\xfc\x00\x01" + bytes(4)
LOAD_HEAD = struct.pack("<IIIBBI", 1, 2, 0, 2, 4, 1)
LOAD_TAIL = b"\x01" + b"a\0" + b"t3\0" + b"shop\0"

# Name, type, body, description, how many last bytes may be missing without an error (text to the end of the body).
CASES = [
    ("rotate", 4, struct.pack("<Q", 4) + b"bin.000002", "to bin.000002:4", 9),
    ("query", 2, query(b"BEGIN"), "[shop] BEGIN", 5),
    ("query with an error", 2, query(b"X", error=1062), "[shop] X (error 1062)", 1),
    ("query without schema", 2, query(b"COMMIT", schema=b""), "COMMIT", 6),
    ("compressed query", 165, packed(b"INSERT INTO t VALUES (1)"), "[shop] INSERT INTO t VALUES (1)", 6),
    ("intvar", 5, struct.pack("<BQ", 2, 11), "INSERT_ID=11", 0),
    ("last insert id", 5, struct.pack("<BQ", 1, 11), "LAST_INSERT_ID=11", 0),
    ("rand", 13, struct.pack("<QQ", 1, 2), "seeds 1 2", 0),
    ("null variable", 14, b"\x01\0\0\0x\x01", "@x=NULL", 0),
    ("integer variable", 14, b"\x01\0\0\0x\0\x02" + struct.pack("<IIq", 63, 8, -4), "@x=-4", 0),
    (
        "unsigned variable",
        14,
        b"\x01\0\0\0x\0\x02" + struct.pack("<IIQB", 63, 8, 2**64 - 1, 1),
        f"@x={2**64 - 1}",
        None,
    ),
    ("real variable", 14, b"\x01\0\0\0x\0\x01" + struct.pack("<IId", 63, 8, 1.5), "@x=1.5", 0),
    ("text variable", 14, b"\x01\0\0\0x\0\0" + struct.pack("<II", 33, 2) + b"hi", "@x='hi'", 0),
    ("decimal variable", 14, b"\x01\0\0\0x\0\x04" + struct.pack("<II", 63, 2) + b"\x01\x80", "@x=0x0180", 0),
    ("xid", 16, struct.pack("<Q", 42), "xid 42", 0),
    ("table map", 19, b"\x6c\0\0\0\0\0\x01\0\x04shop\0\x01t\0", "shop.t (table id 108)", 0),
    ("rows v1", 23, b"\x6c\0\0\0\0\0\x01\0\x03", "table id 108, end of statement", 0),
    ("rows v2", 30, b"\x6c\0\0\0\0\0\0\0\x04\0ab\xfc\x2c\x01", "table id 108", 0),
    ("incident", 26, b"\x01\0\x04lost", "LOST_EVENTS lost", 0),
    ("rows query", 29, b"\x08SELECT 1", "SELECT 1", 8),
    ("annotate rows", 160, b"SELECT 1", "SELECT 1", 8),
    ("gtid of 5.6", 33, b"\x01" + UUID + struct.pack("<q", 5), f"{UUID_TEXT}:5", 0),
    ("gtid of 5.7", 33, GTID_57, f"{UUID_TEXT}:5 last_committed=3 sequence_number=4", None),
    ("gtid of 8.0", 33, GTID_80, f"{UUID_TEXT}:5 last_committed=3 sequence_number=4", None),
    ("anonymous gtid", 34, GTID_57, "last_committed=3 sequence_number=4", None),
    (
        "tagged gtid",
        42,
        TAGGED,
        "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff:mytag:300 last_committed=3 sequence_number=4",
        None,
    ),
    ("previous gtids", 35, struct.pack("<Q16sQQQQQ", 1, UUID, 2, 1, 6, 8, 9), f"{UUID_TEXT}:1-5:8", 0),
    (
        "tagged previous gtids",
        35,
        b"\x01\x01\0\0\0\0\0\x01" + UUID + b"\x04tt" + struct.pack("<QQQ", 1, 1, 2),
        f"{UUID_TEXT}:tt:1",
        0,
    ),
    ("gtid list", 163, struct.pack("<IIIQ", 1, 0, 1, 77), "0-1-77", 0),
    ("mariadb gtid", 162, struct.pack("<QIB", 9, 2, 0x29) + bytes(6), "2-7-9 standalone ddl", 6),
    ("mariadb commit id", 162, struct.pack("<QIBQ", 9, 2, 0x06, 5), "2-7-9 transactional commit id 5", 0),
    (
        "mariadb xa",
        162,
        struct.pack("<QIBIBB", 9, 2, 0x44, 1, 1, 1) + b"ab",
        "2-7-9 transactional prepared XA X'61',X'62',1",
        0,
    ),
    ("xa prepare", 38, struct.pack("<BIII", 1, 1, 1, 1) + b"ab", "X'61',X'62',1 one phase", 0),
    ("begin load query", 17, struct.pack("<I", 3) + b"data", "file 3, 4 bytes", 4),
    ("exec load", 10, struct.pack("<I", 3), "file 3", 0),
    (
        "execute load query",
        18,
        struct.pack("<IIBHHIIIB", 9, 0, 4, 0, 0, 3, 0, 0, 0) + b"shop\0LOAD",
        "file 3: [shop] LOAD",
        4,
    ),
    ("load", 6, LOAD_HEAD + bytes(7) + LOAD_TAIL + b"f.txt", "[shop] t3 from f.txt", 5),
    (
        "create file",
        8,
        LOAD_HEAD + struct.pack("<I", 2) + b"\x01,\0\0\0\0\0" + LOAD_TAIL + b"f.txt\0block",
        "file 2: [shop] t3 from f.txt",
        5,
    ),
    ("checkpoint", 161, struct.pack("<I", 5) + b"b.001", "b.001", 0),
    ("start encryption", 164, struct.pack("<BI12s", 1, 3, b""), "scheme 1, key version 3", 0),
    ("heartbeat", 27, b"bin.000001", "bin.000001:500", 10),
    ("heartbeat v2", 41, b"\x01\x05b.001\x02\x01\x63\x00", "b.001:99", None),
    ("payload", 40, b"\x02\x01\x00\x03\x01\x63\x01\x01\x09\x00rest", "zstd, 9 bytes for 99", 4),
    ("transaction context", 36, struct.pack("<BIBIII", 2, 5, 1, 0, 0, 0) + b"ab", "server ab thread 5", 0),
    ("view change", 37, b"v1".ljust(40, b"\0") + struct.pack("<Q", 3), "view v1", 0),
    ("partial row data", 172, struct.pack("<IIBQ", 3, 1, 1, 99), "fragment 1 of 3", 0),
    ("stop", 3, b"", "", 0),
]
NAMES = [case[0] for case in CASES]


@pytest.mark.parametrize(("event_type", "body", "text"), [case[1:4] for case in CASES], ids=NAMES)
def test_a_whole_body_gives_its_essentials(event_type: int, body: bytes, text: str) -> None:
    assert described(event_type, body) == text


@pytest.mark.parametrize(
    ("event_type", "body", "optional"), [(case[1], case[2], case[4]) for case in CASES if case[4] is not None],
    ids=[case[0] for case in CASES if case[4] is not None],
)  # fmt: skip
def test_a_body_cut_anywhere_in_its_fields_is_malformed(event_type: int, body: bytes, optional: int) -> None:
    for size in range(len(body) - optional):
        with pytest.raises(Malformed):
            described(event_type, body[:size])


@pytest.mark.parametrize(("event_type", "body"), [case[1:3] for case in CASES], ids=NAMES)
def test_a_body_cut_anywhere_gives_a_text_or_a_documented_error(event_type: int, body: bytes) -> None:
    for size in range(len(body)):
        try:
            described(event_type, body[:size])
        except Malformed:
            continue


@pytest.mark.parametrize(
    ("event_type", "body", "text"),
    [case[1:4] for case in CASES if case[0] in ("intvar", "rand", "xid", "table map", "rows v1", "incident", "xa prepare",
                                               "gtid list", "exec load", "view change")],
)  # fmt: skip
def test_bytes_behind_a_fixed_layout_are_ignored(event_type: int, body: bytes, text: str) -> None:
    assert described(event_type, body + b"\xee\xee") == text


@given(st.integers(0, 255), st.binary(max_size=120))
def test_random_bytes_give_a_text_or_a_documented_error(event_type: int, body: bytes) -> None:
    with contextlib.suppress(Malformed):
        assert described(event_type, body).isprintable()


@pytest.mark.parametrize(
    ("event_type", "body"),
    [
        (26, b"\x42\0\0"),
        (4, struct.pack("<Q", 4)),
        (38, struct.pack("<BIII", 0, 1, 65, 0) + bytes(65)),
        (30, b"\x6c\0\0\0\0\0\0\0\x01\0\x03"),
        (165, query(b"\x91\x01" + zlib.compress(b"x"))),
        (165, query(b"\x81\x01garbage")),
        (35, struct.pack("<Q16sQQQ", 1, UUID, 1, 5, 5)),
        (35, b"\0\0\0\0\0\0\0\x02"),
        (14, b"\x01\0\0\0x\0\x09" + bytes(8)),
        (14, b"\x01\0\0\0x\0\x02" + struct.pack("<II", 63, 1) + b"a"),
        (2, query(b"X")[:-2] + b"pX"),
    ],
)
def test_values_that_cannot_be_are_malformed(event_type: int, body: bytes) -> None:
    with pytest.raises(Malformed):
        described(event_type, body)


def test_a_header_is_decoded_at_an_offset() -> None:
    data = b"xx" + struct.pack("<IBIIIH", 1, 2, 3, 19, 5, 0x0C01)
    found = decode_header(data, 2)
    assert (found.timestamp, found.name, found.server_id, found.size, found.log_pos) == (1, "Query", 3, 19, 5)


def test_a_short_header_is_truncated() -> None:
    for size in range(19):
        with pytest.raises(Truncated):
            decode_header(bytes(size))


def test_a_length_below_the_header_is_malformed() -> None:
    with pytest.raises(Malformed, match="18"):
        decode_header(struct.pack("<IBIIIH", 1, 2, 3, 18, 5, 0))


def format_body(version: bytes, tail: bytes, lengths: bytes = LENGTHS) -> bytes:
    return struct.pack("<H50sIB", 4, version, 0, 19) + lengths + tail


@pytest.mark.parametrize(
    ("version", "listed", "aware"),
    [
        ("5.6.0", 33, False),
        ("5.6.1-m5", 40, True),
        ("5.5.62-log", 27, False),
        ("9.7.4", 47, True),
        ("5.2.14-MariaDB", 27, False),
        ("5.3.0-MariaDB", 165, True),
        ("5.5.36-MariaDB-debug", 165, True),
        ("5.1.99", 176, True),
        ("garbage", 40, False),
    ],
)
def test_version_and_types_tell_whether_there_is_a_checksum_field(version: str, listed: int, aware: bool) -> None:
    assert has_checksum_field(version, listed) is aware


@pytest.mark.parametrize(
    ("version", "types", "flavour"),
    [
        (b"10.11.19-MariaDB-log", 171, "mariadb"),
        (b"10.5.99", 171, "mariadb"),
        (b"5.1.99", 163, "mariadb"),
        (b"5.5.36-MariaDB", 160, "mariadb"),
        (b"9.7.4", 42, "mysql"),
        (b"8.0.42-not-MariaDB", 42, "mysql"),
    ],
)
def test_the_flavour_is_told_by_the_types_that_are_listed_whatever_the_version(
    version: bytes, types: int, flavour: str
) -> None:
    found = decode_format_description(format_body(version, b"\x01abcd", lengths=bytes(types)))
    assert (found.flavour, found.checksum, len(found.post_header_lengths)) == (flavour, 1, types)


def test_a_format_description_lists_its_types_without_the_checksum() -> None:
    found = decode_format_description(format_body(b"5.6.24-log", b"\x01abcd"))
    assert (found.post_header_lengths, found.checksum, found.checksum_bytes, found.flavour) == (LENGTHS, 1, 4, "mysql")


def test_an_old_format_description_ends_with_its_types() -> None:
    found = decode_format_description(format_body(b"5.1.73", b""))
    assert (found.post_header_lengths, found.checksum, found.has_checksum_field) == (LENGTHS, 0, False)


def test_a_format_description_cut_in_its_fixed_part_is_truncated() -> None:
    for size in range(57):
        with pytest.raises(Truncated):
            decode_format_description(format_body(b"5.6.24", b"\0abcd")[:size])


@pytest.mark.parametrize("tail", [b"\x02abcd", b"\xffabcd"])
def test_an_unknown_checksum_algorithm_is_malformed(tail: bytes) -> None:
    with pytest.raises(Malformed, match="algorithm"):
        decode_format_description(format_body(b"5.6.24", tail))


def test_a_start_v3_implies_the_lengths_of_its_time() -> None:
    found = decode_start_v3(struct.pack("<H50sI", 3, b"4.1.24", 0))
    assert (found.post_header_length(2), found.post_header_length(8), found.post_header_length(19)) == (11, 4, 0)


def test_a_query_of_4_1_has_no_status_variables() -> None:
    format = decode_start_v3(struct.pack("<H50sI", 3, b"4.1.24", 0))
    assert decode_query(struct.pack("<IIBH", 1, 0, 1, 0) + b"d\0X", format).text == b"X"


def test_a_number_of_nine_bytes_in_a_tagged_gtid_is_read() -> None:
    body = bytes(3) + variable(8) + b"\xff" + struct.pack("<Q", 2**64 - 1)
    assert decode_gtid_tagged(body).transaction_length == 2**64 - 1


def test_control_characters_cannot_break_the_line() -> None:
    assert one_line(b"a\nb\x1b[0m\xff") == "a\\nb\\x1b[0m\\xff"


def test_a_long_text_is_cut() -> None:
    assert one_line(b"x" * 10_000, 10) == "x" * 10 + "..."


@pytest.mark.parametrize(
    "name",
    [
        *(f"built/{name}" for name in BUILT if name != "mysql51-incident"),
        *(f"recorded/{name}" for name in RECORDED),
        "mariadb100-long",
    ],
)
def test_every_event_of_a_healthy_binlog_is_described(name: str) -> None:
    data = mariadb100_long() if name == "mariadb100-long" else (CORPUS / f"{name}.binlog").read_bytes()
    at, format, count = 4, FORMAT, 0
    while at < len(data):
        found = decode_header(data, at)
        body = data[at + 19 : at + found.size]
        if found.type == 15:
            format = decode_format_description(body)
        elif found.type == 1:
            format = decode_start_v3(body)
        else:
            body = body[: len(body) - format.checksum_bytes]
        assert describe_event(found, body, format).isprintable()
        at += found.size
        count += 1
    assert count > 2
