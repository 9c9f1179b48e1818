# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""MariaDB's UUID, INET4 and INET6, which binlogs hold as BINARY, as SQL prints them. `p`: all bytes of the value.

Source: MariaDB 11.8 `plugin/type_uuid`, `plugin/type_inet`.
"""

import cython

if not cython.compiled:
    from protocol.columns.text.json_text import put_hex, put_unsigned


def put_uuid(out, at, p):
    """16 bytes. Those of the versions 1 to 5 are stored with their segments backwards, so that they sort by node and time."""
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


def put_inet4(out, at, p, start):
    """Four bytes."""
    for i in range(4):
        if i:
            out[at] = 46
            at += 1
        at = put_unsigned(out, at, p[start + i])
    return at


def word_at(p, i):
    return p[2 * i] << 8 | p[2 * i + 1]


def put_word_hex(out, at, word):
    """Without zeros in front."""
    shift = 12
    while shift > 0 and word >> shift == 0:
        shift -= 4
    while shift >= 0:
        digit = word >> shift & 15
        out[at] = 48 + digit if digit < 10 else 87 + digit
        at += 1
        shift -= 4
    return at


def put_inet6(out, at, p):
    """16 bytes; the first longest run of zero words is left out, IPv4 addresses in it are as such."""
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
