"""Row images: whatever bytes stand in a rows event, both builds read them alike, and what they write is JSON."""

import json
import math
import struct

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.event_stream import EventStream, query_body
from tests.support.kernel_builds import builds
from tests.support.kernel_columns import changed_rows

LIMITS = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
# Column type -> what its metadata may be, hostile values among them.
TYPES = {
    1: [b""], 2: [b""], 3: [b""], 8: [b""], 9: [b""], 6: [b""], 7: [b""], 10: [b""], 11: [b""], 12: [b""], 13: [b""],
    4: [b"\4", b"\5"], 5: [b"\x08", b"\xff"], 15: [b"\x0a\0", b"\0\2"], 16: [b"\3\0", b"\0\x08", b"\7\xff"],
    17: [b"\0", b"\6", b"\x09"], 18: [b"\0", b"\3", b"\xff"], 19: [b"\0", b"\5", b"\7"],
    246: [b"\x0a\2", b"\x41\x1e", b"\xff\0", b"\0\0"], 254: [b"\xfe\x0a", b"\xf7\1", b"\xf8\x08", b"\xee\x2c"],
    252: [b"\1", b"\2", b"\3", b"\4", b"\x09"], 245: [b"\4"], 255: [b"\4"], 242: [b"\4"], 140: [b"\2"], 141: [b"\x0a\0"],
    99: [b""],
}  # fmt: skip
columns = st.lists(
    st.sampled_from(sorted(TYPES)).flatmap(lambda code: st.tuples(st.just(code), st.sampled_from(TYPES[code]))),
    min_size=1,
    max_size=6,
)
garbage = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from([b"\0", b"\1", b"\xff", b"\x0a", b"\x80", b"abc", b"\xc3\xa4", b"\xf0\x9f\x98\x80"])).map(
        b"".join
    ),
)


def packed(number: int) -> bytes:
    return bytes([number])


def binlog(chosen: list[tuple[int, bytes]], kind: int, rows: bytes, bitmaps: bytes, optional: bytes) -> bytes:
    """A transaction with one Table_map and one rows event of type `kind`."""
    metadata = b"".join(data for _, data in chosen)
    table = struct.pack("<IHH", 7, 0, 0) + b"\1d\0\1t\0" + packed(len(chosen)) + bytes(code for code, _ in chosen)
    table += packed(len(metadata)) + metadata + bytes((len(chosen) + 7) // 8) + optional
    head = struct.pack("<IHH", 7, 0, 1) + (struct.pack("<H", 2) if kind >= 30 else b"") + packed(len(chosen)) + bitmaps
    stream = EventStream(checksum=False, version="9.7.4")
    stream.add(2, query_body("BEGIN"))
    stream.add(19, table)
    stream.add(kind, head + rows)
    stream.add(16, bytes(8))
    return b"\xfebin" + stream.data


@LIMITS
@given(
    chosen=columns,
    kind=st.sampled_from([23, 24, 25, 30, 31, 32, 39]),
    rows=garbage,
    bits=st.binary(min_size=2, max_size=2),
    optional=st.one_of(st.just(b""), st.binary(max_size=40)),
)
@example(chosen=[(245, b"\4")], kind=30, rows=b"\0\x0e\0\0\0\2\2\0\x0d\0\2\4\0\2\4\0\4\0\0", bits=b"\1\1", optional=b"")
def test_any_image_is_read_alike_by_both_builds_and_its_text_is_json(
    chosen: list[tuple[int, bytes]], kind: int, rows: bytes, bits: bytes, optional: bytes
) -> None:
    bitmaps = bits[:1] + (bits[1:] if kind in (24, 31, 39) else b"")
    data = binlog(chosen, kind, rows, bitmaps, optional)
    first, *others = [changed_rows(build, data).rows for build in builds()]
    assert all(other == first for other in others)
    for row in first:
        for image in (row["before"], row["after"]):
            if image is not None:
                assert isinstance(json.loads(image, parse_constant=lambda text: 1 / 0), dict)
    assert changed_rows(builds()[0], data, capacity=1).rows == first


@LIMITS
@given(document=st.binary(max_size=120))
def test_any_binary_json_becomes_json_or_bytes(document: bytes) -> None:
    rows = b"\0" + struct.pack("<I", len(document)) + document
    data = binlog([(245, b"\4")], 30, rows, b"\1", b"")
    results = [changed_rows(build, data).rows for build in builds()]
    assert all(result == results[0] for result in results)
    assert list(json.loads(results[0][0]["after"])) == ["@1"]


@LIMITS
@given(
    text=st.binary(max_size=60),
    collation=st.sampled_from([8, 33, 45, 63, 35, 54, 56, 60, 51, 13, 28, 248, 10, 9999]),
)
def test_any_text_of_any_character_set_becomes_json(text: bytes, collation: int) -> None:
    number = bytes([collation]) if collation < 251 else b"\xfc" + struct.pack("<H", collation)
    rows = b"\0" + bytes([len(text)]) + text
    data = binlog([(15, b"\x64\0")], 30, rows, b"\1", bytes([2, len(number)]) + number)
    results = [changed_rows(build, data).rows for build in builds()]
    assert all(result == results[0] for result in results)
    json.loads(results[0][0]["after"])


@LIMITS
@given(value=st.floats(width=64))
@example(value=5e-324)
@example(value=2.0**-44)
@example(value=-0.0)
@example(value=1e23)
def test_a_double_has_the_digits_of_python_and_reads_back_the_same(value: float) -> None:
    data = binlog([(5, b"\x08")], 30, b"\0" + struct.pack("<d", value), b"\1", b"")
    for build in builds():
        text = changed_rows(build, data).rows[0]["after"][6:-1]
        if math.isfinite(value):
            assert text == repr(value).removesuffix(".0")
        else:
            assert json.loads(text) in ("NaN", "Infinity", "-Infinity")


@LIMITS
@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_reads_back_the_same_in_both_builds(value: float) -> None:
    data = binlog([(4, b"\x04")], 30, b"\0" + struct.pack("<f", value), b"\1", b"")
    texts = [changed_rows(build, data).rows[0]["after"][6:-1] for build in builds()]
    assert len(set(texts)) == 1
    assert struct.pack("<f", float(texts[0])) == struct.pack("<f", value)
