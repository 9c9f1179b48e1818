"""The status variables of a MariaDB's statements become those that say the same to MySQL, or the view stops by name."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.binlog.status_variables import MARIADB, decode_status, encode_status
from relay.view.rules.mariadb.status import status_translation
from relay.view.rules.mariadb.status.mariadb_collations import MariadbCollations
from relay.view.rules.mariadb.status.mariadb_user_variable import translate_user_variable
from relay.view.rules.mariadb.status.status_translation import StatusTranslation, TranslatedStatus
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.stops.stop_reason import Untranslatable

MYSQL_97 = TARGETS_BY_NAME["mysql-9.7"]
INSERT = b"INSERT INTO t VALUES (1)"
DEFAULTS_OF_118 = bytes.fromhex("05 2100 0008 2300 000a 2d00 0009 3600 000b 3c00 000c")
EXPLICIT = 1 << 24
STRICT = 1 << 22
TRUNCATE = 1 << 32


def collations(*numbers: int) -> bytes:
    return struct.pack("<HHH", *numbers)


def block(changes: dict[int, bytes | None] | None = None) -> bytes:
    """As an 11.8 writes it, in its order."""
    values: dict[int, bytes | None] = {
        0: struct.pack("<I", EXPLICIT),
        1: struct.pack("<Q", STRICT),
        6: b"\x03std",
        131: DEFAULTS_OF_118,
        3: None,
        4: collations(45, 2304, 2304),
        **dict.fromkeys((5, 7, 8, 11, 128, 129, 130)),
    }
    values |= changes or {}
    return encode_status({code: value for code, value in values.items() if value is not None})


def translation() -> StatusTranslation:
    return StatusTranslation(MariadbCollations({}, MYSQL_97))


def translated(status: bytes, text: bytes = INSERT, *, is_dml: bool = True) -> TranslatedStatus:
    return translation().translate(status, text, is_dml=is_dml)


def variables(status: bytes) -> dict[int, bytes]:
    return decode_status(status)


def reason_of(status: bytes, text: bytes = INSERT, *, is_dml: bool = True) -> tuple[str, str]:
    with pytest.raises(Untranslatable) as stopped:
        translated(status, text, is_dml=is_dml)
    return stopped.value.reason.name, stopped.value.reason.message


def test_a_block_of_118_becomes_one_that_mysql_reads_to_its_end() -> None:
    made = variables(translated(block({128: b"\x01\x02\x03", 129: bytes(8), 130: b"\x00"})).status)
    assert list(made) == [0, 1, 6, 4, 16, 18, 13]
    assert made[0] == bytes(4)
    assert made[1] == struct.pack("<Q", STRICT | TRUNCATE)
    assert made[4] == collations(45, 246, 246)
    assert (made[16], made[18], made[13]) == (b"\x01", b"\xf6\x00", b"\x01\x02\x03")


def test_what_says_the_same_to_both_stays_as_it_is() -> None:
    same = {3: b"\x0a\x00\x03\x00", 5: b"\x06+05:30", 7: b"\x04\x00", 8: b"\x08\x00", 11: b"\x01a\x01b"}
    made = variables(translated(block({**same, 4: collations(8, 8, 45)})).status)
    assert {code: made[code] for code in same} == same
    assert made[4] == collations(8, 8, 45)


def test_who_reads_the_text_is_told_what_it_was_read_by() -> None:
    made = translated(block())
    assert made.sql_mode == STRICT
    assert made.charset == 45
    assert made.defaults == {33: 2048, 35: 2560, 45: 2304, 54: 2816, 60: 3072}
    assert (made.explicit_timestamps, made.if_exists) == (True, False)
    without = translated(block({131: None, 0: struct.pack("<I", 1 << 28)}))
    assert (without.defaults, without.explicit_timestamps, without.if_exists) == ({}, False, True)
    assert variables(without.status)[18] == struct.pack("<H", 45)


@pytest.mark.parametrize("bit", [14, 19, 26, 27])
def test_flags_that_both_have_stay(bit: int) -> None:
    made = variables(translated(block({0: struct.pack("<I", EXPLICIT | 1 << bit)})).status)
    assert made[0] == struct.pack("<I", 1 << bit)


@pytest.mark.parametrize("bit", [15, 28, 30])
def test_flags_that_mysql_has_not_are_left_out(bit: int) -> None:
    made = variables(translated(block({0: struct.pack("<I", EXPLICIT | 1 << bit)})).status)
    assert made[0] == bytes(4)


@pytest.mark.parametrize("bit", [0, 13, 16, 25, 31])
def test_a_flag_that_nobody_knows_stops_the_view(bit: int) -> None:
    assert reason_of(block({0: struct.pack("<I", 1 << bit)}))[0] == "status_variable_unknown"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (0, TRUNCATE),
        (1 << 34, 0),
        (1 << 34 | 1 << 20, 1 << 20),
        ((1 << 32) - 1 & ~(1 << 9), (1 << 33) - 1 & ~(1 << 9)),
        (1 << 32, TRUNCATE),
        (1 << 33, TRUNCATE),
    ],
)
def test_fractions_of_seconds_are_cut_as_at_the_source(source: int, target: int) -> None:
    assert variables(translated(block({1: struct.pack("<Q", source)})).status)[1] == struct.pack("<Q", target)


def test_a_table_of_an_engine_that_is_not_there_is_made_in_innodb_without_the_mode_that_refuses_it() -> None:
    made = translated(block({1: struct.pack("<Q", STRICT | 1 << 30), 128: b"\x01\x02\x03"}))
    assert variables(made.status)[1] == struct.pack("<Q", STRICT | TRUNCATE | 1 << 30)
    lenient = variables(made.without_engine_check)
    assert lenient == variables(made.status) | {1: struct.pack("<Q", STRICT | TRUNCATE)}


@pytest.mark.parametrize(
    ("bit", "mode", "text", "is_dml"),
    [
        (32, "EMPTY_STRING_IS_NULL", b"INSERT INTO t VALUES ('')", True),
        (32, "EMPTY_STRING_IS_NULL", b'INSERT INTO t VALUES ("")', True),
        (32, "EMPTY_STRING_IS_NULL", b"CREATE TABLE t (a INT, b TEXT DEFAULT '')", False),
        (33, "SIMULTANEOUS_ASSIGNMENT", b"UPDATE t SET a = b, b = a", True),
        (33, "SIMULTANEOUS_ASSIGNMENT", b"CREATE PROCEDURE p() update t set a = b, b = a", False),
        (9, "ORACLE", b"INSERT INTO t VALUES (NULL || 'a')", True),
        (35, "number 35", INSERT, True),
        (63, "number 63", b"CREATE TABLE t (a INT)", False),
    ],
)
def test_a_mode_that_mysql_lacks_stops_the_view_where_it_decides(
    bit: int, mode: str, text: bytes, is_dml: bool
) -> None:
    name, told = reason_of(block({1: struct.pack("<Q", 1 << bit)}), text, is_dml=is_dml)
    assert name == "sql_mode_not_in_target"
    assert f"sql_mode {mode}" in told


@pytest.mark.parametrize(
    ("bit", "text", "is_dml"),
    [
        (32, b"INSERT INTO t VALUES ('a')", True),
        (33, b"INSERT INTO t VALUES ('')", True),
        (33, b"CREATE TABLE t (a INT REFERENCES p (a) ON UPDATE CASCADE)", False),
        (9, b"CREATE TABLE t (a INT)", False),
    ],
)
def test_a_mode_that_mysql_lacks_is_left_out_where_it_decides_nothing(bit: int, text: bytes, is_dml: bool) -> None:
    made = translated(block({1: struct.pack("<Q", 1 << bit)}), text, is_dml=is_dml)
    assert int.from_bytes(variables(made.status)[1], "little") & ~(1 << 9) == TRUNCATE


@pytest.mark.parametrize("number", [303, 643, 2216, 4095])
def test_no_collation_that_mysql_would_pass_over_in_silence_gets_through(number: int) -> None:
    for place in range(3):
        numbers = [45, 45, 45]
        numbers[place] = number
        assert reason_of(block({4: collations(*numbers)}))[0] == "collation_not_in_target"
    assert reason_of(block({8: struct.pack("<H", number)}))[0] == "collation_not_in_target"


@given(st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 65535), st.booleans())
def test_whatever_the_source_writes_the_replicas_are_told_collations_that_they_have(
    client: int, connection: int, server: int, is_dml: bool
) -> None:
    try:
        made = translated(block({4: collations(client, connection, server)}), is_dml=is_dml)
    except Untranslatable:
        return
    assert all(0 < number <= 323 for number in struct.unpack("<HHH", variables(made.status)[4]))


def test_a_collation_that_stands_for_nothing_stops_only_what_compares_by_it() -> None:
    status = block({4: collations(8, 1032, 1032)})
    assert reason_of(status)[0] == "collation_not_in_target"
    assert variables(translated(status, b"CREATE TABLE t (a INT)", is_dml=False).status)[4] == collations(8, 8, 8)
    for text in (b"CREATE DATABASE d", b"/* new */ create or replace schema d", b" CREATE DATABASE IF NOT EXISTS d"):
        assert reason_of(status, text, is_dml=False)[0] == "collation_not_in_target"
    for text in (
        b"CREATE DATABASE d CHARACTER SET latin1",
        b"CREATE DATABASE d COLLATE latin1_bin",
        b"DROP DATABASE d",
    ):
        assert variables(translated(status, text, is_dml=False).status)[4] == collations(8, 8, 8)


def test_the_servers_own_statements_have_a_client_that_mysql_lacks() -> None:
    status = block({4: collations(579, 579, 2304)})
    made = translated(status, b"DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", is_dml=False)
    assert struct.unpack("<HHH", variables(made.status)[4])[0] < 255


@pytest.mark.parametrize("code", [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 127, 132, 255])
def test_a_variable_that_no_mariadb_writes_stops_the_view(code: int) -> None:
    name, told = reason_of(block() + bytes((code,)) + bytes(8))
    assert name == "status_variable_unknown"
    assert f"status variable {code} " in told


def test_a_block_that_is_cut_stops_the_view_or_is_whole_variables() -> None:
    whole = block({128: b"\x01\x02\x03", 129: bytes(8), 130: b"\x04" + bytes(8), 11: b"\x01a\x01b"})
    ends = {0}
    for _code, value in decode_status(whole, MARIADB).items():
        ends.add(max(ends) + 1 + len(value))
    for stop in range(len(whole)):
        if stop in ends:
            translated(whole[:stop])
        else:
            assert reason_of(whole[:stop])[0] == "statement_not_parsed"


@pytest.mark.parametrize("lapse", [0x00, 0x04, 0x08, 0x0C])
def test_the_start_of_an_alter_is_read_over(lapse: int) -> None:
    value = bytes((lapse,)) + (bytes(8) if lapse & 0x0C else b"")
    made = translated(
        block({129: bytes(8), 130: value, 128: b"\x01\x02\x03"}), b"ALTER TABLE t ADD b INT", is_dml=False
    )
    assert list(variables(made.status)) == [0, 1, 6, 4, 16, 18, 13]


def test_months_of_a_language_that_mysql_lacks_stop_the_view() -> None:
    assert variables(translated(block({7: b"\x6e\x00"})).status)[7] == b"\x6e\x00"
    assert reason_of(block({7: b"\x6f\x00"}))[0] == "status_variable_unknown"


def test_a_block_that_came_before_is_looked_up() -> None:
    statements = translation()
    first = statements.translate(block(), INSERT, is_dml=True)
    assert statements.translate(block(), INSERT, is_dml=True) is first
    later = statements.translate(block({128: b"\x09\x08\x07"}), INSERT, is_dml=True)
    assert later.status == first.status + b"\x0d\x09\x08\x07"
    assert later == translated(block({128: b"\x09\x08\x07"}))


def test_what_is_held_of_blocks_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_translation, "_MOST_HELD", 4)
    statements = translation()
    for number in range(50):
        status = block({3: struct.pack("<HH", number, 1)})
        assert statements.translate(status, INSERT, is_dml=True) == translated(status)
        assert len(statements._known) <= 4


@given(st.lists(st.tuples(st.binary(max_size=3), st.booleans(), st.binary(max_size=4)), max_size=12))
def test_what_came_before_changes_no_answer(blocks: list[tuple[bytes, bool, bytes]]) -> None:
    """Values that look like the microseconds of another block are none."""
    statements = translation()
    for time_zone, is_dml, tail in blocks:
        changes: dict[int, bytes | None] = {5: bytes((len(time_zone) + 1,)) + b"\x80" + time_zone}
        status = block(changes) + tail
        results = []
        for one in (statements, translation()):
            try:
                results.append(one.translate(status, INSERT, is_dml=is_dml))
            except Untranslatable as stopped:
                results.append(stopped.reason)  # type: ignore[arg-type]
        assert results[0] == results[1]


def user_variable(collation: int, value: bytes = b"x") -> bytes:
    head = b"\x01\x00\x00\x00a\x00" + b"\x00" + struct.pack("<II", collation, len(value))
    return head + value + b"\x00"


def test_a_user_variable_has_a_collation_that_mysql_has() -> None:
    known = MariadbCollations({}, MYSQL_97)
    assert translate_user_variable(user_variable(2304), known) == user_variable(246)
    assert translation().user_variable(user_variable(2304)) == user_variable(246)
    assert translate_user_variable(user_variable(63), known) == user_variable(63)
    with pytest.raises(Untranslatable) as stopped:
        translate_user_variable(user_variable(1032), known)
    assert stopped.value.reason.name == "collation_not_in_target"


def test_a_user_variable_without_a_value_stays() -> None:
    known = MariadbCollations({}, MYSQL_97)
    assert translate_user_variable(b"\x01\x00\x00\x00a\x01", known) == b"\x01\x00\x00\x00a\x01"


def test_a_user_variable_that_is_cut_stops_the_view() -> None:
    whole = user_variable(2304, b"abc")
    known = MariadbCollations({}, MYSQL_97)
    for stop in range(len(whole) - 1):
        with pytest.raises(Untranslatable) as stopped:
            translate_user_variable(whole[:stop], known)
        assert stopped.value.reason.name == "malformed_transaction"
