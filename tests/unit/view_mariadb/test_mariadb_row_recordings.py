"""Recorded binlogs of MariaDB, their rows made MySQL's: a reader of MySQL's binlogs finds the values that the source's had."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.binlog.event_type import EventType
from protocol.binlog.table_map import UnknownColumnType, decode_table_map
from protocol.errors import Malformed
from protocol.sql.tables.source_table import Column, Table
from relay.source_tables.known_table import KnownTable
from relay.view.rules.mariadb.rows.mariadb_tables import MariadbTables
from relay.view.rules.mariadb.rows.row_images import ROW_EVENTS
from relay.view.stops.stop_reason import Untranslatable
from tests.support.kernel_builds import KernelBuild, builds
from tests.support.kernel_columns import Values, changed_rows
from tests.support.mysql_rows import as_mysql, mariadb_events

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
ROWS = CORPUS / "rows"
RECORDINGS = ("mariadb-full", "mariadb118")
BUILDS = pytest.mark.parametrize("build", builds(), ids=lambda build: str(build.name))


def tables(**settings: Any) -> MariadbTables:
    return MariadbTables(lambda collation: collation, **settings)


def images(rows: list[Values]) -> list[list[Any]]:
    return [[row["operation"], row["table"], row["before"], row["after"]] for row in rows]


def maps(name: str) -> Iterator[bytes]:
    for event in mariadb_events((ROWS / f"{name}.binlog").read_bytes()):
        if event.type == EventType.TABLE_MAP:
            yield event.body


def made_again(body: bytes) -> bytes:
    found = decode_table_map(body)
    found.check_columns()
    return found.with_columns(found.columns, found.optional).encode()


@BUILDS
@pytest.mark.parametrize("name", RECORDINGS)
def test_a_reader_of_mysqls_binlogs_finds_the_same_values(build: KernelBuild, name: str) -> None:
    """With FULL metadata also names and character sets; compressed columns are opened on both sides."""
    data = (ROWS / f"{name}.binlog").read_bytes()
    before = changed_rows(build, data)
    after = changed_rows(build, as_mysql(data, tables()))
    assert after.findings == before.findings  # without metadata signs and character sets are not certain
    assert len(after.rows) > 100
    assert images(after.rows) == images(before.rows)


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_table_map_that_is_taken_apart_is_put_together_again(name: str) -> None:
    bodies = list(maps(name))
    assert len(bodies) > 60
    assert [made_again(body) for body in bodies] == bodies


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_table_map_that_is_cut_anywhere_is_malformed_or_a_shorter_one(name: str) -> None:
    for body in set(maps(name)):
        for size in range(len(body)):
            try:
                assert made_again(body[:size]) == body[:size]
            except (Malformed, UnknownColumnType):
                continue


@pytest.mark.parametrize("name", RECORDINGS)
def test_rows_that_are_cut_anywhere_stop_by_name_or_are_fewer(name: str) -> None:
    known = tables()
    converted = {}
    for event in mariadb_events((ROWS / f"{name}.binlog").read_bytes()):
        if event.type == EventType.TABLE_MAP:
            converted[event.body[:6]] = known.convert_map(event.body)
        elif event.type in ROW_EVENTS and len(event.body) < 300:
            for size in range(len(event.body)):
                try:
                    converted[event.body[:6]].rows(event.type, event.body[:size])
                except Untranslatable as stopped:
                    assert stopped.reason.name == "malformed_transaction"


def test_a_recorded_vector_becomes_mysqls_where_the_definition_says_that_it_is_one() -> None:
    known = tables()
    columns = (Column("id", "int(11)", nullable=False), Column("c", "vector(3)"))
    vector = next(body for body in maps("mariadb118") if body[8:].endswith(bytes.fromhex("02030f020c0002")))
    name = decode_table_map(vector).name
    assert known.convert_map(vector).is_same
    known.put(name, KnownTable(Table(*name, columns=columns)))
    made = known.convert_map(vector)
    assert made.map_body is not None
    assert made.map_body.endswith(bytes.fromhex("0203f20104020d0103"))
    assert (made.is_same, made.rows_are_same) == (False, False)
