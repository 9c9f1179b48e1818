"""Which tables from before an archive are known with all that a statement over them sets off, and where."""

from dataclasses import replace
from typing import Any

import pytest

from protocol.sql.tables.source_table import Column, ForeignKey, Key, Table
from relay.schema_history.certain_tables import CertainTables
from relay.schema_history.schema_record import Line, line, parse_lines, table_line
from relay.source_tables.table_facts import table_facts

FILE = "bin.000001"
ASKED = 500
PLACE = (1, 200)


def table(name: str, *parents: str, known_keys: bool = True) -> Table:
    keys = tuple((f"of_{parent}", ForeignKey(("p",), "shop", parent, ("id",))) for parent in parents)
    columns = (Column("id", "int(11)", nullable=False), Column("p", "int(11)"))
    return Table(
        "shop", name, "InnoDB", columns, (("PRIMARY", Key(("id",), True)),), foreign_keys=keys if known_keys else None
    )


def definition(text: str, *names: str, at: int, **more: Any) -> str:
    told = {"text": text, "schema": "shop", "thread": 1, "version": "10.11.9-MariaDB", **more}
    return line("definition", FILE, at, names=list(names), sql=told)


def known(
    *tables: Table, triggers: list[list[str]] | None = None, between: tuple[str, ...] = (), told: bool = True
) -> CertainTables:
    """Asked at ASKED, with lines of what stands before that."""
    texts = [line("watched", FILE, 4, statements=True), *between]
    texts += [table_line(table_facts(one), FILE, ASKED) for one in tables]
    if told:
        texts.append(line("triggers", FILE, ASKED, tables=triggers or []))
    lines: list[Line] = list(parse_lines("".join(texts).encode()))
    return CertainTables(lines)


def names(found: list[Table] | None) -> list[str] | None:
    return None if found is None else sorted(one.name for one in found)


def test_a_table_that_was_asked_later_is_known_where_nothing_changed_it_since() -> None:
    assert names(known(table("t"), table("other")).around(("shop", "t"), PLACE)) == ["t"]


def test_with_it_come_the_tables_that_refer_to_it_and_to_those() -> None:
    tables = known(table("t"), table("child", "t"), table("grandchild", "child"), table("other"))
    assert names(tables.around(("shop", "t"), PLACE)) == ["child", "grandchild", "t"]


def test_tables_that_refer_to_each_other_are_found_once() -> None:
    assert names(known(table("a", "b", "a"), table("b", "a")).around(("shop", "a"), PLACE)) == ["a", "b"]


@pytest.mark.parametrize("triggered", ["t", "child"])
def test_a_table_with_triggers_is_not_known_and_none_that_it_refers_to(triggered: str) -> None:
    tables = known(table("t"), table("child", "t"), triggers=[["shop", triggered]])
    assert tables.around(("shop", "t"), PLACE) is None


def test_nothing_is_known_where_the_source_did_not_tell_which_tables_have_triggers() -> None:
    assert known(table("t"), told=False).around(("shop", "t"), PLACE) is None


def test_nothing_is_known_where_foreign_keys_of_any_table_are_not() -> None:
    assert known(table("t"), table("other", known_keys=False)).around(("shop", "t"), PLACE) is None


def test_nothing_is_known_outside_of_what_was_watched() -> None:
    tables = known(table("t"))
    assert tables.around(("shop", "t"), (1, 4)) is not None
    assert tables.around(("shop", "t"), (0, 900)) is None
    assert tables.around(("shop", "t"), (1, ASKED + 1)) is None


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("ALTER TABLE t ADD c INT", "t"),
        ("ALTER TABLE other DROP FOREIGN KEY f", "other"),
        ("ALTER TABLE other DROP CONSTRAINT f", "other"),
        ("ALTER TABLE other RENAME TO another", "other"),
        ("RENAME TABLE other TO another", "other"),
        ("DROP TABLE gone", "gone"),
        ("CREATE OR REPLACE TABLE other (id INT)", "other"),
        ("DROP DATABASE old", "old"),
        ("ALTER TABLE nobody can read this", "other"),
    ],
)
def test_what_may_have_changed_the_table_or_what_refers_to_it_makes_it_unknown_before(text: str, about: str) -> None:
    tables = known(table("t"), table("other"), between=(definition(text, about, at=300),))
    assert tables.around(("shop", "t"), PLACE) is None


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("ALTER TABLE other ADD c INT", "other"),
        ("CREATE TABLE made (id INT PRIMARY KEY)", "made"),
        ("CREATE TABLE IF NOT EXISTS made (id INT PRIMARY KEY)", "made"),
        ("DROP TEMPORARY TABLE scratch", "scratch"),
        ("CREATE INDEX i ON other (p)", "other"),
        ("CREATE DATABASE new", "new"),
    ],
)
def test_what_is_about_other_tables_and_their_columns_does_not(text: str, about: str) -> None:
    tables = known(table("t"), table("other"), between=(definition(text, about, at=300),))
    assert names(tables.around(("shop", "t"), PLACE)) == ["t"]


