"""Rows of any MariaDB table: what has to change becomes what it says, all else is copied, and damage stops a view by name."""

import struct
import zlib
from contextlib import suppress

import hypothesis.strategies as st
from hypothesis import given

from protocol.binlog.table_map import MapColumn, UnknownColumnType, decode_table_map
from protocol.errors import Malformed
from protocol.sql.tables.source_table import Column, Table
from protocol.wire import lenenc_int
from relay.source_tables.known_table import KnownTable
from relay.view.rules.mariadb.rows.mariadb_tables import MariadbTables
from relay.view.stops.stop_reason import Untranslatable
from tests.support.mariadb_table import TABLE_ID, known_tables, source_map

HEAD = TABLE_ID.to_bytes(6, "little") + b"\x01\x00"
# The definition, the column in the Table_map of the source, and in that of the target.
INT = ("int", MapColumn(3), MapColumn(3))
COMPRESSED = ("varchar(60) compressed", MapColumn(141, b"\x3d\x00"), MapColumn(15, b"\x3c\x00"))
COMPRESSED_TEXT = ("text", MapColumn(140, b"\2"), MapColumn(252, b"\2"))
TEXT = ("text", MapColumn(252, b"\2"), MapColumn(252, b"\2"))
OLD_TIME = ("timestamp", MapColumn(7), MapColumn(17, b"\0"))
VECTOR = ("vector(2)", MapColumn(15, b"\x08\0"), MapColumn(242, b"\4"))
KINDS = (INT, COMPRESSED, COMPRESSED_TEXT, TEXT, OLD_TIME, VECTOR)


def compressed(value: bytes, raw: bool, plain: bool) -> bytes:
    """As MariaDB stores it."""
    if not value:
        return b""
    if plain:
        return b"\0" + value
    stream = zlib.compressobj(wbits=-15 if raw else 15)
    return bytes((0x82 | 8 * raw,)) + len(value).to_bytes(2, "big") + stream.compress(value) + stream.flush()


@st.composite
def values(draw: st.DrawFn, kind: int) -> tuple[bytes, bytes]:
    """A value in the source's rows and in the target's."""
    if kind == 0:
        number = draw(st.binary(min_size=4, max_size=4))
        return number, number
    if kind in (1, 2):
        value = draw(st.binary(max_size=60))
        made = compressed(value, draw(st.booleans()), draw(st.booleans()))
        if kind == 1:
            # what its metadata say is the length and the mark byte
            if len(made) > 61:
                made = compressed(value, False, True)
            return bytes((len(made),)) + made, bytes((len(value),)) + value
        return struct.pack("<H", len(made)) + made, struct.pack("<H", len(value)) + value
    if kind == 3:
        value = draw(st.binary(max_size=300))
        return struct.pack("<H", len(value)) + value, struct.pack("<H", len(value)) + value
    if kind == 4:
        second = draw(st.integers(0, (1 << 32) - 1))
        return struct.pack("<I", second), struct.pack(">I", second)
    vector = draw(st.binary(min_size=8, max_size=8))
    return b"\x08" + vector, b"\x08\0\0\0" + vector


@st.composite
def images(draw: st.DrawFn, kinds: list[int], present: list[bool]) -> tuple[bytes, bytes]:
    """An image in the source's rows and in the target's."""
    there = [kind for kind, is_there in zip(kinds, present, strict=True) if is_there]
    nulls = [draw(st.booleans()) for _ in there]
    bits = sum(1 << place for place, is_null in enumerate(nulls) if is_null).to_bytes((len(there) + 7) // 8, "little")
    found = [draw(values(kind)) for kind, is_null in zip(there, nulls, strict=True) if not is_null]
    return bits + b"".join(one for one, _ in found), bits + b"".join(other for _, other in found)


@st.composite
def events(draw: st.DrawFn) -> tuple[list[int], int, bytes, bytes]:
    """Kinds of the columns, the event's type, its body, and what that must become."""
    kinds = draw(st.lists(st.integers(0, len(KINDS) - 1), min_size=1, max_size=12))
    event_type = draw(st.sampled_from((23, 24, 25)))
    presents = [
        draw(st.lists(st.booleans(), min_size=len(kinds), max_size=len(kinds)).filter(any))
        for _ in range(1 + (event_type == 24))
    ]
    masks = b"".join(
        sum(1 << i for i, is_there in enumerate(present) if is_there).to_bytes((len(kinds) + 7) // 8, "little")
        for present in presents
    )
    rows = [draw(images(kinds, present)) for _ in range(draw(st.integers(0, 4))) for present in presents]
    columns = lenenc_int(len(kinds)) + masks
    body = HEAD + columns + b"".join(one for one, _ in rows)
    return kinds, event_type, body, HEAD + b"\2\0" + columns + b"".join(other for _, other in rows)


def tables_of(kinds: list[int]) -> MariadbTables:
    tables = known_tables()
    columns = tuple(Column(f"c{number}", KINDS[kind][0]) for number, kind in enumerate(kinds))
    tables.put(("d", "t"), KnownTable(Table("d", "t", columns=columns)))
    return tables


@given(events())
def test_each_value_becomes_what_it_says(event: tuple[list[int], int, bytes, bytes]) -> None:
    kinds, event_type, body, wanted = event
    table = tables_of(kinds).convert_map(source_map(*(KINDS[kind][1] for kind in kinds)))
    dimensions = kinds.count(5)
    optional = b"\x0d" + bytes((dimensions,)) + b"\2" * dimensions if dimensions else b""
    assert table.map_body == source_map(*(KINDS[kind][2] for kind in kinds), optional=optional)
    assert table.rows(event_type, body) == (event_type + 7, wanted)
    assert table.rows_are_same == all(kind in (0, 3) for kind in kinds)


@given(events(), st.data())
def test_damaged_rows_are_other_rows_or_stop_the_view_by_name(
    event: tuple[list[int], int, bytes, bytes], data: st.DataObject
) -> None:
    kinds, event_type, body, _ = event
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    table = tables_of(kinds).convert_map(source_map(*(KINDS[kind][1] for kind in kinds)))
    try:
        made = table.rows(event_type, bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
    except Untranslatable as stopped:
        assert stopped.reason.name in ("malformed_transaction", "transaction_too_large")
    else:
        assert made[0] == event_type + 7


@given(st.binary(max_size=120))
def test_any_bytes_are_a_table_map_or_stop_the_view_by_name(data: bytes) -> None:
    body = HEAD + b"\x01d\0\x01t\0" + data
    with suppress(Malformed, UnknownColumnType):
        found = decode_table_map(body)
        found.check_columns()
        made = found.with_columns(found.columns, found.optional)
        # lengths may be written in more bytes than they need
        assert made.encode() == body or (made.columns, made.nullable, made.optional) == (
            found.columns,
            found.nullable,
            found.optional,
        )
    try:
        known_tables().convert_map(body)
    except Untranslatable as stopped:
        assert stopped.reason.name in (
            "malformed_transaction", "column_type_not_in_target", "old_temporal_format", "decimal_scale", "sequence_unknown",
        )  # fmt: skip
