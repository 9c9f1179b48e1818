"""Row events of MariaDB as MySQL's of version 2: what is opened, converted, copied, and what is hostile in them."""

import struct
import tracemalloc
import zlib

import pytest

from protocol.binlog.table_map import MapColumn
from protocol.sql.tables.source_table import Column, Table
from relay.source_tables.known_table import KnownTable
from relay.view.rules.mariadb.rows import row_images
from relay.view.rules.mariadb.rows.column_rule import TargetChoice
from relay.view.rules.mariadb.rows.mariadb_tables import MariadbTables
from tests.support.mariadb_table import (
    DELETE_V1,
    INT,
    TABLE_ID,
    UPDATE_V1,
    WRITE_V1,
    all_columns,
    known_tables,
    source_map,
    source_rows,
    stop_reason,
    text,
    varchar,
)

HEAD = TABLE_ID.to_bytes(6, "little") + b"\x01\x00"
ONE = struct.pack("<i", 1)
COMPRESSED = MapColumn(141, struct.pack("<H", 301))
COMPRESSED_TEXT = MapColumn(140, b"\x02")


def packed(value: bytes, *, raw: bool = False, length: int | None = None) -> bytes:
    """As MariaDB stores a value of a compressed column."""
    stream = zlib.compressobj(wbits=-15 if raw else 15)
    data = stream.compress(value) + stream.flush()
    size = len(value) if length is None else length
    width = max(1, (size.bit_length() + 7) // 8)
    return bytes((0x80 | (8 if raw else 0) | width,)) + size.to_bytes(width, "big") + data


def prefixed(value: bytes, size: int = 2) -> bytes:
    return len(value).to_bytes(size, "little") + value


def defined(*columns: tuple[str, str], choice: TargetChoice | None = None) -> MariadbTables:
    """Tables that know d.t."""
    tables = known_tables(choice=choice)
    made = tuple(Column(name, kind) for name, kind in columns)
    tables.put(("d", "t"), KnownTable(Table("d", "t", columns=made)))
    return tables


@pytest.mark.parametrize(("version_1", "version_2"), [(WRITE_V1, 30), (DELETE_V1, 32)])
def test_rows_of_version_1_become_version_2(version_1: int, version_2: int) -> None:
    table = known_tables().convert_map(source_map(INT, text()))
    assert (table.is_same, table.map_body) == (True, source_map(INT, text()))
    row = b"\xfc" + ONE + prefixed(b"abc")
    assert table.rows(version_1, source_rows(2, row, row)) == (version_2, HEAD + b"\x02\x00\x02\x03" + row + row)


def test_updates_have_the_columns_of_both_images() -> None:
    """As with binlog_row_image = MINIMAL: the key in front, what changed behind."""
    table = known_tables().convert_map(source_map(INT, COMPRESSED, INT))
    before, after = b"\xfe" + ONE, b"\xfe" + prefixed(packed(b"new"))
    made = table.rows(UPDATE_V1, source_rows(3, before, after, before, b"\xff", present=[b"\x01", b"\x02"]))
    assert made == (31, HEAD + b"\x02\x00\x03\x01\x02" + before + b"\xfe" + prefixed(b"new") + before + b"\xff")


def test_what_version_2_has_in_its_head_is_left_out() -> None:
    table = known_tables().convert_map(source_map(INT))
    row = b"\xfe" + ONE
    body = HEAD + b"\x06\x00\x00\x03ab" + b"\x01\x01" + row
    assert table.rows(30, body) == (30, HEAD + b"\x02\x00\x01\x01" + row)


@pytest.mark.parametrize(("packed_type", "plain"), [(166, 30), (167, 31), (168, 32), (169, 30), (170, 31), (171, 32)])
def test_compressed_row_events_are_opened(packed_type: int, plain: int) -> None:
    table = known_tables().convert_map(source_map(INT, COMPRESSED_TEXT))
    rows = b"\xfc" + ONE + prefixed(packed(b"long " * 100, raw=True))
    images = 2 if plain == 31 else 1
    bits = all_columns(2) * images
    data = zlib.compress(rows * images)
    body = (
        HEAD
        + (b"\x02\x00" if packed_type >= 169 else b"")
        + b"\x02"
        + bits
        + b"\x82"
        + len(rows * images).to_bytes(2, "big")
    )
    made = b"\xfc" + ONE + prefixed(b"long " * 100)
    assert table.rows(packed_type, body + data) == (plain, HEAD + b"\x02\x00\x02" + bits + made * images)


@pytest.mark.parametrize("raw", [False, True])
def test_compressed_columns_become_plain_ones(raw: bool) -> None:
    table = known_tables().convert_map(source_map(INT, COMPRESSED, COMPRESSED_TEXT))
    assert table.map_body == source_map(INT, varchar(300), text())
    assert not table.is_same
    row = b"\xf8" + ONE
    made = table.rows(
        WRITE_V1,
        source_rows(
            3, row + prefixed(b"") + prefixed(b"\0plain"), row + prefixed(packed(b"v" * 300, raw=raw)) + prefixed(b"")
        ),
    )
    assert made[1] == HEAD + b"\x02\x00\x03\x07" + row + prefixed(b"") + prefixed(b"plain") + row + prefixed(
        b"v" * 300
    ) + prefixed(b"")


def test_the_length_of_a_compressed_varchar_has_as_many_bytes_as_its_new_width_wants() -> None:
    """VARCHAR(255) COMPRESSED has 256 in its metadata, and so two bytes of length; VARCHAR(255) has one."""
    table = known_tables().convert_map(source_map(MapColumn(141, struct.pack("<H", 256))))
    assert table.map_body == source_map(varchar(255))
    assert table.rows(WRITE_V1, source_rows(1, b"\xfe" + prefixed(b"\0abc")))[1].endswith(b"\xfe\x03abc")


def test_a_value_says_how_long_it_is_and_no_more_is_unpacked() -> None:
    """A kilobyte that becomes a gigabyte must not do so in memory."""
    bomb = zlib.compress(bytes(200 << 20), 9)
    table = known_tables().convert_map(source_map(MapColumn(140, b"\x04")))
    for length in (10, 100_000):
        value = b"\x84" + length.to_bytes(4, "big") + bomb
        tracemalloc.start()
        stopped = stop_reason(lambda value=value: table.rows(WRITE_V1, source_rows(1, b"\xfe" + prefixed(value, 4))))  # type: ignore[misc]
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert stopped.name == "malformed_transaction"
        assert most < 8 << 20


def test_a_value_longer_than_its_column_is_malformed() -> None:
    table = known_tables().convert_map(source_map(COMPRESSED))
    stopped = stop_reason(lambda: table.rows(WRITE_V1, source_rows(1, b"\xfe" + prefixed(packed(b"v" * 301)))))
    assert (stopped.name, "301 bytes in column 1" in stopped.text) == ("malformed_transaction", True)


def test_an_event_that_would_be_too_large_stops_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_images, "MOST_BYTES", 1000)
    table = known_tables().convert_map(source_map(MapColumn(140, b"\x04")))
    rows = [b"\xfe" + prefixed(packed(b"x" * 400), 4)] * 3
    assert stop_reason(lambda: table.rows(WRITE_V1, source_rows(1, *rows))).name == "transaction_too_large"
    packed_rows = HEAD + b"\x01\x01" + b"\x82" + (2000).to_bytes(2, "big") + zlib.compress(bytes(2000))
    assert stop_reason(lambda: table.rows(166, packed_rows)).name == "transaction_too_large"


