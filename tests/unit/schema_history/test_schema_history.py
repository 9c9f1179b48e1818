"""What statements say of tables between answers of the source: where it holds, and what an answer takes back."""

from protocol.sql.tables.source_table import Column, Table
from relay.schema_history.schema_file import kept_from
from relay.schema_history.schema_record import RecordedSchema, line, parse_lines, table_line
from relay.source_tables.table_facts import table_facts

ONE, TWO = "bin.000001", "bin.000002"


def watched(file: str, offset: int) -> str:
    return line("watched", file, offset, statements=True)


def statement(file: str, offset: int, text: str, *names: str) -> str:
    return line(
        "definition", file, offset, names=list(names or ("t",)), sql={"text": text, "schema": "shop", "thread": 1}
    )


def asked(file: str, offset: int, *columns: tuple[str, str]) -> str:
    table = Table("shop", "t", "InnoDB", tuple(Column(name, kind) for name, kind in columns))
    return table_line(table_facts(table), file, offset)


def columns_at(lines: list[str], file: str, offset: int) -> list[tuple[str, str]] | None:
    found = RecordedSchema.parse("".join(lines).encode()).table("shop", "t", file, offset)
    return None if found is None else [(column.name, column.type) for column in found.columns]


CREATE = statement(ONE, 100, "CREATE TABLE t (a INT)")
ADD_B = statement(ONE, 200, "ALTER TABLE t ADD b INT UNSIGNED")
ADD_C = statement(ONE, 300, "ALTER TABLE t ADD c INT FIRST")
A, B, C = ("a", "int"), ("b", "int unsigned"), ("c", "int")


def test_statements_are_applied_one_after_the_other() -> None:
    lines = [watched(ONE, 4), CREATE, ADD_B, ADD_C]
    assert columns_at(lines, ONE, 99) is None
    assert columns_at(lines, ONE, 150) == [A]
    assert columns_at(lines, ONE, 250) == [A, B]
    assert columns_at(lines, TWO, 4) == [C, A, B]


def test_statements_are_applied_to_what_was_recorded_before() -> None:
    lines = [watched(ONE, 4), asked(ONE, 150, ("a", "int(11)")), ADD_B, ADD_C]
    assert columns_at(lines, ONE, 250) == [("a", "int(11)"), B]
    assert columns_at(lines, ONE, 350) == [C, ("a", "int(11)"), B]


def test_an_answer_that_does_not_agree_takes_back_what_was_worked_out() -> None:
    right = [watched(ONE, 4), CREATE, ADD_B, asked(ONE, 250, ("a", "int(11)"), ("b", "int(10) unsigned")), ADD_C]
    assert columns_at(right, ONE, 150) == [A]
    wrong = [watched(ONE, 4), CREATE, ADD_B, asked(ONE, 250, ("a", "int(11)"), ("b", "int(11)")), ADD_C]
    assert columns_at(wrong, ONE, 150) is None
    assert columns_at(wrong, ONE, 350) == [C, ("a", "int(11)"), ("b", "int(11)")]


def test_a_statement_that_nobody_understands_ends_what_is_known_up_to_the_next_answer() -> None:
    strange = statement(ONE, 250, "ALTER TABLE t FLY")
    lines = [watched(ONE, 4), CREATE, ADD_B, strange, ADD_C]
    assert columns_at(lines, ONE, 240) == [A, B]
    assert columns_at(lines, ONE, 260) is columns_at(lines, ONE, 350) is None
    assert columns_at([*lines, asked(ONE, 400, A, B), statement(ONE, 500, "ALTER TABLE t DROP a")], ONE, 600) == [B]


def test_nothing_is_known_behind_a_stretch_that_nobody_watched() -> None:
    lines = [watched(ONE, 4), CREATE, line("covered", ONE, 150), watched(ONE, 180), ADD_B]
    assert columns_at(lines, ONE, 149) == [A]
    assert columns_at(lines, ONE, 160) is columns_at(lines, ONE, 250) is None


def test_statements_that_were_noted_without_their_texts_tell_nothing() -> None:
    old = [line("watched", ONE, 4), line("definition", ONE, 100, names=["t"])]
    assert columns_at(old, ONE, 150) is None


def test_what_was_worked_out_outlives_the_purge_of_its_statements() -> None:
    charset = line("database", ONE, 90, schema="shop", charset="cp1251")
    change = statement(TWO, 300, "ALTER TABLE t ADD d TEXT")
    before = list(
        parse_lines("".join([watched(ONE, 4), charset, CREATE, ADD_B, line("covered", TWO, 4), change]).encode())
    )
    kept = RecordedSchema(kept_from(before, TWO))
    assert kept.recorded("shop", "t", TWO, 200) is None  # nobody asked
    standing = kept.table("shop", "t", TWO, 200)
    assert standing is not None
    assert [(column.name, column.type) for column in standing.columns] == [A, B]
    added = kept.table("shop", "t", TWO, 400)
    assert added is not None
    # a table's own character set is that of its CREATE
    assert added.charset == "cp1251"
    assert added.columns[-1].charset == "cp1251"


def test_a_statement_that_failed_leaves_its_tables_unknown_and_no_others() -> None:
    failed = line(
        "definition",
        ONE,
        250,
        names=["create", "or", "replace", "table", "u", "t"],
        sql={"text": "CREATE OR REPLACE TABLE u (t INT)", "schema": "shop", "thread": 1, "error": 1005},
    )
    made = statement(ONE, 150, "CREATE TABLE u (a INT)", "u")
    found = RecordedSchema.parse("".join([watched(ONE, 4), CREATE, made, failed]).encode())
    assert found.table("shop", "u", ONE, 240) is not None
    assert found.table("shop", "u", ONE, 260) is None
    assert found.table("shop", "t", ONE, 260) is not None
