# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The scan of an archived file for GTIDs: the transactions that it contains, and about where.

Bodies are skipped by the length in the header; only the heads of GTID events are decoded. A transaction counts when its last event,
the one that is marked as its end, was read whole; in a file without markers, when the next one begins. So a transaction that a crash
cut off never counts, and cutting a file back to its last whole transaction changes nothing here.

The file is cut into stretches of about `gap_bytes` that start where a transaction does. For each stretch and source, runs of
consecutive numbers are reported. A source is a key: for MySQL uuid 16, tag; for MariaDB domain u32, server u32.
"""

from array import array

import cython

from protocol.kernel.gtid_head import GtidHead, KeyTable

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, load16, load32

    # The compiled build has it in gtid_scan.pxd.
    SCAN_FOREIGN = 6
    SCAN_LATE_HEAD = 7
    SCAN_LONG_HEAD = 8
    FAMILY_ANY = 0
    FAMILY_MYSQL = 1
    FAMILY_MARIADB = 2
    LONGEST_GTID_HEAD = 64 << 20
    SOURCE_NONE = -1
    SOURCE_OF_LAST = -2

_STATUS_TEXTS = {
    SCAN_BAD_LENGTH: "an event shorter than its header",
    SCAN_BAD_GTID: "a GTID that cannot be",
    SCAN_FOREIGN: "a GTID event of the other family of servers (MySQL, MariaDB)",
    SCAN_LATE_HEAD: "a list of the GTIDs before the file that is not its first event behind the format description",
    SCAN_LONG_HEAD: "a list of the GTIDs before the file that is longer than 64 MiB",
}


class GtidScanner:
    """Walks a file's bytes, which may be cut anywhere. `feed` releases the GIL; not thread-safe.

    `gap_bytes` is the least distance between starts of stretches; 0: each transaction is a stretch. `position` is the file offset of
    the next byte. `anonymous` counts transactions without a GTID, `transactions` all that ended. `problem` is None, or the defect of
    the event at `position`; nothing is read after it. `flavour` is the one whose GTID events are allowed, "mysql" or "mariadb": one
    of the other is a problem; "": both. `head_expected`: a list of the GTIDs before the file may come. `numbered`: the last GTID
    event was MySQL's with a number. Transactions that follow it without such an event belong to its transaction, and do not count.
    """

    def __init__(self, gap_bytes: int = 65536, flavour: str = "") -> None:
        self.gap_bytes = gap_bytes
        self.family = FAMILY_ANY
        if flavour:
            self.family = FAMILY_MYSQL if flavour == "mysql" else FAMILY_MARIADB
        self.head_expected = True
        self.numbered = False
        self.captured_type = 0
        self.captured: bytearray | None = None
        self.transactions = self.anonymous = 0
        self.problem: str | None = None
        self.status = 0
        self.head = GtidHead()
        self.head_type = 0  # of the event from which `head` was read, and of the source that the table found last
        self.table = KeyTable()
        self.runs = array("q", bytes(32 * self.table.capacity))
        self.active = array("q", bytes(8 * self.table.capacity))
        self.rows = array("q", bytes(8 * SCAN_ROW * 256))
        self.take_views()
        self.row_capacity = 256
        self.row_count = self.active_count = self.stretch = 0
        self.stretch_start = -1
        self.stretch_anonymous = self.stretch_timestamp = 0
        self.begin(FIRST_EVENT)

    @property
    def source_count(self) -> int:
        """The number of sources so far."""
        return self.table.count

    def begin(self, position: int) -> None:
        """Expect the next bytes at `position` of the file, outside of any transaction; an open one is forgotten."""
        self.position = position
        self.skip_left = 0
        self.capture_left = 0
        self.in_group = False
        self.group_marked = False
        self.group_source = SOURCE_NONE
        self.group_number = 0
        self.group_ends = False

    def take_views(self) -> None:
        # A view keeps its array from being resized, so growing makes new ones.
        self.runs_view = memoryview(self.runs)
        self.active_view = memoryview(self.active)
        self.rows_view = memoryview(self.rows)

    def feed(self, buf: Bytes, start: int, stop: int) -> int:
        """Take buf[start:stop]; return where it stopped: the head of a GTID event, at most GTID_HEAD bytes, must be whole.

        Raises: IndexError for a range outside buf.
        """
        if start < 0 or stop < start or stop > len(buf):
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(buf)} bytes")
        at = start
        while at < stop and self.problem is None:
            if self.captured is not None and self.capture_left:
                n = min(self.capture_left, stop - at)
                self.captured += buf[at : at + n]
                self.capture_left -= n
                self.position += n
                at += n
                continue
            self.consumed = at
            if cython.compiled:
                view = buf
                with cython.nogil:
                    self.status = self.walk(cython.address(view[0]), at, stop)
            else:
                self.status = self.walk(memoryview(buf).cast("B"), at, stop)
            at = self.consumed
            if self.status == SCAN_GROW_SOURCES:
                self.grow_sources()
            elif self.status == SCAN_GROW_ROWS:
                self.grow_rows()
            elif self.status == SCAN_CAPTURE:
                self.captured = bytearray()
            elif self.status:
                self.problem = _STATUS_TEXTS[self.status]
            else:
                break
        return at

    def walk(self, p: Bytes, start: int, stop: int) -> int:
        roles = self.head.role
        expected = self.head_expected
        r = start
        base = self.position - start  # of p[0]
        status = 0
        if self.skip_left:
            n = stop - r
            if n > self.skip_left:
                n = self.skip_left
            r += n
            self.skip_left -= n
            if self.skip_left == 0 and self.group_ends:
                self.end_group()
        while stop - r >= HEADER_SIZE:
            length = load32(p, r + EVENT_SIZE_AT)
            if length < HEADER_SIZE:
                status = SCAN_BAD_LENGTH
                break
            t = p[r + EVENT_TYPE_AT]
            role = roles[t]
            flags = load16(p, r + FLAGS_AT)
            if expected and t != FORMAT_DESCRIPTION_EVENT and t != START_ENCRYPTION_EVENT:
                # It is expected only there, even if the file is not read from its beginning.
                if (t != PREVIOUS_GTIDS_EVENT and t != GTID_LIST_EVENT) or flags & FLAG_ARTIFICIAL:
                    expected = self.head_expected = False
            tbm = (flags & BOUNDARY_MASK) >> BOUNDARY_SHIFT
            if tbm != INSIDE or role == ROLE_GTID:
                # All but the inside of a marked transaction, which is most events.
                if (self.row_count + self.active_count + 4) > self.row_capacity:
                    status = SCAN_GROW_ROWS
                    break
                if role == ROLE_GTID:
                    if self.is_foreign(t):
                        status = SCAN_FOREIGN
                        break
                    if stop - r < length and stop - r < GTID_HEAD:
                        break
                    if self.table.is_full():
                        status = SCAN_GROW_SOURCES
                        break
                    if self.in_group and not self.group_marked:
                        self.end_group()
                    n = length if length <= stop - r else GTID_HEAD
                    if not self.take_gtid(p, r, n, t):
                        status = SCAN_BAD_GTID
                        break
                    self.begin_group(base + r, load32(p, r))
                    self.group_marked = tbm != NOT_DEFINED
                elif (t == PREVIOUS_GTIDS_EVENT or t == GTID_LIST_EVENT) and not (flags & FLAG_ARTIFICIAL):
                    if self.is_foreign(t):
                        status = SCAN_FOREIGN
                        break
                    if not self.head_expected:
                        status = SCAN_LATE_HEAD
                        break
                    if length > LONGEST_GTID_HEAD:
                        status = SCAN_LONG_HEAD
                        break
                    self.head_expected = False
                    self.captured_type = t
                    self.capture_left = length
                    status = SCAN_CAPTURE
                    break
                elif t == ROTATE_EVENT or t == STOP_EVENT or t == FORMAT_DESCRIPTION_EVENT:
                    if self.in_group and not self.group_marked:
                        self.end_group()
                    self.in_group = False
                elif tbm == START:
                    self.begin_without_gtid(base + r, load32(p, r))
                    self.group_marked = True
                elif tbm == END:
                    self.group_ends = self.in_group
                elif tbm == SELF_CONTAINED:
                    self.in_group = False
                    if role == ROLE_STATEMENT:
                        self.begin_without_gtid(base + r, load32(p, r))
                        self.group_ends = True
            n = stop - r
            if length > n:
                self.skip_left = length - n
                r = stop
                break
            r += length
            if self.group_ends:
                self.end_group()
        self.position = base + r
        self.consumed = r
        return status

    def is_foreign(self, t: int) -> bool:
        """Return whether this file's family of servers does not write a GTID event of type t."""
        if self.family == FAMILY_ANY:
            return False
        return (t == MARIADB_GTID_EVENT or t == GTID_LIST_EVENT) != (self.family == FAMILY_MARIADB)

    def begin_group(self, position: int, timestamp: int) -> None:
        if self.stretch_start < 0 or position - self.stretch_start >= self.gap_bytes:
            self.close_stretch(position)
            self.stretch_start = position
            self.stretch_timestamp = timestamp
        self.in_group = True

    def begin_without_gtid(self, position: int, timestamp: int) -> None:
        if self.numbered:
            # No stretch starts here: a replica would get it without the transaction that it belongs to.
            self.group_source = SOURCE_OF_LAST
            self.in_group = True
        else:
            self.group_source = SOURCE_NONE
            self.begin_group(position, timestamp)

    def end_group(self) -> None:
        self.in_group = False
        self.group_ends = False
        slot = self.group_source
        if slot == SOURCE_OF_LAST:
            return
        self.transactions += 1
        if slot < 0:
            self.anonymous += 1
            self.stretch_anonymous += 1
            return
        at = slot << 2
        number = self.group_number
        if self.runs_view[at + 3] != self.stretch:
            self.runs_view[at + 3] = self.stretch
            self.active_view[self.active_count] = slot
            self.active_count += 1
            self.runs_view[at] = number
        elif self.runs_view[at + 1] + 1 != number:
            self.put_run(slot)
            self.runs_view[at] = number
        self.runs_view[at + 1] = number
        self.runs_view[at + 2] = self.transactions

    def put_run(self, slot: int) -> None:
        at = slot << 2
        o = self.row_count * SCAN_ROW
        self.rows_view[o] = self.stretch_start
        self.rows_view[o + 1] = slot
        self.rows_view[o + 2] = self.runs_view[at]
        self.rows_view[o + 3] = self.runs_view[at + 1]
        self.rows_view[o + 4] = self.runs_view[at + 2]
        self.row_count += 1

    def put_stretch(self, position: int) -> None:
        for i in range(self.active_count):
            self.put_run(self.active_view[i])
        if self.active_count or self.stretch_anonymous:
            o = self.row_count * SCAN_ROW
            self.rows_view[o] = self.stretch_start
            self.rows_view[o + 1] = -1
            self.rows_view[o + 2] = self.stretch_anonymous
            self.rows_view[o + 3] = self.stretch_timestamp
            self.rows_view[o + 4] = position
            self.row_count += 1

    def close_stretch(self, position: int) -> None:
        self.put_stretch(position)
        self.active_count = 0
        self.stretch_anonymous = 0
        self.stretch_start = -1
        self.stretch += 1

    def grow_rows(self) -> None:
        """Make room for twice as many rows."""
        self.row_capacity = 2 * (self.row_capacity + self.active_count)
        rows = array("q", bytes(8 * SCAN_ROW * self.row_capacity))
        rows[: self.row_count * SCAN_ROW] = self.rows[: self.row_count * SCAN_ROW]
        self.rows = rows
        self.take_views()

    def open_rows(self) -> "array[int]":
        """Return the rows that `finish` would make of the open stretch, which stays open, in the form of `take_rows`.

        Runs that were interrupted in it came with `take_rows` already.
        """
        if self.row_count + self.active_count + 4 > self.row_capacity:
            self.grow_rows()
        count = self.row_count
        self.put_stretch(self.position)
        rows = self.rows[count * SCAN_ROW : self.row_count * SCAN_ROW]
        self.row_count = count
        return rows

    def finish(self) -> None:
        """End the last stretch, at the file's end; also the transaction that is open in a file without markers."""
        if self.in_group and not self.group_marked:
            self.end_group()
        self.close_stretch(self.position)

    def take_gtid(self, p: Bytes, at: int, n: int, t: int) -> bool:
        """Put the source and number of the GTID event at `at` into the group that begins; False: they are impossible."""
        self.group_source = SOURCE_NONE
        self.numbered = t != ANONYMOUS_GTID_EVENT and t != MARIADB_GTID_EVENT
        if t == ANONYMOUS_GTID_EVENT:
            return True
        if self.head_type == t and self.head.take_number(p, at, n, t):
            source = self.table.last
        else:
            self.head_type = 0
            if not self.head.take(p, at, n, t):
                return False
            source = self.table.find(self.head.key)
            if source < 0:
                source = self.table.add(self.head.key)
                self.runs_view[(source << 2) + 3] = -1
        if cython.compiled:
            self.group_number = self.head.number
        else:
            self.group_number = self.head.number if self.head.number < 1 << 63 else self.head.number - (1 << 64)
        self.group_source = source
        self.head_type = t
        return True

    def grow_sources(self) -> None:
        """Make room for twice as many sources."""
        self.table.grow()
        runs = array("q", bytes(32 * self.table.capacity))
        runs[: len(self.runs)] = self.runs
        active = array("q", bytes(8 * self.table.capacity))
        active[: len(self.active)] = self.active
        self.runs, self.active = runs, active
        self.take_views()

    def take_rows(self) -> "array[int]":
        """Return the rows made since the last call, SCAN_ROW int64s each, in the order of the file's stretches.

        A run: start of its stretch, source, first number, last number, count of transactions up to the last one. After a stretch's
        runs: its start, -1, transactions without GTID in it, time of its first event, its end. MariaDB's numbers are unsigned.
        """
        rows = self.rows[: self.row_count * SCAN_ROW]
        self.row_count = 0
        return rows

    def source_key(self, source: int) -> bytes:
        """Return the key of source number `source`, from 0 in the order of their first transactions."""
        return self.table.key(source)