def test_old_times_are_converted_where_the_definition_tells_their_digits() -> None:
    tables = defined(("a", "timestamp"), ("b", "time(2)"), ("c", "datetime(6)"), ("d", "int"))
    table = tables.convert_map(source_map(MapColumn(7), MapColumn(11), MapColumn(12), INT))
    assert table.map_body == source_map(MapColumn(17, b"\0"), MapColumn(19, b"\2"), MapColumn(18, b"\6"), INT)
    old = (
        struct.pack("<I", 1_600_000_000)
        + (302_040_000 + 150).to_bytes(4, "big")
        + (63_777_000_000_000_123).to_bytes(8, "big")
    )
    made = table.rows(WRITE_V1, source_rows(4, b"\xf0" + old + ONE, b"\xff"))[1]
    assert made.startswith(
        HEAD + b"\x02\x00\x04\x0f\xf0" + struct.pack(">I", 1_600_000_000) + bytes.fromhex("80000132")
    )
    assert made.endswith(b"\x00\x00\x7b" + ONE + b"\xff")


def test_a_vector_has_a_length_of_four_bytes_and_says_its_dimension() -> None:
    tables = defined(("a", "vector(3)"), ("b", "vector(100)"))
    table = tables.convert_map(source_map(varchar(12), varchar(400)))
    vector = MapColumn(242, b"\x04")
    assert table.map_body == source_map(vector, vector, optional=b"\x0d\x02\x03\x64")
    values = struct.pack("<3f", 1, 2, 3), bytes(400)
    made = table.rows(WRITE_V1, source_rows(2, b"\xfc" + prefixed(values[0], 1) + prefixed(values[1], 2)))[1]
    assert made == HEAD + b"\x02\x00\x02\x03\xfc" + prefixed(values[0], 4) + prefixed(values[1], 4)
    assert (
        stop_reason(lambda: table.rows(WRITE_V1, source_rows(2, b"\xfe" + prefixed(b"12345", 1)))).name
        == "malformed_transaction"
    )


