"""TIME, DATETIME and TIMESTAMP in the formats from before MySQL 5.6 and MariaDB 10.1, made those of today."""

import struct
from datetime import UTC, datetime

import pytest

from protocol.errors import Malformed
from protocol.sql.tables.source_table import Column, Table
from relay.source_tables.known_table import KnownTable
from relay.view.rules.mariadb.rows.old_temporal import (
    datetime_bytes,
    new_datetime,
    new_time,
    new_timestamp,
    time_bytes,
    timestamp_bytes,
)
from tests.support.mariadb_table import (
    INT,
    MapColumn,
    known_tables,
    source_map,
    stop_reason,
)

OLD_TYPES = {7: "TIMESTAMP", 11: "TIME", 12: "DATETIME"}


def old_time(sign: int, hour: int, minute: int, second: int, microseconds: int, digits: int) -> bytes:
    if not digits:
        return (sign * (hour * 10_000 + minute * 100 + second)).to_bytes(3, "little", signed=True)
    packed = sign * ((hour * 3600 + minute * 60 + second) * 1_000_000 + microseconds) + 3_020_400_000_000
    return (packed // 10 ** (6 - digits)).to_bytes(time_bytes(digits), "big")


def old_datetime(year: int, month: int, day: int, rest: tuple[int, int, int], microseconds: int, digits: int) -> bytes:
    hour, minute, second = rest
    if not digits:
        return struct.pack("<Q", ((year * 100 + month) * 100 + day) * 1_000_000 + hour * 10_000 + minute * 100 + second)
    packed = (((((year * 13 + month) * 32 + day) * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + microseconds
    return (packed // 10 ** (6 - digits)).to_bytes(datetime_bytes(digits), "big")


def fraction_of(made: bytes, size: int, digits: int) -> int:
    stored = int.from_bytes(made[-size:], "big") if size else 0
    return stored * 10 ** (6 - 2 * size) // 10 ** (6 - digits) * 10 ** (6 - digits) if digits else 0


@pytest.mark.parametrize("digits", range(7))
def test_a_datetime_says_the_same(digits: int) -> None:
    for year, month, day in ((0, 0, 0), (1000, 1, 1), (2024, 2, 0), (2024, 0, 0), (9999, 12, 31)):
        for rest in ((0, 0, 0), (23, 59, 59)):
            microseconds = 987_654 // 10 ** (6 - digits) * 10 ** (6 - digits)
            made = new_datetime(old_datetime(year, month, day, rest, microseconds, digits), digits)
            whole = int.from_bytes(made[:5], "big") - 0x8000000000
            year_month, day_and_time = divmod(whole, 1 << 22)
            assert (*divmod(year_month, 13), day_and_time >> 17) == (year, month, day)
            assert (whole >> 12 & 31, whole >> 6 & 63, whole & 63) == rest
            size = (digits + 1) // 2
            assert (len(made), fraction_of(made, size, digits)) == (5 + size, microseconds)


@pytest.mark.parametrize("digits", range(7))
@pytest.mark.parametrize("sign", [1, -1])
def test_a_time_says_the_same(digits: int, sign: int) -> None:
    for hour, minute, second in ((0, 0, 0), (0, 0, 1), (10, 20, 30), (838, 59, 58)):
        microseconds = 987_654 // 10 ** (6 - digits) * 10 ** (6 - digits)
        made = new_time(old_time(sign, hour, minute, second, microseconds, digits), digits)
        size = (digits + 1) // 2
        assert len(made) == 3 + size
        told = int.from_bytes(made, "big") - (0x800000 << 8 * size)
        whole, fraction = divmod(abs(told), 1 << 8 * size)
        assert (whole >> 12, whole >> 6 & 63, whole & 63) == (hour, minute, second)
        assert fraction == microseconds // 10 ** (6 - 2 * size)
        assert told == 0 or (told < 0) == (sign < 0)


def test_times_have_the_bytes_that_mysql_writes() -> None:
    """-00:00:00.1 as TIME(1) and -838:59:58.999999 as TIME(6), as a 9.7 source logs them."""
    assert new_time(old_time(-1, 0, 0, 0, 100_000, 1), 1).hex() == "7ffffff6"
    longest = (838 << 12 | 59 << 6 | 58) << 24 | 999_999
    assert new_time(old_time(-1, 838, 59, 58, 999_999, 6), 6) == ((0x800000 << 24) - longest).to_bytes(6, "big")


@pytest.mark.parametrize("digits", range(7))
def test_a_timestamp_says_the_same(digits: int) -> None:
    for second in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF, int(datetime(2020, 2, 29, tzinfo=UTC).timestamp())):
        fraction = 987_654 // 10 ** (6 - digits)
        size = timestamp_bytes(digits) - 4
        old = struct.pack(">I", second) + fraction.to_bytes(size, "big") if digits else struct.pack("<I", second)
        made = new_timestamp(old, digits)
        assert struct.unpack(">I", made[:4]) == (second,)
        assert fraction_of(made, (digits + 1) // 2, digits) == fraction * 10 ** (6 - digits) * bool(digits)


@pytest.mark.parametrize(
    ("convert", "value", "digits"),
    [
        (new_time, (8_386_000).to_bytes(3, "little", signed=True), 0),
        (new_time, (-6_000_000 - 99).to_bytes(3, "little", signed=True), 0),
        (new_time, b"\xff" * 6, 6),
        (new_datetime, b"\xff" * 8, 0),
        (new_datetime, struct.pack("<Q", 20241301000000), 0),
        (new_datetime, struct.pack("<Q", 20241231240000), 0),
        (new_datetime, b"\xff" * 8, 6),
        (new_timestamp, b"\0\0\0\0\xff\xff\xff", 6),
    ],
)
def test_what_is_no_time_is_malformed(convert: object, value: bytes, digits: int) -> None:
    with pytest.raises(Malformed):
        convert(value, digits)  # type: ignore[operator]


@pytest.mark.parametrize("kind", OLD_TYPES)
def test_without_a_definition_the_width_is_not_known_and_the_view_stops(kind: int) -> None:
    stopped = stop_reason(lambda: known_tables().convert_map(source_map(INT, MapColumn(kind))))
    assert (stopped.name, stopped.error) == ("old_temporal_format", 1610)
    assert f"column 2 of d.t is a {OLD_TYPES[kind]}" in stopped.text
    assert "ALTER TABLE d.t FORCE" in stopped.advice


# Table_map and row event of MariaDB 10.11.18 with mysql56_temporal_format = OFF, and the values that were inserted, in UTC.
RECORDED_MAP = bytes.fromhex("12000000000001000164000174000a0b0b0b0b0c0c0c07070700ff03")
RECORDED_ROW = bytes.fromhex(
    "12000000000001000aff0300fc590a8001cce05f00b1e24cb102c9c9c4a2147787d105f15a0000069de9612e79007fb403f9236001ffffff7f386d437f"
    "093a9d910000000a"
)
RECORDED = {
    "a time": "-838:59:59", "b time(1)": "-0:00:00.1", "c time(3)": "-10:00:01.999", "d time(6)": "12:34:56.789012",
    "e datetime": "9999-12-31 23:59:59", "f datetime(2)": "2024-02-00 01:02:03.45", "g datetime(6)": "1000-01-01 00:00:00.000001",
    "h timestamp": "2038-01-19 03:14:07", "i timestamp(1)": "1999-12-31 23:59:59.9", "j timestamp(6)": "2001-03-01 00:00:00.000010",
}  # fmt: skip


def shown(kind: int, value: bytes, digits: int) -> str:
    """A value of one of today's types as a text."""
    size = (digits + 1) // 2
    if kind == 19:
        told = int.from_bytes(value, "big") - (0x800000 << 8 * size)
        whole, fraction = divmod(abs(told), 1 << 8 * size)
        text = f"{'-' if told < 0 else ''}{whole >> 12}:{whole >> 6 & 63:02}:{whole & 63:02}"
    elif kind == 18:
        whole, fraction = int.from_bytes(value[:5], "big") - 0x8000000000, int.from_bytes(value[5:], "big")
        year, month = divmod(whole >> 22, 13)
        text = f"{year:04}-{month:02}-{whole >> 17 & 31:02} {whole >> 12 & 31:02}:{whole >> 6 & 63:02}:{whole & 63:02}"
    else:
        fraction = int.from_bytes(value[4:], "big")
        text = datetime.fromtimestamp(int.from_bytes(value[:4], "big"), UTC).strftime("%Y-%m-%d %H:%M:%S")
    return text + (f".{fraction:0{2 * size}}"[: digits + 1] if digits else "")


def test_recorded_values_of_a_server_become_the_same_ones() -> None:
    tables = known_tables()
    columns = tuple(Column(*name.split(" ")) for name in RECORDED)
    tables.put(("d", "t"), KnownTable(Table("d", "t", columns=columns)))
    converted = tables.convert_map(RECORDED_MAP)
    _, made = converted.rows(23, RECORDED_ROW)
    at = 8 + 2 + 1 + 2 + 2
    found = []
    for rule in converted.rules:
        kind, digits = rule.after.type, rule.after.number
        size = {17: 4, 18: 5, 19: 3}[kind] + (digits + 1) // 2
        found.append(shown(kind, made[at : at + size], digits))
        at += size
    assert (found, at) == (list(RECORDED.values()), len(made))
