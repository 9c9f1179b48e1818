# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The kind of a statement, by its first word, and its digest text, which is equal for equal work.

The digest text omits literals, blanks and comments. Numbers and strings become ?, lists of them ..., and a row or group that is
repeated after a comma is omitted. A date with zero parts remains visible, since servers differ over it. The content of version
comments is part of the statement.
"""

import cython

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.kernel.inference import first_word
    from protocol.kernel.pure import Bytes, Writable, bytes_of, text_of

# ---- the first word ----


def starts_with(p: Bytes, at: int, end: int, word: bytes, count: int) -> bool:
    """Return whether the text continues with `word` (`count` lower-case letters), in any case, and no letter follows it."""
    if end - at < count:
        return False
    for i in range(count):
        c = p[at + i]
        if 65 <= c <= 90:
            c += 32
        if c != word[i]:
            return False
    if end - at == count:
        return True
    c = p[at + count] | 32
    return not 97 <= c <= 122


def changes_rows(p: Bytes, at: int, end: int) -> bool:
    """Return whether a statement changes rows (INSERT, LOAD DATA, CALL …), and is not DDL or administration.

    Comments and brackets before the first word are skipped; the content of /*! ... */ is read, for any server.
    """
    at = first_word(p, at, end, True)
    while at < end and p[at] == 40:
        at = first_word(p, at + 1, end, True)
    return (
        starts_with(p, at, end, b"insert", 6)
        or starts_with(p, at, end, b"update", 6)
        or starts_with(p, at, end, b"delete", 6)
        or starts_with(p, at, end, b"replace", 7)
        or starts_with(p, at, end, b"load", 4)
        or starts_with(p, at, end, b"select", 6)
        or starts_with(p, at, end, b"with", 4)
        or starts_with(p, at, end, b"call", 4)
        or starts_with(p, at, end, b"do", 2)
        or starts_with(p, at, end, b"values", 6)
    )


# ---- the digest text ----


def is_word(c: int) -> bool:
    """Return whether the byte is part of an unquoted name: letters, digits, _, $, and all that is not ASCII."""
    return c >= 128 or 97 <= c <= 122 or 65 <= c <= 90 or 48 <= c <= 57 or c == 95 or c == 36


def string_end(p: Bytes, at: int, stop: int, quote: int, plain_backslash: bool) -> int:
    """Return where a quoted text ends whose content begins at `at`: after its closing quote, or at `stop`."""
    while at < stop:
        c = p[at]
        if c == 92 and not plain_backslash:
            at += 2
            continue
        at += 1
        if c == quote:
            if at < stop and p[at] == quote:
                at += 1
                continue
            return at
    return stop


def comment_end(p: Bytes, at: int, stop: int) -> int:
    """Return where a comment ends whose content begins at `at`."""
    while at + 1 < stop:
        if p[at] == 42 and p[at + 1] == 47:
            return at + 2
        at += 1
    return stop


def zero_date(p: Bytes, at: int, stop: int) -> int:
    """Return, for a string's content, 1: the date is 0000-00-00; 2: its month or its day is 0; 0: neither, or no date."""
    if stop - at < 10 or p[at + 4] != 45 or p[at + 7] != 45:
        return 0
    for i in range(10):
        if i != 4 and i != 7 and not 48 <= p[at + i] <= 57:
            return 0
    if stop - at > 10 and p[at + 10] != 32 and p[at + 10] != 84:
        return 0
    no_month = p[at + 5] == 48 and p[at + 6] == 48
    no_day = p[at + 8] == 48 and p[at + 9] == 48
    if not no_month and not no_day:
        return 0
    if no_month and no_day and p[at] == 48 and p[at + 1] == 48 and p[at + 2] == 48 and p[at + 3] == 48:
        return 1
    return 2


