# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What Table_map events say about tables, kept while a binlog is read: names, and how wide the columns of a row are.

Servers write a Table_map before every statement's rows, mostly with the same bytes as the one before for that table id.
So a map is remembered by its bytes: the same bytes again cost one comparison. Rows carry no count and no lengths: how many
a rows event holds is found by walking them, column by column, which the widths are for.
"""

import cython

if not cython.compiled:
    from protocol.columns.row_event_types import has_extra_data, updates_rows
    from protocol.kernel.pure import copy_bytes, load16, load24, load32, load64

# A slot: table id (-1: free), offset and length of the map's bytes in the arena, offset and length of schema and table,
# number of columns, offset of their widths (4 bytes a column), number of JSON columns, whether a filter wants it, mark.
SLOT = 12
C_SLOT = cython.declare(cython.int, 12)
S_RAW = cython.declare(cython.int, 1)
S_RAW_LENGTH = cython.declare(cython.int, 2)
S_SCHEMA = cython.declare(cython.int, 3)
S_SCHEMA_LENGTH = cython.declare(cython.int, 4)
S_TABLE = cython.declare(cython.int, 5)
S_TABLE_LENGTH = cython.declare(cython.int, 6)
S_COLUMNS = cython.declare(cython.int, 7)
S_WIDTHS = cython.declare(cython.int, 8)
S_JSON = cython.declare(cython.int, 9)
S_WANTED = cython.declare(cython.int, 10)
S_MARK = cython.declare(cython.int, 11)

# What take_map returns instead of a slot, and count_rows instead of a count.
MALFORMED = -1
NO_ROOM = -2
UNKNOWN_TYPE = -3
C_MALFORMED = cython.declare(cython.int, -1)
C_NO_ROOM = cython.declare(cython.int, -2)
C_UNKNOWN_TYPE = cython.declare(cython.int, -3)

# A column's width: 0: so many bytes as its argument says; 1-4: behind a length of so many bytes; else nobody knows.
W_UNKNOWN = cython.declare(cython.int, 9)
FREE = cython.declare(cython.longlong, -1)
FORGOTTEN = cython.declare(cython.longlong, -2)  # its map cannot be read: what is behind the slot is found all the same
MOST_COLUMNS = cython.declare(cython.int, 4096)  # every server's limit
# Between groups, more are forgotten: ids of temporary tables never come back.
MOST_SLOTS = cython.declare(cython.int, 4096)
MOST_BYTES = cython.declare(cython.longlong, 4194304)
LONGEST_NAME = cython.declare(cython.int, 255)  # 64 characters of 3 bytes are the servers' limit


def same_bytes(p, at, q, start, count):
    """Whether p[at:at + count] and q[start:start + count] are equal."""
    i = 0
    while i + 8 <= count:
        if load64(p, at + i) != load64(q, start + i):
            return False
        i += 8
    while i < count:
        if p[at + i] != q[start + i]:
            return False
        i += 1
    return True


class TableMaps:
    """The tables that the stream has named so far, by table id. Names and widths stand in one arena."""

    def __init__(self):
        self.set_names(None, None)
        self.cursor = 0
        self.seen = 0  # maps that were read, and not only recognised
        self.row_slot = -1
        self.slot_size = 256
        self.arena_size = 65536
        self.make_room()
        self.reset()

    def make_room(self):
        self.slots = memoryview(bytearray(self.slot_size * 12 * 8)).cast("q")
        self.arena = memoryview(bytearray(self.arena_size))

    def reset(self):
        """Forgets all tables: another file."""
        self.forget()

    def forget(self):
        for i in range(self.slot_size):
            self.slots[i * C_SLOT] = FREE
        self.used = 0
        self.arena_used = 0

    def grow(self):
        """Makes the room that a Table_map did not find; what is known is kept, slots move."""
        slots, used, arena, arena_used = self.slots, self.used, self.arena, self.arena_used
        old_size = self.slot_size
        if used * 2 >= old_size:
            self.slot_size = old_size * 2
        self.arena_size = self.arena_size * 2
        self.make_room()
        self.reset()
        self.arena[:arena_used] = arena[:arena_used]
        self.arena_used = arena_used
        for i in range(old_size):
            if slots[i * C_SLOT] >= 0:
                at = self.free_slot(slots[i * C_SLOT])
                for k in range(C_SLOT):
                    self.slots[at + k] = slots[i * C_SLOT + k]
                self.used += 1

    def set_names(self, schemas, tables):
        """Schemas and tables (lists of bytes) that a filter wants; None: all. For the maps that come from now on."""
        self.filters_schemas = schemas is not None
        self.filters_tables = tables is not None
        packed = [b"".join(bytes([len(n)]) + n for n in names or () if len(n) <= 255) for names in (schemas, tables)]
        self.schemas_size = len(packed[0])
        self.tables_size = len(packed[1])
        # one byte more: an empty buffer has no address
        self.wanted_schemas = memoryview(packed[0] + bytes(1))
        self.wanted_tables = memoryview(packed[1] + bytes(1))

    def schema_wanted(self, p, at, length):
        """Whether the schema filter lets these bytes through."""
        if not self.filters_schemas:
            return True
        if cython.compiled:
            return self.among(cython.address(self.wanted_schemas[0]), self.schemas_size, p, at, length)
        else:
            return self.among(self.wanted_schemas, self.schemas_size, p, at, length)

    def table_wanted(self, p, at, length):
        """Whether the table filter lets these bytes through."""
        if not self.filters_tables:
            return True
        if cython.compiled:
            return self.among(cython.address(self.wanted_tables[0]), self.tables_size, p, at, length)
        else:
            return self.among(self.wanted_tables, self.tables_size, p, at, length)

    def among(self, names, size, p, at, length):
        i = 0
        while i < size:
            if names[i] == length and same_bytes(p, at, names, i + 1, length):
                return True
            i += 1 + names[i]
        return False

    def free_slot(self, table_id):
        mask = self.slot_size - 1
        i = table_id & mask  # servers count them up
        while self.slots[i * C_SLOT] != FREE and self.slots[i * C_SLOT] != table_id:
            i = (i + 1) & mask
        return i * C_SLOT

    def find(self, table_id):
        """Where the table's slot is in `slots`; -1: never named."""
        i = self.free_slot(table_id)
        return i if self.slots[i] == table_id else -1

    def between_groups(self):
        """No transaction is open: so nothing needs the maps that were seen."""
        if self.used > MOST_SLOTS or self.arena_used > MOST_BYTES:
            self.forget()

    def read_packed(self, p, end):
        """The packed number at `cursor`, which moves behind it; -1: cut, or none."""
        if self.cursor >= end:
            return -1
        first = p[self.cursor]
        self.cursor += 1
        if first < 0xFB:
            return first
        if first == 0xFC and self.cursor + 2 <= end:
            self.cursor += 2
            return load16(p, self.cursor - 2)
        if first == 0xFD and self.cursor + 3 <= end:
            self.cursor += 3
            return load24(p, self.cursor - 3)
        if first == 0xFE and self.cursor + 8 <= end:
            self.cursor += 8
            value = load64(p, self.cursor - 8)
            if value < 0x7FFFFFFF:
                return value
        return -1

    def take_map(self, p, body, end, id_size):
        """Learns the Table_map whose body is [body, end), without checksum; returns its slot, MALFORMED or NO_ROOM.

        Layout: table id of 6 bytes (4 before 5.1 was released) | flags u16 | schema length packed, schema, zero |
        table length packed, table, zero | column count packed | type u8 each | metadata length packed, metadata |
        bitmap of nullable columns | in newer servers optional metadata.
        """
        if end - body < id_size + 2:
            return C_MALFORMED
        table_id = load32(p, body)
        if id_size == 6:
            high = load16(p, body + 4)
            table_id = table_id | high << 32
        slot = self.free_slot(table_id)
        length = end - body
        if (
            self.slots[slot] == table_id
            and self.slots[slot + S_RAW_LENGTH] == length
            and self.same_as_arena(p, body, self.slots[slot + S_RAW], length)
        ):
            return slot
        status = self.read_map(p, body, end, id_size, table_id, slot)
        if status == C_MALFORMED and self.slots[slot] == table_id:
            self.slots[slot] = FORGOTTEN  # rows must not be read by what the table was before
        return status

    def read_map(self, p, body, end, id_size, table_id, slot):
        """Puts a Table_map that is not the one in `slot` there; returns it, MALFORMED or NO_ROOM."""
        length = end - body
        self.cursor = body + id_size + 2
        schema_length = self.read_packed(p, end)
        schema = self.cursor
        if schema_length < 0 or schema_length > LONGEST_NAME or schema + schema_length + 1 > end:
            return C_MALFORMED
        self.cursor = schema + schema_length + 1
        table_length = self.read_packed(p, end)
        table = self.cursor
        if table_length < 0 or table_length > LONGEST_NAME or table + table_length + 1 > end:
            return C_MALFORMED
        self.cursor = table + table_length + 1
        columns = self.read_packed(p, end)
        types = self.cursor
        if columns < 0 or columns > MOST_COLUMNS or types + columns > end:
            return C_MALFORMED
        self.cursor = types + columns
        metadata_length = 0
        if self.cursor < end:
            metadata_length = self.read_packed(p, end)
        metadata = self.cursor
        if metadata_length < 0 or metadata + metadata_length > end:
            return C_MALFORMED
        if (self.used + 1) * 2 > self.slot_size or self.arena_used + length + columns * 4 + 16 > self.arena_size:
            return C_NO_ROOM
        raw = self.arena_used
        self.copy_to_arena(raw, p, body, length)
        widths = raw + length
        json = self.take_widths(p, types, columns, metadata, metadata + metadata_length, widths)
        if json < 0:
            return C_MALFORMED
        self.arena_used = widths + columns * 4
        if self.slots[slot] == FREE:
            self.used += 1
        self.slots[slot] = table_id
        self.slots[slot + S_RAW] = raw
        self.slots[slot + S_RAW_LENGTH] = length
        self.slots[slot + S_SCHEMA] = raw + (schema - body)
        self.slots[slot + S_SCHEMA_LENGTH] = schema_length
        self.slots[slot + S_TABLE] = raw + (table - body)
        self.slots[slot + S_TABLE_LENGTH] = table_length
        self.slots[slot + S_COLUMNS] = columns
        self.slots[slot + S_WIDTHS] = widths
        self.slots[slot + S_JSON] = json
        self.slots[slot + S_WANTED] = self.schema_wanted(p, schema, schema_length) and self.table_wanted(
            p, table, table_length
        )
        self.slots[slot + S_MARK] = -1
        self.seen += 1
        return slot

    def same_as_arena(self, p, at, start, count):
        if cython.compiled:
            return same_bytes(p, at, cython.address(self.arena[0]), start, count)
        else:
            return same_bytes(p, at, self.arena, start, count)

    def copy_to_arena(self, to, p, at, count):
        if cython.compiled:
            copy_bytes(cython.address(self.arena[0]), to, p, at, count)
        else:
            copy_bytes(self.arena, to, p, at, count)

    def copy_from_arena(self, q, to, at, count):
        """Copies arena[at:at + count] to q[to:]."""
        if cython.compiled:
            copy_bytes(q, to, cython.address(self.arena[0]), at, count)
        else:
            copy_bytes(q, to, self.arena, at, count)

    def take_widths(self, p, types, columns, metadata, stop, widths):
        """Writes the width of each column to the arena; returns the number of JSON columns, -1: metadata cut.

        Source of types and their metadata: MySQL 9.7 `Table_map_event` and `calc_field_size`; MariaDB 10.11 for 140, 141.
        """
        json = 0
        for i in range(columns):  # also of those behind a type that nobody knows
            if p[types + i] == 245:
                json += 1
        m = metadata
        for i in range(columns):
            t = p[types + i]
            code = W_UNKNOWN
            size = 0
            if t == 1 or t == 13:  # TINY, YEAR
                code = 0
                size = 1
            elif t == 2:  # SHORT
                code = 0
                size = 2
            elif t == 3 or t == 7:  # LONG, TIMESTAMP
                code = 0
                size = 4
            elif t == 8 or t == 12:  # LONGLONG, DATETIME
                code = 0
                size = 8
            elif t == 9 or t == 10 or t == 11 or t == 14:  # INT24, DATE, TIME, NEWDATE
                code = 0
                size = 3
            elif t == 6:  # NULL
                code = 0
            elif t == 4 or t == 5:  # FLOAT, DOUBLE: metadata is the size
                if m + 1 > stop:
                    return -1
                code = 0
                size = p[m]
                m += 1
            elif t == 15 or t == 253 or t == 141:  # VARCHAR, VAR_STRING, MariaDB's VARCHAR COMPRESSED: longest, bytes
                if m + 2 > stop:
                    return -1
                code = 2 if load16(p, m) > 255 else 1
                m += 2
            elif t == 16:  # BIT: bits beside the whole bytes, whole bytes
                if m + 2 > stop:
                    return -1
                code = 0
                size = p[m + 1] + (1 if p[m] else 0)
                m += 2
            elif t == 17 or t == 18 or t == 19:  # TIMESTAMP2, DATETIME2, TIME2: digits of the fraction
                if m + 1 > stop:
                    return -1
                code = 0
                size = (4 if t == 17 else 5 if t == 18 else 3) + ((p[m] + 1) >> 1)
                m += 1
            elif t == 246:  # NEWDECIMAL: precision, scale; 9 digits take 4 bytes
                if m + 2 > stop or p[m + 1] > p[m]:
                    return -1
                code = 0
                size = self.decimal_size(p[m] - p[m + 1]) + self.decimal_size(p[m + 1])
                m += 2
            elif t == 247 or t == 248:  # ENUM, SET
                if m + 2 > stop:
                    return -1
                code = 0
                size = p[m + 1]
                m += 2
            elif t == 254:  # STRING: real type and length, two bits of which are hidden in the type
                if m + 2 > stop:
                    return -1
                kind = p[m]
                size = p[m + 1]
                if (kind & 0x30) != 0x30:
                    size = size | (((kind & 0x30) ^ 0x30) << 4)
                    kind = kind | 0x30
                if kind == 247 or kind == 248:
                    code = 0
                else:
                    code = 2 if size > 255 else 1
                    size = 0
                m += 2
            elif (249 <= t <= 252) or t == 255 or t == 245 or t == 242 or t == 140:
                # BLOBs, GEOMETRY, JSON, VECTOR, MariaDB's BLOB COMPRESSED: bytes of the length
                if m + 1 > stop:
                    return -1
                code = p[m] if 1 <= p[m] <= 4 else W_UNKNOWN
                m += 1
            w = widths + i * 4
            self.arena[w] = code
            self.arena[w + 1] = size & 255
            self.arena[w + 2] = (size >> 8) & 255
            self.arena[w + 3] = t
            if code == W_UNKNOWN:
                # its metadata may have any length, so nothing is known of those behind it
                for k in range(i + 1, columns):
                    self.arena[widths + k * 4] = W_UNKNOWN
                break
        return json

    def decimal_size(self, digits):
        rest = digits % 9
        return (digits // 9) * 4 + ((rest + 1) >> 1)

    def begin_rows(self, p, at, stop, t, post):
        """Reads the rows event at p[at:stop], of type `t`, up to its rows: where they begin; -1: it cannot be.

        `row_slot` is its table's slot; -1: never named. `post`: the post-header's length in the format description.
        """
        body = at + 19
        second = has_extra_data(t)
        if post < 8 and post != 6:
            post = 10 if second else 8
        if body + post > stop or body + 8 > stop:
            return -1
        table_id = load32(p, body)
        fixed = 6
        if post != 6:
            high = load16(p, body + 4)
            table_id = table_id | high << 32
            fixed = 8
        if second and post >= 10:
            extra = load16(p, body + 8)
            if extra < 2:
                return -1
            fixed = 8 + extra
        self.row_slot = self.find(table_id)
        return self.rows_at(p, body + fixed, stop, updates_rows(t))

    def rows_at(self, p, at, end, update):
        """Reads a rows event's width and bitmaps from `at` on: where they stand is kept, where its rows begin returned.

        -1: cut.
        """
        self.cursor = at
        self.row_width = self.read_packed(p, end)
        if self.row_width < 0 or self.row_width > MOST_COLUMNS:
            return -1
        size = (self.row_width + 7) >> 3
        self.before_at = self.cursor
        self.after_at = self.cursor
        at = self.cursor + size
        if update:
            self.after_at = at
            at += size
        if at > end:
            return -1
        return at

    def count_rows(self, q, p, at, end, slot, update, partial):
        """How many rows stand in p[at:end], of the table in `slot`; the bitmaps that `rows_at` found stand in q.

        MALFORMED: the rows do not fill the range exactly; UNKNOWN_TYPE: a column of a type whose width nobody told.
        """
        if self.row_width > self.slots[slot + S_COLUMNS]:
            return C_MALFORMED
        before = self.present(q, self.before_at)
        after = self.present(q, self.after_at) if update else 0
        if at == end:
            return 1 if before + after == 0 else 0
        widths = self.slots[slot + S_WIDTHS]
        count = 0
        while at < end:
            start = at
            at = self.image_end(q, self.before_at, p, at, end, widths, before)
            if at < 0:
                return at
            if update:
                if partial:
                    self.cursor = at
                    options = self.read_packed(p, end)
                    if options < 0:
                        return C_MALFORMED
                    at = self.cursor
                    if options & 1:  # PARTIAL_JSON_UPDATES: one bit for each JSON column of the table
                        at += (self.slots[slot + S_JSON] + 7) >> 3
                    if at > end:
                        return C_MALFORMED
                at = self.image_end(q, self.after_at, p, at, end, widths, after)
                if at < 0:
                    return at
            if at == start:
                return C_MALFORMED
            count += 1
        return count

    def present(self, q, bitmap):
        count = 0
        for i in range(self.row_width):
            if q[bitmap + (i >> 3)] >> (i & 7) & 1:
                count += 1
        return count

    def image_end(self, q, bitmap, p, at, end, widths, present):
        """Where the row image at `at` ends: bits of its NULLs, then the values of the columns in the bitmap that are not."""
        nulls = at
        at += (present + 7) >> 3
        if at > end:
            return C_MALFORMED
        k = 0
        for i in range(self.row_width):
            if q[bitmap + (i >> 3)] >> (i & 7) & 1:
                if not p[nulls + (k >> 3)] >> (k & 7) & 1:
                    w = widths + i * 4
                    code = self.arena[w]
                    if code == 0:
                        at += self.arena[w + 1] | self.arena[w + 2] << 8
                    else:
                        if code > 4:
                            return C_UNKNOWN_TYPE
                        if at + code > end:
                            return C_MALFORMED
                        if code == 1:
                            at += 1 + p[at]
                        elif code == 2:
                            at += 2 + load16(p, at)
                        elif code == 3:
                            at += 3 + load24(p, at)
                        else:
                            size = load32(p, at)
                            at += 4
                            at += size
                    if at > end:
                        return C_MALFORMED
                k += 1
        return at
