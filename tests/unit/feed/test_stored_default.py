"""Defaults as a server stores them, which is not always as they are written; what is not certain is not known."""

from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[feed]'")

from protocol.sql.tables.source_table import Column
from relay.feed.rows.lake_columns import lake_column
from relay.feed.rows.minimal_row_images import default_value
from relay.feed.rows.stored_default import UNKNOWN


def stored(kind: str, default: str | None, *, nullable: bool = True, extra: str = "") -> Any:
    charset = "utf8mb4" if kind.startswith(("char", "varchar", "enum", "set")) else ""
    made = lake_column(Column("c", kind, charset, nullable=nullable, extra=extra, default=default))
    assert made is not None
    found = default_value(made)
    return "?" if found is UNKNOWN else found


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("varchar(9)", " ", " "), ("varchar(9)", "'NULL'", "NULL"), ("varchar(9)", "NULL", None), ("varchar(9)", "0x41", "?"),
        ("varchar(9)", "'0x41'", "0x41"), ("varchar(9)", "1e3", "?"), ("varchar(9)", "'007'", "007"), ("varchar(9)", "007", "?"),
        ("varchar(9)", "x'41'", "?"),
        ("varchar(9)", "user()", "?"), ("char(5)", "a  ", "a"), ("enum('A','B')", "A", "A"), ("enum('A','B')", "a", "?"),
        ("set('x','y')", "y,x", "x,y"), ("set('x','y')", "", ""), ("set('x','y')", "X", "?"), ("time", "12:00", "?"),
        ("time", "12:00:00", "12:00:00"), ("time(3)", "12:00:00", "?"), ("time(3)", "12:00:00.000", "12:00:00.000"),
        ("year(4)", "99", "?"), ("year(4)", "1999", 1999), ("decimal(50,5)", "1.5", "?"), ("decimal(50,5)", "1.50000", "1.50000"),
        ("decimal(5,2)", "1.555", "?"), ("decimal(5,2)", "1.5", "1.50"), ("date", "2020-1-2", "?"),
        ("date", "2020-01-02", "2020-01-02"),
        ("datetime", "2020-01-02 03:04:05.6", "?"), ("datetime(3)", "2020-01-02 03:04:05.6", "2020-01-02 03:04:05.600"),
        ("decimal(5,2)", "-0", "0.00"), ("decimal(38,2)", "9" * 36, "9" * 36 + ".00"),
        ("datetime(2)", "2020-01-02", "2020-01-02 00:00:00.00"), ("datetime", "2020-01-02", "2020-01-02 00:00:00"),
        ("timestamp", "2020-01-02 00:00:00", "?"), ("int(11)", "5", 5), ("int(11)", "1.5", "?"), ("float(7,2)", "0.125", "?"),
        ("float", "16777200", "?"), ("float", "1.67772e7", "?"), ("float", "-0.012345", -0.012345), ("float", "1e10", 1e10),
        ("double", "0.125", 0.125), ("bit(4)", "b'101'", 5), ("varbinary(3)", "a", "?"), ("uuid", "x", "?"),
        ("bit(8)", "'1'", "?"), ("bit(8)", "1", 1), ("bit(64)", "1_0", "?"), ("double", "1_0", "?"), ("double", "nan", "?"),
        ("varchar(9)", "(s)", "?"), ("varchar(9)", "`s`", "?"), ("varchar(9)", "'`s`'", "`s`"), ("varchar(9)", "'a' = 'b'", "?"),
        ("enum('(s)','b')", "(s)", "?"), ("enum('(s)','b')", "'(s)'", "(s)"),
        ("enum('0','1')", "(1)", "?"), ("enum('0','1')", "'1'", "1"),
        ("varchar(9)", r"'(\\d)'", r"(\d)"), ("varchar(9)", r"'a\\nb'", r"a\nb"), ("varchar(9)", r"'a\nb\0'", "a\nb\0"),
        ("varchar(9)", "'it''s'", "it's"),
        ("varchar(2)", "a  ", "?"), ("varchar(99)", "1" * 31, "?"), ("varchar(40)", "'current_timestamp'", "current_timestamp"),
    ],
)  # fmt: skip
def test_a_default_is_what_a_row_has(kind: str, default: str, value: Any) -> None:
    assert stored(kind, default) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int(11)", 0), ("bigint unsigned", 0), ("decimal(9,3)", "0.000"), ("decimal(50,2)", "0.00"), ("double", 0), ("bit(64)", 0),
        ("year(4)", 0), ("varchar(9)", ""), ("longtext", ""), ("enum('z','a')", "z"), ("set('z','a')", ""), ("time", "00:00:00"),
        ("time(2)", "00:00:00.00"), ("varbinary(4)", {"base64": ""}), ("longblob", {"base64": ""}), ("binary(4)", "?"), ("date", "?"),
        ("datetime", "?"), ("timestamp", "?"), ("json", "?"), ("point", "?"), ("uuid", "?"), ("inet6", "?"),
    ],
)  # fmt: skip
def test_a_column_that_is_not_null_and_has_no_default_has_its_types(kind: str, value: Any) -> None:
    assert stored(kind, None, nullable=False) == value
    assert stored(kind, None) is None


@pytest.mark.parametrize("extra", ["auto_increment", "VIRTUAL GENERATED", "STORED GENERATED"])
def test_what_the_server_counts_or_computes_has_no_default(extra: str) -> None:
    assert stored("int(11)", None, nullable=False, extra=extra) == "?"
