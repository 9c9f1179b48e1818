"""Keys and attributes of definitions with their places, and what is known of an unknown part."""

import pytest

from protocol.sql.lexer import sql_tokens
from protocol.sql.tables.ddl_parser import read_table_definition
from protocol.sql.tables.ddl_statement import WrittenParts

MYSQL, MARIADB = "9.7.4", "10.11.19-MariaDB"


def parts(text: str, version: str = MYSQL) -> WrittenParts:
    made = read_table_definition(sql_tokens(text, 0, version), text, "d", 0, version, lambda token: token.text)
    assert made is not None
    return made.written


@pytest.mark.parametrize(
    ("definition", "kind", "name", "columns"),
    [
        ("PRIMARY KEY (a, b)", "PRIMARY", "PRIMARY", [("a", None), ("b", None)]),
        ("UNIQUE KEY u (b(3), (a + 1))", "UNIQUE", "u", [("b", 3), ("", None)]),
        ("KEY (a)", "", "", [("a", None)]),
        ("FULLTEXT INDEX f (b)", "FULLTEXT", "f", [("b", None)]),
        ("SPATIAL KEY s (a)", "SPATIAL", "s", [("a", None)]),
        ("CONSTRAINT c CHECK (a > 1)", "CHECK", "c", []),
        ("CONSTRAINT c FOREIGN KEY (a) REFERENCES p (id)", "FOREIGN", "c", []),
    ],
)
def test_a_key_has_its_kind_its_name_and_its_columns(
    definition: str, kind: str, name: str, columns: list[tuple[str, int | None]]
) -> None:
    (key,) = parts(f"CREATE TABLE t (a INT, b TEXT, {definition})").keys
    assert (key.kind, key.name, [(part.name, part.prefix) for part in key.parts]) == (kind, name, columns)


def test_a_key_knows_where_its_name_its_columns_and_their_bracket_are() -> None:
    text = "ALTER TABLE t ADD UNIQUE INDEX u USING BTREE (a DESC, bc) COMMENT 'x'"
    (key,) = parts(text).keys
    assert text[key.named] == "u"
    assert [text[: part.stop].rpartition(part.name)[1:] for part in key.parts] == [("a", ""), ("bc", "")]
    assert text[key.closed :] == ") COMMENT 'x'"


def test_a_key_that_the_server_names_has_no_place_of_a_name() -> None:
    (key,) = parts("CREATE TABLE t (a INT, KEY (a))").keys
    assert key.named == -1


def test_a_foreign_key_has_its_references() -> None:
    (key,) = parts("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (id))").keys
    assert key.references is not None
    assert key.references.parent == ("d", "p")


def test_a_key_that_is_made_only_if_it_is_missing_has_the_place_of_these_words() -> None:
    text = "ALTER TABLE t ADD KEY IF NOT EXISTS k (a)"
    (key,) = parts(text, MARIADB).keys
    assert key.exists is not None
    assert text[key.exists.start : key.exists.stop] == "IF NOT EXISTS"


def test_the_attributes_of_a_column_have_their_places_and_those_of_their_values() -> None:
    text = (
        "CREATE TABLE t (a INT UNSIGNED NOT NULL DEFAULT 5 AUTO_INCREMENT, "
        "b VARCHAR(3) CHARACTER SET latin1 GENERATED ALWAYS AS (a) STORED)"
    )
    found = [(one.name, text[one.start : one.stop], text[one.value : one.stop]) for one in parts(text).attributes]
    assert found == [
        ("type", "INT UNSIGNED", " UNSIGNED"),
        ("NOT NULL", "NOT NULL", ""),
        ("DEFAULT", "DEFAULT 5", "5"),
        ("AUTO_INCREMENT", "AUTO_INCREMENT", ""),
        ("type", "VARCHAR(3)", "(3)"),
        ("CHARACTER SET", "CHARACTER SET latin1", "latin1"),
        ("AS", "GENERATED ALWAYS AS (a) STORED", "(a) STORED"),
    ]


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("CREATE TABLE t (a INT, PERIOD FOR SYSTEM_TIME (x, y))", True),
        ("CREATE TABLE t (a INT) WITH SYSTEM VERSIONING", True),
        ("ALTER TABLE t ADD SYSTEM VERSIONING", False),
        ("CREATE TABLE t (a INT) NEW 3", False),
    ],
)
def test_an_unknown_part_is_read_where_only_its_effect_is_not_known(text: str, is_read: bool) -> None:
    (unknown,) = parts(text, MARIADB).unknown
    assert unknown.is_read is is_read
