# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The hot path of a view: archived events of one file, in new places and with the events and fields that a newer replica needs.

A group is one transaction. Its bounds are the markers in the archived flags. Groups that need no more than an envelope are copied
here: a GTID event in front, end_log_pos, markers and checksum of each event recomputed, row events of version 1 made version 2, and
the status variable for the definition of TIMESTAMP columns. For others the caller gets their places.

Every event's checksum is compared before a byte of its group is copied. `copy` takes groups that are whole in one buffer. A larger
group goes through `scan`, piece by piece, then through `emit`, which is given the same bytes again.
"""

from array import array
from typing import Any

import cython

from protocol.dependencies.group_waits import GroupWaits
from protocol.kernel.crc import EventSum
from protocol.kernel.inference import Inference
from protocol.views.known_statements import KnownStatements

if not cython.compiled:
    from protocol.dependencies.write_set_codes import SERIAL_LARGE, SERIAL_OTHER, SET_PLAN, SET_TAKEN
    from protocol.kernel.codes import *
    from protocol.kernel.inference import first_word, kind_of_text
    from protocol.kernel.pure import (
        Bytes,
        Writable,
        copy_bytes,
        crc32_of,
        load16,
        load32,
        load64,
        native_setup,
        signed64,
        store32,
        store64,
    )
    from protocol.views.packed_numbers import count_with, length_of_number, put_number, told_length_at
    from protocol.views.plain_changes import has_word, is_change, names_mysql, removal_of, simple_target
    from protocol.views.query_status import place_of_explicit

native_setup()
_NONE = KnownStatements((), bytes(16))
"""Stays empty."""


def is_group(kind: int) -> bool:
    """Return whether a self-contained event of this kind is a transaction, and not a mark between two."""
    return (
        kind == K_QUERY
        or kind == K_QUERY_COMPRESSED
        or kind == K_EXECUTE_LOAD_QUERY
        or kind == K_LOAD_WHOLE
        or kind == K_LOAD_CLOSES
    )


class ViewCopy:
    """One view's envelope; see the module's text. Not thread-safe; the calls with buffers release the GIL.

    `policy` is VIEW_KEEP, VIEW_ASSIGN or VIEW_ANONYMOUS. `uuid` is the 16 bytes of assigned GTIDs. `look_at` has 256 bytes by type
    code, 1: a group with such an event is not copied. `layout` is that of the added GTID events, VIEW_BARE (5.6), VIEW_CLOCK (5.7) or
    VIEW_TIMES (8.0). `explicit` is the value of the status variable 16 that Query events get; -1: none. With `new_rows`, row events
    of version 1 become version 2.

    With `wants_statements` a group with a statement is not copied, except for plain ones according to `watch`. With `wants_removals`
    this applies to REPLACE, DELETE and LOAD DATA … REPLACE, except for plain ones according to `watch_removals`.

    `waits` determines the groups that a group waits for, instead of always the one before it, or those that the source names; with it
    the numbers of a file's groups are 1, 2, 3 and so on. `plans_until` is, like `source_base`, the place up to which the facts about
    tables stay the same. With `wants_gtids` a group without a GTID of the source's own is not copied.

    `position` is where the next byte goes in the view's file. `next_gno` and `sequence` are the next group's. `renumbers`: the
    source's own numbers of dependencies do not count any more in this file, because one of its groups became two. `uuid_used`: the
    source has own GTIDs of `uuid`. `gtids_named`: its files list at their heads the GTIDs that it executed. `source_base` is the
    place of src[0] in the source's file.

    After a call, `consumed` and `produced` are the used lengths of src and dst. `group_stop` is where the group at `consumed` ends in
    src, with VIEW_LOOK, VIEW_CONTROL and VIEW_CUT. `group_damaged`: the GTID event of the last group is too short, or one of its
    statements has unreadable status variables, so that none can be added. `group_collides`: with it both the source and the view
    would have GTIDs of `uuid`, for the first time. `bad_at` is the index of the wrong event, with BAD_LENGTH, BAD_CRC.
    """

    def __init__(self, policy: int, uuid: bytes, look_at: bytes, layout: int, explicit: int, new_rows: bool) -> None:
        if not cython.compiled:
            self.uuid = bytearray(16)
            self.look = bytearray(256)
            self.watched = bytearray(VIEW_WATCHED)
            self.removals = bytearray(VIEW_WATCHED)
        if len(uuid) != 16 or len(look_at) != 256:
            raise ValueError("a uuid of 16 bytes and a table of 256 are needed")
        for i in range(16):
            self.uuid[i] = uuid[i]
        for i in range(256):
            self.look[i] = look_at[i]
        self.policy = policy
        self.layout = layout
        self.explicit = explicit
        self.new_rows = new_rows
        self.wants_statements = False
        self.wants_removals = False
        self.watches = False
        self.watches_removals = False
        self.statements = 0
        self.watched_there = False
        self.mapped = -1
        self.known = _NONE
        self.given = 0
        self.inference = Inference()
        self.checksum = self.out_checksum = 0
        self.server_version = 0
        self.position = FIRST_EVENT
        self.next_gno = 1
        self.sequence = 1
        self.waits: Any = None
        self.has_waits = False
        self.takes_rows = False
        self.plans_until = 0
        self.part = -1
        self.wants_gtids = False
        self.renumbers = False
        self.uuid_used = False
        self.gtids_named = False
        self.source_base = 0
        self.consumed = self.produced = self.group_stop = self.bad_at = 0
        self.group_size = 0
        self.group_look = False
        self.group_damaged = False
        self.group_collides = False
        self.group_head = 0
        self.group_time = 0
        self.group_server = 0
        self.extra = self.insert_at = self.text_at = 0
        self.statement = S_MALFORMED
        self.insert_left = -1
        self.event = EventSum()
        self.out_crc = 0
        self.scan_first = True
        self.scan_ends = False
        self.scan_alien = False
        self.scan_size = 0
        self.marks = memoryview(array("q"))
        self.mark_count = self.mark_room = 0
        self.mark_gap = 0
        self.mark_last = -1

    def begin_file(self, post_lengths: bytes, checksum: int, out_checksum: int, server_version: int) -> None:
        """Begin a file with these post-header lengths (256 bytes, by type code).

        `checksum` is 0 for none, 1 for CRC32; `out_checksum` is that of the view's file. `server_version` is a number such as 50624,
        for GTID events.
        """
        view = post_lengths
        if len(view) != 256 or (out_checksum and not checksum):
            raise ValueError("a table of 256 is needed, and checksums are taken away or kept")
        if cython.compiled:
            for i in range(256):
                self.inference.post_length[i] = view[i]
        else:
            self.inference.take_post_lengths(view[1:], 0, 255)
        self.checksum = checksum
        self.out_checksum = out_checksum
        self.server_version = server_version
        self.event.begin(0, 0)
        self.insert_left = -1
        self.mark_last = -1
        self.part = -1
        self.plans_until = 0
        self.known.clear()
        if self.has_waits:
            self.waits.begin_file(self.inference.post_length[TABLE_MAP_EVENT])

    def set_waits(self, waits: GroupWaits) -> None:
        """Set the waits from the next begun file on."""
        self.waits = waits
        self.has_waits = True
        self.takes_rows = waits.sets is not None

    def watch(self, table: bytes | None) -> None:
        """Choose the statements for `wants_statements`: VIEW_WATCHED bytes, by the number that `simple_target` returns for a table's
        name; 1: those in transactions with more than one statement, 2: all. None: every statement.
        """
        self.watches = table is not None
        if table is not None:
            if len(table) != VIEW_WATCHED:
                raise ValueError(f"a table of {VIEW_WATCHED} is needed")
            for i in range(VIEW_WATCHED):
                self.watched[i] = table[i]

    def know_statements(self, known: KnownStatements) -> None:
        """Look only at such statements, for `wants_statements` and `wants_removals`, as are not in `known`. A new file clears it."""
        self.known = known

    def note_statements(self, src: Bytes, start: int, stop: int) -> None:
        """Put the statements of the whole group in src[start:stop], which was scanned, into the known ones. Raises: IndexError."""
        if start < 0 or stop <= start or stop > len(src):
            raise IndexError(f"range {start}:{stop} of {len(src)} bytes")
        if cython.compiled:
            with cython.nogil:
                self.note_group(cython.address(src[0]), start, stop)
        else:
            self.note_group(memoryview(src).cast("B"), start, stop)

    def note_group(self, p: Bytes, r: int, stop: int) -> None:
        trailer = CHECKSUM_SIZE if self.checksum else 0
        self.given = 0
        first = True
        while stop - r >= HEADER_SIZE:
            length = load32(p, r + EVENT_SIZE_AT)
            if length < HEADER_SIZE + trailer or length > stop - r:
                return
            t = p[r + EVENT_TYPE_AT]
            end = r + length - trailer
            kind = self.inference.kind[t]
            if first:
                self.group_head = t
                first = False
            if kind == K_QUERY:
                text = self.inference.query_text(p, r, end, t)
                if text >= 0 and self.may_be_known(p, r) and kind_of_text(p, text, end) == S_OTHER:
                    self.known.note(p, r + HEADER_SIZE + QUERY_SCHEMA_LENGTH_AT, text, end, self.all_given())
                self.given = 0
            else:
                self.take_given(p, r, end, t)
            r += length

    def may_be_known(self, p: Bytes, at: int) -> bool:
        """Return whether the statement of a Query event depends on nothing that is not in the event, or `given`."""
        return self.given >= 0 and load16(p, at + FLAGS_AT) & FLAG_OF_ONE_CONNECTION == 0

    def take_given(self, p: Bytes, at: int, end: int, t: int) -> None:
        """Note what an event that is no statement gives to the next one: -1 in `given` for values that may decide."""
        if t == INTVAR_EVENT and self.given >= 0 and self.given < 64 and end > at + HEADER_SIZE:
            self.given = self.given * 4 + (p[at + HEADER_SIZE] & 3)
        elif t == INTVAR_EVENT or t == USER_VAR_EVENT or t == RAND_EVENT:
            self.given = -1

    def all_given(self) -> int:
        """Return a number for what is given to a statement, and for whether its transaction has a GTID event."""
        return self.given * 2 + (1 if self.inference.kind[self.group_head] == K_GTID else 0)

    def is_known(self, p: Bytes, at: int, text: int, end: int) -> bool:
        """Return whether the statement in p[text:end], of the event at `at`, is known."""
        trailer = CHECKSUM_SIZE if self.checksum else 0
        if self.known.count == 0 or load32(p, at + EVENT_SIZE_AT) - trailer > end - at or not self.may_be_known(p, at):
            return False
        return self.known.has(p, at + HEADER_SIZE + QUERY_SCHEMA_LENGTH_AT, text, end, self.all_given())

    def watch_removals(self, table: bytes | None) -> None:
        """Choose the tables for `wants_removals`: VIEW_WATCHED bytes by the same number as in `watch`, with VIEW_REPLACE and
        VIEW_DELETE. None: all.
        """
        self.watches_removals = table is not None
        if table is not None:
            if len(table) != VIEW_WATCHED:
                raise ValueError(f"a table of {VIEW_WATCHED} is needed")
            for i in range(VIEW_WATCHED):
                self.removals[i] = table[i]

    def set_marks(self, marks: "array[int]", gap: int) -> None:
        """Write marks, rows of VIEW_MARK numbers, into the array('q'), one before a group if the last is `gap` bytes away: source
        offset, view offset, next number, sequence. A full array ends `copy` with VIEW_ROOM. See `take_marks`.
        """
        self.marks = memoryview(marks)
        self.mark_room = len(marks) // VIEW_MARK
        self.mark_gap = gap

    def clock(self) -> int:
        """Return `sequence`, `renumbers`, `uuid_used` and `gtids_named` as one number, for a mark; see `set_clock`."""
        value = self.sequence | (VIEW_RENUMBERS if self.renumbers else 0) | (VIEW_UUID_USED if self.uuid_used else 0)
        return value | (VIEW_GTIDS_NAMED if self.gtids_named else 0)

    def set_clock(self, clock: int) -> None:
        """Continue with the numbers of `clock()`."""
        self.sequence = clock & ~VIEW_RENUMBERS & ~VIEW_UUID_USED & ~VIEW_GTIDS_NAMED
        self.renumbers = (clock & VIEW_RENUMBERS) != 0
        self.uuid_used = (clock & VIEW_UUID_USED) != 0
        self.gtids_named = (clock & VIEW_GTIDS_NAMED) != 0
        if self.has_waits:
            self.waits.begin_anew(self.sequence - 1)

    def take_marks(self) -> int:
        """Return how many rows there are; the next one goes to the array's start again."""
        count = self.mark_count
        self.mark_count = 0
        return count

    # ---- groups that are whole in a buffer ----

    def copy(self, src: Bytes, start: int, stop: int, dst: Writable, at: int) -> int:
        """Copy the plain groups in src[start:stop] to dst[at:], up to the first other event. Return why it ended.

        VIEW_MORE: the group at `consumed` continues after `stop`. VIEW_ROOM: it has no room in dst. VIEW_LOOK: it is not for here.
        VIEW_CONTROL: one event between groups is there. VIEW_CUT: it has no end; another begins at `group_stop`. VIEW_PLAN: the plan
        of a table is wanted (`waits.sets.wanted`), or plans are no longer valid (`plans_until`). VIEW_STRAY: an event from the middle
        of a group. BAD_LENGTH, BAD_CRC. Raises IndexError for a bad range.
        """
        if start < 0 or stop < start or stop > len(src) or at < 0 or at > len(dst):
            raise IndexError(f"ranges {start}:{stop} of {len(src)} and {at} of {len(dst)} bytes")
        if start == stop:
            self.consumed = start
            self.produced = at
            return VIEW_MORE
        if len(dst) == 0:
            raise IndexError("nothing to copy into")
        if cython.compiled:
            with cython.nogil:
                status = self.copy_groups(cython.address(src[0]), start, stop, cython.address(dst[0]), at, len(dst))
        else:
            status = self.copy_groups(memoryview(src).cast("B"), start, stop, memoryview(dst).cast("B"), at, len(dst))
        return status

    def copy_groups(self, p: Bytes, r: int, stop: int, d: Writable, o: int, room: int) -> int:
        status = VIEW_GROUP
        while True:
            if self.takes_rows and self.source_base + r >= self.plans_until:
                status = VIEW_PLAN
                break
            status = self.measure(p, r, stop)
            if status != VIEW_GROUP:
                break
            if self.group_look:
                status = VIEW_LOOK
                break
            if o + self.group_size + VIEW_LONGEST_GTID > room:
                status = VIEW_ROOM
                break
            if not self.add_mark(self.source_base + r):
                status = VIEW_ROOM
                break
            o = self.write_group(p, r, d, o)
            r = self.group_stop
        self.consumed = r
        self.produced = o
        return status

    def add_mark(self, source: int) -> bool:
        """Add a mark. False: there is no room for it."""
        if not self.begin_part(source):
            return True
        if self.mark_room == 0 or (self.mark_last >= 0 and source - self.mark_last < self.mark_gap):
            return True
        if self.mark_count >= self.mark_room:
            return False
        row = self.mark_count * VIEW_MARK
        self.marks[row] = source
        self.marks[row + 1] = self.position
        self.marks[row + 2] = self.next_gno
        self.marks[row + 3] = self.clock()
        self.mark_count += 1
        self.mark_last = source
        return True

    def begin_part(self, source: int) -> bool:
        """Return whether the output from here on, where a group begins in the source's file, is the same for a copy that begins here.
        At the first group of each part of the file it is made so.
        """
        if not self.has_waits:
            return True
        if source >> VIEW_PART_SHIFT != self.part:
            self.part = source >> VIEW_PART_SHIFT
            self.waits.begin_anew(self.sequence - 1)
            self.mark_last = -1
        is_anew: bool = self.waits.is_anew(self.sequence)
        return is_anew

    def take_group(self, src: Bytes, start: int, stop: int) -> int:
        """Read the rows of the group in src[start:stop], which is whole and is not for `copy`, for its waits. VIEW_GROUP; VIEW_PLAN:
        the plan of a table is wanted, then call again. Raises: IndexError for a bad range.
        """
        if start < 0 or stop <= start or stop > len(src):
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(src)} bytes")
        if cython.compiled:
            with cython.nogil:
                status = self.measure(cython.address(src[0]), start, stop)
        else:
            status = self.measure(memoryview(src).cast("B"), start, stop)
        return status

    def measure(self, p: Bytes, r: int, stop: int) -> int:
        """Measure the group at r: its end, its size in the view, and whether it is plain."""
        trailer = CHECKSUM_SIZE if self.checksum else 0
        at = r
        first = True
        self.group_size = 0
        self.group_look = False
        while True:
            if stop - at < HEADER_SIZE:
                return VIEW_MORE
            length = load32(p, at + EVENT_SIZE_AT)
            if length < HEADER_SIZE + trailer or length > MAX_EVENT:
                self.bad_at = at
                return BAD_LENGTH
            boundary = (load16(p, at + FLAGS_AT) & BOUNDARY_MASK) >> BOUNDARY_SHIFT
            t = p[at + EVENT_TYPE_AT]
            if length > stop - at:
                return VIEW_MORE
            if trailer and crc32_of(p, at, at + length - CHECKSUM_SIZE, 0) != load32(p, at + length - CHECKSUM_SIZE):
                self.bad_at = at
                return BAD_CRC
            if not first and boundary != INSIDE and boundary != END and boundary != IGNORE:
                self.group_stop = at
                return VIEW_CUT
            if first:
                self.group_stop = at + length
                if boundary == INSIDE or boundary == END:
                    return VIEW_STRAY
                if boundary != START and not (boundary == SELF_CONTAINED and is_group(self.inference.kind[t])):
                    return VIEW_CONTROL
                self.begin_group(p, at, t)
                if self.takes_rows:
                    self.waits.sets.begin_group()
                first = False
            self.judge(p, at, length - trailer, t)
            if self.takes_rows and not self.group_look:
                if at + length - r > VIEW_LARGEST_SET:
                    self.waits.sets.make_serial(SERIAL_LARGE)
                elif self.take_rows(p, at, at + length - trailer, t) == SET_PLAN:
                    return VIEW_PLAN
            self.group_size += length - trailer + self.extra + self.out_trailer()
            at += length
            if boundary == END or boundary == SELF_CONTAINED:
                self.group_time = load32(p, at - length)
                self.group_stop = at
                if self.group_head == GTID_TAGGED_EVENT and self.group_size != at - r:
                    self.group_look = True  # its recorded length is not the view's
                return VIEW_GROUP

    def take_rows(self, p: Bytes, at: int, end: int, t: int) -> int:
        """Read the changes of the event in p[at:end], of the group that is measured. SET_PLAN: the plan of its table is wanted."""
        kind = self.inference.kind[t]
        if t == TABLE_MAP_EVENT:
            wanted: int = self.waits.sets.take_map(p, at, end)
            return wanted
        if kind == K_ROWS and t >= WRITE_ROWS_V1_EVENT:
            self.waits.sets.take_rows(p, at, end, t, self.inference.post_length[t])
        elif kind == K_QUERY:
            is_edge = self.statement == S_BEGIN or self.statement == S_COMMIT or self.statement == S_PART
            if not is_edge or p[first_word(p, self.text_at, end, True)] | 32 == 120:  # XA
                self.waits.sets.make_serial(SERIAL_OTHER)
        elif kind != K_GTID and kind != K_IGNORE and t != XID_EVENT and t != ROWS_QUERY_EVENT:
            self.waits.sets.make_serial(SERIAL_OTHER)
        return SET_TAKEN

    def is_of_uuid(self, p: Bytes, at: int) -> bool:
        """Return whether the Gtid event at `at` has the uuid of assigned numbers."""
        for i in range(16):
            if p[at + HEADER_SIZE + GTID_UUID_AT + i] != self.uuid[i]:
                return False
        return True

    def begin_group(self, p: Bytes, at: int, t: int) -> None:
        """Begin a group with the event at `at`."""
        self.group_head = t
        self.group_server = load32(p, at + SERVER_ID_AT)
        # Before 5.1.4x changes of rows came without BEGIN: a replica would not commit them.
        kind = self.inference.kind[t]
        self.group_look = kind == K_MAP or kind == K_ROWS
        if t == GTID_TAGGED_EVENT:
            self.group_look = self.renumbers or self.has_waits
        elif self.wants_gtids and t != GTID_EVENT:
            self.group_look = True
        self.group_damaged = False
        if t == GTID_EVENT or t == ANONYMOUS_GTID_EVENT:
            length = load32(p, at + EVENT_SIZE_AT)
            if length < HEADER_SIZE + GTID_SIZE + (CHECKSUM_SIZE if self.checksum else 0):
                self.group_look = True
                self.group_damaged = True
        self.group_collides = False
        # A GTID with a tag differs from the same number without one.
        if self.policy == VIEW_ASSIGN and t != GTID_TAGGED_EVENT and not self.group_damaged:
            if t == GTID_EVENT:
                self.group_collides = self.next_gno > 1 and self.is_of_uuid(p, at)
            else:
                self.group_collides = self.uuid_used
            if self.group_collides:
                self.group_look = True
        self.statements = 0
        self.watched_there = False
        self.mapped = -1
        self.given = 0

    def is_wanted(self, p: Bytes, at: int, text: int, end: int, known: bool) -> bool:
        """Return whether a rule must see the group for its statement in p[text:end], of the event at `at`. A known one it must see only
        beside others, if it may change a watched table.
        """
        trailer = CHECKSUM_SIZE if self.checksum else 0
        if not self.watches or load32(p, at + EVENT_SIZE_AT) - trailer > end - at:
            return True
        target = simple_target(p, text, end)
        if not known:
            if target < 0 or self.watched[target] & 2:
                return True
            if self.server_version >= FIRST_WITH_TABLE_QUERY and has_word(p, text, end, b"table", 5):
                return True
        self.statements += 1
        if target < 0 or self.watched[target] & 1:
            self.watched_there = True
        return self.watched_there and self.statements > 1

    def is_wanted_map(self, p: Bytes, at: int, available: int) -> bool:
        """Return whether a rule must see the group for the Table_map event at `at`: the group changes that table and others,
        and one of them is watched, as tables in transactions with more than one statement are.
        """
        start = at + HEADER_SIZE + (6 if self.inference.post_length[TABLE_MAP_EVENT] == 6 else 8)
        name = start + 1 + p[start] + 1
        if name >= at + available or name + 1 + p[name] > at + available:
            return True
        stop = name + 1 + p[name]
        number = 2166136261
        table = 2166136261
        for i in range(start, stop):
            c = p[i]
            if c >= 128:
                self.watched_there = True
            if 65 <= c <= 90:
                c += 32
            number = ((number ^ c) * 16777619) & U32_MAX
            if i > name:
                table = ((table ^ c) * 16777619) & U32_MAX
        if number != self.mapped:
            self.mapped = number
            self.statements += 1
        if not self.watches or self.watched[table & (VIEW_WATCHED - 1)] & 1:
            self.watched_there = True
        return self.watched_there and self.statements > 1

    def is_wanted_removal(self, p: Bytes, at: int, text: int, end: int) -> bool:
        """Return whether a rule must see the group for its statement in p[text:end], a plain change, of the event at `at`."""
        removal = removal_of(p, text, end)
        if removal == 0:
            return False
        trailer = CHECKSUM_SIZE if self.checksum else 0
        if not self.watches_removals or load32(p, at + EVENT_SIZE_AT) - trailer > end - at:
            return True
        target = simple_target(p, text, end)
        return target < 0 or self.removals[target] & removal != 0

    def grow(self, p: Bytes, at: int, available: int, t: int) -> int:
        """Determine the addition to the event at `at`, of which `available` bytes without its checksum are there.

        It is `extra` bytes at `insert_at`. Return the kind of its statement, whose text is at `text_at`; S_MALFORMED: it has none.
        Note damage in `group_look`.
        """
        self.extra = 0
        self.insert_at = 0
        kind = self.inference.kind[t]
        if kind == K_QUERY or kind == K_EXECUTE_LOAD_QUERY:
            text = self.inference.query_text(p, at, at + available, t)
            if text < 0 or self.inference.post_length[QUERY_EVENT] < QUERY_POST:
                self.group_look = True
                return S_MALFORMED
            self.text_at = text
            statement = S_OTHER
            if kind == K_QUERY:
                statement = kind_of_text(p, text, at + available)
            if statement == S_OTHER and self.explicit >= 0:
                self.grow_status(p, at, text - 1 - p[at + HEADER_SIZE + QUERY_SCHEMA_LENGTH_AT])
            return statement
        if self.new_rows and self.is_old_rows(t):
            if self.inference.post_length[t] != 8 or available < HEADER_SIZE + 8:
                self.group_look = True
            else:
                self.extra = 2
                self.insert_at = HEADER_SIZE + 8
        return S_MALFORMED

    def grow_status(self, p: Bytes, at: int, end: int) -> None:
        """Determine the addition to the statement at `at`, whose status variables end at `end` and were measured by `query_text`."""
        count = self.inference.status_length
        place = place_of_explicit(p, end - count, end)
        if place == STATUS_DAMAGED or count + 2 > MAX_STATUS:
            self.group_look = True
            self.group_damaged = True
        elif place != STATUS_SAID:
            self.extra = 2
            self.insert_at = place - at

    def judge(self, p: Bytes, at: int, available: int, t: int) -> None:
        """Call `grow`, and note events that are not plain in `group_look`."""
        if self.look[t]:
            self.group_look = True
        kind = self.inference.kind[t]
        statement = self.grow(p, at, available, t)
        self.statement = statement
        if statement != S_MALFORMED:
            text = self.text_at
            if statement == S_ROLLBACK or load16(p, at + HEADER_SIZE + QUERY_ERROR_AT) != 0:
                self.group_look = True
            if statement == S_XA_COMMIT or statement == S_XA_ROLLBACK:  # perhaps of one that was omitted
                self.group_look = True
            if statement == S_OTHER:
                schema = p[at + HEADER_SIZE + QUERY_SCHEMA_LENGTH_AT]
                lead = first_word(p, text, at + available, False)
                known = kind == K_QUERY and self.wants_statements and self.is_known(p, at, text, at + available)
                if self.wants_statements and (kind != K_QUERY or self.is_wanted(p, at, text, at + available, known)):
                    self.group_look = True
                elif not known and (
                    (kind == K_QUERY and not is_change(p, lead, at + available))
                    or (self.wants_removals and kind == K_QUERY and self.is_wanted_removal(p, at, lead, at + available))
                    or (self.wants_removals and kind != K_QUERY and p[at + HEADER_SIZE + LOAD_MODE_AT] == LOAD_REPLACES)
                    or names_mysql(p, lead, at + available)
                    or (schema == 5 and names_mysql(p, text - 6, text))
                ):
                    self.group_look = True
            if kind == K_QUERY:
                self.given = 0
            if statement == S_PART and (
                self.wants_statements or p[first_word(p, text, at + available, True)] | 32 == 114  # ROLLBACK TO
            ):
                self.group_look = True
        elif kind == K_MAP and t == TABLE_MAP_EVENT:
            if available < HEADER_SIZE + 14:
                self.group_look = True
            else:
                a = at + HEADER_SIZE + 9  # the schema's name, after post-header and length
                if (
                    p[a - 1] == 5
                    and p[a] == 109
                    and p[a + 1] == 121
                    and p[a + 2] == 115
                    and p[a + 3] == 113
                    and p[a + 4] == 108
                ):
                    self.group_look = True
                if self.wants_statements and self.is_wanted_map(p, at, available):
                    self.group_look = True
        elif kind == K_ROWS and available >= HEADER_SIZE + 8 and self.inference.ends_statement(p, at, t):
            self.mapped = -1  # the next event is another statement, even of the same table
        else:
            self.take_given(p, at, at + available, t)

    def write_group(self, p: Bytes, r: int, d: Writable, o: int) -> int:
        """Write the group that was measured; return where it ends in d."""
        trailer = CHECKSUM_SIZE if self.checksum else 0
        stop = self.group_stop
        at = r
        marker = INSIDE
        if self.inference.kind[self.group_head] == K_GTID:
            o = self.write_source_gtid(p, r, d, o)
            at += load32(p, r + EVENT_SIZE_AT)
        elif self.policy == VIEW_KEEP:
            self.pass_number()
            marker = START
        else:
            o = self.put_gtid(d, o, self.group_size, self.group_time, self.group_server)
        while at < stop:
            length = load32(p, at + EVENT_SIZE_AT)
            t = p[at + EVENT_TYPE_AT]
            if at + length == stop:
                marker = END if marker == INSIDE else SELF_CONTAINED
            head = self.write_head(p, at, length - trailer, length - trailer, t, d, o, marker)
            done = o + head
            if self.extra:
                rest = self.insert_at - head
                copy_bytes(d, done, p, at + head, rest)
                done = self.insert(d, done + rest, t)
                head += rest
            rest = length - trailer - head
            copy_bytes(d, done, p, at + head, rest)
            done += rest
            if self.out_checksum:
                store32(d, done, crc32_of(d, o, done, 0))
                done += CHECKSUM_SIZE
            self.position += done - o
            o = done
            at += length
            marker = INSIDE
        return o

    def out_trailer(self) -> int:
        """Return the bytes of checksum after an event of the view."""
        return CHECKSUM_SIZE if self.out_checksum else 0

    def write_source_gtid(self, p: Bytes, r: int, d: Writable, o: int) -> int:
        """Write the source's GTID event before the group that was measured; return where it ends in d.

        If numbers are assigned, an Anonymous_gtid becomes a Gtid with the view's uuid and next number. If the transaction has another
        length in the view, an event that contains the length gets the new one; the rest of it stays.
        """
        stop = r + load32(p, r + EVENT_SIZE_AT) - (CHECKSUM_SIZE if self.checksum else 0)
        length = stop - r
        told = -1
        if self.group_size != self.group_stop - r:
            told = told_length_at(p, r, stop)
        if told < 0:
            copy_bytes(d, o, p, r, length)
        else:
            behind = told + length_of_number(p[told])
            whole = self.group_size - (behind - told)
            count = count_with(whole)
            copy_bytes(d, o, p, r, told - r)
            put_number(d, o + told - r, whole + count, count)
            copy_bytes(d, o + told - r + count, p, behind, stop - behind)
            length += count - (behind - told)
        if self.has_waits and self.layout >= VIEW_CLOCK and length == HEADER_SIZE + GTID_SIZE:
            d[o + length] = 2  # 5.6 has no such numbers
            store64(d, o + length + 1, 0)
            store64(d, o + length + 9, 0)
            length += 17
        if self.policy == VIEW_ASSIGN and self.group_head == ANONYMOUS_GTID_EVENT:
            d[o + EVENT_TYPE_AT] = GTID_EVENT
            body = o + HEADER_SIZE
            for i in range(16):
                d[body + GTID_UUID_AT + i] = self.uuid[i]
            store64(d, body + GTID_NUMBER_AT, self.next_gno)
            self.next_gno += 1
        elif self.policy == VIEW_ASSIGN and self.group_head == GTID_EVENT and self.is_of_uuid(p, r):
            self.uuid_used = True
        size = length + self.out_trailer()
        self.place(d, o, size, START)
        self.follow_clock(d, o, length)
        if self.out_checksum:
            store32(d, o + length, crc32_of(d, o, o + length, 0))
        self.position += size
        return o + size

    def follow_clock(self, d: Writable, o: int, length: int) -> None:
        """Set the numbers of dependencies in the source's GTID event of `length` bytes at o: its own, or ours.

        After a group that became two the source's numbers are those of others: each group then waits for the one before it.
        """
        a = o + HEADER_SIZE + GTID_SIZE
        told = d[o + EVENT_TYPE_AT] != GTID_TAGGED_EVENT and length >= HEADER_SIZE + GTID_SIZE + 17 and d[a] == 2
        if self.has_waits:
            last = 0
            number = 0
            if told:
                last = signed64(load64(d, a + 1))
                number = signed64(load64(d, a + 9))
            last = self.waits.wait_of(self.sequence, told, last, number)
            if told:
                store64(d, a + 1, last)
                store64(d, a + 9, self.sequence)
        elif told:
            if self.renumbers:
                store64(d, a + 1, self.sequence - 1)
                store64(d, a + 9, self.sequence)
            else:
                self.sequence = load64(d, a + 9)
        self.sequence += 1

    def pass_number(self) -> None:
        """Count a group without a GTID event, which has the next number all the same."""
        if self.has_waits:
            self.waits.begin_serial(SERIAL_OTHER)
            self.waits.wait_of(self.sequence, False, 0, 0)
        self.sequence += 1

    def write_head(
        self, p: Bytes, at: int, available: int, length: int, t: int, d: Writable, o: int, marker: int
    ) -> int:
        """Write an event's header, and the changed bytes after it, up to `insert_at` at most: return how many bytes of the source's
        they replace. `length` is without a checksum. It calls `grow` for the event.
        """
        self.grow(p, at, available, t)
        count = HEADER_SIZE
        if self.extra:
            count += 8 if self.is_old_rows(t) else QUERY_POST
        copy_bytes(d, o, p, at, count)
        if self.inference.kind[t] == K_IGNORE:
            marker = IGNORE
        self.place(d, o, length + self.extra + self.out_trailer(), marker)
        if self.extra:
            if self.is_old_rows(t):
                d[o + EVENT_TYPE_AT] = t + 7
            else:
                variables = load16(p, at + HEADER_SIZE + QUERY_STATUS_LENGTH_AT) + 2
                d[o + HEADER_SIZE + QUERY_STATUS_LENGTH_AT] = variables & 255
                d[o + HEADER_SIZE + QUERY_STATUS_LENGTH_AT + 1] = variables >> 8
        return count

    def is_old_rows(self, t: int) -> bool:
        """Return whether an event is of version 1 of row events."""
        return WRITE_ROWS_V1_EVENT <= t <= DELETE_ROWS_V1_EVENT

    def insert(self, d: Writable, o: int, t: int) -> int:
        """Write the addition to an event of type t; return where it ends."""
        if self.is_old_rows(t):
            d[o] = 2  # the addition in the header of version 2: its length alone
            d[o + 1] = 0
        else:
            d[o] = VARIABLE_EXPLICIT_TIMESTAMPS
            d[o + 1] = self.explicit
        return o + 2

    def place(self, d: Writable, o: int, size: int, marker: int) -> None:
        """Write size, end_log_pos and marker into the header at o, for an event of `size` bytes at `position`."""
        store32(d, o + EVENT_SIZE_AT, size)
        store32(d, o + LOG_POS_AT, (self.position + size) & U32_MAX)
        flags = load16(d, o + FLAGS_AT)
        d[o + FLAGS_AT + 1] = ((flags & ~BOUNDARY_MASK) >> 8) | (marker << 2)

    def put_gtid(self, d: Writable, o: int, rest: int, timestamp: int, server_id: int) -> int:
        """Write a Gtid or Anonymous_gtid event before a group of `rest` bytes; return where it ends. See `gtid`."""
        trailer = self.out_trailer()
        size = HEADER_SIZE + GTID_SIZE + trailer
        if self.layout >= VIEW_CLOCK:
            size += 17
        count = 0
        if self.layout >= VIEW_TIMES:
            size += 7 + 4
            count = count_with(rest + size)
            size += count
        store32(d, o, timestamp)
        d[o + EVENT_TYPE_AT] = GTID_EVENT if self.policy == VIEW_ASSIGN else ANONYMOUS_GTID_EVENT
        store32(d, o + SERVER_ID_AT, server_id)
        d[o + FLAGS_AT] = 0
        d[o + FLAGS_AT + 1] = 0
        self.place(d, o, size, START)
        a = o + HEADER_SIZE
        d[a] = 1  # it may contain statements: always right, and 0 is not
        for i in range(16):
            d[a + GTID_UUID_AT + i] = self.uuid[i] if self.policy == VIEW_ASSIGN else 0
        store64(d, a + GTID_NUMBER_AT, self.next_gno if self.policy == VIEW_ASSIGN else 0)
        a += GTID_SIZE
        if self.layout >= VIEW_CLOCK:
            last = self.sequence - 1
            if self.has_waits:
                last = self.waits.wait_of(self.sequence, False, 0, 0)
            d[a] = 2
            store64(d, a + 1, last)
            store64(d, a + 9, self.sequence)
            a += 17
        if self.layout >= VIEW_TIMES:
            committed = timestamp * 1000000
            for i in range(7):
                d[a + i] = (committed >> (8 * i)) & 255
            a += 7
            put_number(d, a, rest + size, count)
            a += count
            store32(d, a, self.server_version)
            a += 4
        if trailer:
            store32(d, a, crc32_of(d, o, a, 0))
            a += CHECKSUM_SIZE
        self.position += size
        if self.policy == VIEW_ASSIGN:
            self.next_gno += 1
        self.sequence += 1
        return a

    def gtid(self, dst: Writable, at: int, rest: int, timestamp: int, server_id: int) -> int:
        """Put the GTID event of a group of `rest` bytes into dst[at:], by the policy and with the next number; return where it ends.
        `timestamp` is the commit's, in seconds. Raises IndexError if VIEW_LONGEST_GTID bytes have no room.
        """
        if at < 0 or at + VIEW_LONGEST_GTID > len(dst):
            raise IndexError(f"no room for a GTID event at {at} of {len(dst)} bytes")
        if cython.compiled:
            end = self.put_gtid(cython.address(dst[0]), at, rest, timestamp, server_id)
        else:
            end = self.put_gtid(memoryview(dst).cast("B"), at, rest, timestamp, server_id)
        return end

    # ---- groups that are larger than a buffer, and parts of groups ----

    def scan_begin(self) -> None:
        """Expect the first byte of a group, or of any event, in the next `scan`."""
        self.scan_first = True
        self.scan_ends = False
        self.event.begin(0, 0)
        self.insert_left = -1
        self.group_size = 0
        self.group_look = False
        self.group_damaged = False
        self.group_collides = False
        self.group_head = 0

    def scan(self, src: Bytes, start: int, stop: int, by_markers: bool) -> int:
        """Go over src[start:stop] as far as possible, which may be cut anywhere, and add up `group_size`.

        With `by_markers` return VIEW_GROUP where the group ends, VIEW_CUT after an event that cannot be part of it (`group_stop` is
        where that begins, perhaps before `start`); otherwise everything is read. VIEW_MORE: more bytes are needed from `consumed` on.
        BAD_LENGTH, BAD_CRC.
        """
        if start < 0 or stop < start or stop > len(src):
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(src)} bytes")
        if start == stop:
            self.consumed = start
            return VIEW_MORE
        if cython.compiled:
            with cython.nogil:
                status = self.scan_on(cython.address(src[0]), start, stop, by_markers)
        else:
            status = self.scan_on(memoryview(src).cast("B"), start, stop, by_markers)
        return status

    def scan_on(self, p: Bytes, r: int, stop: int, by_markers: bool) -> int:
        trailer = CHECKSUM_SIZE if self.checksum else 0
        status = VIEW_MORE
        while r < stop:
            if self.event.left == 0:
                available = self.begun_at(p, r, stop)
                if available <= 0:
                    status = VIEW_MORE if available == 0 else BAD_LENGTH
                    break
                length = load32(p, r + EVENT_SIZE_AT)
                boundary = (load16(p, r + FLAGS_AT) & BOUNDARY_MASK) >> BOUNDARY_SHIFT
                t = p[r + EVENT_TYPE_AT]
                self.scan_alien = not self.scan_first and boundary != INSIDE and boundary != END and boundary != IGNORE
                self.scan_size = length
                if self.scan_first:
                    self.begin_group(p, r, t)
                    self.scan_first = False
                self.judge(p, r, available, t)
                self.group_size += length - trailer + self.extra + self.out_trailer()
                self.group_time = load32(p, r)
                self.scan_ends = boundary == END or boundary == SELF_CONTAINED
                self.event.begin(length, trailer)
            r = self.event.take(p, r, stop)
            if self.event.left == 0:
                if not self.event.is_right():
                    self.bad_at = r
                    status = BAD_CRC
                    break
                if by_markers and self.scan_alien:
                    self.group_stop = r - self.scan_size
                    status = VIEW_CUT
                    break
                if by_markers and self.scan_ends:
                    self.group_stop = r
                    status = VIEW_GROUP
                    break
        self.consumed = r
        return status

    def begun_at(self, p: Bytes, r: int, stop: int) -> int:
        """Return how many bytes of the event that begins at r are there, without its checksum; 0: more bytes are needed; -1: the
        length is impossible.
        """
        if stop - r < HEADER_SIZE:
            return 0
        trailer = CHECKSUM_SIZE if self.checksum else 0
        length = load32(p, r + EVENT_SIZE_AT)
        if length < HEADER_SIZE + trailer or length > MAX_EVENT:
            self.bad_at = r
            return -1
        available = length - trailer
        if available > stop - r:
            available = stop - r
            if available < INFERENCE_HEAD:
                return 0
        return available

    def emit(self, src: Bytes, start: int, stop: int, dst: Writable, at: int, begins: bool, end: int) -> int:
        """Copy the events in src[start:stop] to dst[at:], as far as possible; the first bytes are an event's.

        `begins`: the first event is the group's first. `end` is where the group's last event ends, as an index of src; it may be
        after `stop`. Return VIEW_MORE, VIEW_ROOM, BAD_LENGTH or BAD_CRC.
        """
        if start < 0 or stop < start or stop > len(src) or at < 0 or at > len(dst):
            raise IndexError(f"ranges {start}:{stop} of {len(src)} and {at} of {len(dst)} bytes")
        if start == stop or len(dst) == 0:
            self.consumed = start
            self.produced = at
            return VIEW_MORE
        if cython.compiled:
            with cython.nogil:
                status = self.emit_on(
                    cython.address(src[0]), start, stop, cython.address(dst[0]), at, len(dst), begins, end
                )
        else:
            status = self.emit_on(
                memoryview(src).cast("B"), start, stop, memoryview(dst).cast("B"), at, len(dst), begins, end
            )
        return status

    def emit_on(self, p: Bytes, r: int, stop: int, d: Writable, o: int, room: int, begins: bool, end: int) -> int:
        trailer = CHECKSUM_SIZE if self.checksum else 0
        status = VIEW_MORE
        while r < stop:
            if self.event.left == 0:
                available = self.begun_at(p, r, stop)
                if available <= 0:
                    status = VIEW_MORE if available == 0 else BAD_LENGTH
                    break
                if room - o < VIEW_LONGEST_GTID:
                    status = VIEW_ROOM
                    break
                t = p[r + EVENT_TYPE_AT]
                length = load32(p, r + EVENT_SIZE_AT)
                marker = START if begins else INSIDE
                if r + length == end:
                    marker = SELF_CONTAINED if begins else END
                begins = False
                count = self.write_head(p, r, available, length - trailer, t, d, o, marker)
                self.event.begin(length, trailer)
                self.event.take(p, r, r + count)
                self.out_crc = crc32_of(d, o, o + count, 0)
                self.insert_left = self.insert_at - count if self.extra else -1
                self.insert_type = t
                self.position += count
                r += count
                o += count
            n = self.event.left - trailer
            if 0 <= self.insert_left < n:
                n = self.insert_left
            if n > stop - r:
                n = stop - r
            if n > room - o:
                n = room - o
            if n > 0:
                copy_bytes(d, o, p, r, n)
                self.out_crc = crc32_of(p, r, r + n, self.out_crc)
                r = self.event.take(p, r, r + n)
                o += n
                self.position += n
                if self.insert_left > 0:
                    self.insert_left -= n
            if self.insert_left == 0:
                if room - o < 2:
                    status = VIEW_ROOM
                    break
                count = self.insert(d, o, self.insert_type) - o
                self.out_crc = crc32_of(d, o, o + count, self.out_crc)
                self.position += count
                o += count
                self.insert_left = -1
            if self.event.left > trailer:
                if room == o:
                    status = VIEW_ROOM
                    break
                continue
            if trailer and room - o < CHECKSUM_SIZE:
                status = VIEW_ROOM
                break
            r = self.event.take_stored(p, r, stop)
            if self.event.left > 0:
                continue
            if not self.event.is_right():
                self.bad_at = r
                status = BAD_CRC
                break
            if self.out_checksum:
                store32(d, o, self.out_crc)
                o += CHECKSUM_SIZE
                self.position += CHECKSUM_SIZE
        self.consumed = r
        self.produced = o
        return status
