"""JSON texts of MariaDB as MySQL's binary documents: as 9.7.4 made them of the same texts, and texts that it refuses."""

import json
import struct

import hypothesis.strategies as st
import pytest
from hypothesis import given

from relay.view.rules.mariadb.rows.json_document import NotJson, binary_json

# Text -> what 9.7.4 has in its binlog for a column of it.
OF_MYSQL = {
    '{"a": [1, null, true, false, {"b": "c"}], "": -1}': (
        "0002003400120000001200010005ffff021300610500210005010004000004010004020000130001000e000b0001000c0c00620163"
    ),
    '"x"': "0c0178",
    "[]": "0200000400",
    "{}": "0000000400",
    "[18446744073709551615, 1.5, -0.1, 1e300, 12345678901234567890123]": (
        "0205003b000a13000b1b000b23000b2b000b3300ffffffffffffffff000000000000f83f9a9999999999b9bf9c7500883ce4377e8ab373b215ea8444"
    ),
    "[-32768, 32767, 65535, -32769, 2147483647, -2147483648, 4294967295, 9223372036854775807, -9223372036854775808]": (
        "020900470005008005ff7f071f00072300072700072b00092f000a3700093f00ffff0000ff7fffffffffff7f00000080ffffffff00000000"
        "ffffffffffffff7f0000000000000080"
    ),
}
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner, max_size=6),
    max_leaves=40,
)


def read(document: bytes) -> object:
    """As the layout says it, each number of it used."""
    return _value(document[0], document, 1)


def _value(kind: int, data: bytes, at: int) -> object:
    if kind <= 3:
        return _container(kind, data, at)
    if kind == 4:
        return (None, True, False)[data[at]]
    if kind == 12:
        size = shift = 0
        while True:
            size |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if not data[at - 1] & 0x80:
                return data[at : at + size].decode()
    return struct.unpack_from({5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q", 11: "<d"}[kind], data, at)[0]


def _container(kind: int, data: bytes, start: int) -> object:
    size = 4 if kind & 1 else 2
    code = "<I" if kind & 1 else "<H"
    count, total = (struct.unpack_from(code, data, start + i * size)[0] for i in range(2))
    assert start + total <= len(data)
    at = start + 2 * size
    keys = []
    if kind < 2:
        for _ in range(count):
            (offset,) = struct.unpack_from(code, data, at)
            (length,) = struct.unpack_from("<H", data, at + size)
            keys.append(data[start + offset : start + offset + length].decode())
            at += size + 2
        assert keys == sorted(keys, key=lambda key: (len(key.encode()), key.encode()))
    values = []
    for _ in range(count):
        inside = data[at] in (4, 5, 6) or (size == 4 and data[at] in (7, 8))
        place = at + 1 if inside else start + struct.unpack_from(code, data, at + 1)[0]
        values.append(_value(data[at], data, place))
        at += 1 + size
    return dict(zip(keys, values, strict=True)) if kind < 2 else values


@pytest.mark.parametrize("text", OF_MYSQL)
def test_a_text_becomes_the_document_that_mysql_makes_of_it(text: str) -> None:
    assert binary_json(text.encode()).hex() == OF_MYSQL[text]


@given(_values)
def test_a_document_says_what_the_text_says(value: object) -> None:
    assert read(binary_json(json.dumps(value).encode())) == value


@pytest.mark.parametrize("count", [5_000, 20_000, 70_000])
def test_large_documents_have_numbers_of_four_bytes(count: int) -> None:
    array = [*range(-5, count)]
    assert read(binary_json(json.dumps(array).encode())) == array
    value = {f"k{number}": [number, "x" * 20, -1, 70_000] for number in range(count // 10)}
    assert read(binary_json(json.dumps(value).encode())) == value


def test_of_a_key_that_is_there_twice_the_last_counts_and_large_integers_become_doubles() -> None:
    assert read(binary_json(b'{"a": 1, "b":[1,2.50],"a":2}')) == {"a": 2, "b": [1, 2.5]}
    assert read(binary_json(b"[-0, 12345678901234567890123, -9223372036854775809]")) == [
        0,
        1.2345678901234568e22,
        -(2.0**63),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"", 3141), (b"{", 3141), (b"[1,]", 3141), (b"{'a':1}", 3141), (b"1e400", 3141), (b"-1e400", 3141), (b"NaN", 3141),
        (b"[Infinity]", 3141), (b'"\\ud800"', 3141), (b'"\x01"', 3141), (b"01", 3141), (b"1 2", 3141), (b"9" * 400, 3141),
        (b"9" * 5000, 3141), (b'"\xff"', 3140), (b"[" * 101 + b"]" * 101, 3157), (b"[" * 100_000, 3157),
        (b'{"' + b"k" * 65536 + b'": 1}', 3151),
    ],
)  # fmt: skip
def test_what_mysql_refuses_is_refused(text: bytes, error: int) -> None:
    with pytest.raises(NotJson) as refused:
        binary_json(text)
    assert refused.value.error == error


def test_a_hundred_levels_are_taken() -> None:
    assert binary_json(b"[" * 100 + b"]" * 100)[0] == 2
