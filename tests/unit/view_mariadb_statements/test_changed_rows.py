"""Statements that change rows: where replicas would change others in silence, the view stops."""

from uuid import UUID

import pytest

from protocol.sql.kind import Purpose, kind_of
from protocol.sql.tables.source_table import Column, Key, Table
from relay.view.rules.mariadb.parts import MariadbParts, parts_of
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.stops.stop_reason import StopReason, TableWanted, Untranslatable
from tests.support.mariadb_statements import MARIADB_10

DIFFERS = "statement_differs_in_target"
UNKNOWN = "unknown_table_definition"
DATABASE = "CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
PLAIN = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), n INT)"
TURKISH = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9) COLLATE utf8mb4_uca1400_swedish_as_cs UNIQUE, b VARCHAR(9), n INT)"
BYTES = "CREATE TABLE u (id INT PRIMARY KEY, k UUID)"
_NAMESPACE = UUID(int=18)


def parts(*statements: str, plain: tuple[str, ...] = ()) -> MariadbParts:
    """Those of a view that passed these."""
    made = parts_of(ViewSettings("gtid", "assign", _NAMESPACE, flavour="mariadb", plain_tables=plain))
    for text in statements:
        run(made, text)
    return made


def run(made: MariadbParts, text: str, collation: int = 45, flags: int = 0) -> list[bytes]:
    raw = text.encode()
    status = b"\0" + flags.to_bytes(4, "little") + b"\x04" + collation.to_bytes(2, "little") * 3
    told = made.statuses.translate(status, raw, is_dml=kind_of(raw).purpose is Purpose.ROWS)
    query = LoggedQuery(b"", raw, 7, 0, b"shop", status, MARIADB_10)
    while True:
        try:
            return made.statements.translate(query, told, rows_follow=False)
        except TableWanted as wanted:
            wanted.give_up(wanted.table)  # as nothing is recorded of it


def stop(made: MariadbParts, text: str, collation: int = 45) -> StopReason:
    with pytest.raises(Untranslatable) as stopped:
        run(made, text, collation)
    return stopped.value.reason


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET n = 1 WHERE a = 'x'",
        "DELETE FROM t WHERE a LIKE 'x%'",
        "UPDATE t SET n = 1 ORDER BY a LIMIT 1",
        "INSERT IGNORE INTO t VALUES (1, 'x', 'y', 2)",
        "INSERT INTO t (id, a) VALUES (1, 'x') ON DUPLICATE KEY UPDATE n = 2",
        "REPLACE INTO t VALUES (1, 'x', 'y', 2)",
        "INSERT INTO t (id, b) SELECT x.id + 9, x.b FROM t AS x WHERE x.a > 'k'",
        "UPDATE t JOIN t AS o USING (a) SET t.n = 1",
        "CREATE TABLE v AS SELECT id FROM t WHERE a = 'x'",
    ],
)
def test_a_statement_that_compares_by_a_collation_that_mysql_has_not_stops_the_view(text: str) -> None:
    reason = stop(parts(DATABASE, TURKISH), text)
    assert reason.name == DIFFERS
    assert "column a compares by utf8mb4_uca1400_swedish_as_cs" in reason.text


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t (id, a, b) VALUES (1, 'x', 'y')",
        "INSERT INTO t VALUES (1, 'x', 'y', 2)",
        "UPDATE t SET a = 'x', n = 3 WHERE id = 1",
        "UPDATE t SET t.a = 'x' WHERE b = 'y'",
        "DELETE FROM t WHERE id = 1",
    ],
)
def test_a_statement_that_does_not_compare_it_passes(text: str) -> None:
    assert run(parts(DATABASE, TURKISH), text) == [text.encode()]


def test_texts_that_are_no_columns_compare_by_the_connection() -> None:
    made = parts(DATABASE, PLAIN)
    text = "UPDATE t SET n = 1 WHERE CONCAT(id, 'A') = '1a'"
    assert run(made, text) == [text.encode()]
    # utf8mb4_uca1400_swedish_as_cs
    reason = stop(made, text, 2304 + 8 * 9 + 3)
    assert "the connection's collation" in reason.text


def test_a_collation_that_the_statement_names_is_looked_at() -> None:
    reason = stop(parts(DATABASE, PLAIN), "DELETE FROM t WHERE a = 'x' COLLATE utf8mb4_uca1400_swedish_as_cs")
    assert (reason.name, "COLLATE" in reason.text) == (DIFFERS, True)