class StatementDigest:
    """Writes digest texts, one statement at a time; nothing is kept between two."""

    def __init__(self) -> None:
        if not cython.compiled:
            self.groups = [0] * DIGEST_DEPTH

    def of(self, text: bytes, ansi_quotes: bool = False, plain_backslash: bool = False) -> bytes:
        """Return the digest text of a statement, as bytes."""
        out = bytearray(len(text) + 1)
        end = self.write(text_of(text), 0, len(text), bytes_of(out), 0, ansi_quotes, plain_backslash)
        return bytes(out[:end])

    def write(
        self, p: Bytes, at: int, stop: int, out: Writable, to: int, ansi_quotes: bool, plain_backslash: bool
    ) -> int:
        """Write the digest text of p[at:stop] to out[to:], which has room for as many bytes; return where it ends."""
        begin = to
        depth = 0
        blank = False
        while at < stop:
            c = p[at]
            if c == 32 or 9 <= c <= 13:
                blank = True
                at += 1
                continue
            following = p[at + 1] if at + 1 < stop else 0
            if c == 35 or (c == 45 and following == 45 and (at + 2 >= stop or p[at + 2] <= 32)):
                while at < stop and p[at] != 10:
                    at += 1
                blank = True
                continue
            version = c == 47 and following == 42 and self.is_version(p, at + 2, stop)
            if c == 47 and following == 42 and not version:
                at = comment_end(p, at + 2, stop)
                blank = True
                continue

            last = out[to - 1] if to > begin else 40
            if blank:
                blank = False
                if last != 40 and last != 44 and c != 41 and c != 44:  # ( , ) ,
                    out[to] = 32
                    to += 1
            if version:  # with its number
                while at < stop and (p[at] == 47 or p[at] == 42 or p[at] == 77 or p[at] == 33):
                    out[to] = p[at]
                    to += 1
                    at += 1
                    if p[at - 1] == 33:
                        break
                while at < stop and 48 <= p[at] <= 57:
                    out[to] = p[at]
                    to += 1
                    at += 1
            elif c == 39 or (c == 34 and not ansi_quotes):
                end = string_end(p, at + 1, stop, c, plain_backslash)
                zero = zero_date(p, at + 1, end - 1)
                at = end
                to = self.put_date(out, to, zero) if zero else self.put_value(out, begin, to)
            elif c == 96 or c == 34:
                end = string_end(p, at + 1, stop, c, True)
                while at < end:
                    out[to] = p[at]
                    to += 1
                    at += 1
            elif 48 <= c <= 57 or (
                c == 46 and 48 <= following <= 57 and not is_word(last) and last != 96 and last != 41
            ):
                at = self.number_end(p, at, stop)
                to = self.put_value(out, begin, to)
            elif is_word(c):
                end = at
                while end < stop and is_word(p[end]):
                    end += 1
                if end - at == 1 and end < stop and p[end] == 39 and self.is_introducer(c):
                    at = end  # x'ff': the string alone
                elif (last == 40 or last == 44) and self.is_value(p, at, end, stop):
                    at = end
                    to = self.put_value(out, begin, to)
                else:
                    while at < end:
                        out[to] = p[at]
                        to += 1
                        at += 1
            else:
                out[to] = c
                to += 1
                at += 1
                if c == 40:
                    if depth < DIGEST_DEPTH:
                        self.groups[depth] = to - 1
                    depth += 1
                elif c == 41 and depth > 0:
                    depth -= 1
                    if depth < DIGEST_DEPTH:
                        to = self.without_repetition(out, begin, self.groups[depth], to)
                elif c == 92 and at < stop:  # \N
                    out[to] = p[at]
                    to += 1
                    at += 1
        return to

    def is_version(self, p: Bytes, at: int, stop: int) -> bool:
        """Return whether a comment whose content begins at `at` is one that servers execute: /*! or /*M!."""
        if at < stop and p[at] == 77:
            at += 1
        return at < stop and p[at] == 33

    def is_introducer(self, c: int) -> bool:
        c = c | 32
        return c == 120 or c == 98 or c == 110  # x b n

    def is_value(self, p: Bytes, at: int, end: int, stop: int) -> bool:
        """Return whether the word p[at:end], after ( or a comma, is a whole value: NULL, DEFAULT, TRUE or FALSE."""
        n = end - at
        c = p[at] | 32
        if not (
            (n == 4 and (c == 110 or c == 116) and self.spells(p, at, end))
            or ((n == 5 or n == 7) and (c == 102 or c == 100) and self.spells(p, at, end))
        ):
            return False
        while end < stop and (p[end] == 32 or 9 <= p[end] <= 13):
            end += 1
        return end < stop and (p[end] == 41 or p[end] == 44)

    def spells(self, p: Bytes, at: int, end: int) -> bool:
        """Return whether a word of 4, 5 or 7 letters is NULL, TRUE, FALSE or DEFAULT."""
        a = p[at] | 32
        b = p[at + 1] | 32
        c = p[at + 2] | 32
        d = p[at + 3] | 32
        if end - at == 4:
            return (a == 110 and b == 117 and c == 108 and d == 108) or (
                a == 116 and b == 114 and c == 117 and d == 101
            )
        if end - at == 5:
            return a == 102 and b == 97 and c == 108 and d == 115
        return a == 100 and b == 101 and c == 102 and d == 97

    def number_end(self, p: Bytes, at: int, stop: int) -> int:
        """Return where the number at `at` ends; also 0xff, and 1e-3."""
        hexadecimal = p[at] == 48 and at + 1 < stop and (p[at + 1] | 32) == 120
        while at < stop and (is_word(p[at]) or p[at] == 46):
            c = p[at]
            at += 1
            if (c | 32) == 101 and not hexadecimal and at + 1 < stop and (p[at] == 43 or p[at] == 45):
                if 48 <= p[at + 1] <= 57:
                    at += 1
        return at

    def put_date(self, out: Writable, to: int, zero: int) -> int:
        """Write '0000-00-00', or '2000-00-00' for a date that is zero in part."""
        out[to] = 39
        for i in range(10):
            out[to + 1 + i] = 45 if i == 4 or i == 7 else 48
        if zero == 2:
            out[to + 1] = 50
        out[to + 11] = 39
        return to + 12

    def put_value(self, out: Writable, begin: int, to: int) -> int:
        """Write ?, or combine the value before the comma and this one into a list."""
        if to - begin >= 2 and (out[to - 1] == 45 or out[to - 1] == 43):  # a sign, not an operator
            k = to - 2
            if out[k] == 32 and k > begin:
                k -= 1
            if out[k] == 40 or out[k] == 44 or out[k] == 61 or out[k] == 60 or out[k] == 62:  # ( , = < >
                to -= 1
        if to - begin >= 2 and out[to - 1] == 44 and out[to - 2] == 63:  # ?,
            to -= 2
            for i in range(3):
                out[to + i] = 46
            return to + 3
        if to - begin >= 4 and out[to - 1] == 44 and out[to - 2] == 46 and out[to - 3] == 46 and out[to - 4] == 46:
            return to - 1
        out[to] = 63
        return to + 1

    def without_repetition(self, out: Writable, begin: int, opened: int, to: int) -> int:
        """Remove the group out[opened:to] if an equal one and a comma precede it; return the new end."""
        size = to - opened
        if opened - begin <= size or out[opened - 1] != 44:
            return to
        before = opened - 1 - size
        for i in range(size):
            if out[before + i] != out[opened + i]:
                return to
        return opened - 1
