# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Packed numbers in GTID events, and the one that is the length of a transaction."""

import cython

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, Writable


def told_length_at(p: Bytes, at: int, end: int) -> int:
    """Return where the transaction's length is, from 8.0 on, in the Gtid or Anonymous_gtid event at `at`, which ends at `end` without
    its checksum; -1: it has none.
    """
    a = at + HEADER_SIZE + GTID_SIZE
    if end < a + 17 + 7 or p[a] != 2:
        return -1
    a += 17 + 7
    if p[a - 1] & 128:  # another time follows, of the first commit
        a += 7
    if a >= end or length_of_number(p[a]) == 0 or a + length_of_number(p[a]) > end:
        return -1
    return a


def length_of_number(first: int) -> int:
    """Return the bytes of a packed number that begins with this byte; 0: none does."""
    if first < 251:
        return 1
    if first == 252:
        return 3
    if first == 253:
        return 4
    return 9 if first == 254 else 0


def count_with(rest: int) -> int:
    """Return the bytes of a packed number whose value is its own size and `rest` other bytes."""
    if rest + 1 <= 250:
        return 1
    if rest + 3 <= 0xFFFF:
        return 3
    return 4 if rest + 4 <= 0xFFFFFF else 9


def put_number(d: Writable, a: int, value: int, count: int) -> None:
    """Write a packed number of `count` bytes at `a`."""
    if count == 1:
        d[a] = value
    else:
        d[a] = 252 if count == 3 else (253 if count == 4 else 254)
        for i in range(count - 1):
            d[a + 1 + i] = (value >> (8 * i)) & 255
