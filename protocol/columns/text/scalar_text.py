# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Values of SQL's types that are no text, as SQL prints them, and as numbers of JSON.

DECIMAL has all of its digits; FLOAT and DOUBLE have the fewest that read back as the same number, and values that are no number are a
string. DATE, TIME, DATETIME and TIMESTAMP come in the layouts before and since MySQL 5.6.4 (MariaDB 10.0), UUID, INET4 and INET6 as
MariaDB stores them in BINARY. Stored values are printed even if no calendar has them: servers store zero dates, and 2023-02-31 if
they are configured so.

Sources: MySQL 9.7 `decimal2bin`, `my_time.cc` (my_datetime_packed_from_binary and others); MariaDB 11.8 `plugin/type_uuid`,
`plugin/type_inet`.
"""

import cython

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.text.json_text import put_hex, put_padded, put_unsigned
    from protocol.columns.text.real_text import put_real_32, put_real_64, set_power_of_ten
    from protocol.kernel.pure import Bytes, Writable, load24, load32, load64

# ---- DECIMAL ----

# Layout: digits before the point, then those after it, in groups of nine to four bytes, big-endian; the odd digits, first before the
# point and last after it, take as few bytes as possible. The first bit is inverted, and all bits of a negative number are.


def group_bytes(digits: int) -> int:
    """Return the bytes of a group of up to nine digits."""
    return (digits + 1) >> 1 if digits < 9 else 4


def decimal_bytes(digits: int) -> int:
    """Return the bytes of `digits` digits on one side of the point."""
    return digits // 9 * 4 + group_bytes(digits % 9)


def least_too_great(digits: int) -> int:
    """Return 10 to the power of `digits`, up to nine."""
    limit = 1
    while digits > 0:
        limit = limit * 10
        digits -= 1
    return limit


def read_group(p: Bytes, at: int, size: int, mask: int, first: bool) -> int:
    value = 0
    for i in range(size):
        byte = p[at + i] ^ mask
        if first and i == 0:
            byte = byte ^ 0x80
        value = value << 8 | byte
    return value


def put_decimal(out: Writable, at: int, p: Bytes, start: int, precision: int, scale: int) -> int:
    """Write the text, at most 70 characters, of the value at p[start:]. INVALID: a group has more digits than it may."""
    mask = 0 if p[start] & 0x80 else 0xFF
    whole = precision - scale
    first = True
    started = False
    if mask:
        out[at] = 45
        at += 1
    while whole > 0:
        digits = whole % 9
        if digits == 0:
            digits = 9
        size = group_bytes(digits)
        group = read_group(p, start, size, mask, first)
        if group >= least_too_great(digits):
            return VALUE_INVALID
        if started:
            at = put_padded(out, at, group, digits)
        elif group:
            at = put_padded(out, at, group, 1)
            started = True
        first = False
        start += size
        whole -= digits
    if not started:
        out[at] = 48
        at += 1
    if scale > 0:
        out[at] = 46
        at += 1
    while scale > 0:
        digits = scale if scale < 9 else 9
        size = group_bytes(digits)
        group = read_group(p, start, size, mask, first)
        if group >= least_too_great(digits):
            return VALUE_INVALID
        at = put_padded(out, at, group, digits)
        first = False
        start += size
        scale -= digits
    return at


# ---- FLOAT, DOUBLE ----

# real_text.h does it if there is a C compiler, with powers of ten of 128 bits, rounded up; otherwise real_text.py.
if cython.compiled:
    for k in range(-292, 325):
        power = 10 ** abs(k)
        if k >= 0:
            size = power.bit_length()
            g = power << (128 - size) if size <= 128 else -(-power >> (size - 128))
        else:
            g = -(-(1 << (127 + power.bit_length())) // power)
        set_power_of_ten(k, g >> 64, g & 0xFFFFFFFFFFFFFFFF)


def put_double(out: Writable, at: int, p: Bytes, start: int) -> int:
    """Write the number of eight bytes at p[start:], in at most 25 bytes."""
    return put_real_64(out, at, load64(p, start))


def put_float(out: Writable, at: int, p: Bytes, start: int) -> int:
    """Write the number of four bytes at p[start:], in at most 25 bytes."""
    return put_real_32(out, at, load32(p, start))


# ---- dates and times ----


def load_big(p: Bytes, at: int, size: int) -> int:
    """Return the number of `size` bytes, big-endian, at `at`."""
    value = 0
    for i in range(size):
        value = value << 8 | p[at + i]
    return value


def put_ymd(out: Writable, at: int, year: int, month: int, day: int) -> int:
    at = put_padded(out, at, year, 4)
    out[at] = 45
    at = put_padded(out, at + 1, month, 2)
    out[at] = 45
    return put_padded(out, at + 1, day, 2)


def put_hms(out: Writable, at: int, hour: int, minute: int, second: int) -> int:
    at = put_padded(out, at, hour, 2)
    out[at] = 58
    at = put_padded(out, at + 1, minute, 2)
    out[at] = 58
    return put_padded(out, at + 1, second, 2)


def put_fraction(out: Writable, at: int, fraction: int, digits: int) -> int:
    """Write a point and the first `digits` (0-6) of `fraction` µs."""
    if digits == 0:
        return at
    out[at] = 46
    for _i in range(6 - digits):
        fraction = fraction // 10
    return put_padded(out, at + 1, fraction, digits)


def put_date(out: Writable, at: int, p: Bytes, start: int) -> int:
    """Write a DATE: day of 5 bits, month of 4, year, in three bytes, little-endian."""
    value = load24(p, start)
    return put_ymd(out, at, value >> 9, value >> 5 & 15, value & 31)


def put_old_time(out: Writable, at: int, p: Bytes, start: int) -> int:
    """Write a TIME before 5.6.4: a signed number of three bytes, little-endian, whose digits are hhhmmss."""
    value = load24(p, start)
    if value >= 0x800000:
        out[at] = 45
        at += 1
        value = 0x1000000 - value
    return put_hms(out, at, value // 10000, value // 100 % 100, value % 100)


def put_old_datetime(out: Writable, at: int, p: Bytes, start: int) -> int:
    """Write a DATETIME before 5.6.4: a number of eight bytes, little-endian, whose digits are yyyymmddhhmmss."""
    value = load64(p, start)
    day = value // 1000000
    time = value % 1000000
    at = put_ymd(out, at, day // 10000, day // 100 % 100, day % 100)
    out[at] = 32
    return put_hms(out, at + 1, time // 10000, time // 100 % 100, time % 100)


def put_packed_date(out: Writable, at: int, whole: int) -> int:
    """Write the date of a packed DATETIME: year * 13 + month | day of 5 bits | 17 bits of time."""
    return put_ymd(out, at, (whole >> 22) // 13, (whole >> 22) % 13, whole >> 17 & 31)


def put_packed_datetime(out: Writable, at: int, whole: int, fraction: int, digits: int) -> int:
    """Write a packed DATETIME: as put_packed_date | hour of 5 bits | minute of 6 | second of 6; `fraction` is in µs."""
    at = put_packed_date(out, at, whole)
    out[at] = 32
    at = put_hms(out, at + 1, whole >> 12 & 31, whole >> 6 & 63, whole & 63)
    return put_fraction(out, at, fraction, digits)


def put_packed_time(out: Writable, at: int, negative: bool, whole: int, fraction: int, digits: int) -> int:
    """Write a packed TIME: hour of 10 bits | minute of 6 | second of 6."""
    if negative:
        out[at] = 45
        at += 1
    at = put_hms(out, at, whole >> 12 & 1023, whole >> 6 & 63, whole & 63)
    return put_fraction(out, at, fraction, digits)


def microseconds(stored: int, size: int) -> int:
    """Return in µs a fraction that is stored in `size` bytes, in hundredths, ten-thousandths or millionths."""
    if size == 1:
        return stored * 10000
    if size == 2:
        return stored * 100
    return stored


def put_datetime(out: Writable, at: int, p: Bytes, start: int, digits: int) -> int:
    """Write a DATETIME with `digits` of a fraction: five bytes, big-endian, the first bit a sign, then the fraction."""
    size = (digits + 1) >> 1
    high = p[start] & 0x7F  # without the sign
    whole = high << 32 | load_big(p, start + 1, 4)
    return put_packed_datetime(out, at, whole, microseconds(load_big(p, start + 5, size), size), digits)


def put_time(out: Writable, at: int, p: Bytes, start: int, digits: int) -> int:
    """Write a TIME with `digits` of a fraction: three bytes and the fraction are one number, big-endian, above a half."""
    size = (digits + 1) >> 1
    value = load_big(p, start, 3 + size)
    half = 0x800000
    value -= half << (8 * size)
    negative = value < 0
    if negative:
        value = -value
    fraction = value & ((1 << (8 * size)) - 1)
    return put_packed_time(out, at, negative, value >> (8 * size), microseconds(fraction, size), digits)


def put_timestamp(out: Writable, at: int, p: Bytes, start: int, digits: int) -> int:
    """Write a TIMESTAMP with `digits` of a fraction, in UTC: four bytes of seconds, big-endian, then the fraction."""
    size = (digits + 1) >> 1
    return put_seconds(out, at, load_big(p, start, 4), microseconds(load_big(p, start + 4, size), size), digits)


def put_seconds(out: Writable, at: int, seconds: int, fraction: int, digits: int) -> int:
    """Write seconds since 1970 as date and time in UTC; 0 is the zero date, as in servers."""
    if seconds == 0:
        at = put_ymd(out, at, 0, 0, 0)
        out[at] = 32
        at = put_hms(out, at + 1, 0, 0, 0)
        return put_fraction(out, at, fraction, digits)
    # The Gregorian calendar in years that begin in March, so that the day which may be missing is the last.
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


# ---- MariaDB's own types: `p` has all bytes of the value ----


def put_uuid(out: Writable, at: int, p: Bytes) -> int:
    """Write 16 bytes. UUIDs of versions 1 to 5 are stored with their segments backwards, so that they sort by node and time."""
    swapped = p[6] & 0x80 and 0 < p[8] < 0x80
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            out[at] = 45
            at += 1
        k = i
        if swapped:
            if i < 4:
                k = 12 + i
            elif i < 6:
                k = 6 + i
            elif i < 8:
                k = 2 + i
            elif i < 10:
                k = i - 2
            else:
                k = i - 10
        at = put_hex(out, at, p[k])
    return at


def put_inet4(out: Writable, at: int, p: Bytes, start: int) -> int:
    """Write an address of four bytes."""
    for i in range(4):
        if i:
            out[at] = 46
            at += 1
        at = put_unsigned(out, at, p[start + i])
    return at


def word_at(p: Bytes, i: int) -> int:
    return p[2 * i] << 8 | p[2 * i + 1]


def put_word_hex(out: Writable, at: int, word: int) -> int:
    """Write a word in hexadecimal without leading zeros."""
    shift = 12
    while shift > 0 and word >> shift == 0:
        shift -= 4
    while shift >= 0:
        digit = word >> shift & 15
        out[at] = 48 + digit if digit < 10 else 87 + digit
        at += 1
        shift -= 4
    return at


def put_inet6(out: Writable, at: int, p: Bytes) -> int:
    """Write an address of 16 bytes; the first longest run of zero words is omitted, IPv4 addresses in it are written as such."""
    gap = 8
    length = 0
    run = 0
    for i in range(8):
        run = run + 1 if word_at(p, i) == 0 else 0
        if run > length:
            length = run
            gap = i + 1 - run
    i = 0
    while i < 8:
        if i == gap:
            out[at] = 58
            out[at + 1] = 58
            at += 2
            i += length
            continue
        if i > 0 and i != gap + length:
            out[at] = 58
            at += 1
        if i == 6 and gap == 0 and (length == 6 or (length == 5 and word_at(p, 5) == 0xFFFF)):
            return put_inet4(out, at, p, 12)
        at = put_word_hex(out, at, word_at(p, i))
        i += 1
    return at