def test_a_vector_stays_bytes_for_versions_without_it() -> None:
    tables = defined(("a", "vector(3)"), choice=TargetChoice((8, 4)))
    assert tables.convert_map(source_map(varchar(12))).is_same


def test_json_stays_text_and_becomes_binary_by_choice() -> None:
    body = source_map(text(4))
    assert defined(("a", "json")).convert_map(body).is_same
    table = defined(("a", "json"), choice=TargetChoice(json="binary")).convert_map(body)
    assert table.map_body == source_map(MapColumn(245, b"\x04"))
    assert table.rows(WRITE_V1, source_rows(1, b"\xfe" + prefixed(b"[1]", 4), b"\xff"))[1].endswith(
        b"\xfe" + prefixed(bytes.fromhex("02010007000501 00".replace(" ", "")), 4) + b"\xff"
    )
    stopped = stop_reason(lambda: table.rows(WRITE_V1, source_rows(1, b"\xfe" + prefixed(b"1e400", 4))))
    assert (stopped.name, stopped.error) == ("json_not_in_target", 3141)
    assert "column 1 of d.t" in stopped.text
    assert 'json_columns = "longtext"' in stopped.advice


@pytest.mark.parametrize(
    "body",
    [
        HEAD,
        HEAD + b"\x02",
        HEAD + b"\x03\x07",  # a column more than the map has
        HEAD + b"\x02\x03\xfc\x01",
        HEAD + b"\x02\x03\xfc" + ONE + b"\xff\xff",
        HEAD + b"\x02\x00" + bytes(10),  # rows without columns
        HEAD + b"\xfe" + b"\xff" * 8,
    ],
)
def test_hostile_lengths_are_malformed(body: bytes) -> None:
    table = known_tables().convert_map(source_map(INT, COMPRESSED))
    stopped = stop_reason(lambda: table.rows(WRITE_V1, body))
    assert stopped.name == "malformed_transaction"
    assert stopped.text.startswith("a row event of d.t is damaged: ")


@pytest.mark.parametrize("extra", [b"", b"\x01\x00", b"\xff\xff"])
def test_hostile_extra_data_is_malformed(extra: bytes) -> None:
    table = known_tables().convert_map(source_map(INT))
    assert stop_reason(lambda: table.rows(30, HEAD + extra)).name == "malformed_transaction"


def test_large_row_events_take_time_and_memory_by_their_size() -> None:
    table = known_tables().convert_map(source_map(INT, MapColumn(140, b"\x04"), text(4)))
    rows = (b"\xf8" + ONE + prefixed(b"\0x", 4) + prefixed(b"y" * 1000, 4)) * 20_000
    body = source_rows(3, rows)
    tracemalloc.start()
    made = table.rows(WRITE_V1, body)[1]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(made) == len(body) + 2 - 20_000
    assert most < 2.5 * len(body)
