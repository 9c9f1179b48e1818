"""Forms of values that both servers compute alike."""

from decimal import Decimal

import pytest

from relay.compare.rows.column_forms import PairedColumn, ValueKind, row_hash, same_charset
from relay.compare.rows.table_shape import ShapeColumn


def shape(kind: str, charset: str = "", *, nullable: bool = False, extra: str = "") -> ShapeColumn:
    return ShapeColumn("c", kind, nullable, charset, f"{charset}_bin" if charset else "", None, extra, "")


def pair(kind: str, other: str = "", charset: str = "", other_charset: str = "") -> PairedColumn:
    return PairedColumn(shape(kind, charset), shape(other or kind, other_charset or charset))


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("int(11)", "`c`"),
        ("int(8) unsigned zerofill", "`c` + 0"),
        ("float", "`c` + 0e0"),
        ("bit(9)", "CAST(`c` AS UNSIGNED)"),
        ("enum('a','b')", "CAST(`c` AS UNSIGNED)"),
        ("datetime(6)", "`c`"),
        ("varbinary(9)", "`c`"),
        ("longblob", "SHA2(`c`, 256)"),
        ("point", "SHA2(CAST(`c` AS BINARY), 256)"),
        ("json", "SHA2(CONVERT(CAST(`c` AS CHAR) USING utf8mb4), 256)"),
    ],
)
def test_each_type_has_a_form(kind: str, form: str) -> None:
    assert pair(kind).hashed() == form


def test_an_address_of_mariadb_is_the_bytes_that_a_view_makes_of_it() -> None:
    one = pair("uuid", "binary(16)")
    assert (one.hashed(), one.fetched()) == ("CAST(`c` AS BINARY(16))", "HEX(CAST(`c` AS BINARY(16)))")
    assert one.compared_literal("00ff") == "CAST(X'00ff' AS UUID)"
    assert pair("binary(16)", "uuid").compared_literal("00ff") == "X'00ff'"


def test_texts_of_two_character_sets_are_compared_in_one_that_has_all() -> None:
    assert pair("varchar(9)", charset="latin1").hashed() == "CAST(`c` AS BINARY)"
    assert (
        pair("varchar(9)", charset="latin1", other_charset="utf8mb4").hashed()
        == "CAST(CONVERT(`c` USING utf8mb4) AS BINARY)"
    )


def test_utf8_and_utf8mb3_are_one_character_set() -> None:
    assert same_charset("utf8", "utf8mb3")
    assert not same_charset("utf8", "utf8mb4")


def test_members_of_two_lists_are_compared_as_texts() -> None:
    assert pair("enum('a','b')", "enum('b','a')").kind is ValueKind.OTHER


def test_lengths_and_nulls_are_in_a_row_s_checksum() -> None:
    text = PairedColumn(shape("varchar(9)", "utf8mb4", nullable=True), shape("varchar(9)", "utf8mb4"))
    assert row_hash([text]) == "SHA2(CONCAT_WS('#', CAST(`c` AS BINARY), LENGTH(`c`), ISNULL(`c`)), 256)"


@pytest.mark.parametrize(
    ("kind", "value", "literal"),
    [
        ("int", 5, "5"),
        ("decimal(9,2)", Decimal("-1.50"), "-1.50"),
        ("double", 0.1, "0.1e0"),
        ("double", 1e300, "1e+300"),
        ("date", "0000-00-00", "'0000-00-00'"),
        ("blob", "00FF", "X'00FF'"),
        ("json", "5B5D", "_utf8mb4 X'5B5D'"),
        ("int", None, "NULL"),
    ],
)
def test_a_value_comes_back_as_a_literal(kind: str, value: object, literal: str) -> None:
    assert pair(kind).literal(value) == literal


def test_documents_are_equal_whatever_their_blanks_and_order() -> None:
    one = pair("longtext", "json", "utf8mb4")
    texts = ['{"b": 1, "a": [1.0]}', '{"a":[1.0],"b":1}']
    assert len({one.told(text.encode().hex()) for text in texts}) == 1
    assert one.told(b"no document".hex()) == "no document"


def test_a_generated_column_is_known_by_what_else_is_said_of_it() -> None:
    assert shape("int", extra="STORED GENERATED").is_generated
    assert not shape("timestamp", extra="DEFAULT_GENERATED on update CURRENT_TIMESTAMP").is_generated
