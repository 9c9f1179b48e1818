"""Which changes of a column leave every value as it was, so that the feed may follow them."""

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[feed]'")

from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.ddl_statement import AlterTable
from protocol.sql.tables.source_table import Column
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.rows.lake_columns import lake_columns, lake_schema
from relay.feed.statements.definition_effect import alteration
from relay.feed.statements.kept_values import is_kept
from relay.feed.statements.logged_changes import ALTERED, DdlChange
from relay.source_tables.applied_definition import DefiningSession, apply_definition
from relay.source_tables.table_book import SourceTables

PLACE = FeedOffset(1, 1, 4)
MARIADB = "10.11.6-MariaDB-log"


def column(type: str, charset: str = "", *, nullable: bool = True) -> Column:
    return Column("c", type, charset, nullable=nullable)


def stop_of(columns: str, alter: str, *, zero: bool = True, **more: bool) -> str:
    """Why the feed stops at an ALTER TABLE of a latin1 table that has rows; '': it does not."""
    state = SourceTables()
    for text in ("CREATE DATABASE d CHARACTER SET latin1", f"CREATE TABLE t (id INT PRIMARY KEY, {columns})"):
        apply_definition(state, parse_ddl(text, "d", 0, MARIADB), DefiningSession())
    before = state.exact(("d", "t"))
    said = parse_ddl(f"ALTER TABLE t {alter}", "d", 0, MARIADB)
    apply_definition(state, said, DefiningSession())
    assert isinstance(said, AlterTable)
    definition = DdlChange(
        ("d", "t"), ALTERED, PLACE, PLACE, 4, 1, clauses=tuple(said.clauses), text=alter, **{"strict": True, **more}
    )
    lake = lake_schema(lake_columns(before, "here"), has_key=True)
    try:
        alteration(definition, before, state.exact(("d", "t")), lake, "here", empty=False, has_zero=lambda _name: zero)
    except FeedStop as stop:
        return f"{stop.name}: {stop}"
    return ""


H = "h CHAR(32) AS (MD5(a)) STORED"


@pytest.mark.parametrize(
    ("columns", "alter"),
    [
        (f"a VARCHAR(9), {H}", "CONVERT TO CHARACTER SET utf8mb4"),
        (f"a VARCHAR(9), {H}", "MODIFY a VARCHAR(9) CHARACTER SET utf8mb4"),
        (f"a VARCHAR(9), {H}", "MODIFY a VARCHAR(9) COLLATE latin1_bin"),
        (f"a CHAR(9), {H}", "MODIFY a CHAR(10)"),
        (f"a CHAR(9), {H}", "CHANGE a b VARCHAR(9)"),
        (f"a DECIMAL(10,2), {H}", "MODIFY a DECIMAL(12,4)"),
        (f"a INT(4) ZEROFILL, {H}", "MODIFY a INT(8) ZEROFILL"),
        (f"a INT(4) ZEROFILL, {H}", "MODIFY a INT(4) UNSIGNED"),
        (f"a INT UNSIGNED, {H}", "MODIFY a BIGINT"),
        (f"a FLOAT, {H}", "MODIFY a DOUBLE"),
        (f"a DATETIME, {H}", "MODIFY a DATETIME(3)"),
        (f"b INT, a INT AS (b + 1) VIRTUAL, {H}", "MODIFY a INT AS (b + 2) VIRTUAL"),
        (f"a INT, {H}", "DROP a, ADD a INT DEFAULT 7"),
        (f"b INT, a INT AS (b + 1) VIRTUAL, {H}", "DROP a, ADD a INT AS (b + 2) VIRTUAL"),
    ],
)  # fmt: skip
def test_what_may_be_computed_anew_from_a_column_that_changes_stops_the_feed(columns: str, alter: str) -> None:
    why = stop_of(columns, alter)
    assert why.startswith("column_changed: ")
    assert "Column h is computed and stored, and column " in why


@pytest.mark.parametrize(
    ("columns", "alter"),
    [
        (f"a INT, {H}", "MODIFY a BIGINT NOT NULL DEFAULT 3"),
        (f"a INT UNSIGNED, {H}", "MODIFY a BIGINT UNSIGNED"),
        (f"a INT(4) ZEROFILL, {H}", "MODIFY a INT(4) ZEROFILL DEFAULT 5"),
        (f"a VARCHAR(9), {H}", "MODIFY a VARCHAR(20)"),
        (f"a VARCHAR(9), {H}", "MODIFY a TEXT"),
        (f"a VARBINARY(9), {H}", "MODIFY a BLOB"),
        (f"a BLOB, {H}", "MODIFY a MEDIUMBLOB"),
        (f"a DECIMAL(10,2), {H}", "MODIFY a DECIMAL(12,2)"),
        (f"a CHAR(9), {H}", "MODIFY a CHAR(9) DEFAULT 'x'"),
        (f"a INT, b INT, {H}", "DROP b, ADD c INT DEFAULT 7"),
        (f"a INT, {H}", "ADD INDEX (a)"),
        ("a CHAR(9), v CHAR(32) AS (MD5(a)) VIRTUAL", "MODIFY a CHAR(10)"),
    ],
)  # fmt: skip
def test_what_is_computed_stays_where_no_value_of_it_can_be_another(columns: str, alter: str) -> None:
    assert stop_of(columns, alter) == ""


