"""The values that the survey gives to constructs, by class: as literals, and as columns of one row."""

from dataclasses import dataclass
from functools import cache
from typing import Final

from protocol.sql.survey.value_class import ValueClass, class_of_text


@dataclass(frozen=True)
class Value:
    """A value: `text` is what is written in a statement, a literal or the name of a column."""

    kind: ValueClass
    text: str
    is_column: bool = False


@dataclass(frozen=True)
class Column:
    """A column of the one row: its name says its type and value. `filled` is the literal that is stored into it."""

    kind: ValueClass
    name: str
    type: str
    filled: str


C = ValueClass


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _class_of_column(text: str) -> ValueClass:
    kind = class_of_text(text)
    return ValueClass.TEXT_DATE_COLUMN if kind is ValueClass.TEXT_DATE else kind


def _text_in(collation: str) -> str:
    return f"VARCHAR(20) CHARACTER SET {collation.split('_')[0]} COLLATE {collation}"


_LITERALS: Final[dict[ValueClass, tuple[str, ...]]] = {
    C.NULL: ("NULL",),
    C.INTEGER: ("0", "1", "2", "3", "12", "65", "20200131", "TRUE"),
    C.NEGATIVE: ("-1", "-3", "-9223372036854775808"),
    C.UNSIGNED: ("18446744073709551615", "9223372036854775808"),
    C.DECIMAL: ("0.0", "1.5", "-2.55", "0.5", "12345678901234567890.123456789", "20200131101112.5"),
    C.DOUBLE: ("0e0", "1e0", "1.5e0", "-2.5e0", "1e300", "0.1e0"),
    C.HEX: ("0xFF", "0x41", "x'3132'", "b'101'", "x''"),
    C.BYTES: ("_binary'abc'", "_binary'12'", "_binary''"),
    C.DATE: ("DATE '2020-01-31'", "DATE '1999-12-31'"),
    C.DATETIME: ("TIMESTAMP '2020-01-31 10:11:12'", "TIMESTAMP '1999-12-31 23:59:59.999999'"),
    C.TIME: ("TIME '10:11:12'", "TIME '-838:59:59'", "TIME '00:00:01.5'"),
}
_TEXTS: Final = (
    "",
    "0", "1", "12", "-1", "1.5", "1e3", "20200131", " 7 ", "99999999999999999999",
    "2020-01-31", "2020-01-31 10:11:12", "1999-12-31 23:59:59.999999", "2020/1/5", "20-01-31T10:11:12",
    "10:11:12", "-01:02:03", "838:59:59.5", "1 02:03:04",
    "2020-01-31 10:11:12+02:00", "2020-01-31T10:11:12-05:30",
    "2020-02-31", "0000-00-00", "2020-00-10", "2020-13-01 10:00:00", "2020-01-31 25:00:00", "900:00:00", "2020-01-31abc",
    "abc", "ABC", "a b ", "12abc", "1x", "a%_", "%Y-%m-%d", "a.b", "a\nb", "[1, {\"a\": 2}]", "$[0]", "POINT(1 2)", "a,b", "1,2",
    "é", "ÄÖ", "Straße", "ı", "日本",
)  # fmt: skip
_WIDE: Final = ("é", "ÄÖ", "Straße", "Iİ", "日本")
_COLUMNS: Final = (
    Column(C.NULL, "int_null", "INT", "NULL"),
    Column(C.NULL, "varchar_null", "VARCHAR(20)", "NULL"),
    Column(C.NULL, "datetime_null", "DATETIME", "NULL"),
    Column(C.NULL, "varbinary_null", "VARBINARY(20)", "NULL"),
    Column(C.INTEGER, "int_0", "INT", "0"),
    Column(C.INTEGER, "tinyint_1", "TINYINT", "1"),
    Column(C.INTEGER, "int_20200131", "INT", "20200131"),
    Column(C.INTEGER, "int_unsigned_3", "INT UNSIGNED", "3"),
    Column(C.INTEGER, "int_zerofill_7", "INT(5) UNSIGNED ZEROFILL", "7"),
    Column(C.INTEGER, "bigint_max", "BIGINT", "9223372036854775807"),
    Column(C.NEGATIVE, "int_minus_5", "INT", "-5"),
    Column(C.NEGATIVE, "bigint_min", "BIGINT", "-9223372036854775808"),
    Column(C.UNSIGNED, "bigint_unsigned_max", "BIGINT UNSIGNED", "18446744073709551615"),
    Column(C.DECIMAL, "decimal_12_50", "DECIMAL(10,2)", "12.50"),
    Column(C.DECIMAL, "decimal_minus_0_5", "DECIMAL(30,10)", "-0.5"),
    Column(C.DOUBLE, "double_2_5", "DOUBLE", "2.5"),
    Column(C.DOUBLE, "double_minus_1e19", "DOUBLE", "-1e19"),
    Column(C.DOUBLE, "float_0_1", "FLOAT", "0.1"),
    *(
        Column(_class_of_column(text), f"varchar_{name}", "VARCHAR(40) CHARACTER SET utf8 COLLATE utf8_general_ci", _quoted(text))
        for name, text in (
            ("empty", ""), ("7", "7"), ("1_5", "1.5"), ("minus_3", "-3"), ("2020_02_29", "2020-02-29"),
            ("2020_01_31_10_11_12_5", "2020-01-31 10:11:12.5"), ("23_59_59", "23:59:59"), ("10_11", "10:11"),
            ("2020_01_31_10_11_12_plus_02_00", "2020-01-31 10:11:12+02:00"), ("2020_02_30", "2020-02-30"),
            ("0000_00_00", "0000-00-00"), ("Abc", "Abc"), ("3x", "3x"), ("a_space", "a "), ("json_a", '{"a": [1, 2.50]}'),
        )
    ),
    Column(C.TEXT_OTHER, "text_lorem", "TEXT CHARACTER SET utf8 COLLATE utf8_general_ci", "'lorem ipsum'"),
    Column(C.TEXT_OTHER, "char_abc", "CHAR(5) CHARACTER SET latin1 COLLATE latin1_swedish_ci", "'abc'"),
    *(
        Column(C.TEXT_WIDE, f"{collation}_{name}", _text_in(collation), f"_utf8 x'{text.encode().hex()}'")
        for collation, name, text in (
            ("utf8_general_ci", "eacute", "é"), ("utf8_general_ci", "strasse", "Straße"), ("utf8_unicode_ci", "AeOe", "ÄÖ"),
            ("utf8_bin", "eacute", "é"), ("latin1_swedish_ci", "AeOe", "ÄÖ"), ("latin1_bin", "eacute", "é"),
            ("utf8_general_ci", "nihon", "日本"), ("utf8mb4_general_ci", "i_dot", "İı"), ("ucs2_general_ci", "eacute", "é"),
        )
    ),
    Column(C.TEXT_WIDE, "utf8mb4_unicode_ci_smile", _text_in("utf8mb4_unicode_ci"), "_utf8mb4 x'F09F9880'"),
    Column(C.BYTES, "varbinary_abc", "VARBINARY(20)", "'abc'"),
    Column(C.BYTES, "varbinary_FF00", "VARBINARY(20)", "x'FF00'"),
    Column(C.BYTES, "binary4_12", "BINARY(4)", "'12'"),
    Column(C.BYTES, "blob_8_bytes", "BLOB", "x'0102030405060708'"),
    Column(C.BIT, "bit8_5", "BIT(8)", "b'101'"),
    Column(C.BIT, "bit1_1", "BIT(1)", "b'1'"),
    Column(C.BIT, "bit64_max", "BIT(64)", "18446744073709551615"),
    Column(C.DATE, "date_2020_01_31", "DATE", "'2020-01-31'"),
    Column(C.DATE, "date_2020_02_29", "DATE", "'2020-02-29'"),
    Column(C.DATETIME, "datetime_2020_01_31_10_11_12", "DATETIME", "'2020-01-31 10:11:12'"),
    Column(C.DATETIME, "datetime6_1999_12_31_23_59_59_999999", "DATETIME(6)", "'1999-12-31 23:59:59.999999'"),
    Column(C.DATETIME, "timestamp_2020_01_31_10_11_12", "TIMESTAMP NULL DEFAULT NULL", "'2020-01-31 10:11:12'"),
    Column(C.DATETIME, "timestamp3_2020_06_30_12_00_00_5", "TIMESTAMP(3) NULL DEFAULT NULL", "'2020-06-30 12:00:00.5'"),
    Column(C.TIME, "time_10_11_12", "TIME", "'10:11:12'"),
    Column(C.TIME, "time3_minus_01_02_03_456", "TIME(3)", "'-01:02:03.456'"),
    Column(C.TIME, "time_100_00_00", "TIME", "'100:00:00'"),
    Column(C.YEAR, "year_2020", "YEAR", "2020"),
    Column(C.YEAR, "year_0000", "YEAR", "'0000'"),
    Column(C.YEAR, "year_1999", "YEAR", "1999"),
    Column(C.DATE_ZERO, "date_0000_00_00", "DATE", "'0000-00-00'"),
    Column(C.DATE_ZERO, "date_2020_00_10", "DATE", "'2020-00-10'"),
    Column(C.DATE_ZERO, "datetime_0000_00_00", "DATETIME", "'0000-00-00 00:00:00'"),
    Column(C.DATE_ZERO, "datetime_2020_10_00_10_11_12", "DATETIME", "'2020-10-00 10:11:12'"),
    Column(C.DATE_ZERO, "timestamp_0000_00_00", "TIMESTAMP NULL DEFAULT NULL", "'0000-00-00 00:00:00'"),
    Column(C.ENUM, "enum_b", "ENUM('a','b','7') CHARACTER SET utf8 COLLATE utf8_general_ci", "'b'"),
    Column(C.ENUM, "enum_7", "ENUM('a','b','7') CHARACTER SET utf8 COLLATE utf8_general_ci", "3"),
    Column(C.SET, "set_a_c", "SET('a','b','c') CHARACTER SET utf8 COLLATE utf8_general_ci", "'a,c'"),
    Column(C.SET, "set_none", "SET('a','b','c') CHARACTER SET utf8 COLLATE utf8_general_ci", "''"),
    Column(C.GEOMETRY, "point_1_2", "GEOMETRY", "x'000000000101000000000000000000F03F0000000000000040'"),
    Column(
        C.GEOMETRY, "line_0_0_3_4", "GEOMETRY",
        "x'0000000001020000000200000000000000000000000000000000000000000000000000084000000000000010C0'",
    ),
    Column(
        C.GEOMETRY,
        "square_0_4",
        "GEOMETRY",
        "x'00000000010300000001000000050000000000000000000000000000000000000000000000000010400000000000000000"
        "00000000000010400000000000001040000000000000000000000000000010400000000000000000" "0000000000000000'",
    ),
)  # fmt: skip
JSON_COLUMNS: Final = (
    Column(C.JSON, "json_object", "JSON", '\'{"a": [1, 2.50, "x"], "b": null}\''),
    Column(C.JSON, "json_number", "JSON", "'7'"),
    Column(C.JSON, "json_text", "JSON", "'\"abc\"'"),
)
"""Columns of a type that a MariaDB has as a text, and MySQL 5.6 not at all."""


def columns() -> tuple[Column, ...]:
    """Return the columns of the table of values."""
    return _COLUMNS


@cache
def values_by_class() -> dict[ValueClass, tuple[Value, ...]]:
    """Return the values of each class, literals first."""
    found: dict[ValueClass, list[Value]] = {}
    for kind, texts in _LITERALS.items():
        found.setdefault(kind, []).extend(Value(kind, text) for text in texts)
    for text in _TEXTS:
        found.setdefault(class_of_text(text), []).append(Value(class_of_text(text), _quoted(text)))
    for column in _COLUMNS:
        found.setdefault(column.kind, []).append(Value(column.kind, column.name, is_column=True))
    return {kind: tuple(values) for kind, values in found.items()}
