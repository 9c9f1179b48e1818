"""A default is the same text whoever tells it: the statement that made it, or information_schema of either server."""

import pytest

from protocol.sql.tables.default_text import default_of_type, literal_text, text_default, told_default


@pytest.mark.parametrize(
    ("kind", "mysql", "mariadb", "known"),
    [
        ("varchar(9)", "7", "'7'", "'7'"), ("varchar(9)", "007", "'007'", "'007'"), ("varchar(9)", "x", "'x'", "x"),
        ("varchar(9)", "'x'", "\'\'\'x\'\'\'", "\'\'\'x\'\'\'"), ("varchar(9)", "NULL", "'NULL'", "'NULL'"),
        ("varchar(9)", "`a`", "'`a`'", "'`a`'"), ("varchar(9)", r"(\d)", r"'(\\d)'", r"'(\\d)'"),
        ("varchar(9)", "a\nb", r"'a\nb'", "a\nb"), ("varchar(9)", r"a\nb", r"'a\\nb'", r"a\nb"),
        ("enum('0','1')", "1", "'1'", "'1'"), ("int(11)", "5", "5", "5"), ("int(5) unsigned zerofill", "00005", "00005", "5"),
        ("bit(8)", "b'101'", "b'101'", "b'101'"), ("time", "12:00:00", "'12:00:00'", "12:00:00"), ("double", "1e-20", "1e-20", "1e-20"),
    ],
)  # fmt: skip
def test_servers_with_quotation_marks_and_without_tell_the_same(
    kind: str, mysql: str, mariadb: str, known: str
) -> None:
    assert told_default(kind, "", mysql, quoted=False) == known
    assert told_default(kind, "", mariadb, quoted=True) == known
    assert default_of_type(kind, known) == known


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ("NULL", None), ("`s`", "(`s`)"), ("curdate()", "(curdate())"), ("current_timestamp(3)", "current_timestamp(3)"),
        ("('a' = 'b')", "('a' = 'b')"), ("'a' = 'b'", "('a' = 'b')"), ("nextval(`d`.`s`)", "(nextval(`d`.`s`))"),
    ],
)  # fmt: skip
def test_what_a_mariadb_shows_without_quotation_marks_is_computed(told: str, known: str | None) -> None:
    assert told_default("varchar(9)", "", told, quoted=True) == known


def test_what_a_mysql_computes_it_says_beside_it() -> None:
    assert told_default("varchar(9)", "DEFAULT_GENERATED", "`s`", quoted=False) == "`s`"
    assert told_default("varchar(9)", "DEFAULT_GENERATED", "7", quoted=False) == "7"
    assert told_default("datetime", "DEFAULT_GENERATED", "CURRENT_TIMESTAMP", quoted=False) == "CURRENT_TIMESTAMP"


@pytest.mark.parametrize("text", ["it's", "\\", "'", "a\\'b", "(\\n)", "\\0(", "''", "NULL", "1", "", "x"])
def test_a_text_comes_back_as_it_was(text: str) -> None:
    made = text_default(text)
    assert made == text or literal_text(made) == text
