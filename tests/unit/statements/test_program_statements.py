"""Statements that create, alter or drop views, triggers, functions and procedures."""

import pytest

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.statements.program_statements import (
    DroppedPrograms,
    WrittenProgram,
    body_of,
    read_program,
)
from protocol.sql.statements.statement import StatementText

T, N = ("d", "t"), ("d", "n")


def read(text: str, schema: str = "d") -> WrittenProgram | DroppedPrograms | None:
    return read_program(StatementText(text.encode(), schema, server_version="8.0.30"))


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW n AS SELECT 1",
        "CREATE OR REPLACE ALGORITHM = MERGE DEFINER = `a`@`%` SQL SECURITY INVOKER VIEW n AS SELECT 1",
        "CREATE VIEW IF NOT EXISTS d.n AS SELECT 1",
        "ALTER VIEW n AS SELECT 1",
        "/*!50001 ALTER DEFINER = CURRENT_USER VIEW n AS SELECT 1 */",
    ],
)
def test_a_view_has_its_name(text: str) -> None:
    assert read(text) == WrittenProgram("VIEW", N)


def test_a_trigger_has_its_event_its_table_and_its_body() -> None:
    query = StatementText(b"CREATE DEFINER = a@b TRIGGER n BEFORE INSERT ON t FOR EACH ROW SET @a = 1", "d")
    made = read_program(query)
    assert isinstance(made, WrittenProgram)
    assert made[:4] == ("TRIGGER", N, "INSERT", T)
    assert [token.text for token in body_of(query, made)][:3] == ["FOR", "EACH", "ROW"]


@pytest.mark.parametrize("kind", ["FUNCTION", "PROCEDURE"])
def test_a_routine_has_its_body_after_its_parameters(kind: str) -> None:
    query = StatementText(f"CREATE {kind} n (a INT, b DECIMAL(3, 1)) BEGIN END".encode(), "d")
    made = read_program(query)
    assert isinstance(made, WrittenProgram)
    assert (made.kind, made.name) == (kind, N)
    assert [token.text for token in body_of(query, made)][:2] == ["BEGIN", "END"]


def test_a_function_of_a_shared_library_has_no_name_and_no_body() -> None:
    query = StatementText(b"CREATE AGGREGATE FUNCTION f RETURNS INTEGER SONAME 'f.so'")
    assert read_program(query) is None
    plain = StatementText(b"CREATE FUNCTION f RETURNS INTEGER SONAME 'f.so'")
    made = read_program(plain)
    assert made == WrittenProgram("FUNCTION", None)
    assert body_of(plain, made) == []


@pytest.mark.parametrize(
    ("text", "dropped"),
    [
        ("DROP VIEW IF EXISTS n, d.t", DroppedPrograms("VIEW", (N, T))),
        ("DROP TRIGGER n", DroppedPrograms("TRIGGER", (N,))),
        ("DROP FUNCTION IF EXISTS n", DroppedPrograms("FUNCTION", (N,))),
        ("DROP PROCEDURE n", DroppedPrograms("PROCEDURE", (N,))),
    ],
)
def test_what_a_statement_drops_is_named(text: str, dropped: DroppedPrograms) -> None:
    assert read(text) == dropped


def test_a_function_without_a_schema_is_dropped_by_no_name() -> None:
    assert read("DROP FUNCTION f", schema="") == DroppedPrograms("FUNCTION", ())


@pytest.mark.parametrize(
    "text",
    ["CREATE EVENT e DO SELECT 1", "DROP TABLE t", "ALTER EVENT e ENABLE", "CREATE DATABASE d", "RENAME USER a TO b"],
)
def test_statements_about_other_objects_are_none(text: str) -> None:
    assert read(text) is None


def test_a_definition_that_ends_early_cannot_be_read() -> None:
    with pytest.raises(UnsupportedSyntax, match="ends early"):
        read("CREATE DEFINER = a TRIGGER n BEFORE")
    with pytest.raises(UnsupportedSyntax, match="without a schema"):
        read("CREATE VIEW n AS SELECT 1", schema="")
