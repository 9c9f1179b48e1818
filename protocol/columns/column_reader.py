# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The common part of all readers of the walker's table: runs of events in, rows out, stops on the way.

A reader's `walk` goes through the table without the GIL until its batch is full, room is lacking, or an event contains packed data.
Room is made here; `take` returns everything else as a question to its owner.

Readers of events and statements are a ColumnReader; readers of transactions and rows are a GroupReader, for which events make groups:
transactions, and stray events between them.
"""

from array import array

import cython

from protocol.columns.tables import TableMaps
from protocol.kernel.inference import Inference

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, Numbers, held_bytes, held_longs, let_go, load32, text_of


def whole_events(buf: Bytes, start: int, stop: int) -> int:
    """Return where the last whole event in buf[start:stop] ends; it precedes any event with an impossible length.

    Raises IndexError for a bad range.
    """
    if start < 0 or stop < start or stop > len(buf):
        raise IndexError(f"range {start}:{stop} outside a buffer of {len(buf)} bytes")
    if start == stop:
        return start
    held = Held()
    try:
        return chain_end(held_bytes(buf, held.view), start, stop)
    finally:
        let_go(held.view)


def chain_end(p: Bytes, start: int, stop: int) -> int:
    at = start
    while stop - at >= HEADER_SIZE:
        length = load32(p, at + EVENT_SIZE_AT)
        if length < HEADER_SIZE or length > stop - at:
            break
        at += length
    return at


class Held:
    """Room for a held buffer, see `held_bytes`."""

    def __init__(self) -> None:
        if not cython.compiled:
            self.view = None


def event_finding(info: int, kind: int, flags: int) -> int:
    """Return the defect of an event from the walker's `info` (see Ingest.set_table); 0: none."""
    if info & INFO_BAD_CHECKSUM:
        return CHECKSUM_MISMATCH
    if info & INFO_VIOLATION:
        return BOUNDARY_VIOLATION
    if info & INFO_BAD_POSITION:
        return POSITION_CHAIN_BROKEN
    if info & INFO_MALFORMED:
        return EVENT_MALFORMED
    if kind == K_UNKNOWN and not flags & FLAG_IGNORABLE:
        return UNKNOWN_EVENT_TYPE
    return 0


def is_transaction(kind: int) -> bool:
    """Return whether a self-contained event of this kind is a transaction, and not a mark between two."""
    return not (kind == K_SELF or kind == K_ROTATE or kind == K_GTID_LIST or kind == K_MEMBER or kind == K_INCIDENT)


class EventFacts:
    """The facts of the current event in the walker's table. `position` and `end` are in the file, `time` is in µs since 1970. If it
    `opens`, a transaction begins with it, or is it. `finding` is its defect according to the walker; 0: none.
    """

    def __init__(self) -> None:
        self.position = self.end = 0
        self.type = self.kind = self.boundary = self.flags = self.info = 0
        self.time = self.server_id = self.log_pos = 0
        self.opens = False
        self.finding = 0


