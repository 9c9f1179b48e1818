"""What a Table_map says of its columns: types, and what newer servers add."""

import struct

import pytest

from protocol.binlog.schema.column_charsets import charset_of_column, collation_of_charset
from protocol.binlog.schema.table_columns import TableColumn, described_columns
from protocol.binlog.table_map import decode_table_map
from protocol.errors import Malformed

LONG, VARCHAR, STRING, ENUM, SET, UNKNOWN = 3, 15, 254, 247, 248, 200
HEAD = struct.pack("<IHH", 108, 0, 1) + b"\x04shop\0\x01t\0"


def metadata(kind: int, value: bytes) -> bytes:
    return bytes((kind, len(value))) + value


def columns(types: bytes, arguments: bytes, optional: bytes = b"", *, mariadb: bool = False) -> list[TableColumn]:
    nullable = bytes((len(types) + 7) // 8)
    body = HEAD + bytes((len(types),)) + types + bytes((len(arguments),)) + arguments + nullable + optional
    found = described_columns(decode_table_map(body), mariadb)
    assert not found.optional_malformed
    return found.columns


def test_types_have_their_arguments() -> None:
    found = columns(bytes((LONG, VARCHAR, STRING)), struct.pack("<H", 300) + b"\xfe\x50")
    assert [(column.type, column.arguments) for column in found] == [
        (LONG, (0, 0)),
        (VARCHAR, (300, 0)),
        (STRING, (254, 80)),
    ]


@pytest.mark.parametrize(("first", "arguments"), [(0xFE, (0xFE, 10)), (0xDE, (0xFE, 0x20A)), (0xCE, (0xFE, 0x30A))])
def test_the_upper_bits_of_a_strings_length_are_inverted_in_its_type(first: int, arguments: tuple[int, int]) -> None:
    (column,) = columns(bytes((STRING,)), bytes((first, 10)))
    assert column.arguments == arguments


@pytest.mark.parametrize("real", [ENUM, SET])
def test_a_string_may_be_an_enum_or_a_set(real: int) -> None:
    (column,) = columns(bytes((STRING,)), bytes((real, 1)))
    assert (column.type, column.arguments) == (real, (real, 1))


def test_behind_a_type_that_nobody_knows_arguments_are_not_known() -> None:
    found = columns(bytes((UNKNOWN, VARCHAR)), b"")
    assert [(column.type, column.arguments) for column in found] == [(UNKNOWN, (0, 0)), (VARCHAR, (0, 0))]


def test_names_signs_charsets_and_texts_come_with_full_metadata() -> None:
    types, arguments = bytes((LONG, VARCHAR, STRING, LONG, STRING)), b"\x10\0" + bytes((ENUM, 1)) + bytes((SET, 1))
    optional = (
        metadata(1, b"\x40")
        + metadata(2, b"\x08")
        + metadata(4, b"".join(bytes((len(name),)) + name for name in (b"id", b"name", b"kind", b"count", b"tags")))
        + metadata(5, b"\x01\x01x")
        + metadata(6, b"\x02\x01a\x01b")
        + metadata(10, b"\x3f")
        + metadata(9, b"of later versions")
    )
    identity, name, kind, count, tags = columns(types, arguments, optional)
    assert [column.name for column in (identity, name, kind, count, tags)] == [
        b"id",
        b"name",
        b"kind",
        b"count",
        b"tags",
    ]
    assert (identity.unsigned, count.unsigned, name.unsigned) == (False, True, None)
    assert (name.charset, kind.charset, tags.charset) == ("latin1", "binary", "binary")
    assert (kind.texts, tags.texts) == ([b"a", b"b"], [b"x"])


def test_a_year_has_a_bit_among_the_signs() -> None:
    # YEAR, INT, INT UNSIGNED, FLOAT, DECIMAL as MySQL 9.7 and MariaDB 10.11 and 11.8 wrote them
    found = columns(bytes((13, 3, 3, 4, 246)), bytes((4, 5, 2)), metadata(1, b"\xa0"))
    assert [column.unsigned for column in found] == [True, False, True, False, False]


def test_columns_may_have_other_charsets_than_most_or_one_each() -> None:
    types, arguments = bytes((VARCHAR, VARCHAR, STRING)), bytes(4) + bytes((ENUM, 1))
    of_most = columns(types, arguments, metadata(2, b"\x08\x01\x21"))
    assert [column.charset for column in of_most] == ["latin1", "utf8", None]
    each = columns(types, arguments, metadata(3, b"\x21\x08") + metadata(11, b"\x3f"))
    assert [column.charset for column in each] == ["utf8", "latin1", "binary"]


@pytest.mark.parametrize(
    "optional",
    [
        metadata(2, b"\x08\x07\x21"),
        metadata(6, b"\xfe" + (1 << 20).to_bytes(8, "little")),
        metadata(4, b"\x05a"),
        b"\x04",
    ],
    ids=["a column that is not there", "a million texts", "a name that is cut", "no length"],
)
def test_metadata_that_cannot_be_is_reported_and_the_types_are_there(optional: bytes) -> None:
    body = HEAD + b"\x02" + bytes((VARCHAR, STRING)) + b"\x04" + bytes(2) + bytes((ENUM, 1)) + b"\0" + optional
    found = described_columns(decode_table_map(body), False)
    assert found.optional_malformed
    assert [column.type for column in found.columns] == [VARCHAR, ENUM]


def test_types_that_are_cut_are_malformed() -> None:
    with pytest.raises(Malformed):
        described_columns(decode_table_map(HEAD + b"\x05\x03"), False)


@pytest.mark.parametrize(("charset", "collation"), [("utf8", 33), ("utf8mb3", 33), ("LATIN1", 5), ("nobody's", None)])
def test_a_charset_has_a_collation_that_stands_for_it(charset: str, collation: int | None) -> None:
    found = collation_of_charset(charset)
    assert (found is None) == (collation is None)
    if found is not None and collation is not None:
        assert charset_of_column(found) == charset_of_column(collation)