def test_a_statement_over_a_table_that_nobody_knows_stops_until_it_is_named() -> None:
    text = "UPDATE old SET n = 1 WHERE id = 2"
    reason = stop(parts(), text)
    assert reason.name == UNKNOWN
    assert "shop.old" in reason.text
    assert run(parts(plain=("shop.old",)), text) == [text.encode()]
    assert stop(parts(DATABASE, PLAIN), "INSERT INTO t (id) SELECT id FROM other.old, t AS x").name == UNKNOWN


def test_temporary_tables_and_those_of_a_query_are_known_by_their_statements() -> None:
    made = parts(DATABASE, PLAIN, "CREATE TEMPORARY TABLE tmp (n INT)", "CREATE TABLE q AS SELECT n FROM t")
    for text in ("INSERT INTO tmp VALUES (1)", "INSERT INTO t (id) SELECT n FROM tmp", "DELETE FROM q"):
        assert run(made, text) == [text.encode()]
    assert stop(made, "CREATE TEMPORARY TABLE k (k UUID)").name == DIFFERS


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO u VALUES (NEW.id, UUID())", "INSERT INTO t (id) VALUES (1)"),
        ("CREATE FUNCTION f() RETURNS INT BEGIN DELETE FROM u; RETURN 1; END", "INSERT INTO t (id) VALUES (f())"),
        ("CREATE FUNCTION f() RETURNS INT BEGIN DELETE FROM u; RETURN 1; END", "SELECT f()"),
        ("CREATE VIEW w AS SELECT k FROM u", "INSERT INTO t (id) SELECT 1 FROM w"),
        ("CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW SET NEW.a = REGEXP_REPLACE(NEW.a, '(b)', '[\\\\1]')", "UPDATE t SET n = 1"),
    ],
)  # fmt: skip
def test_what_a_statement_sets_off_is_looked_at(program: str, text: str) -> None:
    made = parts(DATABASE, PLAIN, BYTES)
    assert run(made, text)
    run(made, program)
    reason = stop(made, text)
    assert reason.name == DIFFERS
    assert f"{'f' if 'FUNCTION' in program else 'w' if 'VIEW' in program else 'tr'}" in reason.text
    again = parts()
    again.tables.restore(made.tables.state())
    assert stop(again, text) == reason
    run(again, "DROP " + " ".join(program.split()[1:3]).removesuffix("()"))
    assert again.tables.state() == parts(DATABASE, PLAIN, BYTES).tables.state()


def test_a_trigger_of_another_event_is_not() -> None:
    trigger = "CREATE TRIGGER tr AFTER DELETE ON t FOR EACH ROW INSERT INTO u VALUES (OLD.id, UUID())"
    made = parts(DATABASE, PLAIN, BYTES, trigger)
    assert run(made, "INSERT INTO t (id) VALUES (1)")
    run(made, "RENAME TABLE t TO r")
    assert stop(made, "DELETE FROM r").name == DIFFERS


def test_a_view_counts_as_there() -> None:
    made = parts(DATABASE, PLAIN, "CREATE VIEW w AS SELECT n FROM t")
    run(made, "CREATE TABLE IF NOT EXISTS w (k UUID)")
    assert made.tables.state() == parts(DATABASE, PLAIN, "CREATE VIEW w AS SELECT n FROM t").tables.state()
    assert run(made, "RENAME TABLE IF EXISTS w TO x") == [b"RENAME TABLE w TO x"]
    assert run(made, "RENAME TABLE IF EXISTS w TO y") == []


def test_what_a_replica_dropped_if_it_was_there_is_dropped_so() -> None:
    made = parts(DATABASE, PLAIN)
    assert run(made, "DROP TABLE gone", flags=1 << 28) == [b"DROP TABLE IF EXISTS gone"]
    assert run(made, "DROP VIEW gone", flags=1 << 28) == [b"DROP VIEW IF EXISTS gone"]
    assert run(made, "DROP TABLE gone") == [b"DROP TABLE gone"]


CHILD = "CREATE TABLE child (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)"


