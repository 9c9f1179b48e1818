# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The filter of archived bytes for a replica that asked by GTID: whole transactions that it has are skipped.

The walk reads headers and heads of GTID events only. It returns ranges: bytes to send, then bytes to skip. A range never ends inside
an event unless the input does. Events that belong to no transaction (Rotate, Format_description, Gtid_list, Binlog_checkpoint,
Previous_gtids ...) are sent.

MySQL: the transactions of a set are skipped, each with those after it that have no GTID event at all. Sources skip up to the next one
too: 5.6 logs several DROP TEMPORARY TABLE of a stored function as transactions of one GTID. MariaDB: in each domain everything is
skipped up to the group that the replica has last, and, if the replica named a place to stop at (`@slave_until_gtid`), everything
after it and all domains without one.
"""

from array import array
from collections.abc import Mapping, Sequence

import cython

from protocol.kernel.gtid_head import GtidHead, KeyTable

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, load16, load32, load64, store32

_STATUS_TEXTS = {SKIP_BAD_LENGTH: "an event shorter than its header", SKIP_BAD_GTID: "a GTID that cannot be"}


class GtidSkip:
    """The transactions that one replica has, and its place in the stream. `next_range` releases the GIL; not thread-safe.

    `intervals` are for MySQL canonical intervals (`protocol.kernel.intervals`) by key; transactions that are not in the archive only
    cost, and should be left out. `positions` are for MariaDB (domain, server, sequence) of the last group of each domain. With
    `strict` the stream ends at a group that comes in the place of such a last one. `until` are (domain, server, sequence) of the last
    group of each domain that is sent, None: no end; with `before` that group is not sent either.
    `sending`: the last range of `next_range` is sent. `skipped` counts the skipped transactions.
    MariaDB: `waiting` counts the domains whose last group did not come yet. `reached` is the number (in `positions`) of the domain
    about which a source informs the replica at the end of the last range, -1: none. That is the end of the last group; or, with
    `in_hole`, of the first event of a later one of the same server, if the last one is not in the stream and the later one, number
    `hole_number`, is sent. `hole` is with `strict` the number of the domain for which such a later group follows, -1: none.
    `finished`: the last range ends where the stream must end.
    MySQL: with `refuse_anonymous` the walk stops before a transaction without a GTID, with `refuse_gtids` before one that has one:
    `refused` is then REFUSED_ANONYMOUS or REFUSED_GTID. `numbered` is the decision on the transaction of the last GTID event with a
    number: 1 it is sent, 2 it is skipped, 0 there was none.
    `problem` is None, or the defect of the event that follows.
    """

    def __init__(
        self,
        intervals: Mapping[bytes, bytes] | None = None,
        positions: Sequence[tuple[int, int, int]] = (),
        strict: bool = False,
        until: Sequence[tuple[int, int, int]] | None = None,
        before: bool = False,
    ) -> None:
        self.head = GtidHead()
        self.table = KeyTable()
        self.kept: list[bytes] = []
        self.room = 0
        self.spans: array[int] | None = None
        self.grow()
        self.hold(intervals or {})
        self.domains = KeyTable()
        lasts = array("Q")
        for domain, server, sequence in positions:
            self.domains.add_bytes(domain.to_bytes(4, "little"))
            lasts.extend((server, sequence, 1))
        self.waiting = len(positions)
        self.limits = KeyTable()
        stops = array("Q")
        for domain, server, sequence in until or ():
            self.limits.add_bytes(domain.to_bytes(4, "little"))
            stops.extend((server, sequence, 1))
        self.limited = until is not None
        self.before = before
        self.unmet = len(until or ())
        self.strict = strict
        # They are never empty, as a view needs a first element.
        lasts.append(0)
        stops.append(0)
        self.stops_view = memoryview(stops)
        self.lasts_view = memoryview(lasts)
        self.skipped = 0
        self.hole = self.reached = self.reaching = self.holing = -1
        self.hole_number = 0
        self.refuse_anonymous = self.refuse_gtids = False
        self.refused = 0
        self.finished = self.in_hole = False
        self.problem: str | None = None
        self.begin()

    def hold(self, intervals: Mapping[bytes, bytes]) -> None:
        """Skip, for MySQL, these intervals from the next GTID event on; those of other sources stay.

        The bytes are kept, not copied: a set of 16 MB costs only its number of sources.
        """
        for key in intervals:
            numbers = intervals[key]
            slot = self.table.add_bytes(key)
            if slot == len(self.kept):
                self.kept.append(numbers)
            else:
                self.kept[slot] = numbers
            if slot == self.room:
                self.grow()
            if cython.compiled:
                self.spans_view[slot * 3] = cython.cast(cython.size_t, cython.cast(cython.p_uchar, numbers))
            self.spans_view[slot * 3 + 1] = len(numbers)
            self.spans_view[slot * 3 + 2] = 0

    def grow(self) -> None:
        """Make room for twice as many sources: the place of each one's numbers, their bytes, and the place of the last search."""
        self.room = 2 * self.room + 16
        spans = array("q", bytes(24 * self.room))
        if self.spans is not None:
            spans[: len(self.spans)] = self.spans
        self.spans = spans
        self.spans_view = memoryview(spans)

    def begin(self) -> None:
        """Expect the next bytes outside of any transaction: another file, or another place in it."""
        self.sending = True
        self.event_left = 0
        self.passing = False
        self.group_ends = False
        self.reaching = self.holing = -1
        self.ending = False  # the stream ends with the group that is open, or with the next event
        self.decided = 0  # the decision on the next GTID event: 1 it is sent, 2 it is skipped
        self.numbered = 0

    def next_range(self, src: Bytes, start: int, stop: int) -> int:
        """Return the end of the range that begins at src[start]: all of it is sent, or (`sending` False) all of it is skipped.

        The result is `start` itself if more bytes are needed: a header or the head of a GTID event (GTID_HEAD bytes, or the event) is
        cut.
        Raises: IndexError for a range outside src; ValueError for bytes that are no event, at `start`.
        """
        if start < 0 or stop < start or stop > len(src):
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(src)} bytes")
        self.reached = -1
        self.in_hole = False
        if start == stop or self.finished or self.refused or self.hole >= 0:
            return start
        if cython.compiled:
            view = src
            with cython.nogil:
                end = self.walk(cython.address(view[0]), start, stop)
        else:
            end = self.walk(memoryview(src).cast("B"), start, stop)
        if end < 0:
            self.problem = _STATUS_TEXTS[-end]
            raise ValueError(f"no event at input offset {start}: {self.problem}")
        return end

    def walk(self, p: Bytes, start: int, stop: int) -> int:
        roles = self.head.role
        r = start
        while True:
            if self.event_left:
                n = stop - r
                if n > self.event_left:
                    n = self.event_left
                r += n
                self.event_left -= n
                if self.event_left:
                    return r
                if self.holing >= 0:
                    self.reached = self.holing
                    self.holing = -1
                    self.in_hole = True
                    return r
                if self.group_ends:
                    self.group_ends = False
                    self.passing = False
                    if self.ending:
                        self.finished = True
                    if self.reaching >= 0:
                        self.reached = self.reaching
                        self.reaching = -1
                        return r
                    if self.finished:
                        return r
            if stop - r < HEADER_SIZE:
                return r
            length = load32(p, r + EVENT_SIZE_AT)
            t = p[r + EVENT_TYPE_AT]
            role = roles[t]
            if length < HEADER_SIZE:
                return r if r > start else -SKIP_BAD_LENGTH
            tbm = (load16(p, r + FLAGS_AT) & BOUNDARY_MASK) >> BOUNDARY_SHIFT
            if (
                tbm == INSIDE
                and length <= stop - r
                and self.passing != self.sending
                and not self.limited
                and role != ROLE_GTID
                and role != ROLE_ALONE
            ):
                r += length  # the whole of an event inside of a transaction, which is what most of them are
                continue
            if role == ROLE_GTID and t != ANONYMOUS_GTID_EVENT:
                if self.refuse_gtids and t != MARIADB_GTID_EVENT:
                    self.refused = REFUSED_GTID
                    return r
                if stop - r < length and stop - r < GTID_HEAD:
                    return r
                if self.decided:
                    passing = self.decided == 2
                    self.decided = 0
                else:
                    n = length if length <= stop - r else GTID_HEAD
                    if not self.head.take(p, r, n, t):
                        return r if r > start else -SKIP_BAD_GTID
                    passing = self.has_group() if t == MARIADB_GTID_EVENT else self.has_number()
                    if self.hole >= 0:
                        return r
                    if passing == self.sending and r > start:
                        self.decided = 2 if passing else 1
                        return r
                self.sending = not passing
                self.passing = passing
                self.numbered = 0 if t == MARIADB_GTID_EVENT else 2 if passing else 1
                self.group_ends = False
                if passing:
                    self.skipped += 1
            else:
                if t == ANONYMOUS_GTID_EVENT:
                    self.numbered = 0
                begins = t == ANONYMOUS_GTID_EVENT or tbm == START or (tbm == SELF_CONTAINED and role == ROLE_STATEMENT)
                if begins and self.numbered:
                    self.passing = self.numbered == 2
                elif begins and self.refuse_anonymous:
                    self.refused = REFUSED_ANONYMOUS
                    return r
                elif self.passing and (
                    t == ANONYMOUS_GTID_EVENT or tbm == START or tbm == SELF_CONTAINED or role == ROLE_ALONE
                ):
                    self.passing = False  # its transaction was cut off, or has no markers
                if self.passing == self.sending:
                    if r > start:
                        return r
                    self.sending = not self.passing
                if (tbm == END and (self.passing or self.ending)) or (tbm == SELF_CONTAINED and self.passing):
                    self.group_ends = True
                elif (
                    self.limited
                    and self.unmet == 0
                    and not self.ending
                    and not (t == FORMAT_DESCRIPTION_EVENT or t == START_ENCRYPTION_EVENT)
                ):
                    self.ending = self.group_ends = True
            self.event_left = length

    def has_number(self) -> bool:
        """Return whether the replica has the transaction in `head`."""
        slot = self.table.find(self.head.key)
        if slot < 0:
            return False
        if cython.compiled:
            numbers = cython.cast("const uint8_t*", cython.cast(cython.size_t, self.spans_view[slot * 3]))
        else:
            numbers = self.kept[slot]
        number = self.head.number
        stop = self.spans_view[slot * 3 + 1]
        at = self.spans_view[slot * 3 + 2]
        # It is mostly in the interval in which the last one was searched, or in the next.
        if at > 0 and load64(numbers, at - 8) > number:
            at = 0
        i = 0
        while i < 4 and at < stop and load64(numbers, at + 8) <= number:
            at += 16
            i += 1
        if i == 4:
            low = at >> 4
            high = stop >> 4
            while low < high:
                middle = (low + high) >> 1
                if load64(numbers, (middle << 4) + 8) <= number:
                    low = middle + 1
                else:
                    high = middle
            at = low << 4
        self.spans_view[slot * 3 + 2] = at
        return at < stop and load64(numbers, at) <= number

    def has_group(self) -> bool:
        """Return whether the event group in `head`, the next of its domain, is omitted: the replica has it, or does not want it."""
        server = load32(self.head.key, 4)
        store32(self.head.key, 4, 0)
        number = self.head.number
        passing = False
        slot = self.domains.find(self.head.key) * 3
        if slot >= 0 and self.lasts_view[slot + 2]:
            if server != self.lasts_view[slot] or number < self.lasts_view[slot + 1]:
                passing = True
            else:
                self.lasts_view[slot + 2] = 0
                self.waiting -= 1
                if number == self.lasts_view[slot + 1]:
                    self.reaching = slot // 3
                    passing = True
                elif self.strict:
                    self.hole = slot // 3
                    return False
                else:
                    self.holing = slot // 3
                    self.hole_number = number
        if self.limited:
            slot = self.limits.find(self.head.key) * 3
            if slot < 0 or self.stops_view[slot + 2] == 0:
                passing = True
            elif server == self.stops_view[slot] and number >= self.stops_view[slot + 1]:
                self.stops_view[slot + 2] = 0
                self.unmet -= 1
                if self.unmet == 0:
                    self.ending = True
                if self.before or number > self.stops_view[slot + 1]:
                    passing = True
        if passing and self.holing >= 0:
            self.reaching = self.holing
            self.holing = -1
        return passing
