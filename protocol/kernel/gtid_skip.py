# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Which bytes of an archived file a replica is sent that asked by GTID: whole transactions that it has are passed over.

The walk goes over headers and heads of GTID events only. It tells ranges: bytes to send, then bytes to pass over. A range
never ends inside an event unless the input does. Whatever belongs to no transaction (Rotate, Format_description, Gtid_list,
Binlog_checkpoint, Previous_gtids ...) is sent.

MySQL: a set is passed over. MariaDB: per domain everything is passed over up to the group that the replica has last.
"""

from array import array

import cython

from protocol.kernel.gtid_keys import GtidHead, KeyTable

if not cython.compiled:
    from protocol.kernel.pure import load16, load32, load64, store32

BAD_LENGTH = cython.declare(cython.int, 1)
BAD_GTID = cython.declare(cython.int, 2)
_STATUS_TEXTS = {1: "an event shorter than its header", 2: "a GTID that cannot be"}


class GtidSkip:
    """What one replica has, and where in the stream it is. `next_range` releases the GIL; not thread-safe.

    intervals: for MySQL, canonical intervals (`protocol.kernel.intervals`) by key; what the archive does not hold had better
    be left out, it only costs. positions: for MariaDB, (domain, server, sequence) of the last group of each domain.
    `sending`: what the range that `next_range` told last is. `skipped`: transactions passed over.
    MariaDB: `waiting`: domains whose last group did not come yet. `reached`: number (in `positions`) of the domain whose last
    group ends where the range that was told last does: a source tells the replica there where it is; -1: none. `hole`: number
    of a domain whose group is not in the stream: a later one of the same server came, and was sent; -1: none.
    `problem`: None, or what is wrong with the event that follows.
    """

    def __init__(self, intervals=None, positions=()):
        self.head = GtidHead()
        self.table = KeyTable()
        self.domains = KeyTable()
        spans = array("q")
        parts = []
        at = 0
        if intervals:
            for key in intervals:
                self.table.add_bytes(key)
                spans.extend((at, at + len(intervals[key]), at))
                parts.append(intervals[key])
                at += len(intervals[key])
        lasts = array("Q")
        for domain, server, sequence in positions:
            self.domains.add_bytes(domain.to_bytes(4, "little"))
            lasts.extend((server, sequence, 1))
        self.waiting = len(positions)
        # Never empty: a view needs a first element.
        spans.append(0)
        lasts.append(0)
        self.spans_view = spans
        self.lasts_view = lasts
        self.numbers_view = b"".join(parts) or bytes(16)
        self.skipped = 0
        self.hole = self.reached = self.reaching = -1
        self.problem = None
        self.begin()

    def begin(self):
        """The next bytes stand outside of any transaction: another file, or another place in it."""
        self.sending = True
        self.event_left = 0
        self.passing = False
        self.passing_ends = False
        self.reaching = -1
        self.decided = 0  # on the GTID event that comes next: 1 it is sent, 2 it is passed over

    def next_range(self, src, start, stop):
        """End of the range that begins at src[start]: all of it is sent, or (`sending` False) all of it passed over.

        `start` itself: more bytes are wanted, a header or the head of a GTID event (256 bytes, or the event) is cut.
        Raises: IndexError for a range outside src; ValueError for bytes that are no event, at `start`.
        """
        if start < 0 or stop < start or stop > len(src):
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(src)} bytes")
        self.reached = -1
        if start == stop:
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

    def walk(self, p, start, stop):
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
                if self.passing_ends:
                    self.passing = False
                    self.passing_ends = False
                    if self.reaching >= 0:
                        self.reached = self.reaching
                        self.reaching = -1
                        return r
            if stop - r < 19:
                return r
            length = load32(p, r + 9)
            t = p[r + 4]
            if length < 19:
                return r if r > start else -BAD_LENGTH
            tbm = (load16(p, r + 17) >> 10) & 7
            if t == 33 or t == 42 or t == 162:
                if stop - r < length and stop - r < 256:
                    return r
                if self.decided:
                    passing = self.decided == 2
                    self.decided = 0
                else:
                    n = length if length <= stop - r else 256
                    if not self.head.take(p, r, n, t):
                        return r if r > start else -BAD_GTID
                    passing = self.has_group() if t == 162 else self.has_number()
                    if passing == self.sending and r > start:
                        self.decided = 2 if passing else 1
                        return r
                self.sending = not passing
                self.passing = passing
                self.passing_ends = False
                if passing:
                    self.skipped += 1
            else:
                if self.passing and (
                    t == 4 or t == 3 or t == 15 or t == 34 or t == 35 or t == 161 or t == 163 or tbm == 3 or tbm == 2
                ):
                    self.passing = False  # what it belongs to was cut off, or has no markers
                if self.passing == self.sending:
                    if r > start:
                        return r
                    self.sending = not self.passing
                if self.passing and tbm == 5:
                    self.passing_ends = True
            self.event_left = length

    def has_number(self):
        """Whether the replica has the transaction in `head`."""
        slot = self.table.find(self.head.key)
        if slot < 0:
            return False
        if cython.compiled:
            numbers = cython.address(self.numbers_view[0])
        else:
            numbers = self.numbers_view
        number = self.head.number
        first = self.spans_view[slot * 3]
        stop = self.spans_view[slot * 3 + 1]
        at = self.spans_view[slot * 3 + 2]
        # Mostly it is in the interval where the last one was looked for, or in the next.
        if at > first and load64(numbers, at - 8) > number:
            at = first
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

    def has_group(self):
        """Whether the replica has the event group in `head`, which is the next of its domain."""
        server = load32(self.head.key, 4)
        store32(self.head.key, 4, 0)
        slot = self.domains.find(self.head.key) * 3
        if slot < 0 or self.lasts_view[slot + 2] == 0:
            return False
        if server != self.lasts_view[slot] or self.head.number < self.lasts_view[slot + 1]:
            return True
        self.lasts_view[slot + 2] = 0
        self.waiting -= 1
        if self.head.number == self.lasts_view[slot + 1]:
            self.reaching = slot // 3
            return True
        self.hole = slot // 3
        return False
