"""Info as SHOW BINLOG EVENTS has it; the whole of it is compared with real servers by the interop tests."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.binlog.event_info import INFO_LIMIT_CHARACTERS, event_info, event_type_text
from protocol.binlog.event_type import EventType
from protocol.binlog.header import EventHeader
from protocol.errors import Malformed
from tests.unit.binlog.test_event_decoders import FORMAT, GTID_57, TAGGED, UUID_TEXT, packed

_SUPPRESS_USE = 0x0008


def info(kind: int, body: bytes, *, flags: int = 0) -> str:
    return event_info(EventHeader(1_700_000_000, kind, 7, 19 + len(body) + 4, 500, flags), body, FORMAT)


def query(text: bytes, schema: bytes = b"shop") -> bytes:
    return struct.pack("<IIBHH", 1, 0, len(schema), 0, 0) + schema + b"\0" + text


def test_a_statement_follows_its_schema() -> None:
    assert info(EventType.QUERY, query(b"INSERT INTO t VALUES (1)")) == "use `shop`; INSERT INTO t VALUES (1)"


def test_a_statement_whose_schema_does_not_matter_stands_alone() -> None:
    assert info(EventType.QUERY, query(b"BEGIN"), flags=_SUPPRESS_USE) == "BEGIN"
    assert info(EventType.QUERY, query(b"CREATE DATABASE d", b"")) == "CREATE DATABASE d"


def test_a_very_long_statement_is_cut() -> None:
    text = info(EventType.QUERY, query(b"x" * 1_000_000, b""))
    assert len(text) <= INFO_LIMIT_CHARACTERS + 3 and text.endswith("...")


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        (EventType.XID, struct.pack("<Q", 9), "COMMIT /* xid=9 */"),
        (EventType.ROTATE, struct.pack("<Q", 4) + b"mysql-bin.000002", "mysql-bin.000002;pos=4"),
        (EventType.INTVAR, struct.pack("<BQ", 2, 17), "INSERT_ID=17"),
        (EventType.RAND, struct.pack("<QQ", 3, 4), "rand_seed1=3,rand_seed2=4"),
        (EventType.DELETE_FILE, struct.pack("<I", 5), ";file_id=5"),
        (EventType.APPEND_BLOCK, struct.pack("<I", 5) + b"abc", ";file_id=5;block_len=3"),
        (EventType.INCIDENT, struct.pack("<HB", 1, 3) + b"why", "#1 (LOST_EVENTS): why"),
        (EventType.ANONYMOUS_GTID, bytes(25), "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'"),
        (EventType.ROWS_QUERY, b"\x03UPDATE t", "# UPDATE t"),
        (EventType.STOP, b"", ""),
        (EventType.QUERY_COMPRESSED, packed(b"INSERT INTO t VALUES (1)"), "use `shop`; INSERT INTO t VALUES (1)"),
        (
            EventType.EXECUTE_LOAD_QUERY,
            struct.pack("<IIBHHIIIB", 9, 0, 4, 0, 0, 3, 0, 0, 0) + b"shop\0LOAD",
            "use `shop`; LOAD ;file_id=3",
        ),
        (EventType.USER_VAR, b"\x01\0\0\0x\x01", "@`x`=NULL"),
        (EventType.USER_VAR, b"\x01\0\0\0x\0\x02" + struct.pack("<IIq", 63, 8, -4), "@`x`=-4"),
        (EventType.USER_VAR, b"\x01\0\0\0x\0\x04" + struct.pack("<II", 63, 2) + b"\x01\x80", "@`x`=0x0180"),
        (EventType.TABLE_MAP, b"\x6c\0\0\0\0\0\x01\0\x04shop\0\x01t\0", "table_id: 108 (shop.t)"),
        (EventType.WRITE_ROWS_V1, b"\x6c\0\0\0\0\0\x01\0\x03", "table_id: 108 flags: STMT_END_F"),
        (EventType.ANNOTATE_ROWS, b"UPDATE t", "UPDATE t"),
        (EventType.GTID, GTID_57, f"SET @@SESSION.GTID_NEXT= '{UUID_TEXT}:5'"),
        (
            EventType.GTID_TAGGED,
            TAGGED,
            "SET @@SESSION.GTID_NEXT= 'f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff:mytag:300'",
        ),
        (EventType.MARIADB_GTID, struct.pack("<QIB", 9, 2, 0x29) + bytes(6), "GTID 2-7-9"),
        (EventType.MARIADB_GTID, struct.pack("<QIBQ", 9, 2, 0x06, 5), "BEGIN GTID 2-7-9 cid=5"),
        (
            EventType.MARIADB_GTID,
            struct.pack("<QIBIBB", 9, 2, 0x44, 1, 1, 1) + b"ab",
            "XA START X'61',X'62',1 GTID 2-7-9",
        ),
        (EventType.GTID_LIST, struct.pack("<IIIQ", 1, 0, 1, 77), "[0-1-77]"),
        (EventType.BINLOG_CHECKPOINT, struct.pack("<I", 5) + b"b.001", "b.001"),
        (EventType.XA_PREPARE, struct.pack("<BIII", 0, 1, 1, 1) + b"ab", "XA PREPARE X'61',X'62',1"),
        (EventType.XA_PREPARE, struct.pack("<BIII", 1, 1, 1, 1) + b"ab", "XA COMMIT X'61',X'62',1 ONE PHASE"),
        (
            EventType.TRANSACTION_PAYLOAD,
            b"\x02\x01\x00\x03\x01\x63\x01\x01\x09\x00rest",
            "compression='ZSTD', decompressed_size=99 bytes",
        ),
    ],
)
def test_the_servers_words(kind: int, body: bytes, text: str) -> None:
    assert info(kind, body) == text


@pytest.mark.parametrize(
    ("charset", "text"),
    [(45, "@`u`=_utf8mb4 0x616263 COLLATE utf8mb4_general_ci"), (999, "@`u`=0x616263 /* collation 999 */")],
)
def test_a_user_variable_names_its_collation_or_its_number(charset: int, text: str) -> None:
    body = struct.pack("<I", 1) + b"u" + b"\0" + struct.pack("<BII", 0, charset, 3) + b"abc"
    assert info(EventType.USER_VAR, body) == text


@pytest.mark.parametrize(
    ("code", "name"),
    [(15, "Format_desc"), (14, "User var"), (13, "RAND"), (162, "Gtid"), (34, "Anonymous_Gtid"), (250, "Unknown")],
)
def test_types_have_the_servers_names(code: int, name: str) -> None:
    assert event_type_text(code) == name


@given(st.integers(0, 255), st.binary(max_size=200))
def test_any_bytes_are_worded_or_malformed(kind: int, body: bytes) -> None:
    with contextlib.suppress(Malformed):
        assert isinstance(info(kind, body), str)