class ColumnReader:
    """Takes events one by one: notes which transaction an event is in, then calls `take_event` until nothing stops it.

    Events of types that are not in `takes` are only noted, unless they have a defect.
    It asks for packed data in an event: buf[open_start:open_stop] must be unpacked and given back with `opened`, for a payload with
    `opened_events` and at last `payload_done`; or with `not_opened`, if that is impossible.

    `next_row` is its place in the table. `pending`: a row is ready, and not written yet. `open`: a transaction is open after the
    event, `was_open`: the event is in one, which starts at `group_start`.
    """

    def __init__(self) -> None:
        if not cython.compiled:
            self.takes = bytearray(256)
        for i in range(256):
            self.takes[i] = 1
        self.inference = Inference()
        self.event = EventFacts()
        self.tables = TableMaps()
        self.buffer = Held()
        self.rows = Held()
        self.in_groups = False
        self.lacks_tables = False
        self.opened_bytes = b""
        self.opened_data = text_of(self.opened_bytes)
        self.opened_size = 0
        self.open_start = self.open_stop = self.opened_at = 0

    def begin_file(self, post_lengths: bytes) -> None:
        """Begin another file or another split of one. `post_lengths` are Ingest's."""
        for i in range(256):
            self.inference.post_length[i] = post_lengths[i] if i < len(post_lengths) else 0
        self.tables.begin_file(self.inference.post_length[TABLE_MAP_EVENT])
        self.next_row = 0
        self.entered = False
        self.opening = NOTHING_ASKED
        self.pending = False
        self.in_group = False
        self.open = self.was_open = False
        self.group_start = 0

    # ---- for the owner ----

    def take(self, buf: Bytes, base: int, table: "array[int]", count: int) -> int:
        """Take `count` rows of Ingest's `table`, whose whole events are in `buf`, where buf[0] is at `base` of the file.

        DONE: all rows were taken. Otherwise call again with the same, after FULL with another batch begun, after OPEN_... with the
        answer given.
        """
        if count == 0:
            return DONE
        have = len(buf)
        p = held_bytes(buf, self.buffer.view)
        try:
            rows = held_longs(table, self.rows.view)
            try:
                while True:
                    with cython.nogil:
                        status = self.walk(p, have, base, rows, count)
                    if status != GROW and status != PLAN:
                        return status
                    if not self.resolve(status):
                        return OPEN_TABLE
            finally:
                let_go(self.rows.view)
        finally:
            let_go(self.buffer.view)

    def opened(self, data: bytes) -> None:
        """Accept the unpacked data that was asked for."""
        self.opened_bytes = data
        self.opened_data = text_of(self.opened_bytes)
        self.opened_size = len(data)
        self.opening = ANSWERED

    def not_opened(self) -> None:
        """Note that the data that was asked for cannot be unpacked."""
        self.opening = NOT_ANSWERED

    def opened_events(self, buf: Bytes, start: int, stop: int) -> int:
        """Take the whole events at buf[start:stop] of the payload that was asked for; `opened_at` is where it stopped.

        DONE: no event is left; before `stop`, the payload is invalid. FULL, OPEN_TABLE: as in `take`; call again with `opened_at` as
        start.
        """
        if start < 0 or stop < start or stop > len(buf):
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(buf)} bytes")
        self.opened_at = start
        if start == stop:
            return DONE
        p = held_bytes(buf, self.buffer.view)
        try:
            while True:
                with cython.nogil:
                    status = self.walk_opened(p, self.opened_at, stop)
                if status != GROW and status != PLAN:
                    return status
                if not self.resolve(status):
                    return OPEN_TABLE
        finally:
            let_go(self.buffer.view)

    def payload_done(self) -> None:
        """Note that all events of the payload were given."""
        self.opening = EVENT_DONE

    # ---- the walk ----

    def walk(self, p: Bytes, have: int, base: int, table: Numbers, count: int) -> int:
        """Continue in the table at `next_row` until `count`, or until the batch or the room is full.

        An event in which it stopped is read again, but not entered again.
        """
        while True:
            if self.pending:
                status = self.flush()
                if status != DONE:
                    return status
            if self.next_row >= count:
                self.next_row = 0
                return DONE
            r = self.next_row * TABLE_ROW
            t = table[r + 2]
            info = table[r + 7]
            kind = self.inference.kind[t]
            boundary = info & INFO_BOUNDARY
            opens = boundary == START or (boundary == SELF_CONTAINED and is_transaction(kind))
            finding = 0
            if kind == K_UNKNOWN or info & (INFO_BAD_CHECKSUM | INFO_VIOLATION | INFO_BAD_POSITION | INFO_MALFORMED):
                finding = event_finding(info, kind, table[r + 3])
            if not self.entered:
                if self.in_groups:
                    if not self.enter(table[r], table[r + 5], info, opens, finding):
                        continue
                else:
                    if self.place(table[r], info, opens):
                        self.begin_group(table[r], table[r + 5])
                    if finding == 0 and not self.takes[t]:
                        self.next_row += 1
                        continue
                self.entered = True
            at = table[r] - base
            stop = at + table[r + 1]
            if stop > have:
                stop = have
            if info & INFO_CHECKSUM:
                stop -= CHECKSUM_SIZE
            self.event.position = table[r]
            self.event.end = table[r] + table[r + 1]
            self.event.type = t
            self.event.kind = kind
            self.event.flags = table[r + 3]
            self.event.time = table[r + 4] * MICROSECONDS
            self.event.server_id = table[r + 5]
            self.event.log_pos = table[r + 6]
            self.event.info = info
            self.event.boundary = boundary
            self.event.opens = opens
            self.event.finding = finding
            if self.opening > NOTHING_ASKED:
                return self.opening  # asked for, and not given
            if self.opening != EVENT_DONE:
                status = self.take_event(p, at, stop, t)
                if status != DONE:
                    if is_question(status):
                        self.opening = status
                    return status
            self.opening = NOTHING_ASKED
            if self.in_group:
                self.leave()
            self.entered = False
            self.next_row += 1

    def walk_opened(self, p: Bytes, start: int, stop: int) -> int:
        """Walk the events of a payload: they have no checksums, and no position of their own."""
        while True:
            if self.pending:
                status = self.flush()
                if status != DONE:
                    return status
            if stop - start < HEADER_SIZE:
                return DONE
            length = load32(p, start + EVENT_SIZE_AT)
            if length < HEADER_SIZE or length > stop - start:
                return DONE
            self.event.time = load32(p, start) * MICROSECONDS
            status = self.take_event(p, start, start + length, p[start + EVENT_TYPE_AT])
            if is_question(status):
                return DONE  # nothing in a payload is packed once more
            if status != DONE:
                return status
            start += length
            self.opened_at = start

    def flush(self) -> int:
        """Write the row that is `pending`. FULL: another batch is needed first; GROW."""
        return DONE

    def enter(self, position: int, server_id: int, info: int, opens: bool, finding: int) -> bool:
        """Enter an event of a GroupReader, while `event` is still the one before; False: the previous group has ended, and its row
        must be written first.
        """
        return True

    def begin_group(self, position: int, server_id: int) -> None:
        """Begin a transaction or group with the event at `position`."""

    def take_event(self, p: Bytes, at: int, stop: int, t: int) -> int:
        """Take the event in p[at:stop], without checksum and of type `t`. DONE, FULL, GROW or PLAN: again; or OPEN_..."""
        return DONE

    def leave(self) -> None:
        """Note that the event, which is in a group, was taken."""

    def resolve(self, status: int) -> bool:
        """Provide what stopped a walk; False: the owner must answer about a table."""
        self.make_room()
        return True

    def make_room(self) -> None:
        """Make the room that the last walk did not find."""
        if self.lacks_tables:
            self.tables.grow()
            self.lacks_tables = False

    # ---- for readers ----

    def learn_map(self, p: Bytes, at: int, stop: int) -> int:
        """Return the slot of the Table_map in p[at:stop]; MAP_MALFORMED; NO_ROOM: grow, and again."""
        slot = self.tables.take_map(p, at + HEADER_SIZE, stop)
        if slot == NO_ROOM:
            self.lacks_tables = True
        return slot

    def place(self, position: int, info: int, opens: bool) -> bool:
        """Note which transaction the event is in, and return whether it begins one."""
        boundary = info & INFO_BOUNDARY
        self.was_open = self.open
        if opens:
            self.group_start = position
            self.was_open = True
            self.open = boundary == START
        elif boundary == END:
            self.open = False
        elif boundary == SELF_CONTAINED or (boundary == INSIDE and not info & INFO_OPEN):
            self.open = self.was_open = False
        return opens


