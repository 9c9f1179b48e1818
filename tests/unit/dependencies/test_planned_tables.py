"""What a view knows of the source's tables, place by place, and the plans that its write sets get of it."""

import struct
from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from protocol.dependencies import write_set_codes as codes
from protocol.sql.tables.source_table import Column, ForeignKey, Key, Table, whole_key
from relay.archive.storage.files import FileLayer
from relay.schema_history.logged_definition import LoggedDefinition
from relay.schema_history.schema_record import RecordedSchema, line, parse_lines, table_line
from relay.source_tables.table_facts import table_facts
from relay.view.dependencies.planned_tables import NEVER, PlannedTables
from relay.view.dependencies.tables_file import TablesFile, read_tables
from tests.support.rule_groups import RuleRun

FILE, NEXT = "mysql-bin.000007", "mysql-bin.000008"
INT, BIGINT = 3, 8


def table(name: str, *columns: str, foreign: Sequence[tuple[str, ForeignKey]] | None = ()) -> Table:
    """Of INTs; the first column is the primary key."""
    return Table(
        "d",
        name,
        "InnoDB",
        tuple(Column(column, "int(11)", nullable=False) for column in columns),
        (("PRIMARY", whole_key(columns[:1], True)),),
        foreign_keys=None if foreign is None else tuple(foreign),
    )


def table_map(name: str, columns: int, kind: int = INT) -> bytes:
    """A Table_map's body."""
    names = b"\x01d\0" + bytes([len(name)]) + name.encode() + b"\0"
    return struct.pack("<IHH", 70, 0, 1) + names + bytes([columns]) + bytes([kind]) * columns + b"\0" + b"\xff"


def definition(text: str, *names: str) -> LoggedDefinition:
    """A statement in the database `d`."""
    return LoggedDefinition(frozenset(names), text, "d", version="5.6.24-log", server_charset="latin1")


def parsed(*texts: str) -> PlannedTables:
    return PlannedTables(parse_lines("".join(texts).encode()))


def is_serial(plan: "array[int]") -> bool:
    return bool(plan[codes.PLAN_FLAGS] & codes.PLAN_SERIAL)


def cascades(plan: "array[int]") -> bool:
    return bool(plan[codes.PLAN_FLAGS] & codes.PLAN_CASCADES_DELETE)


WATCHED = line("watched", FILE, 4, statements=True)


def taken(offset: int) -> str:
    return line("taken", FILE, offset)


def test_a_table_that_nobody_knows_lets_nothing_run_beside_it() -> None:
    tables = parsed(taken(4))
    assert tables.move_to((7, 200)) == NEVER
    assert is_serial(tables.plan(table_map("t", 1), 6))
    assert tables.lacks_some and tables.counted[0] == ("d.t", "table_unknown")


def test_what_was_recorded_holds_between_the_statements_that_name_the_table() -> None:
    defines = line("definition", FILE, 500, names=["t"])
    tables = parsed(WATCHED, defines, table_line(table_facts(table("t", "a", "b")), FILE, 900), taken(900))
    assert tables.move_to((7, 300)) == 500
    assert is_serial(tables.plan(table_map("t", 2), 6))
    assert tables.move_to((7, 600)) == 900
    plan = tables.plan(table_map("t", 2), 6)
    assert (is_serial(plan), plan[codes.PLAN_KEYS]) == (False, 1)
    assert tables.move_to((7, 300)) == 500
    assert is_serial(tables.plan(table_map("t", 2), 6))


def test_rows_of_other_types_than_the_definition_has_are_of_an_unknown_table() -> None:
    tables = parsed(WATCHED, table_line(table_facts(table("t", "a", "b")), FILE, 900), taken(900))
    tables.move_to((7, 950))
    assert not is_serial(tables.plan(table_map("t", 2), 6))
    for other in (table_map("t", 3), table_map("t", 2, BIGINT)):
        assert is_serial(tables.plan(other, 6))


@pytest.mark.parametrize(
    ("name", "column", "engine", "why"),
    [
        ("t", "a", "InnoDB", ""),
        ("t", "a", "MEMORY", ""),
        ("t", "a", "MRG_MYISAM", "engine"),
        ("t", "a", "MERGE", "engine"),
        ("t", "a", "FEDERATED", "engine"),
        ("t", "a", "ARCHIVE", "engine"),
        ("t", "a", "SomethingElse", "engine"),
        ("t", "FTS_DOC_ID", "InnoDB", "rows_in_order"),
    ],
)
def test_rows_that_have_more_in_common_than_their_keys_let_nothing_run_beside_them(
    name: str, column: str, engine: str, why: str
) -> None:
    one = replace(table(name, column), engine=engine)
    tables = parsed(WATCHED, table_line(table_facts(one), FILE, 900), taken(900))
    tables.move_to((7, 950))
    assert is_serial(tables.plan(table_map(name, 1), 6)) == bool(why)
    assert tables.counted[0].why == why


