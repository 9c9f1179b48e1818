"""Prepared statements: kept, given their values, answered in bytes of the columns' kinds."""

import random
import struct

import pytest

from protocol.binary_rows import binary_row
from protocol.charsets import TextEncoding
from protocol.errors import StatementRefused
from protocol.resultset import AnswerColumn, ColumnFlag, ColumnType
from protocol.statements import SourceFacts
from protocol.statements.expression.prepared import MOST_STATEMENTS, PreparedStatements

MYSQL = SourceFacts("mysql", "9.7.4", 1, "uuid")
UTF8 = TextEncoding()
HEAD = b"\0" + struct.pack("<I", 1)


def prepared(text: str) -> PreparedStatements:
    made = PreparedStatements()
    made.prepare(text, MYSQL, UTF8, 2)
    return made


def execution(*values: tuple[int, int, bytes | None]) -> bytes:
    """COM_STMT_EXECUTE of the first statement. values: type, flag, bytes or NULL."""
    nulls = sum(1 << number for number, (_kind, _flag, value) in enumerate(values) if value is None)
    types = b"".join(bytes((kind, flag)) for kind, flag, _value in values)
    known = b"".join(value for _kind, _flag, value in values if value is not None)
    return struct.pack("<IBI", 1, 0, 1) + nulls.to_bytes((len(values) + 7) // 8, "little") + b"\1" + types + known


def number_of(call: object) -> int:
    with pytest.raises(StatementRefused) as caught:
        call()  # type: ignore[operator]
    return caught.value.number


@pytest.mark.parametrize(
    ("kind", "flag", "value", "literal"),
    [
        (1, 0, b"\xff", "-1"),
        (1, 0x80, b"\xff", "255"),
        (2, 0, b"\xfe\xff", "-2"),
        (3, 0, b"\5\0\0\0", "5"),
        (8, 0x80, b"\xff" * 8, "18446744073709551615"),
        (5, 0, struct.pack("<d", 3.0), "3"),
        (5, 0, struct.pack("<d", 0.25), "0.25"),
        (253, 0, b"\4a'\\b", "'a''\\\\b'"),
        (252, 0, b"\1?", "'?'"),
        (12, 0, b"\7" + struct.pack("<H5B", 2025, 1, 31, 23, 59, 58), "'2025-01-31 23:59:58'"),
        (10, 0, b"\4" + struct.pack("<H2B", 2025, 1, 31), "'2025-01-31'"),
        (12, 0, b"\x0b" + struct.pack("<H5BI", 2025, 1, 31, 1, 2, 3, 5), "'2025-01-31 01:02:03.000005'"),
        (11, 0, b"\x08" + struct.pack("<BI3B", 1, 1, 2, 3, 4), "'-26:03:04'"),
        (6, 0, b"", "NULL"),
        (253, 0, None, "NULL"),
    ],
)
def test_a_value_is_written_into_the_text(kind: int, flag: int, value: bytes | None, literal: str) -> None:
    text = prepared("SELECT '?', ? FROM t").execute(execution((kind, flag, value)), UTF8)
    assert text == f"SELECT '?',  {literal}  FROM t"


def test_types_are_remembered_from_one_execution_to_the_next() -> None:
    statements = prepared("SELECT ?")
    statements.execute(execution((3, 0, b"\1\0\0\0")), UTF8)
    again = struct.pack("<IBI", 1, 0, 1) + b"\0\0" + b"\2\0\0\0"
    assert statements.execute(again, UTF8) == "SELECT  2 "


def test_a_statement_without_values_is_executed_as_it_is() -> None:
    assert prepared("SELECT 1").execute(struct.pack("<IBI", 1, 0, 1), UTF8) == "SELECT 1"


def test_a_text_that_no_statement_could_hold_is_refused() -> None:
    value = (253, 0, b"\xfd" + (70000).to_bytes(3, "little") + b"x" * 70000)
    assert number_of(lambda: prepared("SELECT ?").execute(execution(value), UTF8)) == 1210


def test_preparing_tells_how_many_values_are_expected() -> None:
    payloads = PreparedStatements().prepare("SELECT ?, ? /* ? */", MYSQL, UTF8, 2)
    assert payloads[0] == b"\0" + struct.pack("<IHHBH", 1, 0, 2, 0, 0)
    assert len(payloads) == 4


def test_what_is_not_there_or_broken_is_refused_with_a_servers_number() -> None:
    statements = prepared("SELECT ?")
    assert number_of(lambda: statements.execute(struct.pack("<IBI", 9, 0, 1), UTF8)) == 1243
    assert number_of(lambda: statements.execute(struct.pack("<IBI", 1, 0, 1), UTF8)) == 1210
    assert number_of(lambda: statements.execute(struct.pack("<IBI", 1, 0, 1) + b"\0\0", UTF8)) == 1210
    assert number_of(lambda: statements.execute(execution((5, 0, struct.pack("<d", float("nan")))), UTF8)) == 1210
    statements.take_long_data(struct.pack("<IH", 1, 0) + b"x")
    assert number_of(lambda: statements.execute(execution((3, 0, b"\1\0\0\0")), UTF8)) == 1295
    statements.reset(struct.pack("<I", 1))
    assert statements.execute(execution((3, 0, b"\1\0\0\0")), UTF8) == "SELECT  1 "
    statements.close(struct.pack("<I", 1))
    assert number_of(lambda: statements.reset(struct.pack("<I", 1))) == 1243
    assert number_of(lambda: statements.prepare("SELECT 'open", MYSQL, UTF8, 2)) == 1064


def test_one_connection_keeps_a_bounded_number_of_them() -> None:
    statements = PreparedStatements()
    for _ in range(MOST_STATEMENTS):
        statements.prepare("SELECT 1", MYSQL, UTF8, 2)
    assert number_of(lambda: statements.prepare("SELECT 1", MYSQL, UTF8, 2)) == 1461
    statements.forget()
    statements.prepare("SELECT 1", MYSQL, UTF8, 2)


@pytest.mark.parametrize(
    ("kind", "value", "encoded"),
    [
        (ColumnType.LONG, -2, b"\xfe\xff\xff\xff"),
        (ColumnType.LONGLONG, 18446744073709551615, b"\xff" * 8),
        (ColumnType.LONGLONG, -1, b"\xff" * 8),
        (ColumnType.DOUBLE, "1.5", struct.pack("<d", 1.5)),
        (ColumnType.NEWDECIMAL, "1.50", b"\x041.50"),
        (ColumnType.VAR_STRING, "ü", b"\2\xc3\xbc"),
        (ColumnType.DATETIME, "2025-01-31 23:59:58", b"\7" + struct.pack("<H5B", 2025, 1, 31, 23, 59, 58)),
        (ColumnType.DATETIME, "2025-01-31 23:59:58.5", b"\x0b" + struct.pack("<H5BI", 2025, 1, 31, 23, 59, 58, 500000)),
        (ColumnType.TIMESTAMP, "0000-00-00 00:00:00.000000", b"\0"),
        (ColumnType.DATE, "2025-01-31", b"\4" + struct.pack("<H2B", 2025, 1, 31)),
        (ColumnType.TIME, "-26:03:04", b"\x08" + struct.pack("<BI3B", 1, 1, 2, 3, 4)),
        (ColumnType.TIME, "00:00:00", b"\0"),
    ],
)
def test_a_value_is_bytes_of_its_columns_kind(kind: ColumnType, value: str | int, encoded: bytes) -> None:
    column = AnswerColumn("a", kind, 10, ColumnFlag(0), 0, is_text=False)
    assert binary_row((value,), [column], UTF8) == b"\0\0" + encoded
    assert binary_row((None,), [column], UTF8) == b"\0\4"


def test_any_bytes_give_a_text_or_a_refusal() -> None:
    dice = random.Random(7)
    for _ in range(5000):
        statements = prepared("SELECT ?, ?, ?")
        body = struct.pack("<IBI", 1, 0, 1) + dice.choice((b"", b"\0\1", b"\7\1")) + dice.randbytes(dice.randrange(40))
        try:
            assert statements.execute(body, UTF8).startswith("SELECT ")
        except StatementRefused as error:
            assert error.number == 1210
