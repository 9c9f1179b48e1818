"""Definitions in the words of two versions."""

import pytest

from relay.compare.definitions.same_words import (
    plain_body,
    plain_default,
    plain_extra,
    plain_modes,
    plain_sql,
    plain_type,
    same_collation,
    same_default,
    same_type,
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int(10) unsigned", "int unsigned"),
        ("year(4)", "year"),
        ("tinyint(1)", "tinyint(1)"),
        ("bigint(20)", "bigint"),
        ("geometrycollection", "geomcollection"),
        ("enum('A','b')", "enum('A','b')"),
    ],
)
def test_a_type_is_the_same_without_its_display_width(old: str, new: str) -> None:
    assert same_type(old, new)


def test_what_a_width_says_of_zerofill_and_texts_is_kept() -> None:
    assert plain_type("int(8) unsigned zerofill") == "int(8) unsigned zerofill"
    assert not same_type("varchar(8)", "varchar(9)")


def test_a_mariadb_s_own_types_may_become_others() -> None:
    assert same_type("uuid", "char(36)")
    assert same_type("longtext", "json")


def test_collations_have_two_names_and_mariadb_some_of_its_own() -> None:
    assert same_collation("utf8_general_ci", "utf8mb3_general_ci")
    assert same_collation("utf8mb4_uca1400_ai_ci", "utf8mb4_0900_ai_ci")
    assert not same_collation("utf8mb4_bin", "utf8mb4_0900_ai_ci")


@pytest.mark.parametrize(
    ("told", "plain"), [("NULL", None), ("'a''b'", "a'b"), ("current_timestamp(3)", "CURRENT_TIMESTAMP(3)"), ("1", "1")]
)
def test_a_default_of_mariadb_is_read_as_an_expression(told: str, plain: str | None) -> None:
    assert plain_default(told, "", of_mariadb=True) == plain


def test_a_default_uuid_is_made_binary_by_a_view() -> None:
    assert same_default("uuid()", "uuid_to_bin(uuid())")
    assert not same_default("1", "2")


def test_what_else_is_said_of_a_column_is_the_same() -> None:
    assert plain_extra("DEFAULT_GENERATED on update CURRENT_TIMESTAMP") == plain_extra("on update current_timestamp()")


def test_expressions_are_the_same_whatever_their_quotes_and_brackets() -> None:
    assert plain_sql("concat(`id`,_utf8mb4\\'x\\')") == plain_sql("(concat(id, 'x'))")
    assert plain_sql("'unclosed") == "'unclosed"


def test_bodies_are_the_same_whatever_is_quoted_but_not_whatever_the_case() -> None:
    assert plain_body("SET NEW.`rank` = 1") == plain_body("SET NEW.rank  = 1")
    assert plain_body("SELECT 'a'") != plain_body("SELECT 'A'")


def test_modes_that_new_servers_refuse_do_not_count() -> None:
    assert plain_modes("NO_AUTO_CREATE_USER,STRICT_ALL_TABLES") == "STRICT_ALL_TABLES"
