"""What walks Table_maps and status variables in compiled code goes where the readable decoders go."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from protocol.binlog.status_variables import EXPLICIT_TIMESTAMPS, MYSQL, decode_status, encode_status
from protocol.binlog.table_map import METADATA_BYTES, decode_table_map
from protocol.columns.codes import column_codes
from protocol.errors import Malformed
from protocol.kernel import codes
from protocol.views.query_status import explicit_place
from tests.support.kernel_builds import uncompiled_kernel
from tests.support.mariadb_table import MapColumn, source_map

_TEXT = st.binary(max_size=9).map(lambda text: bytes((len(text),)) + text)
_SCHEMAS = st.lists(st.sampled_from((b"a\0", b"shop\0")), max_size=16).map(
    lambda names: bytes((len(names),)) + b"".join(names)
)
_VALUES = {
    codes.VARIABLE_CATALOG_WITH_ZERO: _TEXT.map(lambda text: text + b"\0"),
    codes.VARIABLE_TIME_ZONE: _TEXT,
    codes.VARIABLE_CATALOG: _TEXT,
    codes.VARIABLE_INVOKER: st.tuples(_TEXT, _TEXT).map(b"".join),
    codes.VARIABLE_UPDATED_SCHEMAS: _SCHEMAS | st.just(b"\xfe"),
}
_VARIABLES = st.one_of(
    st.tuples(
        st.just(code),
        _VALUES[code] if not isinstance(end, int) else st.binary(min_size=end, max_size=end),
    )
    for code, end in MYSQL.items()
)
_OF_TYPES = {
    column_codes.FIELD_FLOAT: b"\4", column_codes.FIELD_DOUBLE: b"\10", column_codes.FIELD_BIT: b"\1\1",
    column_codes.FIELD_NEWDECIMAL: b"\12\2", column_codes.FIELD_ENUM: b"\xf7\1", column_codes.FIELD_SET: b"\xf8\1",
    column_codes.FIELD_STRING: b"\xfe\12",
}  # fmt: skip
"""Metadata of a type, where not any will do."""
_VARCHAR = MapColumn(column_codes.FIELD_VARCHAR, b"\x2c\x01")


def readable_place(values: dict[int, bytes]) -> int:
    """Where the variable for TIMESTAMP columns goes, by the readable decoder's values."""
    at = 0
    for code, value in values.items():
        if code == EXPLICIT_TIMESTAMPS:
            return codes.STATUS_SAID
        if code > codes.VARIABLE_LAST_OF_56:
            return at
        at += 1 + len(value)
    return at


@given(st.lists(_VARIABLES, max_size=9).map(dict))
def test_the_compiled_walker_passes_each_status_variable_as_the_readable_one(values: dict[int, bytes]) -> None:
    status = encode_status(values)
    assert decode_status(status) == values
    assert explicit_place(status) == readable_place(values)


@given(st.lists(_VARIABLES, max_size=9).map(dict), st.data())
def test_status_variables_that_are_cut_are_cut_for_both(values: dict[int, bytes], data: st.DataObject) -> None:
    known = {code: value for code, value in values.items() if code <= codes.VARIABLE_LAST_OF_56}
    status = encode_status(known)
    cut = status[: data.draw(st.integers(0, len(status)))]
    try:
        decode_status(cut)
    except Malformed:
        assert explicit_place(cut) == codes.STATUS_DAMAGED
    else:
        assert explicit_place(cut) == len(cut)


@pytest.mark.parametrize("kind", sorted(METADATA_BYTES))
def test_the_compiled_walker_takes_as_many_bytes_of_metadata_for_each_type(kind: int) -> None:
    metadata = _OF_TYPES.get(kind, b"\1\1\1"[: METADATA_BYTES[kind]])
    body = source_map(MapColumn(kind, metadata), _VARCHAR)
    tables = uncompiled_kernel().tables.TableMaps()
    slot = tables.take_map(body, 0, len(body))
    widths = tables.slots[slot + column_codes.SLOT_WIDTHS]
    prefixes = tables.arena[widths], tables.arena[widths + 4]
    assert [len(column.metadata) for column in decode_table_map(body).columns] == [METADATA_BYTES[kind], 2]
    if kind == column_codes.FIELD_DECIMAL:  # 4.1's: how long its values are is not in the event
        assert prefixes == (column_codes.WIDTH_UNKNOWN, column_codes.WIDTH_UNKNOWN)
    else:
        assert prefixes[1] == 2 and prefixes[0] != column_codes.WIDTH_UNKNOWN


@pytest.mark.parametrize("kind", sorted(set(range(256)) - METADATA_BYTES.keys()))
def test_a_type_that_the_one_does_not_know_the_other_does_not(kind: int) -> None:
    body = source_map(MapColumn(kind), _VARCHAR)
    tables = uncompiled_kernel().tables.TableMaps()
    slot = tables.take_map(body, 0, len(body))
    assert tables.arena[tables.slots[slot + column_codes.SLOT_WIDTHS]] == column_codes.WIDTH_UNKNOWN
    with pytest.raises(Exception, match=f"column 1 of type {kind}"):
        decode_table_map(body).check_columns()


@given(st.binary(max_size=70), st.binary(max_size=70))
def test_both_find_the_same_names(schema: bytes, table: bytes) -> None:
    names = bytes((len(schema),)) + schema + b"\0" + bytes((len(table),)) + table + b"\0"
    body = bytes(6) + b"\1\0" + names + b"\1\3\0\0"
    tables = uncompiled_kernel().tables.TableMaps()
    slot = tables.take_map(body, 0, len(body))
    starts = [tables.slots[slot + at] for at in (column_codes.SLOT_SCHEMA, column_codes.SLOT_TABLE)]
    lengths = [tables.slots[slot + at] for at in (column_codes.SLOT_SCHEMA_LENGTH, column_codes.SLOT_TABLE_LENGTH)]
    found = decode_table_map(body)
    assert [bytes(tables.arena[at : at + length]) for at, length in zip(starts, lengths, strict=True)] == [
        found.schema_bytes,
        found.table_bytes,
    ]
