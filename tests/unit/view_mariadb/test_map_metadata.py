"""Optional metadata of Table_maps of MariaDB: as MySQL counts columns, with collations that it has."""

import pytest

from protocol.binlog.schema.table_columns import TableColumn, described_columns
from protocol.binlog.table_map import MapColumn, decode_table_map
from protocol.sql.tables.source_table import Column, Table
from protocol.wire import lenenc_int
from relay.source_tables.known_table import KnownTable
from relay.view.rules.mariadb.rows.column_rule import TargetChoice
from relay.view.rules.mariadb.rows.mariadb_tables import MariadbTables
from relay.view.stops.stop_reason import StopReason, Untranslatable
from tests.support.mariadb_table import (
    INT,
    known_tables,
    names_field,
    optional_field,
    source_map,
    stop_reason,
    text,
    varchar,
)

GEOMETRY = MapColumn(255, b"\x04")
ENUM = MapColumn(254, b"\xf7\x01")
TABLE = (INT, GEOMETRY, varchar(80), text(), ENUM, GEOMETRY, varchar(40))
CHARSETS = {8: "latin1", 45: "utf8mb4", 63: "binary", 255: "utf8mb4"}


def mapped(collation: int) -> int:
    """As of a view: uca1400_ai_ci becomes 0900_ai_ci, 9999 nothing."""
    if collation == 9999:
        raise Untranslatable(StopReason("collation_not_in_target", "", 0, ""))
    return 255 if collation == 2304 else collation


def numbers(*collations: int) -> bytes:
    return b"".join(map(lenenc_int, collations))


def read(body: bytes | None) -> list[TableColumn]:
    """As a reader of MySQL's binlogs."""
    assert body is not None
    found = described_columns(decode_table_map(body), False)
    assert not found.optional_malformed
    return found.columns


def tables() -> MariadbTables:
    return known_tables(mapped)


@pytest.mark.parametrize(
    "charsets",
    [
        optional_field(3, numbers(63, 2304, 63, 63, 8)),
        optional_field(2, numbers(63, 1, 2304, 4, 8)),
        optional_field(2, numbers(2304, 0, 63, 2, 63, 3, 63, 4, 8)),
    ],
    ids=["each", "default binary", "default text"],
)
def test_text_columns_behind_a_geometry_keep_their_character_sets(charsets: bytes) -> None:
    made = tables().convert_map(
        source_map(*TABLE, optional=charsets + optional_field(7, b"\1\2") + optional_field(11, numbers(2304)))
    )
    assert [column.charset for column in read(made.map_body)] == [
        None,
        None,
        "utf8mb4",
        "binary",
        "utf8mb4",
        None,
        "latin1",
    ]
    assert (made.is_same, made.rows_are_same) == (False, True)
    left = described_columns(decode_table_map(source_map(*TABLE, optional=charsets)), False)
    assert left.optional_malformed or [column.charset for column in left.columns][6] != "latin1"


def test_collations_get_the_targets_numbers() -> None:
    optional = optional_field(2, numbers(2304)) + optional_field(10, numbers(2304)) + names_field("a", "b")
    made = tables().convert_map(source_map(text(), ENUM, optional=optional)).map_body
    wanted = optional_field(2, numbers(255)) + optional_field(10, numbers(255)) + names_field("a", "b")
    assert made == source_map(text(), ENUM, optional=wanted)


def test_a_collation_that_nothing_stands_for_leaves_only_its_field_out() -> None:
    optional = optional_field(2, numbers(9999)) + names_field("a")
    assert tables().convert_map(source_map(text(), optional=optional)).map_body == source_map(
        text(), optional=names_field("a")
    )


def test_a_table_whose_only_texts_are_geometries_has_no_character_sets() -> None:
    optional = optional_field(2, numbers(63)) + optional_field(7, b"\1")
    assert tables().convert_map(source_map(GEOMETRY, optional=optional)).map_body == source_map(
        GEOMETRY, optional=optional_field(7, b"\1")
    )


def test_json_as_binary_is_no_text_any_more() -> None:
    known = known_tables(mapped, choice=TargetChoice(json="binary"))
    columns = (Column("j", "json"), Column("v", "varchar(10)", "latin1"))
    known.put(("d", "t"), KnownTable(Table("d", "t", columns=columns)))
    made = known.convert_map(source_map(text(4), varchar(10), optional=optional_field(3, numbers(46, 8))))
    assert made.map_body == source_map(MapColumn(245, b"\4"), varchar(10), optional=optional_field(3, numbers(8)))


def test_metadata_that_mysql_counts_alike_stay_with_their_table_the_same() -> None:
    optional = (
        optional_field(1, b"\x40") + optional_field(2, numbers(45)) + optional_field(8, b"\0") + names_field("id", "t")
    )
    assert tables().convert_map(source_map(INT, text(), optional=optional)).is_same


@pytest.mark.parametrize(
    "optional",
    [
        b"\x02", b"\x02\x05\x3f", optional_field(2, b""), optional_field(2, numbers(63, 9, 8)), optional_field(3, numbers(8)),
        optional_field(3, numbers(8, 8, 8)), optional_field(2, b"\xff"), names_field("a"), names_field("a", "b", "c"),
    ],
)  # fmt: skip
def test_hostile_metadata_are_malformed(optional: bytes) -> None:
    stopped = stop_reason(lambda: tables().convert_map(source_map(text(), varchar(9), optional=optional)))
    assert stopped.name == "malformed_transaction"
    assert stopped.text.startswith("the Table_map of d.t is damaged: ")
