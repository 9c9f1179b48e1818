"""The book of tables: what is taken back, what is kept, and whom foreign keys mean after a RENAME."""

import random

import pytest

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.source_table import Table
from relay.source_tables.applied_definition import DefiningSession, apply_definition, forget_tables
from relay.source_tables.kept_book import KeptTablesUnreadable
from relay.source_tables.known_table import KnownTable
from relay.source_tables.programs import TRIGGER, VIEW, BodyChange, KnownProgram, RoutineBody
from relay.source_tables.table_book import SourceTables
from relay.view.rules.mariadb.rows.mariadb_tables import MariadbTables
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.tables.definitions_learned import learn
from relay.view.rules.tables.table_engines import TableEngines

MYSQL = "8.0.36"
CHILD = "CREATE TABLE c (a INT, b INT, KEY (a), FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE)"
PARENT = "CREATE TABLE p (id INT PRIMARY KEY)"
STATEMENTS = (
    "CREATE DATABASE d CHARACTER SET latin1", "DROP DATABASE d", PARENT, CHILD, "DROP TABLE p", "DROP TABLE IF EXISTS C",
    "RENAME TABLE p TO q, c TO P", "ALTER TABLE p RENAME TO d.t", "ALTER TABLE c DROP KEY a, ADD KEY k (b)", "CREATE TABLE t LIKE c",
    "CREATE TABLE IF NOT EXISTS T (a INT)", "CREATE TEMPORARY TABLE p (x INT)", "ALTER TABLE q CHANGE id n INT", "DROP TABLE t, x.t",
)  # fmt: skip


def run(tables: SourceTables, *statements: str) -> SourceTables:
    for text in statements:
        statement = parse_ddl(text, "d", 0, MYSQL)
        try:
            apply_definition(tables, statement, DefiningSession(1))
        except UnsupportedSyntax:
            forget_tables(tables, statement)
    return tables


@pytest.mark.parametrize("kind", [SourceTables, TableEngines, lambda: MariadbTables(lambda number: number)])
def test_what_is_taken_back_or_restored_is_known_as_before(kind: type[SourceTables]) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    chosen = random.Random(seed)
    tables = kind()
    for _ in range(60):
        before = tables.state()
        tables.begin()
        run(tables, *chosen.choices(STATEMENTS, k=4))
        if chosen.random() < 0.1:
            tables.forget_words({"p", "t"})
        if chosen.random() < 0.5:
            tables.take_back()
            assert tables.state() == before
        else:
            tables.keep()
        again = kind()
        again.restore(tables.state())
        assert again.state() == tables.state()
        following = chosen.choices(STATEMENTS, k=3)
        assert run(again, *following).state() == run(tables, *following).state()


def test_programs_and_temporary_tables_are_kept_in_full() -> None:
    tables = SourceTables()
    body = RoutineBody((BodyChange("DELETE", (("d", "p"),), several=True),), (("d", "f"),))
    programs = (
        KnownProgram((TRIGGER, "d", "tr"), table=("d", "t"), event="INSERT", text="DELETE FROM p", body=body),
        KnownProgram((VIEW, "d", "v"), reads=(("d", "t"), ("e", "u"))),
    )
    for program in programs:
        tables.put_program(program.name, program)
    for name in ("z", "a"):
        tables.put_temporary(7, ("d", name), KnownTable(Table("d", name, "MyISAM"), default_engine="InnoDB"))
    again = SourceTables()
    again.restore(tables.state())
    assert [*again.programs_of(("D", "T")), *again.programs_of(("d", "V"))] == list(programs)
    assert again.temporary == {(7, ("d", "z")), (7, ("d", "a"))}
    assert again.state() == tables.state()


@pytest.mark.parametrize("kept", [b'{"version":0}', b'{"tables":[]}', b"?", b"\xff", b'{"version":1}'])
def test_another_version_is_refused_and_nothing_is_known_then(kept: bytes) -> None:
    tables = run(SourceTables(), PARENT)
    with pytest.raises(KeptTablesUnreadable):
        tables.restore(kept)
    assert tables.state() == b""


def test_foreign_keys_follow_a_table_that_is_renamed() -> None:
    for tables in (TableEngines(), MariadbTables(lambda number: number), SourceTables()):
        run(tables, PARENT, CHILD, "RENAME TABLE p TO q, c TO child")
        assert tables.references.changed_with(("d", "q")) == [("d", "child")]
        assert tables.references.changed_with(("d", "p")) == []
        known = tables.get(("d", "child"))
        assert known is not None and [name for name, _key in known.table.foreign_keys or ()] == ["child_ibfk_1"]


@pytest.mark.parametrize("proof", ["ALTER TABLE T ADD b INT", "RENAME TABLE T TO u, U TO t"])
def test_a_source_that_found_a_table_by_a_name_in_another_case_takes_all_such_names_for_one(proof: str) -> None:
    made = ("CREATE DATABASE d", "CREATE TABLE t (a INT)", proof)
    tables = run(MariadbTables(lambda number: number), *made, "CREATE OR REPLACE TABLE T (other INT)")
    for name in ("t", "T"):
        table = tables.table(("d", name))
        assert table is not None and [column.name for column in table.columns] == ["other"]
    assert tables.exists(("d", "t"))
    run(tables, "DROP TABLE IF EXISTS t")
    assert [tables.exists(("d", name)) for name in ("t", "T")] == [False, False]


@pytest.mark.parametrize(("drop", "exists"), [("DROP TABLE", False), ("DROP TABLE IF EXISTS", None)])
def test_a_view_of_mysql_doubts_a_table_that_drop_if_exists_names_in_another_case(
    drop: str, exists: bool | None
) -> None:
    tables = TableEngines()
    for text in ("CREATE DATABASE d", "CREATE TABLE T (a INT)", f"{drop} t"):
        learn(tables, LoggedQuery(b"", text.encode(), 1, 0, b"d", b"", MYSQL))
    assert tables.exists(("d", "T")) is exists
