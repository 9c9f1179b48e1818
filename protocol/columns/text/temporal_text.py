# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""DATE, TIME, DATETIME and TIMESTAMP as SQL prints them, in the layouts before and since MySQL 5.6.4 (MariaDB 10.0).

What is stored is printed, also what no calendar has: servers store zero dates, and 2023-02-31 where they are told to.
Source: MySQL 9.7 `my_time.cc` (my_datetime_packed_from_binary and others).
"""

import cython

if not cython.compiled:
    from protocol.columns.text.json_text import put_padded
    from protocol.kernel.pure import load24, load64

FIVE_BYTES = cython.declare(cython.longlong, 0x7FFFFFFFFF)  # without the sign
DAY_SECONDS = cython.declare(cython.longlong, 86400)


def load_big(p, at, size):
    """The number of `size` bytes, big-endian, at `at`."""
    value = 0
    for i in range(size):
        value = value << 8 | p[at + i]
    return value


def put_ymd(out, at, year, month, day):
    at = put_padded(out, at, year, 4)
    out[at] = 45
    at = put_padded(out, at + 1, month, 2)
    out[at] = 45
    return put_padded(out, at + 1, day, 2)


def put_hms(out, at, hour, minute, second):
    at = put_padded(out, at, hour, 2)
    out[at] = 58
    at = put_padded(out, at + 1, minute, 2)
    out[at] = 58
    return put_padded(out, at + 1, second, 2)


def put_fraction(out, at, fraction, digits):
    """A point and the first `digits` (0-6) of `fraction` µs."""
    if digits == 0:
        return at
    out[at] = 46
    for _i in range(6 - digits):
        fraction = fraction // 10
    return put_padded(out, at + 1, fraction, digits)


def put_date(out, at, p, start):
    """DATE: day of 5 bits, month of 4, year, in three bytes, little-endian."""
    value = load24(p, start)
    return put_ymd(out, at, value >> 9, value >> 5 & 15, value & 31)


def put_old_time(out, at, p, start):
    """TIME before 5.6.4: a signed number of three bytes, little-endian, whose digits are hhhmmss."""
    value = load24(p, start)
    if value >= 0x800000:
        out[at] = 45
        at += 1
        value = 0x1000000 - value
    return put_hms(out, at, value // 10000, value // 100 % 100, value % 100)


def put_old_datetime(out, at, p, start):
    """DATETIME before 5.6.4: a number of eight bytes, little-endian, whose digits are yyyymmddhhmmss."""
    value = load64(p, start)
    day = value // 1000000
    time = value % 1000000
    at = put_ymd(out, at, day // 10000, day // 100 % 100, day % 100)
    out[at] = 32
    return put_hms(out, at + 1, time // 10000, time // 100 % 100, time % 100)


def put_packed_date(out, at, whole):
    """The date of a packed DATETIME: year * 13 + month | day of 5 bits | 17 bits of time."""
    return put_ymd(out, at, (whole >> 22) // 13, (whole >> 22) % 13, whole >> 17 & 31)


def put_packed_datetime(out, at, whole, fraction, digits):
    """A packed DATETIME: as put_packed_date | hour of 5 bits | minute of 6 | second of 6; `fraction`: µs."""
    at = put_packed_date(out, at, whole)
    out[at] = 32
    at = put_hms(out, at + 1, whole >> 12 & 31, whole >> 6 & 63, whole & 63)
    return put_fraction(out, at, fraction, digits)


def put_packed_time(out, at, negative, whole, fraction, digits):
    """A packed TIME: hour of 10 bits | minute of 6 | second of 6."""
    if negative:
        out[at] = 45
        at += 1
    at = put_hms(out, at, whole >> 12 & 1023, whole >> 6 & 63, whole & 63)
    return put_fraction(out, at, fraction, digits)


def microseconds(stored, size):
    """A fraction as it is stored in `size` bytes, in hundredths, ten-thousandths or millionths, in µs."""
    if size == 1:
        return stored * 10000
    if size == 2:
        return stored * 100
    return stored


def put_datetime(out, at, p, start, digits):
    """DATETIME with `digits` of a fraction: five bytes, big-endian, the first bit a sign, then the fraction."""
    size = (digits + 1) >> 1
    whole = load_big(p, start, 5) & FIVE_BYTES
    return put_packed_datetime(out, at, whole, microseconds(load_big(p, start + 5, size), size), digits)


def put_time(out, at, p, start, digits):
    """TIME with `digits` of a fraction: three bytes and the fraction are one number, big-endian, above a half."""
    size = (digits + 1) >> 1
    value = load_big(p, start, 3 + size)
    half = 0x800000
    value -= half << (8 * size)
    negative = value < 0
    if negative:
        value = -value
    fraction = value & ((1 << (8 * size)) - 1)
    return put_packed_time(out, at, negative, value >> (8 * size), microseconds(fraction, size), digits)


def put_timestamp(out, at, p, start, digits):
    """TIMESTAMP with `digits` of a fraction, in UTC: four bytes of seconds, big-endian, then the fraction."""
    size = (digits + 1) >> 1
    return put_seconds(out, at, load_big(p, start, 4), microseconds(load_big(p, start + 4, size), size), digits)


def put_seconds(out, at, seconds, fraction, digits):
    """Seconds since 1970 as date and time in UTC; 0 is the zero date, as in servers."""
    if seconds == 0:
        at = put_ymd(out, at, 0, 0, 0)
        out[at] = 32
        at = put_hms(out, at + 1, 0, 0, 0)
        return put_fraction(out, at, fraction, digits)
    # Gregorian calendar in years that begin in March, so that the day which may be missing is the last.
    days = seconds // DAY_SECONDS + 719468
    second = seconds % DAY_SECONDS
    era = days // 146097
    of_era = days % 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    at = put_ymd(out, at, year + era * 400 + (1 if month <= 2 else 0), month, of_year - (153 * shifted + 2) // 5 + 1)
    out[at] = 32
    at = put_hms(out, at + 1, second // 3600, second // 60 % 60, second % 60)
    return put_fraction(out, at, fraction, digits)