def test_a_key_over_an_expression_is_one_value_in_all_rows() -> None:
    one = table("t", "a", "b")
    one = replace(one, keys=(*one.keys, ("computed", Key(("b", ""), True, (None, None)))))
    tables = parsed(WATCHED, table_line(table_facts(one), FILE, 900), taken(900))
    tables.move_to((7, 950))
    plan = tables.plan(table_map("t", 2), 6)
    assert (is_serial(plan), plan[codes.PLAN_KEYS]) == (False, 2)
    second = codes.PLAN_HEAD + codes.KEY_HEAD + codes.PART_SIZE
    assert plan[second + codes.KEY_PARTS] == 0


def test_statements_behind_the_recorded_are_followed_as_the_view_passes_them_and_those_before_are_not() -> None:
    tables = parsed(WATCHED, table_line(table_facts(table("t", "a", "b")), FILE, 900), taken(900))
    tables.define(FILE, (7, 800), definition("DROP TABLE t", "t"))
    tables.define(FILE, (7, 1000), definition("ALTER TABLE t ADD UNIQUE (b)", "t"))
    tables.define(FILE, (7, 1000), definition("ALTER TABLE t ADD UNIQUE (b)", "t"))
    assert len(tables.unsaved) == 1
    assert tables.move_to((7, 950)) == 1000
    assert tables.plan(table_map("t", 2), 6)[codes.PLAN_KEYS] == 1
    tables.move_to((7, 1100))
    assert tables.plan(table_map("t", 2), 6)[codes.PLAN_KEYS] == 2
    again = parsed(WATCHED, table_line(table_facts(table("t", "a", "b")), FILE, 900), taken(900), *tables.unsaved)
    for place in ((7, 950), (7, 1100), (8, 4), (7, 950)):
        tables.move_to(place)
        again.move_to(place)
        assert again.plan(table_map("t", 2), 6) == tables.plan(table_map("t", 2), 6)


def test_a_statement_that_nobody_understands_makes_its_tables_unknown() -> None:
    tables = parsed(WATCHED, table_line(table_facts(table("t", "a", "b")), FILE, 900), taken(900))
    tables.define(FILE, (7, 1000), definition("ALTER TABLE t MAKE IT BETTER", "t"))
    tables.move_to((7, 1100))
    assert is_serial(tables.plan(table_map("t", 2), 6))


def test_a_statement_about_a_temporary_table_of_that_name_says_nothing_of_the_table() -> None:
    made = definition("CREATE TEMPORARY TABLE t (a INT, b INT)", "t")
    known = table_line(table_facts(table("t", "a", "b")), FILE, 900)
    lines = [WATCHED, line("definition", FILE, 500, names=["t"], sql=made.facts), known, taken(900)]
    tables = parsed(*lines)
    tables.define(FILE, (7, 1000), definition("ALTER TABLE t DROP PRIMARY KEY", "t"))
    tables.move_to((7, 1100))
    assert is_serial(tables.plan(table_map("t", 2), 6))


def test_a_foreign_key_is_in_the_plans_of_both_tables_and_ends_with_the_child() -> None:
    key = ForeignKey(("b",), "d", "parent", ("a",), "CASCADE")
    lines = [
        table_line(table_facts(table("parent", "a")), FILE, 900),
        table_line(table_facts(table("child", "a", "b", foreign=[("fk", key)])), FILE, 900),
    ]
    tables = parsed(WATCHED, *lines, taken(900))
    tables.move_to((7, 950))
    parent, child = tables.plan(table_map("parent", 1), 6), tables.plan(table_map("child", 2), 6)
    assert cascades(parent) and not cascades(child)
    assert parent[codes.PLAN_KEYS] == child[codes.PLAN_KEYS] == 2
    tables.define(FILE, (7, 1000), definition("DROP TABLE child", "child"))
    tables.move_to((7, 1100))
    assert not cascades(tables.plan(table_map("parent", 1), 6))


