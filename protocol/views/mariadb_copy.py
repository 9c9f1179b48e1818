# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The hot path of a view of a MariaDB source: transactions of rows alone, as MySQL writes them.

A group is plain if it has a Gtid that follows the last one of its domain, then Annotate_rows, Table_map events that are known, rows
of version 1 that are not compressed, and Xid or COMMIT. It becomes: a Gtid event with the domain's uuid, BEGIN, Rows_query, the
replaced Table_map events, rows of version 2, and its end. For everything else the caller gets its place.

Every event's checksum is compared before a byte of its group is copied.
"""

import cython

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.inference import first_word, has_prefix
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
    from protocol.views.packed_numbers import count_with, put_number

    DOMAINS = 1024
    MAPS = 1024
    MAP_BYTES = 262144
    MAP_HEAD = 12
    NEEDS_LOOK = 0xFFFFFFFF

native_setup()


class MariadbCopy:
    """The copy of one file; see the module's text. Not thread-safe; `copy` releases the GIL.

    `checksum` and `out_checksum` are those of the source's and the view's events: 0 none, 1 CRC32. `server_version` is a number such
    as 101119, for GTID events.

    `position` is where the next byte goes in the view's file, `sequence` the next group's. `commit_id` and `back` are of the previous
    group: the groups that were committed with it, and how many of those there are so far; `back` 0: it was committed alone.
    `source_base` is the place of src[0] in the source's file. Before a group at or after `mark_at` of the source's file `copy` ends.

    After a call, `consumed` and `produced` are the used lengths of src and dst, and [`wanted`, `wanted_stop`) is the body of an
    unknown Table_map in src.
    """

    def __init__(self, checksum: int, out_checksum: int, server_version: int) -> None:
        if not cython.compiled:
            self.domains = [0] * DOMAINS
            self.following = [0] * DOMAINS
            self.uuids = bytearray(16 * DOMAINS)
            self.maps = [0] * MAPS
            self.arena = bytearray(MAP_BYTES)
        self.checksum = checksum
        self.out_checksum = out_checksum
        self.server_version = server_version
        self.position = FIRST_EVENT
        self.sequence = 1
        self.commit_id = 0
        self.back = 0
        self.source_base = 0
        self.mark_at = 0
        self.consumed = self.produced = 0
        self.wanted = self.wanted_stop = 0
        self.domain_count = 0
        self.domain = 0
        self.number = 0
        self.has_commit_id = False
        self.group_commit_id = 0
        self.group_stop = self.group_size = 0
        self.group_time = 0
        self.made_at = self.made_length = 0
        self.map_count = 0
        self.arena_end = 0
        self.forget_maps()

    def forget_domains(self) -> None:
        """Forget the uuids of all domains."""
        self.domain_count = 0

    def add_domain(self, domain: int, uuid: bytes, following: int) -> bool:
        """Give groups of `domain` from number `following` on GTIDs of `uuid`, 16 bytes. False: no room."""
        text = uuid
        if len(text) != 16:
            raise ValueError("a uuid of 16 bytes is needed")
        if self.domain_count >= DOMAINS:
            return False
        for i in range(16):
            self.uuids[16 * self.domain_count + i] = text[i]
        self.domains[self.domain_count] = domain
        self.following[self.domain_count] = following
        self.domain_count += 1
        return True

    def following_of(self, index: int) -> int:
        """Return the next number of the domain that was added as number `index`, from 0."""
        if index < 0 or index >= self.domain_count:
            raise IndexError(f"domain {index} of {self.domain_count}")
        return self.following[index]

    def forget_maps(self) -> None:
        """Forget all Table_maps."""
        for i in range(MAPS):
            self.maps[i] = 0
        self.map_count = 0
        self.arena_end = 0

    def add_map(self, body: bytes, made: bytes | None) -> bool:
        """Add the replacement of a Table_map with this body, both without the table's id; None: a group with it is not copied here.

        False: it is too long.
        """
        text = body
        result = b"" if made is None else made
        length = len(text)
        size = MAP_HEAD + length + len(result)
        if size > MAP_BYTES // 4:
            return False
        if self.map_count >= MAPS // 2 or self.arena_end + size > MAP_BYTES:
            self.forget_maps()
        at = self.arena_end
        hashed = 2166136261
        for i in range(length):
            hashed = ((hashed ^ text[i]) * 16777619) & U32_MAX
            self.arena[at + MAP_HEAD + i] = text[i]
        for i in range(len(result)):
            self.arena[at + MAP_HEAD + length + i] = result[i]
        store32(self.arena, at, hashed)
        store32(self.arena, at + 4, length)
        store32(self.arena, at + 8, NEEDS_LOOK if made is None else len(result))
        slot = hashed & (MAPS - 1)
        while self.maps[slot] != 0:
            slot = (slot + 1) & (MAPS - 1)
        self.maps[slot] = at + 1
        self.map_count += 1
        self.arena_end = at + size
        return True

    def copy(self, src: Bytes, start: int, stop: int, dst: Writable, at: int) -> int:
        """Copy the plain groups in src[start:stop] to dst[at:], up to the first other event. Return why it ended.

        VIEW_MORE: the group at `consumed` continues after `stop`. VIEW_ROOM: it has no room in dst. VIEW_LOOK: it is not for here, or
        no group. VIEW_PLAN: `add_map` must be called for the Table_map at `wanted`; wanted -1: `mark_at` is reached. Raises
        IndexError for a bad range.
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
            if self.source_base + r >= self.mark_at:
                self.wanted = -1
                status = VIEW_PLAN
                break
            status = self.measure(p, r, stop)
            if status != VIEW_GROUP:
                break
            if o + self.group_size + VIEW_LONGEST_GTID > room:
                status = VIEW_ROOM
                break
            o = self.write_group(p, r, d, o)
            r = self.group_stop
        self.consumed = r
        self.produced = o
        return status

    def measure(self, p: Bytes, r: int, stop: int) -> int:
        """Measure the group at r: its end, its size in the view without its GTID event, and whether it is plain."""
        trailer = CHECKSUM_SIZE if self.checksum else 0
        out_trailer = CHECKSUM_SIZE if self.out_checksum else 0
        at = r
        self.group_size = HEADER_SIZE + QUERY_POST + 6 + out_trailer  # BEGIN
        self.may_replace = False
        while True:
            if stop - at < HEADER_SIZE:
                return VIEW_MORE
            length = load32(p, at + EVENT_SIZE_AT)
            if length < HEADER_SIZE + trailer or length > MAX_EVENT:
                return VIEW_LOOK
            if length > stop - at:
                return VIEW_MORE
            end = at + length - trailer
            boundary = (load16(p, at + FLAGS_AT) & BOUNDARY_MASK) >> BOUNDARY_SHIFT
            t = p[at + EVENT_TYPE_AT]
            if at == r:
                if boundary != START or t != MARIADB_GTID_EVENT or not self.read_head(p, at + HEADER_SIZE, end):
                    return VIEW_LOOK
            elif boundary != INSIDE and boundary != END:
                return VIEW_LOOK
            if trailer and crc32_of(p, at, end, 0) != load32(p, end):
                return VIEW_LOOK
            if at != r:
                made = self.made_bytes(p, at, end, t, boundary)
                if made == -2:
                    self.wanted = at + HEADER_SIZE
                    self.wanted_stop = end
                    return VIEW_PLAN
                if made < 0:
                    return VIEW_LOOK
                self.group_size += made + out_trailer
            at += length
            if boundary == END:
                self.group_time = load32(p, at - length)
                self.group_stop = at
                return VIEW_GROUP

    def read_head(self, p: Bytes, a: int, end: int) -> bool:
        """Return whether the Gtid event with its body in p[a:end] is of a plain group, and the next of its domain."""
        if end < a + MARIADB_GTID_SIZE:
            return False
        flags = p[a + MARIADB_GTID_FLAGS_AT]
        if flags & (1 | 0x20 | 0x40 | 0x80):  # a statement alone, a definition, XA
            return False
        behind = a + MARIADB_GTID_SIZE
        self.has_commit_id = (flags & 2) != 0
        if self.has_commit_id:
            if end < behind + 8:
                return False
            self.group_commit_id = load64(p, behind)
            behind += 8
        if behind < end and p[behind] & 0xEE:  # an ALTER TABLE in two phases, or an unknown flag
            return False
        domain = load32(p, a + MARIADB_GTID_DOMAIN_AT)
        self.number = load64(p, a)
        for i in range(self.domain_count):
            if self.domains[i] == domain:
                self.domain = i
                return self.following[i] == self.number
        return False

    def made_bytes(self, p: Bytes, at: int, end: int, t: int, boundary: int) -> int:
        """Return the bytes of the replacement of the event in p[at:end], without a checksum; -1: it is not in plain groups; -2: its
        table is not known.
        """
        size = end - at
        if t == ANNOTATE_ROWS_EVENT:
            start = first_word(p, at + HEADER_SIZE, end, False)
            self.may_replace = not (
                has_prefix(p, start, end, b"insert", 6)
                or has_prefix(p, start, end, b"update", 6)
                or has_prefix(p, start, end, b"delete", 6)
            )
            return size + 1 if boundary == INSIDE else -1
        if t == TABLE_MAP_EVENT:
            if boundary != INSIDE or size < HEADER_SIZE + 6:
                return -1
            if not self.find_map(p, at + HEADER_SIZE + 6, end):
                return -2
            return HEADER_SIZE + 6 + self.made_length if self.made_length >= 0 else -1
        if WRITE_ROWS_V1_EVENT <= t <= DELETE_ROWS_V1_EVENT:
            if t == UPDATE_ROWS_V1_EVENT and self.may_replace and not self.is_whole_behind(p, at + HEADER_SIZE, end):
                return -1
            return size + 2 if boundary == INSIDE and size >= HEADER_SIZE + 8 else -1
        if t == XID_EVENT:
            return size if boundary == END else -1
        if t == QUERY_EVENT and boundary == END:
            return HEADER_SIZE + QUERY_POST + 7 if self.is_commit(p, at + HEADER_SIZE, end) else -1
        return -1

    def is_whole_behind(self, p: Bytes, a: int, end: int) -> bool:
        """Return whether the rows after the change, of the event with its body in p[a:end], have all columns."""
        if end < a + 9 or p[a + 8] > 250:
            return False
        columns = p[a + 8]
        width = (columns + 7) // 8
        at = a + 9 + width
        if end < at + width:
            return False
        for i in range(columns):
            if not p[at + i // 8] >> (i & 7) & 1:
                return False
        return True

    def is_commit(self, p: Bytes, a: int, end: int) -> bool:
        """Return whether the Query with its body in p[a:end] is COMMIT, without an error."""
        if end < a + QUERY_POST + 7 or load16(p, a + QUERY_ERROR_AT) != 0:
            return False
        text = a + QUERY_POST + load16(p, a + QUERY_STATUS_LENGTH_AT) + p[a + QUERY_SCHEMA_LENGTH_AT] + 1
        if text + 6 != end:
            return False
        return (
            p[text] == 67
            and p[text + 1] == 79
            and p[text + 2] == 77
            and p[text + 3] == 77
            and (p[text + 4] == 73 and p[text + 5] == 84)
        )

    def find_map(self, p: Bytes, start: int, end: int) -> bool:
        """Return whether the Table_map with p[start:end] after its table's id is known; then its replacement is at `made_at`,
        `made_length` bytes, -1: the group is not copied here.
        """
        hashed = 2166136261
        for i in range(start, end):
            hashed = ((hashed ^ p[i]) * 16777619) & U32_MAX
        slot = hashed & (MAPS - 1)
        while self.maps[slot] != 0:
            entry = self.maps[slot] - 1
            if load32(self.arena, entry) == hashed and load32(self.arena, entry + 4) == end - start:
                i = 0
                while i < end - start and self.arena[entry + MAP_HEAD + i] == p[start + i]:
                    i += 1
                if i == end - start:
                    self.made_at = entry + MAP_HEAD + i
                    made = load32(self.arena, entry + 8)
                    self.made_length = -1 if made == NEEDS_LOOK else made
                    return True
            slot = (slot + 1) & (MAPS - 1)
        return False

    # ---- writing ----

    def write_group(self, p: Bytes, r: int, d: Writable, o: int) -> int:
        """Write the group that was measured; return where it ends in d."""
        trailer = CHECKSUM_SIZE if self.checksum else 0
        length = load32(p, r + EVENT_SIZE_AT)
        server = load32(p, r + SERVER_ID_AT)
        o = self.put_gtid(d, o, server)
        o = self.put_begin(d, o, load32(p, r), server)
        at = r + length
        while at < self.group_stop:
            length = load32(p, at + EVENT_SIZE_AT)
            o = self.put_event(p, at, at + length - trailer, d, o, END if at + length == self.group_stop else INSIDE)
            at += length
        self.following[self.domain] = self.number + 1
        self.sequence += 1
        return o

    def put_gtid(self, d: Writable, o: int, server: int) -> int:
        """Write the GTID event of the group; return where it ends in d."""
        if not self.has_commit_id:
            self.commit_id = 0
            self.back = 0
        elif self.back == 0 or self.group_commit_id != self.commit_id:
            self.commit_id = self.group_commit_id
            self.back = 0
        last = self.sequence - 1 - self.back
        if last < 0:
            last = 0
        if self.has_commit_id:
            self.back += 1
        size = HEADER_SIZE + GTID_SIZE + 17 + 7 + 4 + (CHECKSUM_SIZE if self.out_checksum else 0)
        count = count_with(self.group_size + size)
        size += count
        store32(d, o, self.group_time)
        d[o + EVENT_TYPE_AT] = GTID_EVENT
        store32(d, o + SERVER_ID_AT, server)
        a = o + HEADER_SIZE
        d[a] = 1  # it may contain statements: always right, and 0 is not
        for i in range(16):
            d[a + GTID_UUID_AT + i] = self.uuids[16 * self.domain + i]
        store64(d, a + GTID_NUMBER_AT, self.number)
        a += GTID_SIZE
        d[a] = 2
        store64(d, a + 1, last)
        store64(d, a + 9, self.sequence)
        a += 17
        committed = self.group_time * 1000000
        for i in range(7):
            d[a + i] = (committed >> (8 * i)) & 255
        a += 7
        put_number(d, a, self.group_size + size, count)
        store32(d, a + count, self.server_version)
        return self.close(d, o, a + count + 4, 0, START)

    def put_begin(self, d: Writable, o: int, timestamp: int, server: int) -> int:
        """Write a BEGIN without user and database; return where it ends in d."""
        store32(d, o, timestamp)
        d[o + EVENT_TYPE_AT] = QUERY_EVENT
        store32(d, o + SERVER_ID_AT, server)
        a = o + HEADER_SIZE
        for i in range(QUERY_POST + 1):
            d[a + i] = 0
        a += QUERY_POST + 1
        d[a] = 66
        d[a + 1] = 69
        d[a + 2] = 71
        d[a + 3] = 73
        d[a + 4] = 78
        return self.close(d, o, a + 5, 8, INSIDE)

    def put_event(self, p: Bytes, at: int, end: int, d: Writable, o: int, marker: int) -> int:
        """Write the replacement of the event in p[at:end]; return where it ends in d."""
        t = p[at + EVENT_TYPE_AT]
        flags = load16(p, at + FLAGS_AT)
        copy_bytes(d, o, p, at, HEADER_SIZE)
        body = at + HEADER_SIZE
        a = o + HEADER_SIZE
        if t == ANNOTATE_ROWS_EVENT:
            d[o + EVENT_TYPE_AT] = ROWS_QUERY_EVENT
            d[a] = end - body if end - body < 255 else 255
            copy_bytes(d, a + 1, p, body, end - body)
            return self.close(d, o, a + 1 + end - body, 0x80, marker)
        if t == TABLE_MAP_EVENT:
            self.find_map(p, body + 6, end)
            copy_bytes(d, a, p, body, 6)
            copy_bytes(d, a + 6, self.arena, self.made_at, self.made_length)
            return self.close(d, o, a + 6 + self.made_length, flags, marker)
        if t == QUERY_EVENT:
            for i in range(QUERY_POST + 1):
                d[a + i] = 0
            copy_bytes(d, a + QUERY_POST + 1, p, end - 6, 6)
            return self.close(d, o, a + QUERY_POST + 7, 8, marker)
        if t == XID_EVENT:
            copy_bytes(d, a, p, body, end - body)
            return self.close(d, o, a + end - body, flags, marker)
        d[o + EVENT_TYPE_AT] = t + 7
        copy_bytes(d, a, p, body, 8)
        d[a + 8] = 2  # the addition in the header of version 2: its length alone
        d[a + 9] = 0
        copy_bytes(d, a + 10, p, body + 8, end - body - 8)
        return self.close(d, o, a + 2 + end - body, flags, marker)

    def close(self, d: Writable, o: int, a: int, flags: int, marker: int) -> int:
        """Write size, end_log_pos, flags, marker and checksum of the event in d[o:a]; return where it ends."""
        size = a - o + (CHECKSUM_SIZE if self.out_checksum else 0)
        store32(d, o + EVENT_SIZE_AT, size)
        store32(d, o + LOG_POS_AT, (self.position + size) & U32_MAX)
        kept = (flags & ~BOUNDARY_MASK) & 0xFFFF
        d[o + FLAGS_AT] = kept & 255
        d[o + FLAGS_AT + 1] = (kept >> 8) | (marker << 2)
        if self.out_checksum:
            store32(d, a, crc32_of(d, o, a, 0))
        self.position += size
        return o + size
