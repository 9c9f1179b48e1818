"""TIME, DATETIME and TIMESTAMP in the formats of servers before MySQL 5.6 and MariaDB 10.1 are converted to those of today.

A source with mysql56_temporal_format = OFF writes them, and every source does for tables from before that were not rebuilt. MariaDB's
with fractions (5.3 and later) differ from those without, also in width, and the event contains neither digits nor width. Source:
MariaDB 11.8 `sql/field.cc` (Field_time_hires, Field_datetime_hires, Field_timestamp_hires), MySQL 9.7 `mysys/my_time.cc`.
"""

from typing import Final

from protocol.errors import Malformed

MOST_DIGITS: Final = 6
_TIME_BYTES: Final = (3, 4, 4, 5, 5, 5, 6)
_DATETIME_BYTES: Final = (8, 6, 6, 7, 7, 7, 8)
_TIMESTAMP_FRACTION_BYTES: Final = (0, 1, 1, 2, 2, 3, 3)
_SECOND: Final = 1_000_000
_LONGEST_TIME: Final = 838 * 3600 + 59 * 60 + 59
_TIME_OFFSET: Final = 0x800000
_DATETIME_OFFSET: Final = 0x8000000000


def time_bytes(digits: int) -> int:
    """Return the bytes of an old TIME with so many digits of a fraction."""
    return _TIME_BYTES[digits]


def datetime_bytes(digits: int) -> int:
    """Return the bytes of an old DATETIME with so many digits of a fraction."""
    return _DATETIME_BYTES[digits]


def timestamp_bytes(digits: int) -> int:
    """Return the bytes of an old TIMESTAMP with so many digits of a fraction."""
    return 4 + _TIMESTAMP_FRACTION_BYTES[digits]


def new_time(value: bytes, digits: int) -> bytes:
    """Return an old TIME as TIME(digits) of today.

    Layout of the old one: without digits ±hhmmss as a decimal number, 3 bytes, little-endian; else (seconds × 10^digits) plus the value
    of the longest time and a second more, big-endian. Raises: Malformed for a value that is no time.
    """
    if digits:
        step: int = 10 ** (MOST_DIGITS - digits)
        told = int.from_bytes(value, "big") - (_LONGEST_TIME + 1) * _SECOND // step
        sign = -1 if told < 0 else 1
        seconds, microseconds = divmod(abs(told) * step, _SECOND)
        hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    else:
        told = int.from_bytes(value, "little", signed=True)
        sign = -1 if told < 0 else 1
        microseconds = 0
        hour, minute, second = abs(told) // 10_000, abs(told) // 100 % 100, abs(told) % 100
    if hour > 838 or minute > 59 or second > 59:
        raise Malformed(f"an old TIME of {value.hex()}, which is {sign * hour}:{minute:02}:{second:02}")
    whole = hour << 12 | minute << 6 | second
    size = (digits + 1) // 2
    packed = sign * ((whole << 8 * size) + _fraction(microseconds, size))
    return (packed + (_TIME_OFFSET << 8 * size)).to_bytes(3 + size, "big")


def new_datetime(value: bytes, digits: int) -> bytes:
    """Return an old DATETIME as DATETIME(digits) of today; zero and partial dates stay what they are.

    Layout of the old one: without digits YYYYMMDDhhmmss as a decimal number, 8 bytes, little-endian; else years with 13 months, 32
    days, 24 hours and so on, × 10^digits, big-endian. Raises: Malformed for a value that is no date or no time.
    """
    if digits:
        step: int = 10 ** (MOST_DIGITS - digits)
        told = int.from_bytes(value, "big") * step
        rest, microseconds = divmod(told, _SECOND)
        rest, second = divmod(rest, 60)
        rest, minute = divmod(rest, 60)
        rest, hour = divmod(rest, 24)
        rest, day = divmod(rest, 32)
        year, month = divmod(rest, 13)
    else:
        microseconds = 0
        date, time = divmod(int.from_bytes(value, "little"), 1_000_000)
        year, month, day = date // 10_000, date // 100 % 100, date % 100
        hour, minute, second = time // 10_000, time // 100 % 100, time % 100
    if year > 9999 or month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        raise Malformed(
            f"an old DATETIME of {value.hex()}, which is {year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
        )
    whole = ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second
    size = (digits + 1) // 2
    return (whole + _DATETIME_OFFSET).to_bytes(5, "big") + _fraction(microseconds, size).to_bytes(size, "big")


def new_timestamp(value: bytes, digits: int) -> bytes:
    """Return an old TIMESTAMP as TIMESTAMP(digits) of today.

    Layout of the old one: without digits the second, 4 bytes, little-endian; else the second, 4 bytes, big-endian, and the fraction ×
    10^digits, big-endian. Raises: Malformed for an invalid fraction.
    """
    if not digits:
        return value[::-1]
    step: int = 10 ** (MOST_DIGITS - digits)
    microseconds = int.from_bytes(value[4:], "big") * step
    if microseconds >= _SECOND:
        raise Malformed(f"an old TIMESTAMP of {value.hex()}, whose fraction has {microseconds} microseconds")
    size = (digits + 1) // 2
    return value[:4] + _fraction(microseconds, size).to_bytes(size, "big")


def _fraction(microseconds: int, size: int) -> int:
    """Return a fraction as it is stored in `size` bytes: with two digits each."""
    step: int = 10 ** (MOST_DIGITS - 2 * size)
    return microseconds // step
