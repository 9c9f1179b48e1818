"""What a view learns of MariaDB's tables from statements, and rows that do not fit the table that replicas have."""

from collections.abc import Sequence

import pytest

from protocol.binlog.table_map import MapColumn
from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.source_table import TableName
from relay.view.rules.mariadb.rows.learned_tables import ToldDefinition, learn_definition
from relay.view.rules.mariadb.rows.mariadb_tables import MariadbTables
from tests.support.mariadb_table import (
    BIGINT,
    INT,
    known_tables,
    names_field,
    source_map,
    stop_reason,
    text,
    varchar,
)

MARIADB = "11.8.6-MariaDB-log"
TINY = MapColumn(1)
SEQUENCE = (*[BIGINT] * 6, TINY, BIGINT)
SEQUENCE_NAMES = (
    "next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size", "cycle_option", "cycle_count",
)  # fmt: skip
T = ("d", "t")


def run(
    tables: MariadbTables,
    source: str,
    replica: str | Sequence[str] | None = None,
    *,
    versioned: Sequence[TableName] = (),
    thread_id: int = 1,
) -> None:
    """A statement that becomes these of the view; None: it stays as it is."""
    texts = [source] if replica is None else [replica] if isinstance(replica, str) else replica
    told = ToldDefinition(
        parse_ddl(source, "d", 0, MARIADB),
        [parse_ddl(one, "d", 0, "9.7.4") for one in texts],
        versioned=versioned,
        thread_id=thread_id,
    )
    learn_definition(tables, told)


def knowing(*statements: str) -> MariadbTables:
    tables = known_tables()
    for statement in statements:
        run(tables, statement)
    return tables


def columns(tables: MariadbTables, name: TableName = T) -> list[str] | None:
    known = tables.get(name)
    return None if known is None else [f"{column.name} {column.type}" for column in known.columns]


# ---- what statements make ----


def test_create_alter_rename_and_drop_are_followed() -> None:
    tables = knowing("CREATE DATABASE d", "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10))")
    run(
        tables,
        "ALTER TABLE t ADD COLUMN b UUID AFTER id, DROP COLUMN a",
        "ALTER TABLE t ADD COLUMN b BINARY(16) AFTER id, DROP COLUMN a",
    )
    assert columns(tables) == ["id int", "b uuid"]
    run(tables, "ALTER TABLE t RENAME TO u")
    assert (columns(tables), columns(tables, ("d", "u"))) == (None, ["id int", "b uuid"])
    assert (tables.exists(T), tables.exists(("d", "u")), tables.exists(("e", "t"))) == (False, True, None)
    run(tables, "RENAME TABLE u TO e.v")
    assert columns(tables, ("e", "v")) == ["id int", "b uuid"]
    run(tables, "CREATE TABLE w LIKE e.v")
    assert columns(tables, ("d", "w")) == ["id int", "b uuid"]
    run(tables, "DROP TABLE w, e.v")
    assert [tables.exists(name) for name in (("d", "w"), ("e", "v"), ("e", "w"))] == [False, False, None]
    run(tables, "DROP DATABASE d")
    assert tables.get(("d", "w")) is None


def test_a_table_from_before_the_archive_stays_unknown() -> None:
    tables = knowing("ALTER TABLE t ADD COLUMN b INT", "CREATE TABLE IF NOT EXISTS u (a INT)", "RENAME TABLE t TO v")
    assert [tables.exists(("d", name)) for name in "tuv"] == [False, None, None]
    assert tables.convert_map(source_map(INT, text())).is_same


def test_temporary_tables_hide_others_in_their_session_only() -> None:
    tables = knowing("CREATE TABLE t (id INT)", "CREATE TEMPORARY TABLE t (x TEXT, y TEXT)")
    run(tables, "ALTER TABLE t ADD COLUMN z INT")
    assert columns(tables) == ["id int"]
    run(tables, "ALTER TABLE t ADD COLUMN z INT", thread_id=2)
    assert columns(tables) == ["id int", "z int"]
    run(tables, "DROP TABLE t")
    assert columns(tables) == ["id int", "z int"]
    run(tables, "DROP TABLE t")
    assert tables.exists(T) is False


def test_a_restart_of_the_source_ends_temporary_tables() -> None:
    tables = knowing("CREATE TABLE t (id INT)", "CREATE TEMPORARY TABLE t (x TEXT)")
    tables.source_started()
    run(tables, "DROP TABLE t")
    assert tables.exists(T) is False