@pytest.mark.parametrize(
    ("columns", "alter", "pads", "why"),
    [
        (f"a TIMESTAMP NULL, b INT, {H}", "MODIFY b BIGINT", False, "a is a TIMESTAMP, which the statement reads in the time zone"),
        (f"a TIMESTAMP NULL, b INT, {H}", "ADD c INT, ALGORITHM = COPY", False, "a is a TIMESTAMP"),
        (f"a TIMESTAMP NULL, b INT, {H}", "ENGINE = MyISAM", False, "a is a TIMESTAMP"),
        (f"a CHAR(9), b INT, {H}", "MODIFY b BIGINT", True, "a is a CHAR, which the statement reads with PAD_CHAR_TO_FULL_LENGTH"),
        (f"a CHAR(9), b INT, {H}", "MODIFY b BIGINT", False, ""),
        (f"a TIMESTAMP NULL, b INT, {H}", "ADD c INT, ADD INDEX (b), DROP b", False, ""),
        (f"a TIMESTAMP NULL, b INT, KEY i (b), {H}", "MODIFY b INT DEFAULT 5 AFTER id, RENAME INDEX i TO j", False, ""),
        (f"a TIMESTAMP NULL, b INT, {H}", "MODIFY b INT NOT NULL", False, "a is a TIMESTAMP"),
        (f"a TIMESTAMP NULL, b INT, {H}", "DROP PRIMARY KEY", False, "a is a TIMESTAMP"),
        (f"a TIMESTAMP NULL, b INT, {H}", "ADD FOREIGN KEY (b) REFERENCES p (id)", False, "a is a TIMESTAMP"),
        (f"a TIMESTAMP NULL, b INT, {H}", "ORDER BY b", False, "a is a TIMESTAMP"),
        ("a TIMESTAMP NULL, b INT", "MODIFY b BIGINT", False, ""),
        (f"a VARCHAR(9), {H}", "RENAME COLUMN h TO h2, MODIFY a VARCHAR(9) COLLATE latin1_bin", False, "a was"),
    ],
)  # fmt: skip
def test_a_table_that_is_copied_may_be_computed_from_what_its_session_reads_otherwise(
    columns: str, alter: str, pads: bool, why: str
) -> None:
    stop = stop_of(columns, alter, pads=pads)
    assert why in stop
    assert bool(stop) == bool(why)


def test_null_gets_a_number_from_auto_increment_also_where_0_is_kept() -> None:
    count = "MODIFY n INT AUTO_INCREMENT, ADD KEY (n)"
    assert "had 0 or NULL in it" in stop_of("n INT", count, keeps_zero=True)
    assert stop_of("n INT", count, keeps_zero=True, zero=False) == ""
    assert stop_of("n INT NOT NULL", count, keeps_zero=True) == ""
    assert "had 0 or NULL in it" in stop_of("n INT NOT NULL", count)


def test_a_conversion_makes_a_texts_type_as_large_as_it_must_be_and_a_change_does_not() -> None:
    assert stop_of("a TEXT", "CONVERT TO CHARACTER SET utf8mb4") == ""
    assert stop_of("a TEXT", "MODIFY a TEXT CHARACTER SET utf8mb4").startswith("column_changed")
    assert stop_of("a TEXT", "CONVERT TO CHARACTER SET utf8mb4, MODIFY a TEXT").startswith("column_changed")


