"""The parts of CREATE TABLE and ALTER TABLE with their places, and what is known of a definition beside a part that is not."""

import pytest

from protocol.sql.lexer import SqlToken, UnsupportedSyntax, sql_tokens
from protocol.sql.tables.ddl_parser import read_table_definition
from protocol.sql.tables.ddl_statement import (
    AlterTable,
    CreateTable,
    TableDefinition,
    WrittenParts,
    needs,
    needs_everything,
)

MYSQL = "9.7.4"


def read(text: str, sql_mode: int = 0) -> TableDefinition:
    made = read_table_definition(
        sql_tokens(text, sql_mode, MYSQL), text, "d", sql_mode, MYSQL, lambda token: token.text
    )
    assert made is not None
    return made


def parts(text: str) -> WrittenParts:
    return read(text).written


def unknown(text: str) -> list[str]:
    return [text[one.start : one.stop] for one in parts(text).unknown]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE t (a NEWTYPE(3) NOT NULL, b INT)", ["NEWTYPE(3)"]),
        ("CREATE TABLE t (a INT NEW 'x' DEFAULT 1, b INT)", ["NEW 'x'"]),
        ("CREATE TABLE t (a INT, NEW KEY k USING x (a), b INT)", ["KEY k USING x (a)"]),
        ("CREATE TABLE t (a INT, KEY k (a) NEW 3, b INT)", ["NEW 3"]),
        ("CREATE TABLE t (a INT, CONSTRAINT c EXCLUDE (a), b INT)", ["CONSTRAINT c EXCLUDE (a)"]),
        ("CREATE TABLE t (a INT) NEW = 3 ENGINE = x", ["NEW", "3"]),
        ("CREATE TABLE t (a INT) AS SELECT 1 AS b", ["AS SELECT 1 AS b"]),
        ("CREATE TABLE t LIKE u NEW", ["NEW"]),
        ("CREATE TABLE t (LIKE u", [""]),
        ("CREATE TABLE t (a INT), )", [",", ")"]),
        ("ALTER TABLE t NEW THING, ADD a INT", ["NEW THING"]),
        ("ALTER TABLE t ADD KEY k (a) NEW, ADD b INT", ["NEW"]),
        ("ALTER TABLE t ADD SYSTEM VERSIONING, ADD b INT", ["ADD SYSTEM VERSIONING"]),
        ("ALTER TABLE t ADD FOREIGN KEY IF NOT EXISTS (a) REFERENCES p (b)", ["FOREIGN KEY IF NOT EXISTS"]),
        ("CREATE TABLE t (a INT) PARTITION BY HASH (a) SELECT 1", ["SELECT 1"]),
    ],
)
def test_a_part_that_is_not_known_is_noted_and_reading_goes_on_after_it(text: str, expected: list[str]) -> None:
    assert " ".join(unknown(text)) == " ".join(expected)


def test_columns_and_keys_beside_an_unknown_type_are_known() -> None:
    made = read(
        "CREATE TABLE t (a NEWTYPE REFERENCES p (id), b INT, KEY (b), FOREIGN KEY f (b) REFERENCES q (id)) ENGINE=x"
    )
    assert isinstance(made, CreateTable)
    assert [column.column.name for column in made.columns] == ["a", "b"]
    assert made.engine == "x"
    assert [key.references.parent for key in made.written.inline] == [("d", "p")]
    assert [key.references.parent for key in made.written.foreign_keys] == [("d", "q")]


def test_who_asks_is_stopped_by_an_unknown_that_may_be_what_it_asks_for_and_by_no_other() -> None:
    made = read("CREATE TABLE t (a NEWTYPE, b INT FOREIGN x (REFERENCES)) NEW 3")
    needs(made, "ENGINE", "TYPE", "REFERENCES")
    for word in ("FOREIGN", "NEWTYPE", "NEW"):
        with pytest.raises(UnsupportedSyntax):
            needs(made, word)
    with pytest.raises(UnsupportedSyntax):
        needs_everything(made)


def test_a_query_that_fills_a_table_can_hide_no_option() -> None:
    made = read("CREATE TABLE t (a INT) SELECT type, engine FROM u")
    needs(made, "ENGINE", "TYPE")
    assert made.written.queried
    with pytest.raises(UnsupportedSyntax):
        needs_everything(made)


def test_the_names_of_a_constraint_that_cannot_be_read_leave_the_rest_known() -> None:
    def refused(token: SqlToken) -> str:
        if token.text == "odd":
            raise UnsupportedSyntax("a name that is not of its character set")
        return token.text

    text = "CREATE TABLE t (odd INT REFERENCES p (odd), KEY odd (a), b INT) ENGINE=x"
    made = read_table_definition(sql_tokens(text, 0, MYSQL), text, "d", 0, MYSQL, refused)
    assert isinstance(made, CreateTable)
    assert [column.column.name for column in made.columns] == ["", "b"]
    assert len(made.written.inline) == 1
    assert made.engine == "x"
    needs(made, "REFERENCES", "ENGINE")


def test_a_table_whose_name_cannot_be_read_is_no_definition() -> None:
    with pytest.raises(UnsupportedSyntax):
        read("CREATE TABLE 't' (a INT)")


def test_a_list_that_does_not_end_is_no_definition() -> None:
    for text in (
        "CREATE TABLE t (a INT",
        "CREATE TABLE t (a INT NEW (",
        "ALTER TABLE t NEW (",
        "ALTER TABLE t ADD (a INT",
    ):
        with pytest.raises(UnsupportedSyntax):
            read(text)


