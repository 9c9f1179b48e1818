"""The classes of values by which the survey's rows are kept."""

import pytest

from protocol.sql.lexer import sql_tokens
from protocol.sql.survey.value_class import TEXTS, ValueClass, class_of_text, classes_of_literal, classes_of_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "text empty"),
        ("12", "text number"),
        (" -1.5e3 ", "text number"),
        (".5", "text number"),
        ("20200131", "text number"),
        ("2020-01-31", "text date"),
        ("2020/1/5", "text date"),
        ("20-01-31T10:11:12.5", "text date"),
        ("2020-01-31 10:11", "text date"),
        ("10:11", "text time"),
        ("-1 02:03:04", "text time"),
        ("838:59:59", "text time"),
        ("838:59:59.9", "text no date"),
        ("839:00:00", "text no date"),
        ("10:60:00", "text no date"),
        ("2020-01-31 10:11:12+02:00", "text offset"),
        ("2020-01-31 25:11:12+02:00", "text no date"),
        ("2020-02-31", "text no date"),
        ("0000-00-00", "text no date"),
        ("2020-01-31abc", "text no date"),
        ("2020-01-31 24:00:00", "text no date"),
        ("abc", "text other"),
        ("12abc", "text other"),
        ("1,2,3", "text date"),
        ("1,2", "text other"),
        ("1" * 65, "text other"),
        ("é", "text wide"),
    ],
)
def test_the_class_of_a_text(text: str, expected: str) -> None:
    assert class_of_text(text) == expected


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("7", "integer"),
        ("TRUE", "integer"),
        ("9223372036854775807", "integer"),
        ("9223372036854775808", "unsigned"),
        ("18446744073709551616", "decimal"),
        ("1.5", "decimal"),
        ("1e5", "double"),
        ("0xFF", "hex"),
        ("0b101", "hex"),
        ("NULL", "null"),
        ("'2020-02-31'", "text no date"),
    ],
)
def test_the_class_of_a_literal(literal: str, expected: str) -> None:
    assert classes_of_literal(sql_tokens(literal, 0, "5.6.24")[0]) == expected


@pytest.mark.parametrize(
    ("column_type", "expected"),
    [
        ("int(11)", {"null", "integer", "negative"}),
        ("int(10) unsigned", {"null", "integer"}),
        ("bigint(20) unsigned", {"null", "integer", "unsigned"}),
        ("decimal(10,2)", {"null", "decimal"}),
        ("varchar(20)", {"null", *TEXTS}),
        ("varbinary(3)", {"null", "bytes"}),
        ("timestamp(3)", {"null", "datetime", "date zero"}),
        ("enum('unsigned')", {"null", "enum"}),
        ("inet6", set()),
        ("", set()),
    ],
)
def test_the_classes_of_a_column(column_type: str, expected: set[str]) -> None:
    assert classes_of_type(column_type) == expected


def test_every_text_class_is_a_text() -> None:
    assert {class_of_text(text) for text in ("", "1", "x", "é")} < TEXTS
    assert ValueClass.TEXT_DATE not in TEXTS
    assert ValueClass.BYTES not in TEXTS