def test_what_was_learned_can_be_taken_back() -> None:
    tables = knowing("CREATE DATABASE d", "CREATE TABLE t (id INT)")
    before = tables.state()
    tables.begin()
    for statement in (
        "ALTER TABLE t ADD COLUMN b INT",
        "CREATE TABLE u (a INT)",
        "DROP TABLE t",
        "CREATE TEMPORARY TABLE x (a INT)",
    ):
        run(tables, statement)
    assert tables.state() != before
    tables.take_back()
    assert tables.state() == before
    assert columns(tables) == ["id int"]


def test_the_state_is_all_that_is_known_and_has_the_same_bytes() -> None:
    statements = [
        "CREATE DATABASE d CHARACTER SET latin1", "CREATE TABLE b (id INT, v VARCHAR(9), UNIQUE KEY (v))", "CREATE TABLE a (id INT)",
        "DROP TABLE e.x", "CREATE TEMPORARY TABLE y (a INT)", "DROP TABLE b", "CREATE TABLE b (id INT, v VARCHAR(9), UNIQUE KEY (v))",
    ]  # fmt: skip
    tables = knowing(*statements)
    again = known_tables()
    again.restore(tables.state())
    assert again.state() == tables.state()
    assert knowing(statements[0], statements[2], statements[1], *statements[3:5]).state() == tables.state()
    assert again.get(("d", "b")) == tables.get(("d", "b"))
    assert again.is_temporary(1, ("d", "y"))
    again.restore(b"")
    assert (again.state(), known_tables().state()) == (b"", b"")


def test_a_definition_that_makes_another_table_on_replicas_stops_at_once() -> None:
    """An executable comment that only one of the two runs: rows would go into wrong columns without an error."""
    tables = known_tables()
    stopped = stop_reason(lambda: run(tables, "CREATE TABLE t (a INT, b INT, c INT)", "CREATE TABLE t (a INT, c INT)"))
    assert (stopped.name, stopped.error) == ("table_differs", 0)
    assert "a, b, c" in stopped.text
    run(tables, "CREATE TABLE t (a INT)")
    assert stop_reason(lambda: run(tables, "ALTER TABLE t ADD b INT", ())).name == "table_differs"
    run(tables, "ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT", ())
    assert columns(tables) == ["a int"]


def test_a_versioned_table_has_its_two_columns_on_replicas() -> None:
    tables = known_tables()
    replica = "CREATE TABLE t (a INT, row_start TIMESTAMP(6) NOT NULL, row_end TIMESTAMP(6) NOT NULL)"
    run(tables, "CREATE TABLE t (a INT)", replica, versioned=[T])
    assert columns(tables) == ["a int", "row_start timestamp(6)", "row_end timestamp(6)"]
    assert tables.is_versioned(T)
    micro = MapColumn(17, b"\6")
    assert tables.convert_map(source_map(INT, micro, micro)).is_same
    assert stop_reason(lambda: tables.convert_map(source_map(INT))).name == "table_differs"


def test_a_definition_that_only_the_replicas_statement_tells_is_learned_from_that() -> None:
    tables = known_tables()
    replica = parse_ddl("CREATE TABLE t (a INT, row_end TIMESTAMP(6) NOT NULL)", "d", 0, "9.7.4")
    learn_definition(tables, ToldDefinition(None, [replica], versioned=[T]))
    assert (columns(tables), tables.is_versioned(T)) == (["a int", "row_end timestamp(6)"], True)


def test_json_that_replicas_have_as_json_is_known_as_such() -> None:
    tables = known_tables()
    run(tables, "CREATE TABLE t (a JSON, b LONGTEXT)", "CREATE TABLE t (a JSON, b LONGTEXT)")
    assert columns(tables) == ["a json", "b longtext"]
    run(tables, "ALTER TABLE t ADD COLUMN c JSON", "ALTER TABLE t ADD COLUMN c LONGTEXT")
    assert columns(tables) == ["a json", "b longtext", "c longtext"]


# ---- the guard ----