def test_a_replace_of_rows_that_others_go_with_stops_the_view() -> None:
    made = parts(DATABASE, PLAIN, CHILD)
    text = "REPLACE INTO t VALUES (1, 'x', 2)"
    assert stop(made, text).name == "replace_in_parent_table"
    no_foreign_key_checks = 1 << 26
    assert run(made, text, flags=no_foreign_key_checks) == [text.encode()]
    assert run(made, "REPLACE INTO child VALUES (1, 2)")
    assert run(made, "DELETE FROM t WHERE id = 1")
    assert run(made, "UPDATE t SET a = REPLACE(a, 'x', 'y')")


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE older ADD FOREIGN KEY (p) REFERENCES t (id) ON DELETE CASCADE",
        "ALTER TABLE older ADD COLUMN p INT, ADD CONSTRAINT c FOREIGN KEY (p) REFERENCES t (id) ON DELETE CASCADE",
        "CREATE TABLE IF NOT EXISTS older (p INT, FOREIGN KEY (p) REFERENCES t (id) ON DELETE CASCADE)",
    ],
)
def test_so_it_does_where_of_a_table_nothing_is_known_but_that_it_refers_to_them(text: str) -> None:
    made = parts(PLAIN)
    assert run(made, "REPLACE INTO t VALUES (1, 'x', 2)")
    run(made, text)
    assert stop(made, "REPLACE INTO t VALUES (1, 'x', 2)").name == "replace_in_parent_table"
    assert stop(made, "DELETE FROM older WHERE p = 1").name == UNKNOWN


def test_a_cascade_that_comes_to_a_table_twice_stops_the_view() -> None:
    again = (
        "CREATE TABLE grandchild (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES child (id) ON DELETE CASCADE)"
    )
    itself = CHILD.replace("t INT,", "t INT, up INT, FOREIGN KEY (up) REFERENCES t (id) ON DELETE CASCADE,")
    made = parts(DATABASE, PLAIN, itself, again)
    assert stop(made, "DELETE FROM t WHERE id = 1").name == "incomplete_cascade"


def test_names_of_a_source_that_takes_them_in_any_case_mean_the_same_table() -> None:
    made = parts(DATABASE, PLAIN.replace(" t ", " Tea "), BYTES.replace(" u ", " U "))
    assert stop(made, "DELETE FROM u WHERE k = 'x'").name == DIFFERS
    assert stop(made, "ALTER TABLE IF EXISTS tea ADD x INT").name == "definition_needs_table"
    run(made, "ALTER TABLE tea ADD x INT")
    run(made, "DROP TABLE u")
    run(made, "RENAME TABLE tea TO t")
    assert run(made, "ALTER TABLE IF EXISTS u ADD x INT") == []
    expected = parts(DATABASE, PLAIN.replace("n INT", "n INT, x INT")).tables
    assert list(made.tables.tables()) == list(expected.tables())
    assert made.tables.get(("shop", "T")) == expected.get(("shop", "t"))


def test_tables_whose_names_differ_in_case_alone_are_two() -> None:
    made = parts(DATABASE, PLAIN, BYTES.replace(" u ", " T "))
    assert run(made, "DELETE FROM t WHERE a = 'x'")
    assert stop(made, "DELETE FROM T WHERE k = 'x'").name == DIFFERS


def test_a_table_that_the_source_told_of_is_known_to_statements_and_not_to_rows() -> None:
    """Replicas have a copy, and what that made of its columns nobody knows here."""
    made = parts(DATABASE.replace("shop", "other"))
    assert stop(made, "UPDATE t SET n = 1").name == UNKNOWN
    columns = (Column("id", "int(11)", nullable=False), Column("n", "int(11)"))
    made.tables.note_recorded([Table("shop", "t", "InnoDB", columns, (("PRIMARY", Key(("id",), True)),))])
    assert run(made, "UPDATE t SET n = 1")
    assert made.tables.described_by_definition == ""
    copied = parts()
    copied.tables.restore(made.tables.state())
    assert run(copied, "UPDATE t SET n = 1")
    assert copied.tables.state() == made.tables.state()


def test_of_a_table_that_the_source_told_of_columns_that_are_others_there_still_stop_the_view() -> None:
    made = parts()
    columns = (Column("id", "int(11)", nullable=False), Column("k", "uuid"))
    made.tables.note_recorded([Table("shop", "t", "InnoDB", columns), Table("shop", "s", type="SYSTEM VERSIONED")])
    assert "column k of type uuid is bytes there" in stop(made, "UPDATE t SET id = 1").text
    assert "system versioning" in stop(made, "UPDATE s SET id = 1").text


def test_what_definitions_in_the_archive_say_of_a_table_is_not_replaced_by_what_the_source_told() -> None:
    made = parts(DATABASE, BYTES)
    made.tables.note_recorded([Table("shop", "u", "InnoDB", (Column("id", "int(11)"),))])
    assert "column k of type uuid is bytes there" in stop(made, "UPDATE u SET id = 1").text
