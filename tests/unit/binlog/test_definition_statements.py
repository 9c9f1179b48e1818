"""What a Query event says of a statement that may define tables, and under what it ran."""

import zlib

import pytest

from protocol.binlog.event_type import EventType
from protocol.binlog.mariadb_gtid import alters_nothing
from protocol.binlog.schema.collation_names import collation_of_number, compiled_collation, plain_collation
from protocol.binlog.schema.definition_statement import (
    StatementSetting,
    defines,
    definition_statement,
    statement_setting,
)
from tests.support.event_stream import raw_event

TEXT = b"CREATE TABLE t (a INT)"
MODE = b"\x01" + (1 << 22).to_bytes(8, "little")
CHARSETS = b"\x04" + b"\x21\x00" + b"\x08\x00" + b"\x2d\x00"
CATALOG = b"\x02\x03std\x00"
TIME_ZONE = b"\x05\x06SYSTEM"
INVOKER = b"\x0b\x04root\x09localhost"
SCHEMAS = b"\x0c\x02one\x00two\x00"
MANY_SCHEMAS = b"\x0c\xfe"
UTF8MB4 = b"\x12\xff\x00"


def query(status: bytes = b"", text: bytes = TEXT, *, error: int = 0, kind: int = EventType.QUERY) -> bytes:
    head = (
        (7).to_bytes(4, "little") + bytes(4) + b"\x01" + error.to_bytes(2, "little") + len(status).to_bytes(2, "little")
    )
    return raw_event(kind, head + status + b"d\x00" + text)


def compressed(text: bytes) -> bytes:
    """MariaDB's: algorithm and size of the length, length, zlib's bytes."""
    return b"\x81" + len(text).to_bytes(1, "big") + zlib.compress(text)


def test_what_a_statement_ran_under_is_read_behind_all_variables_before_it() -> None:
    status = MODE + CATALOG + CHARSETS + TIME_ZONE + INVOKER + SCHEMAS + MANY_SCHEMAS + UTF8MB4
    told = statement_setting(query(status, error=1062), 13)
    assert told == StatementSetting(7, 1062, 1 << 22, 0x21, 0x2D, ((45, 255),))


@pytest.mark.parametrize("is_on", [True, False])
def test_what_timestamps_are_without_a_word_is_told_by_a_variable_of_mysql_and_a_flag_of_mariadb(is_on: bool) -> None:
    mysql = statement_setting(query(b"\x00" + bytes(4) + MODE + b"\x10" + bytes([is_on])), 13)
    mariadb = statement_setting(query(b"\x00" + (is_on << 24 | 7).to_bytes(4, "little") + MODE), 13)
    assert mysql.explicit_timestamps is is_on
    assert (mariadb.timestamps_flag, mariadb.explicit_timestamps) == (is_on, None)


@pytest.mark.parametrize("cut", range(60))
def test_status_variables_may_end_anywhere(cut: int) -> None:
    status = (MODE + CATALOG + CHARSETS + TIME_ZONE + INVOKER + SCHEMAS + b"\x83\x01\x21\x00\x00\x08")[:cut]
    assert statement_setting(query(status), 13).thread_id == 7


def test_what_stands_behind_an_unknown_variable_is_not_read() -> None:
    assert statement_setting(query(b"\xc8" + MODE), 13).sql_mode == 0


def test_old_servers_have_no_status_variables() -> None:
    event = raw_event(EventType.QUERY, (7).to_bytes(4, "little") + bytes(4) + b"\x01" + bytes(2) + b"d\x00" + TEXT)
    assert statement_setting(event, 11) == StatementSetting(7, 0)
    assert definition_statement(event, 11, True) == (b"d", TEXT)


def test_a_compressed_statement_is_unpacked() -> None:
    event = query(text=compressed(TEXT), kind=EventType.QUERY_COMPRESSED)
    assert definition_statement(event, 13, True) == (b"d", TEXT)
    assert defines(event, 13, True)


def test_a_compressed_statement_that_defines_nothing_is_none() -> None:
    event = query(text=compressed(b"INSERT INTO t VALUES (1)"), kind=EventType.QUERY_COMPRESSED)
    assert definition_statement(event, 13, True) is None
    assert not defines(event, 13, True)


def test_of_a_compressed_statement_that_cannot_be_unpacked_nobody_can_tell() -> None:
    event = query(text=b"\x81\x10nonsense", kind=EventType.QUERY_COMPRESSED)
    assert definition_statement(event, 13, True) == (b"d", None)
    assert defines(event, 13, True)


def test_an_event_without_a_body_may_define_anything() -> None:
    assert defines(raw_event(EventType.QUERY, b""), 13, True)


@pytest.mark.parametrize(
    ("number", "name"), [(8, "latin1_swedish_ci"), (255, "utf8mb4_0900_ai_ci"), (83, "utf8_bin"), (9999, "")]
)
def test_usual_collations_have_their_names(number: int, name: str) -> None:
    assert collation_of_number(number) == name


@pytest.mark.parametrize(
    ("charset", "name"), [("utf8mb4", "utf8mb4_general_ci"), ("binary", "binary"), ("klingon", "")]
)
def test_a_character_set_has_the_collation_that_servers_were_built_with(charset: str, name: str) -> None:
    assert compiled_collation(charset) == name


def test_utf8mb3_is_utf8() -> None:
    assert plain_collation("UTF8MB3_General_CI") == "utf8_general_ci"


@pytest.mark.parametrize(("flags", "says"), [(0, False), (2, True), (8, True)])
@pytest.mark.parametrize("group", [b"", bytes(8)])
def test_an_alter_in_two_phases_that_has_only_begun_changes_nothing(flags: int, says: bool, group: bytes) -> None:
    body = (bytes(12) + bytes([2 if group else 0]) + group + bytes([flags])).ljust(19, b"\0")
    event = bytearray(raw_event(162, body, offset=100))
    end = int.from_bytes(event[13:17], "little")
    assert alters_nothing(b"before" + bytes(event), end) is says
    assert alters_nothing(b"before" + bytes(event), end + 1) is None
