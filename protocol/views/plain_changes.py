# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The recognition of statements that are plain changes of rows, and of their table, by a few words."""

import cython

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.inference import first_word, has_prefix
    from protocol.kernel.pure import Bytes


def is_change(p: Bytes, at: int, end: int) -> bool:
    """Return whether the statement in p[at:end] is a plain INSERT, REPLACE, UPDATE or DELETE, by its first word."""
    n = 0
    if has_prefix(p, at, end, b"insert", 6) or has_prefix(p, at, end, b"update", 6):
        n = 6
    elif has_prefix(p, at, end, b"delete", 6):
        n = 6
    elif has_prefix(p, at, end, b"replace", 7):
        n = 7
    if n == 0 or at + n >= end:
        return False
    c = p[at + n] | 32
    return not (97 <= c <= 122 or 48 <= p[at + n] <= 57 or p[at + n] == 95 or p[at + n] == 36 or p[at + n] >= 128)


def names_mysql(p: Bytes, at: int, end: int) -> bool:
    """Return whether `mysql` is in the first bytes of the text in p[at:end], in any case: it may concern accounts."""
    stop = at + 128
    if stop > end:
        stop = end
    while at + 5 <= stop:
        if (
            p[at] | 32 == 109
            and p[at + 1] | 32 == 121
            and p[at + 2] | 32 == 115
            and p[at + 3] | 32 == 113
            and p[at + 4] | 32 == 108
        ):
            return True
        at += 1
    return False


def skip_blanks(p: Bytes, at: int, end: int) -> int:
    """Return where blanks and line ends end."""
    while at < end and (p[at] == 32 or 9 <= p[at] <= 13):
        at += 1
    return at


def is_identifier(c: int) -> bool:
    """Return whether a byte is part of an unquoted name in ASCII."""
    return 97 <= c | 32 <= 122 or 48 <= c <= 57 or c == 95 or c == 36


def behind_word(p: Bytes, at: int, end: int, word: bytes, count: int) -> int:
    """Return where the text after the word and blanks begins; -1: another word is there."""
    if not has_prefix(p, at, end, word, count):
        return -1
    at += count
    if at < end and (is_identifier(p[at]) or p[at] >= 128):
        return -1
    return skip_blanks(p, at, end)


def has_word(p: Bytes, at: int, end: int, word: bytes, count: int) -> bool:
    """Return whether the letters occur anywhere in the text, in any case."""
    first = word[0]
    stop = end - count
    while at <= stop:
        if p[at] | 32 == first and has_prefix(p, at, end, word, count):
            return True
        at += 1
    return False


def removal_of(p: Bytes, at: int, end: int) -> int:
    """Return VIEW_REPLACE or VIEW_DELETE if the statement in p[at:end], which is a plain change, is one; 0: another."""
    at = first_word(p, at, end, False)
    if at >= end:
        return 0
    return VIEW_REPLACE if p[at] | 32 == 114 else (VIEW_DELETE if p[at] | 32 == 100 else 0)


def simple_target(p: Bytes, at: int, end: int) -> int:
    """Return a number below VIEW_WATCHED for the table that the INSERT, REPLACE, UPDATE or DELETE in p[at:end] changes.

    -1: it may concern several tables, or its result may depend on the order of rows or on an engine's full-text search, or it is
    written in an uncommon way.

    FNV-1a over the last part of the table's name, in lower case.
    """
    at = first_word(p, at, end, False)
    start = at
    inserts = False
    updates = False
    at = behind_word(p, start, end, b"insert", 6)
    if at < 0:
        at = behind_word(p, start, end, b"replace", 7)
    if at >= 0:
        inserts = True
        following = behind_word(p, at, end, b"ignore", 6)
        if following >= 0:
            at = following
        following = behind_word(p, at, end, b"into", 4)
        if following >= 0:
            at = following
    else:
        at = behind_word(p, start, end, b"update", 6)
        if at >= 0:
            updates = True
        else:
            at = behind_word(p, start, end, b"delete", 6)
            if at >= 0:
                at = behind_word(p, at, end, b"from", 4)
    if at < 0:
        return -1
    number = 0
    parts = 0
    while True:
        number = 2166136261
        quoted = at < end and p[at] == 96
        if quoted:
            at += 1
        start = at
        while at < end:
            c = p[at]
            if c >= 128 or not (is_identifier(c) or (quoted and c != 96)):
                break
            if 65 <= c <= 90:
                c += 32
            number = ((number ^ c) * 16777619) & U32_MAX
            at += 1
        if at == start:
            return -1
        if quoted:
            if at >= end or p[at] != 96:
                return -1
            at += 1
        parts += 1
        if parts == 2 or at >= end or p[at] != 46:
            break
        at += 1
    if at < end and (p[at] == 96 or p[at] >= 128):
        return -1
    at = skip_blanks(p, at, end)
    if has_word(p, at, end, b"select", 6):
        return -1
    if inserts:
        if at >= end:
            return -1
        # If other text follows, the word was no name: INSERT DELAYED INTO t.
        if p[at] != 40 and not (has_prefix(p, at, end, b"value", 5) or behind_word(p, at, end, b"set", 3) >= 0):
            return -1
    else:
        if updates:
            if behind_word(p, at, end, b"set", 3) < 0:
                return -1
        elif at < end and behind_word(p, at, end, b"where", 5) < 0:
            return -1
        if has_word(p, at, end, b"limit", 5) or has_word(p, at, end, b":=", 2) or has_word(p, at, end, b"against", 7):
            return -1
    return number & (VIEW_WATCHED - 1)
