# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""JSON text into a buffer: numbers, strings with their escapes, bytes as base64.

Every writer puts its text at out[at:] and returns where it ends. Those with `room`, the end of the buffer, return NO_ROOM if it does
not suffice, and VALUE_INVALID for invalid bytes; the others need SPARE bytes.
"""

import cython

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.kernel.pure import Bytes, Writable, copy_ascii, copy_plain, magnitude


def put_unsigned(out: Writable, at: int, value: int) -> int:
    """Write a number that is not negative."""
    size = 1
    left = value
    while left >= 10000:
        left = left // 10000
        size += 4
    if left >= 1000:
        size += 3
    elif left >= 100:
        size += 2
    elif left >= 10:
        size += 1
    i = at + size
    while value >= 10:
        i -= 1
        quotient = value // 10
        out[i] = 48 + (value - quotient * 10)
        value = quotient
    out[i - 1] = 48 + value
    return at + size


def put_signed(out: Writable, at: int, value: int) -> int:
    """Write a number of 64 bits."""
    if value >= 0:
        return put_unsigned(out, at, value)
    out[at] = 45
    return put_unsigned(out, at + 1, magnitude(value))


def put_padded(out: Writable, at: int, value: int, width: int) -> int:
    """Write a number with at least `width` digits."""
    i = width
    rest = value
    while i > 0:
        i -= 1
        out[at + i] = 48 + rest % 10
        rest = rest // 10
    if rest:
        return put_unsigned(out, at, value)
    return at + width


def put_word(out: Writable, at: int, word: bytes, count: int) -> int:
    """Write `count` bytes as they are."""
    for i in range(count):
        out[at + i] = word[i]
    return at + count


def put_hex(out: Writable, at: int, byte: int) -> int:
    """Write two digits of lower case."""
    out[at] = 48 + (byte >> 4) if byte >> 4 < 10 else 87 + (byte >> 4)
    out[at + 1] = 48 + (byte & 15) if byte & 15 < 10 else 87 + (byte & 15)
    return at + 2


def put_escape(out: Writable, at: int, c: int) -> int:
    """Write a control character, quotation mark or backslash."""
    out[at] = 92
    short = c
    if c == 10:
        short = 110
    elif c == 13:
        short = 114
    elif c == 9:
        short = 116
    elif c == 8:
        short = 98
    elif c == 12:
        short = 102
    elif c < 32:
        out[at + 1] = 117
        out[at + 2] = 48
        out[at + 3] = 48
        return put_hex(out, at + 4, c)
    out[at + 1] = short
    return at + 2


def put_code_point(out: Writable, at: int, c: int) -> int:
    """Write one character of a string, which is no surrogate."""
    if c < 128:
        if c < 32 or c == 34 or c == 92:
            return put_escape(out, at, c)
        out[at] = c
        return at + 1
    if c < 0x800:
        out[at] = 0xC0 | c >> 6
        out[at + 1] = 0x80 | c & 63
        return at + 2
    if c < 0x10000:
        out[at] = 0xE0 | c >> 12
        out[at + 1] = 0x80 | c >> 6 & 63
        out[at + 2] = 0x80 | c & 63
        return at + 3
    out[at] = 0xF0 | c >> 18
    out[at + 1] = 0x80 | c >> 12 & 63
    out[at + 2] = 0x80 | c >> 6 & 63
    out[at + 3] = 0x80 | c & 63
    return at + 4


def sequence_length(p: Bytes, at: int, stop: int) -> int:
    """Return the bytes of the UTF-8 sequence at `at`, which is no ASCII; 0: it is invalid (RFC 3629: no surrogates)."""
    c = p[at]
    if c < 0xC2 or c > 0xF4 or at + 1 >= stop:
        return 0
    d = p[at + 1]
    if d & 0xC0 != 0x80:
        return 0
    if c < 0xE0:
        return 2
    if at + 2 >= stop or p[at + 2] & 0xC0 != 0x80:
        return 0
    if c < 0xF0:
        if (c == 0xE0 and d < 0xA0) or (c == 0xED and d >= 0xA0):
            return 0
        return 3
    if at + 3 >= stop or p[at + 3] & 0xC0 != 0x80:
        return 0
    if (c == 0xF0 and d < 0x90) or (c == 0xF4 and d >= 0x90):
        return 0
    return 4


def put_text(out: Writable, at: int, room: int, p: Bytes, start: int, stop: int) -> int:
    """Write UTF-8 bytes as the inside of a string. VALUE_INVALID: they are invalid."""
    i = start
    while i < stop:
        if room - at < SPARE_ROUND:
            return NO_ROOM
        plain = copy_plain(out, at, room - SPARE_ROUND, p, i, stop)
        at += plain
        i += plain
        near = i + 8
        while i < stop and i < near:
            c = p[i]
            if c < 128:
                if c < 32 or c == 34 or c == 92:
                    at = put_escape(out, at, c)
                else:
                    out[at] = c
                    at += 1
                i += 1
            else:
                n = sequence_length(p, i, stop)
                if n == 0:
                    return VALUE_INVALID
                while n > 0:
                    out[at] = p[i]
                    at += 1
                    i += 1
                    n -= 1
    return at


def put_string(out: Writable, at: int, room: int, p: Bytes, start: int, stop: int) -> int:
    """Write UTF-8 bytes as a string. VALUE_INVALID: they are invalid."""
    if room - at < SPARE_ROUND:
        return NO_ROOM
    out[at] = 34
    at = put_text(out, at + 1, room - 1, p, start, stop)
    if at < 0:
        return at
    out[at] = 34
    return at + 1


def put_lossy(out: Writable, at: int, room: int, p: Bytes, start: int, stop: int) -> int:
    """Write UTF-8 bytes as they are, not JSON; U+FFFD for invalid ones."""
    if room - at < (stop - start) * 3:
        return NO_ROOM
    i = start
    while i < stop:
        plain = copy_ascii(out, at, p, i, stop)
        at += plain
        i += plain
        near = i + 8
        while i < stop and i < near:
            c = p[i]
            n = 1 if c < 128 else sequence_length(p, i, stop)
            if n == 0:
                at = put_code_point(out, at, NO_CHARACTER)
                i += 1
            while n > 0:
                out[at] = p[i]
                at += 1
                i += 1
                n -= 1
    return at


def put_base64_digit(out: Writable, at: int, value: int) -> int:
    if value < 26:
        out[at] = 65 + value
    elif value < 52:
        out[at] = 71 + value
    elif value < 62:
        out[at] = value - 4
    else:
        out[at] = 43 if value == 62 else 47
    return at + 1


def put_base64(out: Writable, at: int, room: int, p: Bytes, start: int, stop: int) -> int:
    """Write bytes as base64, padded, without quotation marks."""
    if (room - at) < (stop - start + 2) // 3 * 4:
        return NO_ROOM
    i = start
    while i + 3 <= stop:
        bits = p[i] << 16 | p[i + 1] << 8 | p[i + 2]
        at = put_base64_digit(out, at, bits >> 18)
        at = put_base64_digit(out, at, bits >> 12 & 63)
        at = put_base64_digit(out, at, bits >> 6 & 63)
        at = put_base64_digit(out, at, bits & 63)
        i += 3
    if i < stop:
        bits = p[i] << 16
        if i + 1 < stop:
            bits = bits | p[i + 1] << 8
        at = put_base64_digit(out, at, bits >> 18)
        at = put_base64_digit(out, at, bits >> 12 & 63)
        if i + 1 < stop:
            at = put_base64_digit(out, at, bits >> 6 & 63)
        else:
            out[at] = 61
            at += 1
        out[at] = 61
        at += 1
    return at


def put_binary(out: Writable, at: int, room: int, p: Bytes, start: int, stop: int) -> int:
    """Write bytes that are no text: {"base64":"..."}."""
    if room - at < 32:
        return NO_ROOM
    out[at] = 123
    out[at + 1] = 34
    out[at + 2] = 98
    out[at + 3] = 97
    out[at + 4] = 115
    out[at + 5] = 101
    out[at + 6] = 54
    out[at + 7] = 52
    out[at + 8] = 34
    out[at + 9] = 58
    out[at + 10] = 34
    at = put_base64(out, at + 11, room - 2, p, start, stop)
    if at < 0:
        return at
    out[at] = 34
    out[at + 1] = 125
    return at + 2