def test_names_that_differ_stop_the_view() -> None:
    """MySQL takes values by place: d's would stand in f."""
    tables = knowing("CREATE TABLE t (a INT, d INT, f INT)")
    fits = source_map(INT, INT, INT, optional=names_field("a", "D", "f"))
    assert tables.convert_map(fits).is_same
    wrong = source_map(INT, INT, INT, optional=names_field("a", "f", "d"))
    stopped = stop_reason(lambda: tables.convert_map(wrong))
    assert stopped.name == "table_differs"
    assert "column 2 is `f` at the source, and `d` on replicas" in stopped.text
    assert "(a int, d int, f int)" in stopped.text


@pytest.mark.parametrize(
    "found",
    [
        (INT,), (INT, varchar(40), INT), (INT, INT), (INT, varchar(80)), (INT, text()), (BIGINT, varchar(40)),
    ],
)  # fmt: skip
def test_without_names_number_and_types_are_compared(found: tuple[MapColumn, ...]) -> None:
    tables = knowing("CREATE TABLE t (a INT, b VARCHAR(10) CHARACTER SET utf8mb4)")
    assert tables.convert_map(source_map(INT, varchar(40))).is_same
    assert stop_reason(lambda: tables.convert_map(source_map(*found))).name == "table_differs"


def test_rows_of_every_type_fit_their_definition() -> None:
    types = {
        "TINYINT": TINY, "BIGINT UNSIGNED": BIGINT, "FLOAT": MapColumn(4, b"\4"), "DOUBLE": MapColumn(5, b"\10"),
        "BIT(9)": MapColumn(16, b"\1\1"),
        "DECIMAL(20,3)": MapColumn(246, b"\x14\3"), "YEAR": MapColumn(13), "DATE": MapColumn(10), "TIME(3)": MapColumn(19, b"\3"),
        "DATETIME": MapColumn(18, b"\0"), "TIMESTAMP(6) NULL": MapColumn(17, b"\6"), "CHAR(255)": MapColumn(254, b"\xce\xfc"),
        "BINARY(7)": MapColumn(254, b"\xfe\7"), "ENUM('a')": MapColumn(254, b"\xf7\1"), "SET('a')": MapColumn(254, b"\xf8\1"),
        "JSON": text(4), "MEDIUMTEXT": text(3), "TINYBLOB": text(1), "POINT": MapColumn(255, b"\4"),
        "UUID": MapColumn(254, b"\xfe\x10"),
        "INET6": MapColumn(254, b"\xfe\x10"), "INET4": MapColumn(254, b"\xfe\4"), "VARCHAR(9) COMPRESSED": MapColumn(141, b"\x25\0"),
        "TEXT COMPRESSED": MapColumn(140, b"\2"), "VARBINARY(300)": varchar(300),
    }  # fmt: skip
    tables = known_tables()
    source = "CREATE TABLE t (" + ", ".join(f"c{number} {kind}" for number, kind in enumerate(types)) + ")"
    learn_definition(tables, ToldDefinition(parse_ddl(source, "d", 0, MARIADB), [None]))
    assert tables.convert_map(source_map(*types.values())).map_body is not None


def test_the_hidden_hash_of_a_long_unique_key_is_no_difference() -> None:
    tables = knowing("CREATE TABLE t (a INT, b TEXT, UNIQUE KEY (b))", "CREATE TABLE u (a INT, b TEXT, UNIQUE KEY (a))")
    fits = source_map(INT, text(), BIGINT)
    assert tables.convert_map(fits).is_same
    assert tables.convert_map(source_map(INT, text(), BIGINT, optional=names_field("a", "b", "DB_ROW_HASH_1"))).is_same
    for wrong in (
        source_map(INT, text(), BIGINT, optional=names_field("a", "b", "c")),
        source_map(INT, text(), INT),
        source_map(INT, text(), BIGINT, BIGINT),
        source_map(INT, text(), BIGINT, name="u"),
    ):
        assert stop_reason(lambda wrong=wrong: tables.convert_map(wrong)).name == "table_differs"  # type: ignore[misc]


def test_what_was_asked_before_a_definition_is_asked_again_behind_it() -> None:
    tables = knowing("CREATE TABLE t (a INT)")
    body = source_map(INT, INT)
    assert stop_reason(lambda: tables.convert_map(body)).name == "table_differs"
    changes = tables.changes
    run(tables, "ALTER TABLE t ADD b INT")
    assert tables.changes is not changes
    assert tables.convert_map(body).is_same


def test_another_number_of_the_table_is_kept_in_what_is_remembered() -> None:
    tables = known_tables()
    for table_id in (1, 2, (1 << 48) - 1):
        body = source_map(MapColumn(141, b"\x25\0"), table_id=table_id)
        made = tables.convert_map(body).map_body
        assert made == source_map(varchar(36), table_id=table_id)