class GroupReader(ColumnReader):
    """A reader of groups. `in_group`: the event is in one; `stray`: in one that no transaction began.

    Events outside of transactions that can only be inside of one are a group; with `groups_findings` so is an event with a defect.
    """

    def __init__(self) -> None:
        ColumnReader.__init__(self)
        self.in_groups = True
        self.stray = False
        self.groups_findings = False

    def begin_file(self, post_lengths: bytes) -> None:
        """Begin another file or another split of one. `post_lengths` are Ingest's."""
        ColumnReader.begin_file(self, post_lengths)
        self.stray = False

    def finish(self) -> int:
        """End the input: an open transaction becomes a finding. DONE, or FULL as `take`."""
        if self.in_group:
            self.in_group = False
            self.end_group(not self.stray)
        while self.pending:
            status = self.flush()
            if status == FULL:
                return FULL
            if status == GROW:
                self.make_room()
        return DONE

    def enter(self, position: int, server_id: int, info: int, opens: bool, finding: int) -> bool:
        boundary = info & INFO_BOUNDARY
        inner = boundary == INSIDE or boundary == END
        if self.in_group and (opens or boundary == SELF_CONTAINED or (self.stray and not inner)):
            self.in_group = False
            self.end_group(not self.stray)
            return False
        if not self.in_group and (opens or inner or (self.groups_findings and finding)):
            self.stray = not opens
            self.in_group = True
            self.tables.between_groups()
            self.begin_group(position, server_id)
        return True

    def leave(self) -> None:
        if self.stray:
            self.in_group = self.event.boundary == INSIDE or self.event.boundary == END
        else:
            self.in_group = self.event.boundary != END and self.event.boundary != SELF_CONTAINED
        if not self.in_group:
            self.end_group(False)

    def end_group(self, unfinished: bool) -> None:
        """End the group; `unfinished`: it is a transaction, and no event ended it."""


def is_question(status: int) -> bool:
    """Return whether packed data inside an event is asked for."""
    return status == OPEN_ROWS or status == OPEN_QUERY or status == OPEN_PAYLOAD
