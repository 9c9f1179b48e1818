# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The hot path of a view: archived events of one file, in new places and with what a newer replica needs around them.

A group is one transaction. Its bounds are the markers in the archived flags. Groups that need no more than an envelope are
copied here: a GTID event in front, end_log_pos, markers and checksum of each event anew, row events of version 1 made version
2, and the status variable that says how TIMESTAMP columns are defined. Of others the caller is told where they are.

Every event's checksum is compared before a byte of its group is copied. `copy` takes what is whole in one buffer. A group that
is larger goes through `scan`, piece by piece, then through `emit`, which is given the same bytes again.
"""

from array import array

import cython

from protocol.kernel.inference import Inference

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.inference import has_prefix, kind_of_text
    from protocol.kernel.pure import (
        Bytes,
        Writable,
        copy_bytes,
        crc32_of,
        load16,
        load32,
        load64,
        native_setup,
        store32,
        store64,
    )

native_setup()


def is_group(kind: int) -> bool:
    """Whether a self-contained event of this kind is a transaction, and not a mark between two."""
    return (
        kind == K_QUERY
        or kind == K_QUERY_COMPRESSED
        or kind == K_EXECUTE_LOAD_QUERY
        or kind == K_LOAD_WHOLE
        or kind == K_LOAD_CLOSES
    )


def skip_lead(p: Bytes, at: int, end: int) -> int:
    """Where something else than blanks and comments stands; what stands in a comment for servers only is not looked into."""
    while at < end:
        c = p[at]
        if c == 32 or 9 <= c <= 13:
            at += 1
        elif c == 47 and at + 2 < end and p[at + 1] == 42 and p[at + 2] != 33 and p[at + 2] != 77:
            at += 2
            while at + 1 < end and not (p[at] == 42 and p[at + 1] == 47):
                at += 1
            at += 2
        else:
            break
    return at


def is_change(p: Bytes, at: int, end: int) -> bool:
    """Whether the statement in p[at:end] is a plain INSERT, REPLACE, UPDATE or DELETE, as its first word says.

    Blanks and comments before it are passed over; what stands in a comment for servers only is not looked into.
    """
    at = skip_lead(p, at, end)
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
    """Whether `mysql` stands in the first bytes of the text in p[at:end], in any case: it may be of accounts."""
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
    """Where something else than blanks and line ends stands."""
    while at < end and (p[at] == 32 or 9 <= p[at] <= 13):
        at += 1
    return at


def is_identifier(c: int) -> bool:
    """Whether a byte is of a name in ASCII that is not quoted."""
    return 97 <= c | 32 <= 122 or 48 <= c <= 57 or c == 95 or c == 36


def behind_word(p: Bytes, at: int, end: int, word: bytes, count: int) -> int:
    """Where what follows the word and blanks begins; -1: another word is there."""
    if not has_prefix(p, at, end, word, count):
        return -1
    at += count
    if at < end and (is_identifier(p[at]) or p[at] >= 128):
        return -1
    return skip_blanks(p, at, end)


def has_word(p: Bytes, at: int, end: int, word: bytes, count: int) -> bool:
    """Whether the letters stand anywhere in the text, in any case."""
    first = word[0]
    stop = end - count
    while at <= stop:
        if p[at] | 32 == first and has_prefix(p, at, end, word, count):
            return True
        at += 1
    return False


def simple_target(p: Bytes, at: int, end: int) -> int:
    """A number below VIEW_WATCHED for the table that the INSERT, REPLACE, UPDATE or DELETE in p[at:end] changes; -1: it may be
    about several tables, or its outcome may hang on the order of rows, or it is written in an uncommon way.

    FNV-1a over the last part of the table's name, in lower case.
    """
    at = skip_lead(p, at, end)
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
        # Behind something else the name was none: INSERT DELAYED INTO t.
        if p[at] != 40 and not (has_prefix(p, at, end, b"value", 5) or behind_word(p, at, end, b"set", 3) >= 0):
            return -1
    else:
        if updates:
            if behind_word(p, at, end, b"set", 3) < 0:
                return -1
        elif at < end and behind_word(p, at, end, b"where", 5) < 0:
            return -1
        if has_word(p, at, end, b"limit", 5) or has_word(p, at, end, b":=", 2):
            return -1
    return number & (VIEW_WATCHED - 1)


class ViewCopy:
    """One view's envelope; see the module's text. Not thread-safe; the calls with buffers release the GIL.

    policy: VIEW_KEEP, VIEW_ASSIGN or VIEW_ANONYMOUS. uuid: 16 bytes, of assigned GTIDs. look_at: 256 bytes by type code, 1: a
    group with such an event is not copied. layout: of the GTID events that are put in front, VIEW_BARE (5.6), VIEW_CLOCK (5.7)
    or VIEW_TIMES (8.0). explicit: value of the status variable 16 that Query events are given; -1: none. new_rows: whether row
    events of version 1 become version 2.

    wants_statements: every statement makes a group one that is not copied, but for plain ones as `watch` says.

    position: where the next byte goes in the view's file. next_gno, sequence: of the next group. renumbers: the source's own
    numbers of dependencies do not count any more in this file, because one of its groups became two. source_base: what src[0] is in
    the source's file. Behind a call: consumed, produced: how far src and dst were used. group_stop: where the group at
    `consumed` ends in src, with VIEW_LOOK, VIEW_CONTROL and VIEW_CUT. bad_at: index of the wrong event, with BAD_LENGTH, BAD_CRC.
    """

    def __init__(self, policy: int, uuid: bytes, look_at: bytes, layout: int, explicit: int, new_rows: bool) -> None:
        if not cython.compiled:
            self.uuid = bytearray(16)
            self.look = bytearray(256)
            self.watched = bytearray(VIEW_WATCHED)
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
        self.watches = False
        self.statements = 0
        self.watched_there = False
        self.inference = Inference()
        self.checksum = self.out_checksum = 0
        self.server_version = 0
        self.position = FIRST_EVENT
        self.next_gno = 1
        self.sequence = 1
        self.renumbers = False
        self.source_base = 0
        self.consumed = self.produced = self.group_stop = self.bad_at = 0
        self.group_size = 0
        self.group_look = False
        self.group_head = 0
        self.group_time = 0
        self.group_server = 0
        self.extra = self.insert_at = 0
        self.event_left = 0
        self.crc = self.out_crc = self.stored = 0
        self.scan_first = True
        self.scan_ends = False
        self.scan_alien = False
        self.scan_size = 0
        self.marks = memoryview(array("q"))
        self.mark_count = self.mark_room = 0
        self.mark_gap = 0
        self.mark_last = -1

    def begin_file(self, post_lengths: bytes, checksum: int, out_checksum: int, server_version: int) -> None:
        """The next bytes are of a file with these post-header lengths (256 bytes, by type code).

        checksum: 0 none, 1 CRC32; out_checksum: of the view's file. server_version: as 50624, said in GTID events.
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
        self.event_left = 0
        self.mark_last = -1

    def watch(self, table: bytes | None) -> None:
        """Where statements are wanted, which of them: VIEW_WATCHED bytes, by the number that `simple_target` gives for the name
        of a table; 1: of transactions with more than one statement, 2: all. None: every statement."""
        self.watches = table is not None
        if table is not None:
            if len(table) != VIEW_WATCHED:
                raise ValueError(f"a table of {VIEW_WATCHED} is needed")
            for i in range(VIEW_WATCHED):
                self.watched[i] = table[i]

    def set_marks(self, marks: "array[int]", gap: int) -> None:
        """Rows of VIEW_MARK numbers go into the array('q'), one before a group where the last is `gap` bytes away:
        source offset, view offset, next number, sequence. A full array ends `copy` with VIEW_ROOM. See `take_marks`."""
        self.marks = memoryview(marks)
        self.mark_room = len(marks) // VIEW_MARK
        self.mark_gap = gap

    def clock(self) -> int:
        """`sequence` and `renumbers` as one number, for a mark; see `set_clock`."""
        return self.sequence | (VIEW_RENUMBERS if self.renumbers else 0)

    def set_clock(self, clock: int) -> None:
        """Goes on with the numbers of `clock()`."""
        self.sequence = clock & ~VIEW_RENUMBERS
        self.renumbers = (clock & VIEW_RENUMBERS) != 0

    def take_marks(self) -> int:
        """How many rows there are; the next goes to the array's start again."""
        count = self.mark_count
        self.mark_count = 0
        return count

    # ---- groups that are whole in a buffer ----

    def copy(self, src: Bytes, start: int, stop: int, dst: Writable, at: int) -> int:
        """Copies the plain groups in src[start:stop] to dst[at:], until something else is there. Returns why it ended.

        VIEW_MORE: the group at `consumed` goes on behind `stop`. VIEW_ROOM: it has no room in dst. VIEW_LOOK: it is not for
        here. VIEW_CONTROL: what is there stands between groups, one event. VIEW_CUT: it has no end; another begins at
        `group_stop`. VIEW_STRAY: an event from the middle of a group. BAD_LENGTH, BAD_CRC. Raises IndexError for a bad range.
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
        """False: there is no room for it."""
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

    def measure(self, p: Bytes, r: int, stop: int) -> int:
        """Looks at the group at r: its end, size in the view, whether it is plain."""
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
                first = False
            self.judge(p, at, length - trailer, t)
            self.group_size += length - trailer + self.extra + self.out_trailer()
            at += length
            if boundary == END or boundary == SELF_CONTAINED:
                self.group_time = load32(p, at - length)
                self.group_stop = at
                return VIEW_GROUP

    def begin_group(self, p: Bytes, at: int, t: int) -> None:
        """The event at `at` is the first of a group."""
        self.group_head = t
        self.group_server = load32(p, at + SERVER_ID_AT)
        # Before 5.1.4x changes of rows came without BEGIN: a replica would not commit them.
        kind = self.inference.kind[t]
        self.group_look = kind == K_MAP or kind == K_ROWS or (self.renumbers and t == GTID_TAGGED_EVENT)
        self.statements = 0
        self.watched_there = False

    def is_wanted(self, p: Bytes, at: int, text: int, end: int) -> bool:
        """Whether a rule must see the group for its statement in p[text:end], of the event at `at`."""
        trailer = CHECKSUM_SIZE if self.checksum else 0
        if not self.watches or load32(p, at + EVENT_SIZE_AT) - trailer > end - at:
            return True
        target = simple_target(p, text, end)
        if target < 0 or self.watched[target] & 2:
            return True
        self.statements += 1
        if self.watched[target]:
            self.watched_there = True
        return self.watched_there and self.statements > 1

    def judge(self, p: Bytes, at: int, available: int, t: int) -> None:
        """What the event at `at` is given, of which `available` bytes are there without its checksum: `extra` bytes at
        `insert_at`. Notes in `group_look` what is no plain event."""
        self.extra = 0
        self.insert_at = 0
        if self.look[t]:
            self.group_look = True
        kind = self.inference.kind[t]
        if kind == K_QUERY or kind == K_EXECUTE_LOAD_QUERY:
            text = self.inference.query_text(p, at, at + available, t)
            if text < 0 or self.inference.post_length[QUERY_EVENT] < QUERY_POST:
                self.group_look = True
                return
            statement = S_OTHER
            if kind == K_QUERY:
                statement = kind_of_text(p, text, at + available)
            if statement == S_ROLLBACK or load16(p, at + HEADER_SIZE + QUERY_ERROR_AT) != 0:
                self.group_look = True
            if statement == S_OTHER:
                schema = p[at + HEADER_SIZE + QUERY_SCHEMA_LENGTH_AT]
                if (
                    (self.wants_statements and (kind != K_QUERY or self.is_wanted(p, at, text, at + available)))
                    or (kind == K_QUERY and not is_change(p, text, at + available))
                    or names_mysql(p, text, at + available)
                    or (schema == 5 and names_mysql(p, text - 6, text))
                ):
                    self.group_look = True
                if self.explicit >= 0:
                    self.extra = 2
                    self.insert_at = HEADER_SIZE + QUERY_POST
                    if kind == K_EXECUTE_LOAD_QUERY:
                        self.insert_at = HEADER_SIZE + EXECUTE_LOAD_QUERY_POST
            elif statement == S_PART and (self.wants_statements or p[text] | 32 == 114):  # ROLLBACK TO
                self.group_look = True
        elif self.new_rows and WRITE_ROWS_V1_EVENT <= t <= DELETE_ROWS_V1_EVENT:
            if self.inference.post_length[t] != 8 or available < HEADER_SIZE + 8:
                self.group_look = True
            else:
                self.extra = 2
                self.insert_at = HEADER_SIZE + 8
        elif kind == K_MAP and t == TABLE_MAP_EVENT:
            if available < HEADER_SIZE + 14:
                self.group_look = True
            else:
                a = at + HEADER_SIZE + 9  # the schema's name, behind post-header and length
                if (
                    p[a - 1] == 5
                    and p[a] == 109
                    and p[a + 1] == 121
                    and p[a + 2] == 115
                    and p[a + 3] == 113
                    and p[a + 4] == 108
                ):
                    self.group_look = True

    def write_group(self, p: Bytes, r: int, d: Writable, o: int) -> int:
        """The group that was measured; returns where it ends in d."""
        trailer = CHECKSUM_SIZE if self.checksum else 0
        stop = self.group_stop
        at = r
        marker = INSIDE
        if self.begins_with_gtid():
            marker = START
            if self.patches_gtid():
                o = self.write_patched(p, r, d, o)
                at += load32(p, r + EVENT_SIZE_AT)
                marker = INSIDE
            elif self.inference.kind[self.group_head] != K_GTID:
                self.sequence += 1
        else:
            o = self.put_gtid(d, o, self.group_size, self.group_time, self.group_server)
        while at < stop:
            length = load32(p, at + EVENT_SIZE_AT)
            t = p[at + EVENT_TYPE_AT]
            if at + length == stop:
                marker = END if marker == INSIDE else SELF_CONTAINED
            size = self.write_head(p, at, length - trailer, length - trailer, t, d, o, marker)
            done = o + size
            rest = length - trailer - self.insert_at
            if self.extra == 0:
                rest = length - trailer - HEADER_SIZE
            copy_bytes(d, done, p, at + length - trailer - rest, rest)
            done += rest
            if at == r and self.inference.kind[t] == K_GTID:
                self.follow_clock(d, o, done - o)
            if self.out_checksum:
                store32(d, done, crc32_of(d, o, done, 0))
                done += CHECKSUM_SIZE
            self.position += done - o
            o = done
            at += length
            marker = INSIDE
        return o

    def out_trailer(self) -> int:
        """Bytes of checksum behind an event of the view."""
        return CHECKSUM_SIZE if self.out_checksum else 0

    def begins_with_gtid(self) -> bool:
        """Whether nothing is put in front of the group that was measured."""
        return self.policy == VIEW_KEEP or self.inference.kind[self.group_head] == K_GTID

    def patches_gtid(self) -> bool:
        """Whether its first event is an Anonymous_gtid that becomes a GTID."""
        return self.policy == VIEW_ASSIGN and self.group_head == ANONYMOUS_GTID_EVENT

    def write_patched(self, p: Bytes, r: int, d: Writable, o: int) -> int:
        """The source's Anonymous_gtid as a Gtid with the view's uuid and next number; the rest of it stays."""
        length = load32(p, r + EVENT_SIZE_AT) - (CHECKSUM_SIZE if self.checksum else 0)
        size = length + self.out_trailer()
        copy_bytes(d, o, p, r, length)
        d[o + EVENT_TYPE_AT] = GTID_EVENT
        self.place(d, o, size, START)
        body = o + HEADER_SIZE
        for i in range(16):
            d[body + GTID_UUID_AT + i] = self.uuid[i]
        store64(d, body + GTID_NUMBER_AT, self.next_gno)
        self.next_gno += 1
        self.follow_clock(d, o, length)
        if self.out_checksum:
            store32(d, o + length, crc32_of(d, o, o + length, 0))
        self.position += size
        return o + size

    def follow_clock(self, d: Writable, o: int, length: int) -> None:
        """The source's GTID event of `length` bytes at o: its numbers of dependencies, or ours in their place.

        Where a group became two the source's numbers behind it are those of others: each then waits for the one before it.
        """
        a = o + HEADER_SIZE + GTID_SIZE
        if d[o + EVENT_TYPE_AT] != GTID_TAGGED_EVENT and length >= HEADER_SIZE + GTID_SIZE + 17 and d[a] == 2:
            if self.renumbers:
                store64(d, a + 1, self.sequence - 1)
                store64(d, a + 9, self.sequence)
            else:
                self.sequence = load64(d, a + 9)
        self.sequence += 1

    def write_head(
        self, p: Bytes, at: int, available: int, length: int, t: int, d: Writable, o: int, marker: int
    ) -> int:
        """An event's header, and what is in front of `insert_at` with what is inserted; returns how many bytes. length: without
        a checksum."""
        self.judge(p, at, available, t)
        count = self.insert_at if self.extra else HEADER_SIZE
        copy_bytes(d, o, p, at, count)
        if self.inference.kind[t] == K_IGNORE:
            marker = IGNORE
        self.place(d, o, length + self.extra + self.out_trailer(), marker)
        if self.extra == 0:
            return count
        if WRITE_ROWS_V1_EVENT <= t <= DELETE_ROWS_V1_EVENT:
            d[o + EVENT_TYPE_AT] = t + 7
            d[o + count] = 2  # what is more in the header of version 2: its length alone
            d[o + count + 1] = 0
        else:
            at_length = o + HEADER_SIZE + QUERY_STATUS_LENGTH_AT
            variables = load16(p, at + HEADER_SIZE + QUERY_STATUS_LENGTH_AT) + 2
            d[at_length] = variables & 255
            d[at_length + 1] = variables >> 8
            # In front: where the source says it itself, that is read last and counts.
            d[o + count] = QUERY_EXPLICIT_TIMESTAMPS
            d[o + count + 1] = self.explicit
        return count + 2

    def place(self, d: Writable, o: int, size: int, marker: int) -> None:
        """Size, end_log_pos and marker of the header at o, for an event of `size` bytes at `position`."""
        store32(d, o + EVENT_SIZE_AT, size)
        store32(d, o + LOG_POS_AT, (self.position + size) & U32_MAX)
        flags = load16(d, o + FLAGS_AT)
        d[o + FLAGS_AT + 1] = ((flags & ~BOUNDARY_MASK) >> 8) | (marker << 2)

    def put_gtid(self, d: Writable, o: int, rest: int, timestamp: int, server_id: int) -> int:
        """A Gtid or Anonymous_gtid event in front of a group of `rest` bytes; returns where it ends. See `gtid`."""
        trailer = self.out_trailer()
        size = HEADER_SIZE + GTID_SIZE + trailer
        if self.layout >= VIEW_CLOCK:
            size += 17
        count = 0
        if self.layout >= VIEW_TIMES:
            size += 7 + 4
            count = 1
            if rest + size + count > 250:
                count = 3
            if rest + size + count > 0xFFFF:
                count = 4
            if rest + size + count > 0xFFFFFF:
                count = 9
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
            d[a] = 2
            store64(d, a + 1, self.sequence - 1)
            store64(d, a + 9, self.sequence)
            a += 17
        if self.layout >= VIEW_TIMES:
            committed = timestamp * 1000000
            for i in range(7):
                d[a + i] = (committed >> (8 * i)) & 255
            a += 7
            whole = rest + size
            if count == 1:
                d[a] = whole
            else:
                d[a] = 252 if count == 3 else (253 if count == 4 else 254)
                for i in range(count - 1):
                    d[a + 1 + i] = (whole >> (8 * i)) & 255
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
        """Puts the GTID event of a group of `rest` bytes into dst[at:], by the policy and with the next number; returns where
        it ends. timestamp: of the commit, seconds. Raises IndexError where VIEW_LONGEST_GTID bytes have no room."""
        if at < 0 or at + VIEW_LONGEST_GTID > len(dst):
            raise IndexError(f"no room for a GTID event at {at} of {len(dst)} bytes")
        if cython.compiled:
            end = self.put_gtid(cython.address(dst[0]), at, rest, timestamp, server_id)
        else:
            end = self.put_gtid(memoryview(dst).cast("B"), at, rest, timestamp, server_id)
        return end

    # ---- groups that are larger than a buffer, and parts of groups ----

    def scan_begin(self) -> None:
        """The next `scan` begins at a group's, or any event's, first byte."""
        self.scan_first = True
        self.scan_ends = False
        self.event_left = 0
        self.group_size = 0
        self.group_look = False
        self.group_head = 0

    def scan(self, src: Bytes, start: int, stop: int, by_markers: bool) -> int:
        """Goes over src[start:stop] as far as it can, which may be cut anywhere. Adds up `group_size`.

        by_markers: returns VIEW_GROUP where the group ends, VIEW_CUT behind an event that cannot be of it (`group_stop`: where
        that begins, it may be before `start`); else everything is looked at. VIEW_MORE: `consumed` says from where on it wants
        to see more. BAD_LENGTH, BAD_CRC.
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
            if self.event_left == 0:
                if stop - r < HEADER_SIZE:
                    break
                length = load32(p, r + EVENT_SIZE_AT)
                if length < HEADER_SIZE + trailer or length > MAX_EVENT:
                    self.bad_at = r
                    status = BAD_LENGTH
                    break
                boundary = (load16(p, r + FLAGS_AT) & BOUNDARY_MASK) >> BOUNDARY_SHIFT
                if by_markers and not self.scan_first and boundary != INSIDE and boundary != END and boundary != IGNORE:
                    self.group_stop = r
                    status = VIEW_CUT
                    break
                available = length - trailer
                if stop - r < length and available > stop - r:
                    available = stop - r
                    if available < INFERENCE_HEAD:
                        break
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
                self.event_left = length
                self.crc = 0
                self.stored = 0
            r = self.pass_bytes(p, r, stop)
            if self.event_left == 0:
                if trailer and self.crc != self.stored:
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

    def pass_bytes(self, p: Bytes, r: int, stop: int) -> int:
        """Of the event that goes on at r, for its checksum; returns how far."""
        trailer = CHECKSUM_SIZE if self.checksum else 0
        n = stop - r
        if n > self.event_left - trailer:
            n = self.event_left - trailer
        if n > 0:
            if trailer:
                self.crc = crc32_of(p, r, r + n, self.crc)
            r += n
            self.event_left -= n
        while trailer and r < stop and 0 < self.event_left <= CHECKSUM_SIZE:
            self.stored = self.stored | (p[r] << (8 * (CHECKSUM_SIZE - self.event_left)))
            r += 1
            self.event_left -= 1
        return r

    def emit(self, src: Bytes, start: int, stop: int, dst: Writable, at: int, begins: bool, end: int) -> int:
        """Copies the events in src[start:stop] to dst[at:], as far as it can; the first bytes are an event's.

        begins: the first event is the group's first. end: where the group's last event ends, as an index of src; it may be
        behind `stop`. Returns VIEW_MORE, VIEW_ROOM, BAD_LENGTH or BAD_CRC.
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
            if self.event_left == 0:
                if stop - r < HEADER_SIZE:
                    break
                length = load32(p, r + EVENT_SIZE_AT)
                if length < HEADER_SIZE + trailer or length > MAX_EVENT:
                    self.bad_at = r
                    status = BAD_LENGTH
                    break
                available = length - trailer
                if stop - r < length and available > stop - r:
                    available = stop - r
                    if available < INFERENCE_HEAD:
                        break
                if room - o < VIEW_LONGEST_GTID:
                    status = VIEW_ROOM
                    break
                t = p[r + EVENT_TYPE_AT]
                marker = START if begins else INSIDE
                if r + length == end:
                    marker = SELF_CONTAINED if begins else END
                begins = False
                count = self.write_head(p, r, available, length - trailer, t, d, o, marker)
                used = self.insert_at if self.extra else HEADER_SIZE
                self.crc = crc32_of(p, r, r + used, 0)
                self.out_crc = crc32_of(d, o, o + count, 0)
                self.stored = 0
                self.event_left = length - used
                self.position += count
                r += used
                o += count
            n = self.event_left - trailer
            if n > stop - r:
                n = stop - r
            if n > room - o:
                n = room - o
            if n > 0:
                copy_bytes(d, o, p, r, n)
                self.out_crc = crc32_of(p, r, r + n, self.out_crc)
                if trailer:
                    self.crc = crc32_of(p, r, r + n, self.crc)
                r += n
                o += n
                self.position += n
                self.event_left -= n
            if self.event_left > trailer:
                if room == o:
                    status = VIEW_ROOM
                    break
                continue
            if trailer and room - o < CHECKSUM_SIZE:
                status = VIEW_ROOM
                break
            while r < stop and self.event_left > 0:
                self.stored = self.stored | (p[r] << (8 * (CHECKSUM_SIZE - self.event_left)))
                r += 1
                self.event_left -= 1
            if self.event_left > 0:
                continue
            if trailer and self.crc != self.stored:
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