# ---- types that MySQL does not have ----


@pytest.mark.parametrize(
    ("column", "name", "error"),
    [
        (MapColumn(246, b"\x26\x1f"), "decimal_scale", 1425), (MapColumn(247, b"\0\1"), "column_type_not_in_target", 13146),
        (MapColumn(242, b"\4"), "column_type_not_in_target", 13146), (MapColumn(246, b"\x42\1"), "malformed_transaction", 0),
        (MapColumn(252, b"\5"), "malformed_transaction", 0), (MapColumn(252, b"\0"), "malformed_transaction", 0),
        (MapColumn(19, b"\7"), "malformed_transaction", 0), (MapColumn(16, b"\1\x09"), "malformed_transaction", 0),
        (MapColumn(141, b"\0\0"), "malformed_transaction", 0), (MapColumn(5, b"\xff"), "malformed_transaction", 0),
    ],
)  # fmt: skip
def test_types_that_nothing_stands_for_stop_the_view(column: MapColumn, name: str, error: int) -> None:
    stopped = stop_reason(lambda: known_tables().convert_map(source_map(INT, column)))
    assert (stopped.name, stopped.error) == (name, error)
    assert "d.t" in stopped.text


def test_a_type_that_nobody_knows_stops_the_view_at_its_column() -> None:
    body = source_map(INT, text()).replace(b"\x02\x03\xfc", b"\x02\x03\xc8")
    stopped = stop_reason(lambda: known_tables().convert_map(body))
    assert stopped.name == "column_type_not_in_target"
    assert "column 2 of d.t is of type number 200" in stopped.text


def test_ddl_of_the_largest_scale_that_mysql_has_passes() -> None:
    assert known_tables().convert_map(source_map(MapColumn(246, b"\x41\x1e"))).is_same


# ---- sequences ----


def sequence_map(**more: bytes) -> bytes:
    return source_map(*SEQUENCE, name="s", nullable=b"\0", **more)  # type: ignore[arg-type]


def test_rows_of_a_sequence_that_was_defined_are_left_out() -> None:
    tables = known_tables()
    learn_definition(tables, ToldDefinition(None, sequences_made=[("d", "s")]))
    left_out = tables.convert_map(sequence_map())
    assert (left_out.map_body, left_out.is_same) == (None, False)
    assert tables.is_sequence(("d", "s"))
    learn_definition(tables, ToldDefinition(None, sequences_dropped=[("d", "s")]))
    run(tables, f"CREATE TABLE s ({', '.join(f'{name} BIGINT NOT NULL' for name in 'abcdef')}, g TINYINT, h BIGINT)")
    assert tables.convert_map(sequence_map()).is_same


def test_sequences_of_other_integers_have_four_values_of_that_type() -> None:
    tables = known_tables()
    learn_definition(tables, ToldDefinition(None, sequences_made=[("d", "s")]))
    small = source_map(*[TINY] * 4, BIGINT, BIGINT, TINY, BIGINT, name="s", nullable=b"\0")
    assert tables.convert_map(small).map_body is None


def test_a_table_of_a_sequences_shape_that_nobody_defined_stops_the_view() -> None:
    for body in (sequence_map(), sequence_map(optional=names_field(*SEQUENCE_NAMES))):
        stopped = stop_reason(lambda body=body: known_tables().convert_map(body))  # type: ignore[misc]
        assert (stopped.name, stopped.error) == ("sequence_unknown", 1146)
    assert known_tables(told_kinds={"d.s": "sequence"}).convert_map(sequence_map()).map_body is None
    assert known_tables(told_kinds={"d.s": "table"}).convert_map(sequence_map()).is_same


def test_a_table_with_other_names_or_with_null_is_no_sequence() -> None:
    assert known_tables().convert_map(sequence_map(optional=names_field(*"abcdefgh"))).is_same
    assert known_tables().convert_map(source_map(*SEQUENCE, name="s", nullable=b"\1")).is_same


def test_a_sequence_whose_rows_are_others_stops_the_view() -> None:
    tables = known_tables()
    learn_definition(tables, ToldDefinition(None, sequences_made=[T]))
    assert stop_reason(lambda: tables.convert_map(source_map(INT))).name == "table_differs"