def test_spaces_that_were_not_stored_are_where_a_char_is_read_at_its_full_length() -> None:
    assert stop_of("a CHAR(9)", "MODIFY a VARCHAR(9)") == ""
    assert stop_of("a CHAR(9)", "MODIFY a VARCHAR(9)", pads=True).startswith("column_changed")
    assert stop_of("a CHAR(9)", "MODIFY a CHAR(10)", pads=True) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (column("int(11)"), column("bigint(20)")),
        (column("smallint(5) unsigned"), column("int(11)")),
        (column("varchar(9)", "latin1"), column("varchar(20)", "utf8mb4")),
        (column("varchar(9)", "utf8mb4"), column("text", "utf8mb4")),
        (column("varchar(9)", "latin1"), column("tinytext", "utf8mb4")),
        (column("varchar(16383)", "latin1"), column("text", "utf8mb4")),
        (column("varchar(60000)", "latin1"), column("text", "latin1")),
        (column("tinytext", "latin1"), column("text", "utf8mb4")),
        (column("tinytext", "utf8"), column("tinytext", "utf8mb4")),
        (column("text", "ascii"), column("text", "utf8")),
        (column("text", "latin1"), column("longtext", "utf8mb4")),
        (column("tinytext", "latin1"), column("varchar(255)", "utf8mb4")),
        (column("mediumtext", "utf8mb4"), column("longtext", "utf8mb4")),
        (column("char(9)", "latin1"), column("varchar(9)", "latin1")),
        (column("decimal(10,2)"), column("decimal(12,4)")),
        (column("decimal(50,5)"), column("decimal(50,5)")),  # which is text in the lake, and stays as it is
        (column("float"), column("double")),
        (column("enum('a','b')"), column("enum('x','b','a')")),
        (column("set('a','b')"), column("set('a','b','c')")),
        (column("datetime"), column("datetime(3)")),
        (column("int(11)", nullable=False), column("int(11)")),
    ],
)
def test_what_only_became_wider_is_followed(old: Column, new: Column) -> None:
    assert is_kept(old, new, strict=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (column("bigint(20)"), column("int(11)")),
        (column("int(10) unsigned"), column("int(11)")),
        (column("int(11)"), column("varchar(20)", "latin1")),
        (column("varchar(20)", "latin1"), column("varchar(9)", "latin1")),
        (column("varchar(9)", "utf8mb4"), column("varchar(9)", "latin1")),
        (column("text", "latin1"), column("text", "utf8mb4")),
        (column("tinytext", "latin1"), column("tinytext", "utf8mb4")),
        (column("mediumtext", "latin1"), column("mediumtext", "utf8mb4")),
        (column("varchar(60000)", "latin1"), column("text", "utf8mb4")),
        (column("varchar(64)", "latin1"), column("tinytext", "utf8mb4")),
        (column("tinytext", "latin1"), column("varchar(254)", "utf8mb4")),
        (column("time"), column("time(3)")),
        (column("timestamp"), column("timestamp", nullable=False)),
        (column("varchar(9)", "latin1"), column("char(9)", "latin1")),
        (column("decimal(10,2)"), column("decimal(10,4)")),
        (column("decimal(10,4)"), column("decimal(12,2)")),
        (column("double"), column("float")),
        (column("enum('a','b')"), column("enum('a')")),
        (column("set('a','b')"), column("set('b','a')")),
        (column("datetime(3)"), column("datetime")),
        (column("timestamp"), column("datetime")),
        (column("int(11)"), column("int(11)", nullable=False)),
        (column("binary(3)"), column("binary(5)")),
    ],
)
def test_what_may_have_changed_a_value_is_not(old: Column, new: Column) -> None:
    assert not is_kept(old, new, strict=False)


def test_a_statement_that_fails_where_a_value_would_change_has_changed_none() -> None:
    assert is_kept(column("bigint(20)"), column("int(11)"), strict=True)
    assert is_kept(column("int(11)"), column("int(11)", nullable=False), strict=True)
    assert is_kept(column("char(9)", "latin1"), column("char(5)", "latin1"), strict=True)
    assert is_kept(column("varbinary(9)"), column("varbinary(5)"), strict=True)
    assert not is_kept(column("decimal(10,4)"), column("decimal(12,2)"), strict=True)  # rounding is no error


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (column("timestamp"), column("timestamp", nullable=False)),  # NULL becomes the current time
        (column("varchar(20)", "latin1"), column("varchar(9)", "latin1")),  # spaces at the end are cut
        (column("varchar(1000)", "latin1"), column("tinytext", "latin1")),
        (column("text", "utf8mb4"), column("tinytext", "utf8mb4")),
        (column("text", "latin1"), column("text", "utf8mb4")),
        (column("time"), column("time(3)")),
    ],
)  # fmt: skip
def test_what_changes_without_an_error_is_not_followed_in_strict_modes_either(old: Column, new: Column) -> None:
    assert not is_kept(old, new, strict=True)


@pytest.mark.parametrize(
    "place",
    [
        FeedOffset(1, 1, 4),
        FeedOffset(1, 999_999, 1 << 33),
        FeedOffset(2, 1, 4),
        FeedOffset(255, 2_097_151, (1 << 34) - 1),
    ],
)
def test_a_place_is_one_number_and_back(place: FeedOffset) -> None:
    assert FeedOffset.of_version(place.version) == place
    assert 0 < place.version < 1 << 63


def test_places_sort_by_source_then_file_then_offset_as_numbers_and_as_places() -> None:
    names = [
        "mysql-bin.000001:4",
        "mysql-bin.000001:900",
        "mysql-bin.999999:4",
        "mysql-bin.1000000:4",
        "g0002/a.000001:4",
    ]
    places = [FeedOffset.of_text(name) for name in names]
    assert sorted(places) == places
    assert sorted(one.version for one in places) == [one.version for one in places]


@pytest.mark.parametrize(
    ("old", "new"), [("geometrycollection", "geomcollection"), ("geomcollection", "GEOMETRYCOLLECTION")]
)
def test_both_names_of_a_collection_of_geometries_are_one_type(old: str, new: str) -> None:
    assert is_kept(column(old), column(new), True)


def test_a_collection_of_geometries_with_another_name_does_not_stop_a_table_with_computed_columns() -> None:
    computed = "n INT AS (1) STORED"
    assert stop_of(f"c GEOMETRYCOLLECTION, {computed}", "MODIFY c GEOMCOLLECTION") == ""