@pytest.mark.parametrize(
    "text", ["CREATE INDEX i ON t (a)", "ALTER DATABASE d COLLATE x", "DROP TABLE t", "SELECT 1", ""]
)
def test_other_statements_are_no_definitions_of_tables(text: str) -> None:
    assert read_table_definition(sql_tokens(text, 0, MYSQL), text, "d", 0, MYSQL, lambda token: token.text) is None


def test_options_have_their_places_and_values() -> None:
    text = "CREATE TABLE t (a INT) TYPE=MyISAM, ROW_FORMAT fixed DATA DIRECTORY = '/x' UNION = (a, b) START TRANSACTION"
    found = {
        one.name: (text[one.start : one.stop], text[one.value : one.stop], one.text) for one in parts(text).options
    }
    assert found == {
        "TYPE": ("TYPE=MyISAM", "MyISAM", "MyISAM"),
        "ROW_FORMAT": ("ROW_FORMAT fixed", "fixed", "fixed"),
        "DATA DIRECTORY": ("DATA DIRECTORY = '/x'", "'/x'", "/x"),
        "UNION": ("UNION = (a, b)", "(a, b)", ""),
        "START TRANSACTION": ("START TRANSACTION", "START TRANSACTION", ""),
    }


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT) ENGINE=x PARTITION BY HASH ((a)) (PARTITION p ENGINE = y, PARTITION q ENGINE 'z')",
        "ALTER TABLE t ENGINE=x PARTITION BY HASH (a) (PARTITION p ENGINE = y, PARTITION q ENGINE 'z')",
        "ALTER TABLE t ENGINE=x, REORGANIZE PARTITION p, q INTO (PARTITION p ENGINE = y, PARTITION q ENGINE 'z')",
        "ALTER TABLE t ENGINE=x, ADD PARTITION (PARTITION p ENGINE = y, PARTITION q ENGINE 'z')",
    ],
)
def test_each_place_that_names_an_engine_is_known(text: str) -> None:
    made = read(text)
    assert [one.text for one in made.written.engines] == ["x", "y", "z"]
    assert made.engine == "x"
    assert made.written.unknown == []


def test_elements_have_their_places_and_those_of_their_types() -> None:
    text = "CREATE TABLE t (a INT NOT NULL, KEY k (a), `b c` NEW(3) X, CHECK (a > 1))"
    found = [
        (text[one.start : one.stop], text[one.type_at : one.stop] if one.type_at >= 0 else None)
        for one in parts(text).elements
    ]
    assert found == [
        ("a INT NOT NULL", "INT NOT NULL"),
        ("KEY k (a)", None),
        ("`b c` NEW(3) X", "NEW(3) X"),
        ("CHECK (a > 1)", None),
    ]


def test_actions_have_their_places_and_what_they_list() -> None:
    text = "ALTER TABLE t ADD (a INT, b INT), CHANGE c d TEXT AFTER a, NEW (x), ADD CHECK (a) PARTITION BY HASH (a)"
    made = parts(text)
    assert [text[one.start : one.stop] for one in made.actions] == [
        "ADD (a INT, b INT)",
        "CHANGE c d TEXT AFTER a",
        "NEW (x)",
        "ADD CHECK (a) PARTITION BY HASH (a)",
    ]
    assert made.actions[0].listed is not None
    assert [text[one.start : one.stop] for one in made.actions[0].listed.elements] == ["a INT", "b INT"]
    assert made.partitioned


def test_checks_have_their_names_and_enforcement() -> None:
    text = "CREATE TABLE t (a INT CONSTRAINT c CHECK (a > (1)) NOT ENFORCED, CONSTRAINT CHECK (a) ENFORCED, CHECK (1))"
    assert [(text[one.start : one.stop], one.of_column) for one in parts(text).checks] == [
        ("CONSTRAINT c CHECK (a > (1)) NOT ENFORCED", True),
        ("CONSTRAINT CHECK (a) ENFORCED", False),
        ("CHECK (1)", False),
    ]


def test_what_an_alter_drops_and_numbers_is_known() -> None:
    made = read("ALTER IGNORE TABLE t DROP FOREIGN KEY f, DROP CONSTRAINT c, DROP CHECK k, ADD n SERIAL, RENAME TO u")
    assert isinstance(made, AlterTable)
    assert made.ignores
    assert made.dropped_constraints == ["f", "c"]
    assert made.numbers_rows
    assert made.rename == ("d", "u")


def test_under_another_grammar_everything_is_read_and_nothing_is_certain() -> None:
    made = read("CREATE TABLE t (a INT) ENGINE=x", sql_mode=1 << 9)
    assert made.engine == "x"
    with pytest.raises(UnsupportedSyntax):
        needs_everything(made)


def test_reading_stays_linear_in_unknown_words() -> None:
    words = " ".join(f"w{number}" for number in range(20_000))
    made = parts(f"CREATE TABLE t (a INT {words})")
    assert len(made.unknown) == 1
    assert len(made.unknown[0].words) == 20_000


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("DROP PARTITION p, q", [("DROP", None)]),
        ("TRUNCATE PARTITION ALL", [("TRUNCATE", None)]),
        ("EXCHANGE PARTITION p WITH TABLE e.`u v` WITHOUT VALIDATION", [("EXCHANGE", ("e", "u v"))]),
        ("DISCARD TABLESPACE", [("DISCARD", None)]),
        ("IMPORT TABLESPACE", [("IMPORT", None)]),
        ("ADD PARTITION (PARTITION p VALUES LESS THAN (1))", []),
        ("REBUILD PARTITION p", []),
        ("EXCHANGE PARTITION p", []),
    ],
)
def test_what_is_done_to_all_rows_of_a_partition_is_known(action: str, expected: list[object]) -> None:
    assert [tuple(one) for one in parts(f"ALTER TABLE t {action}").row_actions] == expected