def test_a_table_that_was_made_and_dropped_between_was_none_that_referred_to_it() -> None:
    made = definition("CREATE TABLE scratch (id INT)", "scratch", at=300)
    dropped = definition("DROP TABLE scratch", "scratch", at=400)
    assert known(table("t"), between=(made, dropped)).around(("shop", "t"), PLACE) is not None
    failed = definition("CREATE TABLE scratch (id INT)", "scratch", at=300, error=1050)
    assert known(table("t"), between=(failed, dropped)).around(("shop", "t"), PLACE) is None


def test_a_statement_about_triggers_between_makes_all_unknown() -> None:
    tables = known(table("t"), between=(line("trigger", FILE, 300),))
    assert tables.around(("shop", "t"), PLACE) is None
    assert tables.around(("shop", "t"), (1, 301)) is not None


def test_behind_the_answer_a_new_reference_makes_it_unknown_and_a_dropped_table_does_not() -> None:
    def behind(text: str, about: str) -> list[Table] | None:
        lines = [
            line("watched", FILE, 4, statements=True),
            table_line(table_facts(table("t")), FILE, 100),
            line("triggers", FILE, 100, tables=[]),
            definition(text, about, at=300),
            line("covered", FILE, ASKED),
        ]
        return CertainTables(list(parse_lines("".join(lines).encode()))).around(("shop", "t"), (1, 400))

    assert behind("CREATE TABLE child (p INT, FOREIGN KEY (p) REFERENCES t (id))", "child") is None
    assert behind("ALTER TABLE other ADD FOREIGN KEY (p) REFERENCES t (id)", "other") is None
    assert behind("ALTER TABLE other ADD c INT REFERENCES t (id)", "other") is None
    assert behind("DROP TABLE other", "other") is not None


def test_a_new_stretch_of_watching_knows_nothing_of_the_one_before() -> None:
    lines = [
        line("watched", FILE, 4, statements=True),
        table_line(table_facts(table("t")), FILE, 100),
        line("watched", FILE, 300, statements=True),
        line("triggers", FILE, ASKED, tables=[]),
    ]
    tables = CertainTables(list(parse_lines("".join(lines).encode())))
    assert tables.around(("shop", "t"), PLACE) is None
    assert tables.around(("shop", "t"), (1, 400)) is None


@pytest.mark.parametrize("told", ["SEQUENCE", "SYSTEM VERSIONED"])
def test_what_kind_of_table_it_is_stands_in_the_line(told: str) -> None:
    found = known(replace(table("t"), type=told)).around(("shop", "t"), PLACE)
    assert found is not None
    assert found[0].type == told


LATER = (1, 900)


def asked(*between: str) -> CertainTables:
    """A table `t` of shop, and a schema without tables, asked before LATER, with what stands between."""
    texts = [
        line("watched", FILE, 4, statements=True),
        line("database", FILE, ASKED, schema="Empty", charset="utf8", collation="utf8_bin"),
        table_line(table_facts(table("t")), FILE, ASKED),
        line("triggers", FILE, ASKED, tables=[["shop", "t"]]),
        *between,
        line("covered", FILE, LATER[1]),
    ]
    return CertainTables(list(parse_lines("".join(texts).encode())))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (("shop", "t"), True), (("shop", "T"), None), (("shop", "other"), False), (("new", "t"), False),
        (("shop", ""), True), (("EMPTY", ""), True), (("new", ""), False),
    ],
)  # fmt: skip
def test_names_that_exist_before_a_statement_are_known(name: tuple[str, str], expected: bool | None) -> None:
    assert asked().exists(name, LATER) is expected


def test_a_name_that_a_statement_between_may_be_about_is_not_known() -> None:
    between = asked(definition("CREATE TABLE shop.other (a INT)", "shop", "other", at=700))
    assert between.exists(("shop", "other"), LATER) is None
    assert between.exists(("new", "third"), LATER) is False
    assert asked(line("definition", FILE, 700, names=None)).exists(("new", ""), LATER) is None
    assert asked().exists(("new", ""), (1, 9_000)) is None
