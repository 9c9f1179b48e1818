"""Statements that define tables, and what is kept of the columns that they define."""

import struct
import zlib

import pytest

from protocol.binlog.schema.column_description import ColumnDescription, decode_columns, encode_columns
from protocol.binlog.schema.definition_statement import definition_statement
from protocol.sql.sql_mode import ANSI_QUOTES
from protocol.sql.statements.statement_names import defined_names

QUERY, QUERY_COMPRESSED = 2, 165


def event(kind: int, text: bytes) -> bytes:
    body = struct.pack("<IIBHH", 9, 0, 4, 0, 0) + b"shop\0" + text
    return struct.pack("<IBIIIH", 0, kind, 1, 19 + len(body) + 4, 0, 0) + body + bytes(4)


def packed(text: bytes) -> bytes:
    return b"\x82" + len(text).to_bytes(2, "big") + zlib.compress(text)


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("CREATE TABLE shop.`my ``t` (id int, REFERENCES other (id))", {"create", "table", "shop", "my `t"}),
        ('ALTER TABLE "Say ""x""" ADD c int', {"alter", "table", 'say "x"', "add", "c", "int"}),
        ("DROP TABLE a /* not b */, c -- nor d\n", {"drop", "table", "a", "c"}),
        ("CREATE TABLE t (a int) RENAME TO shop.u", {"create", "table", "t", "to", "shop", "u"}),
        ("DROP /*! TABLE */ a # b", {"drop", "table", "a"}),
        (")) DROP TABLE 'x' a", {"drop", "table", "a"}),
    ],
)
def test_the_tables_of_a_definition_are_among_its_words(statement: str, names: set[str]) -> None:
    found = defined_names(statement.encode(), ANSI_QUOTES if '"' in statement else 0)
    assert found is not None and names <= found
    assert not {"other", "not", "nor", "b", "d", "x"} & found


@pytest.mark.parametrize(
    "statement",
    [b"DROP TABLE \xff", b"DROP TABLE " + b"x" * (1 << 20), b"DROP TABLE " + b",".join(b"t%d" % n for n in range(300))],
    ids=["no UTF-8", "too long", "too many names"],
)
def test_a_definition_that_cannot_be_told_may_be_about_any_table(statement: bytes) -> None:
    assert defined_names(statement, 0) is None


@pytest.mark.parametrize("checksum", [True, False])
def test_a_definition_comes_with_its_schema(checksum: bool) -> None:
    query = event(QUERY, b"DROP TABLE t")
    assert definition_statement(query if checksum else query[:-4], 13, checksum) == (b"shop", b"DROP TABLE t")
    assert definition_statement(query, 0, True) == (b"shop", b"DROP TABLE t")


def test_a_compressed_definition_is_unpacked() -> None:
    found = definition_statement(event(QUERY_COMPRESSED, packed(b" /* x */ create table t (a int)")), 13, True)
    assert found == (b"shop", b" /* x */ create table t (a int)")


def test_of_a_compressed_statement_it_shows_only_here_that_it_defines_nothing() -> None:
    assert definition_statement(event(QUERY_COMPRESSED, packed(b"INSERT INTO t VALUES (1)")), 13, True) is None


def test_a_compressed_definition_that_is_damaged_has_no_text() -> None:
    assert definition_statement(event(QUERY_COMPRESSED, b"\x82\x00"), 13, True) == (b"shop", None)


def test_descriptions_of_columns_are_read_as_they_were_packed() -> None:
    described = decode_columns(
        encode_columns(
            [
                ColumnDescription("id", "int(10) unsigned"),
                ColumnDescription("kind", r"enum('it''s','a\\b','line\nend')", "utf8"),
                ColumnDescription("at", "datetime(3)"),
            ]
        )
    )
    assert [(column.name, column.native, column.unsigned, column.charset) for column in described] == [
        (b"id", "int", True, None),
        (b"kind", "enum", False, "utf8"),
        (b"at", "datetime(3)", False, None),
    ]
    assert [column.texts for column in described] == [[], [b"it's", rb"a\b", b"line\nend"], []]
