# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Arithmetic on sets of transaction numbers, in the form that they have on the wire.

A set is bytes: per interval start i64 and stop i64 (exclusive), little endian, 16 bytes. It is canonical: no interval is empty,
starts ascend, and between two intervals at least one number is missing. So equal sets are equal bytes, and a received set needs a
check and no conversion. All functions but `check` and `merge_runs` take canonical sets only.
"""

import cython

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, Writable, bytes_of, head_of, load64, store64, text_of


def check(data: bytes, at: int, count: int) -> int:
    """Return the number of the first of `count` intervals at data[at] that makes the set not canonical; -1: all are fine.

    Raises: IndexError if they are not all inside of `data`.
    """
    if at < 0 or count < 0 or at > len(data) or (len(data) - at) >> 4 < count:
        raise IndexError(f"{count} intervals at {at} in {len(data)} bytes")
    return first_fault(text_of(data), at, at + (count << 4))


def first_fault(p: Bytes, at: int, stop: int) -> int:
    last = 0
    i = at
    while i < stop:
        start = load64(p, i)
        end = load64(p, i + 8)
        # In C they are unsigned: negative ones are far above MAX_STOP.
        if start <= last or end <= start or end > MAX_STOP:
            return (i - at) >> 4
        last = end
        i += 16
    return -1


def count(a: bytes) -> int:
    """Return how many numbers are in the set."""
    return total(text_of(a), len(a))


def total(p: Bytes, n: int) -> int:
    numbers = 0
    i = 0
    while i < n:
        numbers += load64(p, i + 8) - load64(p, i)
        i += 16
    return numbers


def contains(a: bytes, number: int) -> bool:
    """Return whether `number` (1 to 2**63 - 2) is in the set."""
    return meets_run(a, number, number)


def meets_run(a: bytes, first: int, last: int) -> bool:
    """Return whether any number from `first` to `last` (1 to 2**63 - 2) is in the set."""
    return holds_any(text_of(a), len(a), first, last)


def holds_any(p: Bytes, n: int, first: int, last: int) -> bool:
    low = 0
    high = n >> 4
    while low < high:
        middle = (low + high) >> 1
        if load64(p, (middle << 4) + 8) <= first:
            low = middle + 1
        else:
            high = middle
    return low < n >> 4 and load64(p, low << 4) <= last


def union(a: bytes, b: bytes) -> bytes:
    """Return the numbers in a or b."""
    if len(a) == 0 or a == b:
        return b
    if len(b) == 0:
        return a
    out = bytearray(len(a) + len(b))
    n = join(text_of(a), len(a), text_of(b), len(b), bytes_of(out))
    return head_of(out, n)


def join(p: Bytes, na: int, q: Bytes, nb: int, r: Writable) -> int:
    # It has no branches on the data: which set comes next is unpredictable if both have many holes.
    i = j = 0
    o = -16
    first = last = 0
    sa = load64(p, 0)
    sb = load64(q, 0)
    while i < na or j < nb:
        from_a = sa <= sb
        start = sa if from_a else sb
        stop = load64(p, i + 8) if from_a else load64(q, j + 8)
        i += 16 if from_a else 0
        j += 0 if from_a else 16
        sa = load64(p, i) if i < na else MAX_STOP
        sb = load64(q, j) if j < nb else MAX_STOP
        new = start > last
        o += 16 if new else 0
        first = start if new else first
        last = stop if stop > last else last
        store64(r, o, first)
        store64(r, o + 8, last)
    return o + 16


def difference(a: bytes, b: bytes) -> bytes:
    """Return the numbers in a and not in b."""
    if len(a) == 0 or len(b) == 0:
        return a
    if a == b:
        return b""
    # Each interval of b can cut one of a in two.
    out = bytearray(len(a) + len(b))
    n = cut(text_of(a), len(a), text_of(b), len(b), bytes_of(out))
    return head_of(out, n)


def cut(p: Bytes, na: int, q: Bytes, nb: int, r: Writable) -> int:
    i = j = o = 0
    while i < na:
        start = load64(p, i)
        stop = load64(p, i + 8)
        while j < nb and load64(q, j + 8) <= start:
            j += 16
        while j < nb and load64(q, j) < stop:
            if load64(q, j) > start:
                store64(r, o, start)
                store64(r, o + 8, load64(q, j))
                o += 16
            start = load64(q, j + 8)
            if start >= stop:
                break
            j += 16
        if start < stop:
            store64(r, o, start)
            store64(r, o + 8, stop)
            o += 16
        i += 16
    return o


def intersection(a: bytes, b: bytes) -> bytes:
    """Return the numbers in both."""
    if a == b:
        return a
    if len(a) == 0 or len(b) == 0:
        return b""
    out = bytearray(len(a) + len(b))
    n = meet(text_of(a), len(a), text_of(b), len(b), bytes_of(out))
    return head_of(out, n)


def meet(p: Bytes, na: int, q: Bytes, nb: int, r: Writable) -> int:
    i = j = o = 0
    while i < na and j < nb:
        start = load64(p, i)
        other = load64(q, j)
        start = other if other > start else start
        stop = load64(p, i + 8)
        other = load64(q, j + 8)
        from_a = stop <= other
        stop = stop if from_a else other
        # It is always written, and kept if it is one: that is cheaper than an unpredictable branch.
        store64(r, o, start)
        store64(r, o + 8, stop)
        o += 16 if start < stop else 0
        i += 16 if from_a else 0
        j += 0 if from_a else 16
    return o


def is_subset(a: bytes, b: bytes) -> bool:
    """Return whether all of a is in b."""
    if len(a) == 0 or a == b:
        return True
    return covered(text_of(a), len(a), text_of(b), len(b))


def covered(p: Bytes, na: int, q: Bytes, nb: int) -> bool:
    i = j = 0
    while i < na:
        while j < nb and load64(q, j + 8) < load64(p, i + 8):
            j += 16
        if j >= nb or load64(q, j) > load64(p, i):
            return False
        i += 16
    return True


def merge_runs(runs: bytes) -> bytes:
    """Return the canonical set of the intervals in `runs`, whose starts ascend, but which may overlap or touch."""
    n = len(runs)
    if n == 0:
        return b""
    out = bytearray(n)
    n = close_up(text_of(runs), n, bytes_of(out))
    return head_of(out, n)


def close_up(p: Bytes, n: int, r: Writable) -> int:
    i = 0
    o = -16
    last = 0
    while i < n:
        start = load64(p, i)
        stop = load64(p, i + 8)
        if start > last:
            o += 16
            store64(r, o, start)
            last = stop
        elif stop > last:
            last = stop
        store64(r, o + 8, last)
        i += 16
    return o + 16