def test_where_foreign_keys_of_some_table_are_not_known_any_table_may_be_its_parent() -> None:
    lines = [
        table_line(table_facts(table("t", "a")), FILE, 900),
        table_line(table_facts(table("other", "a", "b", foreign=None)), FILE, 900),
    ]
    tables = parsed(WATCHED, *lines, taken(900))
    tables.move_to((7, 950))
    plan = tables.plan(table_map("t", 1), 6)
    assert not is_serial(plan) and cascades(plan)
    assert plan[codes.PLAN_HEAD + codes.KEY_FLAGS] & codes.KEY_CASCADES_UPDATE
    assert is_serial(tables.plan(table_map("other", 2), 6))


def test_what_is_recorded_later_is_taken_over_from_a_place_on_and_stays_there(tmp_path: Path) -> None:
    made, source = tmp_path / "views" / "v", tmp_path
    made.mkdir(parents=True)
    file = TablesFile(made, "v", source, FileLayer())
    tables = file.open(FILE, (7, 4))
    tables.move_to((7, 100))
    assert is_serial(tables.plan(table_map("t", 1), 6)) and tables.lacks_some
    file.adopt(tables, FILE, (7, 200))
    tables.move_to((7, 200))
    assert is_serial(tables.plan(table_map("t", 1), 6))
    recorded = [WATCHED, *(table_line(table_facts(table(name, "a")), FILE, 900) for name in ("t", "other"))]
    (source / "source-schema.jsonl").write_text("".join(recorded))
    # Behind what was recorded, and of the other table it has passed a statement.
    tables.define(FILE, (7, 950), definition("ALTER TABLE other ADD COLUMN b INT", "other"))
    file.adopt(tables, NEXT, (8, 4))
    for known in (tables, read_tables(made, "v")):
        known.move_to((8, 4))
        assert not is_serial(known.plan(table_map("t", 1), 6))
        other = known.table(("d", "other"))
        assert other is None or len(other.columns) == 2
        known.move_to((7, 1000))
        assert is_serial(known.plan(table_map("t", 1), 6))


def test_what_is_recorded_before_the_place_at_which_a_view_begins_is_not_enough(tmp_path: Path) -> None:
    made = tmp_path / "views" / "v"
    made.mkdir(parents=True)
    lines = [WATCHED, table_line(table_facts(table("t", "a")), FILE, 900)]
    (tmp_path / "source-schema.jsonl").write_text("".join(lines))
    tables = TablesFile(made, "v", tmp_path, FileLayer()).open(FILE, (7, 1500))
    tables.move_to((7, 1500))
    assert is_serial(tables.plan(table_map("t", 1), 6))


def test_half_a_line_of_a_write_that_failed_is_written_over(tmp_path: Path) -> None:
    made = tmp_path / "views" / "v"
    made.mkdir(parents=True)
    file = TablesFile(made, "v", tmp_path, FileLayer())
    tables = file.open(FILE, (7, 4))
    with file.path.open("ab") as kept:
        kept.write(b'{"kind": "defin')
    tables.define(FILE, (7, 100), definition("CREATE TABLE t (a INT PRIMARY KEY)", "t"))
    file.save(tables)
    assert not tables.unsaved
    again = read_tables(made, "v")
    again.move_to((7, 200))
    assert not is_serial(again.plan(table_map("t", 1), 6))


def test_recorded_schema_says_where_something_changes() -> None:
    recorded = RecordedSchema.parse(
        "".join(
            [WATCHED, line("definition", FILE, 500, names=["t"]), table_line(table_facts(table("t", "a")), FILE, 900)]
        ).encode()
    )
    assert [place for place, key in recorded.changes() if key == ("d", "t")] == [(7, 500), (7, 900)]
    assert recorded.names() == [("d", "t")]


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("DROP TEMPORARY TABLE IF EXISTS `t` /* generated by server */", False),
        ("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", False),
        ("DROP TABLE t", True),
        ("CREATE TABLE t (a INT)", True),
        ("CREATE TABLE t (a INT) -- DROP TEMPORARY TABLE", True),
        ("INSERT INTO t VALUES (1)", False),
    ],
)
def test_of_what_a_group_defines_all_is_kept_but_that_temporary_tables_go(text: str, is_kept: bool) -> None:
    tables = parsed(line("taken", "mysql-bin.000001", 4))
    (group,) = RuleRun().groups(text)
    assert tables.pass_group(group) == is_kept
    assert bool(tables.unsaved) == is_kept
