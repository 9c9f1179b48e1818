# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""DECIMAL as text, with all of its digits.

Layout: digits before the point, then those behind it, in groups of nine to four bytes, big-endian; the odd digits, first
before the point and last behind it, take as few bytes as hold them. The first bit is inverted, and all bits of a negative
number are. Source: MySQL 9.7 `decimal2bin`.
"""

import cython

if not cython.compiled:
    from protocol.columns.text.json_text import put_padded

C_INVALID = cython.declare(cython.int, -1)


def group_bytes(digits):
    """Bytes of a group of up to nine digits."""
    return (digits + 1) >> 1 if digits < 9 else 4


def decimal_bytes(digits):
    """Bytes of so many digits on one side of the point."""
    return digits // 9 * 4 + group_bytes(digits % 9)


def least_too_great(digits):
    """10 to the power of `digits`, up to nine."""
    limit = 1
    while digits > 0:
        limit = limit * 10
        digits -= 1
    return limit


def read_group(p, at, size, mask, first):
    value = 0
    for i in range(size):
        byte = p[at + i] ^ mask
        if first and i == 0:
            byte = byte ^ 0x80
        value = value << 8 | byte
    return value


def put_decimal(out, at, p, start, precision, scale):
    """The text, at most 70 characters, of the value at p[start:]. INVALID: a group has more digits than it may."""
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
            return C_INVALID
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
            return C_INVALID
        at = put_padded(out, at, group, digits)
        first = False
        start += size
        scale -= digits
    return at
