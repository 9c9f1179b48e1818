# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The statements that the rules of a view have passed as they are, so that others which they judge alike need no look.

A statement is known by a number of 128 bits: of its text with the class of each literal in the literal's place, its default database,
its status variables, and the numbers that it is given. That is never coarser than `protocol.sql.expressions.statement_shape`, by which
the rules remember what they found; it is finer wherever a few bytes do not say what a literal is.
"""

from array import array
from collections.abc import Sequence

import cython

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, text_of
    from protocol.views.plain_changes import is_identifier, skip_blanks

    LANES = 4
    ROOM = 8192
    MOST_KNOWN = 2048
    LONGEST = 4096
    LONG_TEXT = 128
    SHORT_TEXT = 64
    MOST_DIGITS = 18
    CLASS_NONE = 0
    CLASS_OTHER = 1
    CLASS_WIDE = 2
    CLASS_NUMBER = 3
    CLASS_DATE = 4
    MARK_TEXT = 1
    MARK_NUMBER = 2


class KnownStatements:
    """A set of statements; `bounds` are the numbers below which whole numbers in them are judged alike, ascending. `seed` is 16 random
    bytes, so that nobody can prepare two statements with one number.

    It has two halves: if the young one is full, the old one is emptied and takes its place. What is met again moves to the young one.
    """

    def __init__(self, bounds: Sequence[int], seed: bytes) -> None:
        seeds = array("I", seed)
        self.seeds_view = memoryview(seeds)
        self.lanes_view = memoryview(array("I", bytes(4 * LANES)))
        self.table_view = memoryview(array("I", bytes(4 * LANES * ROOM * 2)))
        self.bounds_view = memoryview(array("q", bounds))
        self.count = self.young_count = 0
        self.young = 0
        self.end = 0

    def clear(self) -> None:
        """Forget all of them."""
        if self.count:
            self.empty(0)
            self.empty(1)
            self.count = self.young_count = 0

    def empty(self, half: int) -> None:
        """Forget the statements of a half."""
        for i in range(half * LANES * ROOM, (half + 1) * LANES * ROOM):
            self.table_view[i] = 0

    def has(self, p: Bytes, head: int, text: int, end: int, given: int) -> bool:
        """Return whether the statement in p[text:end] is known. `head` is where the lengths of the event's post-header begin, from
        which on all up to the text counts. `given` is a number for the events before it.
        """
        if self.count == 0 or not self.take(p, head, text, end, given):
            return False
        if self.place(self.young) < 0:
            return True
        if self.place(1 - self.young) >= 0:
            return False
        self.put()
        return True

    def note(self, p: Bytes, head: int, text: int, end: int, given: int) -> None:
        """Note the statement, with the same arguments."""
        if self.take(p, head, text, end, given):
            self.put()

    def put(self) -> None:
        """Put the statement in `lanes_view` into the young half."""
        if self.young_count >= MOST_KNOWN:
            self.young = 1 - self.young
            self.empty(self.young)
            self.young_count = 0
        at = self.place(self.young)
        if at >= 0:
            for i in range(LANES):
                self.table_view[at + i] = self.lanes_view[i]
            self.young_count += 1
            self.count = 1

    def number_of(self, body: bytes, head: int, text: int, given: int) -> bytes | None:
        """Return the number of the statement in body[text:] as 16 bytes, with the arguments of `has`; None: it has none. Raises:
        IndexError for places outside the body."""
        count = len(body)
        if not 0 <= head <= text <= count:
            raise IndexError(f"{head} and {text} in {count} bytes")
        if cython.compiled:
            found = self.take(text_of(body), head, text, count, given)
        else:
            found = self.take(body, head, text, count, given)
        return bytes(self.lanes_view) if found else None

    def place(self, half: int) -> int:
        """Return the index in the table at which the statement in `lanes_view` may be put in this half; -1: it is there."""
        first = half * LANES * ROOM
        at = first + (self.lanes_view[0] & (ROOM - 1)) * LANES
        while True:
            same = True
            empty = True
            for i in range(LANES):
                if self.table_view[at + i] != self.lanes_view[i]:
                    same = False
                if self.table_view[at + i] != 0:
                    empty = False
            if same:
                return -1
            if empty:
                return at
            at += LANES
            if at == first + LANES * ROOM:
                at = first

    def add(self, c: int) -> None:
        """Add a byte to the number of the statement."""
        self.lanes_view[0] = mixed(self.lanes_view[0], c, 16777619)
        self.lanes_view[1] = mixed(self.lanes_view[1], c, 1540483477)
        self.lanes_view[2] = mixed(self.lanes_view[2], c, 461845907)
        self.lanes_view[3] = mixed(self.lanes_view[3], c, 668265263)

    def add_all(self, p: Bytes, start: int, stop: int) -> None:
        """Add the bytes as they are."""
        for i in range(start, stop):
            self.add(p[i])

    def take(self, p: Bytes, head: int, text: int, end: int, given: int) -> bool:
        """Put the number of a statement into `lanes_view`; False: it has none."""
        if end - text > LONGEST:
            return False
        for i in range(LANES):
            self.lanes_view[i] = self.seeds_view[i]
        self.add(given)
        self.add_all(p, head, text)
        at = text
        before = 0
        while at < end:
            c = p[at]
            if c == 39 or c == 34:
                kind = self.text_class(p, at, end, before)
                if self.end < 0:
                    return False
                if kind == CLASS_NONE:
                    self.add_all(p, at, self.end)
                else:
                    self.add(MARK_TEXT)
                    self.add(kind)
                at = self.end
                before = c
                continue
            if c == 96:
                start = at
                at += 1
                while at < end and p[at] != 96:
                    if p[at] == 40:
                        return False
                    at += 1
                if at == end:
                    return False
                at += 1
                self.add_all(p, start, at)
                before = c
                continue
            if is_identifier(c) or c == 64 or c == 46:
                start = at
                is_word = not (48 <= c <= 57 or c == 46)
                at += 1
                while at < end and (is_identifier(p[at]) or (p[at] == 46 and not is_word)):
                    at += 1
                if at < end and p[at] >= 128:
                    return False
                kind = -1 if is_word else self.number_class(p, start, at)
                if kind < 0:
                    self.add_all(p, start, at)
                else:
                    self.add(MARK_NUMBER)
                    self.add(kind)
                before = c
                continue
            if c >= 127 or c < 9 or (13 < c < 32) or c == 35:
                return False
            if at + 1 < end and ((c == 45 and p[at + 1] == 45) or (c == 47 and p[at + 1] == 42)):
                return False
            self.add(c)
            if c > 32:
                before = c
            at += 1
        self.lanes_view[0] |= 1  # zeros stand for an empty place
        return True

    def number_class(self, p: Bytes, start: int, stop: int) -> int:
        """Return which of the bounds a whole number is below; -1: it is no such number, or has only zeros."""
        if stop - start > MOST_DIGITS:
            return -1
        number = 0
        for i in range(start, stop):
            if not 48 <= p[i] <= 57:
                return -1
            number = number * 10 + p[i] - 48
        if number == 0:
            return -1
        kind = 0
        while kind < len(self.bounds_view) and number >= self.bounds_view[kind]:
            kind += 1
        return kind

    def text_class(self, p: Bytes, start: int, end: int, before: int) -> int:
        """Return the class of the text that begins with a quotation mark at p[start]; CLASS_NONE: its letters may decide.

        `end` of this object is then where it ends; -1: it does not. `before` is the last byte before it that is no blank.
        """
        mark = p[start]
        at = start + 1
        plain = True
        wide = False
        hexadecimal = False
        while True:
            if at >= end:
                self.end = -1
                return CLASS_NONE
            c = p[at]
            if c == mark:
                if at + 1 >= end or p[at + 1] != mark:
                    break
                plain = False
                at += 1
            elif c == 92:
                plain = False
                at += 1
            elif c >= 128:
                wide = True
            elif c == 39 or c == 34:
                plain = False
            elif is_x_or_b(c) and at > start + 1 and p[at - 1] == 48:
                hexadecimal = True
            if c == 39 and at > start + 2 and (is_x_or_b(p[at - 1]) or is_x_or_b(p[at - 2])):
                hexadecimal = True
            at += 1
        self.end = at + 1
        following = skip_blanks(p, self.end, end)
        if following < end and (p[following] == 39 or p[following] == 34):
            return CLASS_NONE
        if hexadecimal or not is_sign(before):
            return CLASS_NONE
        if wide:
            return CLASS_WIDE
        count = at - start - 1
        if count == 0:
            return CLASS_NONE
        c = p[start + 1]
        if count > LONG_TEXT and c != 48 and c != 46 and c != 92:  # it is no long zero, which may be a divisor
            return CLASS_OTHER
        if not (48 <= c <= 57 or c <= 32 or c == 39 or c == 34 or c == 43 or c == 45 or c == 46 or c == 92):
            return CLASS_OTHER
        if not plain:
            return CLASS_NONE
        if count > SHORT_TEXT:
            return CLASS_NONE if c == 48 or c == 46 else CLASS_OTHER
        if is_date(p, start + 1, count):
            return CLASS_DATE
        other = False
        for i in range(start + 1, at):
            if not 48 <= p[i] <= 57:
                return CLASS_NONE
            if p[i] != 48:
                other = True
        return CLASS_NUMBER if other else CLASS_NONE


def mixed(lane: int, c: int, factor: int) -> int:
    """Return a 32-bit number with a byte added; the shift lets the low bits depend on the high ones."""
    lane = ((lane ^ c) * factor) & U32_MAX
    return lane ^ (lane >> 15)


def is_x_or_b(c: int) -> bool:
    """Return whether a letter begins a hexadecimal or binary literal."""
    return c | 32 == 120 or c | 32 == 98


def is_sign(c: int) -> bool:
    """Return whether a text after this sign is a value."""
    return (
        c == 40 or c == 44 or c == 61 or c == 60 or c == 62 or c == 43 or c == 45 or c == 42 or c == 47 or c == 37 or c == 124
        or c == 38 or c == 94 or c == 126 or c == 33
    )  # fmt: skip


def two_digits(p: Bytes, at: int) -> int:
    """Return the number of two digits; -1: they are none."""
    if not (48 <= p[at] <= 57 and 48 <= p[at + 1] <= 57):
        return -1
    return (p[at] - 48) * 10 + p[at + 1] - 48


def is_date(p: Bytes, at: int, count: int) -> bool:
    """Return whether a text is a date as in 2024-05-28, or one with a time as in 2024-05-28 10:20:30, that every month has."""
    if count != 10 and count != 19:
        return False
    century = two_digits(p, at)
    month = two_digits(p, at + 5)
    day = two_digits(p, at + 8)
    if century < 1 or two_digits(p, at + 2) < 0 or p[at + 4] != 45 or p[at + 7] != 45:
        return False
    if month < 1 or month > 12 or day < 1 or day > 28:
        return False
    if count == 10:
        return True
    hour = two_digits(p, at + 11)
    minute = two_digits(p, at + 14)
    second = two_digits(p, at + 17)
    if p[at + 10] != 32 or p[at + 13] != 58 or p[at + 16] != 58:
        return False
    return 0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60
