# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The tables of Table_map events, kept while a binlog is read: their names, and the widths of a row's columns.

Servers write a Table_map before every statement's rows, mostly with the same bytes as the one before for that table id. So a map is
remembered by its bytes: the same bytes again cost one comparison. Rows have no count and no lengths: the number of rows in an event
is found by walking them, column by column, for which the widths are needed.
"""

from collections.abc import Sequence

import cython

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.text.scalar_text import decimal_bytes
    from protocol.kernel.codes import *
    from protocol.kernel.pure import (
        Bytes,
        bytes_of,
        copy_bytes,
        load16,
        load24,
        load32,
        load64,
        longs_of,
        text_of,
    )


# ---- rows events, by their type: V1, V2, partial; MariaDB's packed ones ----


def inserts_rows(t: int) -> bool:
    """Return whether it is Write_rows in any form."""
    return (
        t == WRITE_ROWS_V1_EVENT
        or t == WRITE_ROWS_EVENT
        or t == WRITE_ROWS_COMPRESSED_V1_EVENT
        or t == WRITE_ROWS_COMPRESSED_EVENT
    )


def updates_rows(t: int) -> bool:
    """Return whether it is Update_rows in any form: each row has two images."""
    return (
        t == UPDATE_ROWS_V1_EVENT
        or t == UPDATE_ROWS_EVENT
        or t == PARTIAL_UPDATE_ROWS_EVENT
        or t == UPDATE_ROWS_COMPRESSED_V1_EVENT
        or t == UPDATE_ROWS_COMPRESSED_EVENT
    )


def is_packed(t: int) -> bool:
    """Return whether it is MariaDB's event with compressed rows."""
    return t >= WRITE_ROWS_COMPRESSED_V1_EVENT


def has_extra_data(t: int) -> bool:
    """Return whether it is V2: two bytes of the post-header are the length of the data after them."""
    return (
        WRITE_ROWS_EVENT <= t <= DELETE_ROWS_EVENT
        or t == PARTIAL_UPDATE_ROWS_EVENT
        or WRITE_ROWS_COMPRESSED_EVENT <= t <= DELETE_ROWS_COMPRESSED_EVENT
    )


def table_id_size(post: int) -> int:
    """Return the bytes of the table id in an event whose post-header has `post` bytes: 4 before 5.1 was released."""
    return 4 if post == 6 else 6


def table_id(p: Bytes, at: int, size: int) -> int:
    """Return the table id of `size` bytes at `at`."""
    low = load32(p, at)
    if size == 4:
        return low
    high = load16(p, at + 4)
    return low | high << 32


def same_bytes(p: Bytes, at: int, q: Bytes, start: int, count: int) -> bool:
    """Return whether p[at:at + count] and q[start:start + count] are equal."""
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


class ImageColumns:
    """The columns in the images of a rows event: of the `width` bits at bits[at:], `present` are set."""

    def __init__(self) -> None:
        self.bits: Bytes = b""
        self.at = 0
        self.width = 0
        self.present = 0

    def take(self, bits: Bytes, at: int, width: int) -> None:
        """Take the columns of other images."""
        self.bits = bits
        self.at = at
        self.width = width
        self.present = 0
        for i in range(width):
            if bits[at + (i >> 3)] >> (i & 7) & 1:
                self.present += 1


class TableMaps:
    """The tables that the stream has named so far, by table id. Names and widths are in one arena.

    For the last rows event, `row_slot` is its table's slot (-1: never named), `before` and `after` are the columns of its images; an
    event with a single image has it in both.
    """

    def __init__(self) -> None:
        self.set_names(None, None)
        self.id_size = 6
        self.cursor = 0
        self.seen = 0  # maps that were read, and not only recognised
        self.row_slot = -1
        self.partial_at = -1
        self.before = ImageColumns()
        self.after = ImageColumns()
        self.slot_count = 256
        self.arena_size = 65536
        self.make_room()
        self.forget()

    def begin_file(self, post: int) -> None:
        """Begin another file, whose Table_maps have a post-header of `post` bytes."""
        self.id_size = table_id_size(post)
        self.forget()

    def make_room(self) -> None:
        self.slot_bytes = bytearray(self.slot_count * SLOT_SIZE * 8)
        self.slots = longs_of(self.slot_bytes)
        self.arena_bytes = bytearray(self.arena_size)
        self.arena = bytes_of(self.arena_bytes)

    def forget(self) -> None:
        """Forget all tables."""
        for i in range(self.slot_count):
            self.slots[i * SLOT_SIZE] = SLOT_FREE
        self.used = 0
        self.arena_used = 0

    def grow(self) -> None:
        """Make the room that a Table_map did not find; known tables are kept, slots move."""
        slots = memoryview(self.slot_bytes).cast("q")
        arena = bytes(self.arena_bytes[: self.arena_used])
        if self.used * 2 >= self.slot_count:
            self.slot_count = self.slot_count * 2
        self.arena_size = self.arena_size * 2
        self.make_room()
        self.forget()
        self.arena_bytes[: len(arena)] = arena
        self.arena_used = len(arena)
        for i in range(0, len(slots), SLOT_SIZE):
            if slots[i] >= 0:
                at = self.free_slot(slots[i])
                for k in range(SLOT_SIZE):
                    self.slots[at + k] = slots[i + k]
                self.used += 1

    def set_names(self, schemas: Sequence[bytes] | None, tables: Sequence[bytes] | None) -> None:
        """Set the schemas and tables that a filter includes, for the maps that come from now on; None: all."""
        self.filters_schemas = schemas is not None
        self.filters_tables = tables is not None
        self.schema_names = packed_names(schemas)
        self.table_names = packed_names(tables)
        self.wanted_schemas = text_of(self.schema_names)
        self.wanted_tables = text_of(self.table_names)
        self.schemas_size = len(self.schema_names)
        self.tables_size = len(self.table_names)

    def schema_wanted(self, p: Bytes, at: int, length: int) -> bool:
        """Return whether the schema filter includes these bytes."""
        return not self.filters_schemas or self.among(self.wanted_schemas, self.schemas_size, p, at, length)

    def table_wanted(self, p: Bytes, at: int, length: int) -> bool:
        """Return whether the table filter includes these bytes."""
        return not self.filters_tables or self.among(self.wanted_tables, self.tables_size, p, at, length)

    def among(self, names: Bytes, size: int, p: Bytes, at: int, length: int) -> bool:
        i = 0
        while i < size:
            if names[i] == length and same_bytes(p, at, names, i + 1, length):
                return True
            i += 1 + names[i]
        return False

    def free_slot(self, number: int) -> int:
        """Return where the slot of this table id is, or would be."""
        mask = self.slot_count - 1
        i = number & mask  # servers count them up
        while self.slots[i * SLOT_SIZE] != SLOT_FREE and self.slots[i * SLOT_SIZE] != number:
            i = (i + 1) & mask
        return i * SLOT_SIZE

    def find(self, number: int) -> int:
        """Return where the slot of this table id is in `slots`; -1: never named."""
        i = self.free_slot(number)
        return i if self.slots[i] == number else -1

    def between_groups(self) -> None:
        """Note that no transaction is open, so nothing needs earlier maps. If there are too many, all are forgotten: ids of temporary
        tables never come back.
        """
        if self.used > MOST_SLOTS or self.arena_used > MOST_MAP_BYTES:
            self.forget()

    def read_packed(self, p: Bytes, end: int) -> int:
        """Return the packed number at `cursor`, which moves past it; -1: cut, or none."""
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

    # ---- Table_maps ----

    def take_map(self, p: Bytes, body: int, end: int) -> int:
        """Read the Table_map whose body is [body, end), without checksum; return its slot, MAP_MALFORMED or NO_ROOM.

        Layout: table id of 6 bytes (4 before 5.1 was released) | flags u16 | schema length packed, schema, zero | table length
        packed, table, zero | column count packed | type u8 each | metadata length packed, metadata | bitmap of nullable columns | in
        newer servers optional metadata.
        """
        if end - body < self.id_size + 2:
            return MAP_MALFORMED
        number = table_id(p, body, self.id_size)
        slot = self.free_slot(number)
        length = end - body
        if (
            self.slots[slot] == number
            and self.slots[slot + SLOT_RAW_LENGTH] == length
            and same_bytes(p, body, self.arena, self.slots[slot + SLOT_RAW], length)
        ):
            return slot
        status = self.read_map(p, body, end, number, slot)
        if status == MAP_MALFORMED and self.slots[slot] == number:
            self.slots[slot] = SLOT_FORGOTTEN  # rows must not be read by the table's previous definition
        return status

    def read_map(self, p: Bytes, body: int, end: int, number: int, slot: int) -> int:
        """Put the Table_map of table id `number` into `slot`, which contains another; return as `take_map`."""
        length = end - body
        self.cursor = body + self.id_size + 2
        schema_length = self.read_packed(p, end)
        schema = self.cursor
        if schema_length < 0 or schema_length > LONGEST_NAME or schema + schema_length + 1 > end:
            return MAP_MALFORMED
        self.cursor = schema + schema_length + 1
        table_length = self.read_packed(p, end)
        table = self.cursor
        if table_length < 0 or table_length > LONGEST_NAME or table + table_length + 1 > end:
            return MAP_MALFORMED
        self.cursor = table + table_length + 1
        columns = self.read_packed(p, end)
        types = self.cursor
        if columns < 0 or columns > MOST_COLUMNS or types + columns > end:
            return MAP_MALFORMED
        self.cursor = types + columns
        metadata_length = 0
        if self.cursor < end:
            metadata_length = self.read_packed(p, end)
        metadata = self.cursor
        if metadata_length < 0 or metadata + metadata_length > end:
            return MAP_MALFORMED
        if (self.used + 1) * 2 > self.slot_count or self.arena_used + length + columns * 4 + 16 > self.arena_size:
            return NO_ROOM
        raw = self.arena_used
        copy_bytes(self.arena, raw, p, body, length)
        widths = raw + length
        json = self.take_widths(p, types, columns, metadata, metadata + metadata_length, widths)
        if json < 0:
            return MAP_MALFORMED
        self.arena_used = widths + columns * 4
        if self.slots[slot] == SLOT_FREE:
            self.used += 1
        self.slots[slot] = number
        self.slots[slot + SLOT_RAW] = raw
        self.slots[slot + SLOT_RAW_LENGTH] = length
        self.slots[slot + SLOT_SCHEMA] = raw + (schema - body)
        self.slots[slot + SLOT_SCHEMA_LENGTH] = schema_length
        self.slots[slot + SLOT_TABLE] = raw + (table - body)
        self.slots[slot + SLOT_TABLE_LENGTH] = table_length
        self.slots[slot + SLOT_COLUMNS] = columns
        self.slots[slot + SLOT_WIDTHS] = widths
        self.slots[slot + SLOT_JSON] = json
        self.slots[slot + SLOT_WANTED] = self.schema_wanted(p, schema, schema_length) and self.table_wanted(
            p, table, table_length
        )
        self.slots[slot + SLOT_MARK] = -1
        self.seen += 1
        return slot

    def take_widths(self, p: Bytes, types: int, columns: int, metadata: int, stop: int, widths: int) -> int:
        """Write the width of each column to the arena; return the number of JSON columns, -1: metadata cut.

        Source of types and their metadata: MySQL 9.7 `Table_map_event` and `calc_field_size`; MariaDB 10.11 for 140, 141.
        """
        json = 0
        for i in range(columns):  # also after a column of an unknown type
            if p[types + i] == FIELD_JSON:
                json += 1
        m = metadata
        for i in range(columns):
            t = p[types + i]
            code = WIDTH_UNKNOWN
            size = 0
            if t == FIELD_TINY or t == FIELD_YEAR:
                code = 0
                size = 1
            elif t == FIELD_SHORT:
                code = 0
                size = 2
            elif t == FIELD_LONG or t == FIELD_TIMESTAMP:
                code = 0
                size = 4
            elif t == FIELD_LONGLONG or t == FIELD_DATETIME:
                code = 0
                size = 8
            elif t == FIELD_INT24 or t == FIELD_DATE or t == FIELD_TIME or t == FIELD_NEWDATE:
                code = 0
                size = 3
            elif t == FIELD_NULL:
                code = 0
            elif t == FIELD_FLOAT or t == FIELD_DOUBLE:  # metadata is the size
                if m + 1 > stop:
                    return -1
                code = 0
                size = p[m]
                m += 1
            elif t == FIELD_VARCHAR or t == FIELD_VAR_STRING or t == FIELD_VARCHAR_COMPRESSED:  # longest, in bytes
                if m + 2 > stop:
                    return -1
                code = 2 if load16(p, m) > 255 else 1
                m += 2
            elif t == FIELD_BIT:  # bits beside the whole bytes, whole bytes
                if m + 2 > stop:
                    return -1
                code = 0
                size = p[m + 1] + (1 if p[m] else 0)
                m += 2
            elif t == FIELD_TIMESTAMP2 or t == FIELD_DATETIME2 or t == FIELD_TIME2:  # digits of the fraction
                if m + 1 > stop:
                    return -1
                code = 0
                size = (4 if t == FIELD_TIMESTAMP2 else 5 if t == FIELD_DATETIME2 else 3) + ((p[m] + 1) >> 1)
                m += 1
            elif t == FIELD_NEWDECIMAL:  # precision, scale
                if m + 2 > stop or p[m + 1] > p[m]:
                    return -1
                code = 0
                size = decimal_bytes(p[m] - p[m + 1]) + decimal_bytes(p[m + 1])
                m += 2
            elif t == FIELD_ENUM or t == FIELD_SET:
                if m + 2 > stop:
                    return -1
                code = 0
                size = p[m + 1]
                m += 2
            elif t == FIELD_STRING:  # real type and length, two bits of which are hidden in the type
                if m + 2 > stop:
                    return -1
                kind = p[m]
                size = p[m + 1]
                if (kind & 0x30) != 0x30:
                    size = size | (((kind & 0x30) ^ 0x30) << 4)
                    kind = kind | 0x30
                if kind == FIELD_ENUM or kind == FIELD_SET:
                    code = 0
                else:
                    code = 2 if size > 255 else 1
                    size = 0
                m += 2
            elif (
                FIELD_TINY_BLOB <= t <= FIELD_BLOB
                or t == FIELD_GEOMETRY
                or t == FIELD_JSON
                or t == FIELD_VECTOR
                or t == FIELD_BLOB_COMPRESSED
            ):  # bytes of the length
                if m + 1 > stop:
                    return -1
                code = p[m] if 1 <= p[m] <= 4 else WIDTH_UNKNOWN
                m += 1
            w = widths + i * 4
            self.arena[w] = code
            self.arena[w + 1] = size & 255
            self.arena[w + 2] = (size >> 8) & 255
            self.arena[w + 3] = t
            if code == WIDTH_UNKNOWN:
                # its metadata may have any length, so nothing is known of the columns after it
                for k in range(i + 1, columns):
                    self.arena[widths + k * 4] = WIDTH_UNKNOWN
                break
        return json

    # ---- rows events ----

    def begin_rows(self, p: Bytes, at: int, stop: int, t: int, post: int) -> int:
        """Read the rows event at p[at:stop], of type `t`, and return where its rows begin; -1: it is impossible.

        `post` is the post-header's length in the format description.
        """
        body = at + HEADER_SIZE
        second = has_extra_data(t)
        if post < 8 and post != 6:
            post = 10 if second else 8
        if body + post > stop or body + 8 > stop:
            return -1
        fixed = table_id_size(post) + 2  # and flags
        if second and post >= 10:
            extra = load16(p, body + 8)
            if extra < 2:
                return -1
            fixed = 8 + extra
        self.row_slot = self.find(table_id(p, body, table_id_size(post)))
        self.cursor = body + fixed
        width = self.read_packed(p, stop)
        if width < 0 or width > MOST_COLUMNS:
            return -1
        first = self.cursor
        size = (width + 7) >> 3
        at = first + size
        if updates_rows(t):
            at += size
        if at > stop:
            return -1
        self.before.take(p, first, width)
        self.after.take(p, at - size, width)
        return at

    def stand_in(self, p: Bytes) -> None:
        """Continue to read the same rows event, whose bytes are in `p` now."""
        self.before.bits = p
        self.after.bits = p

    def count_rows(self, p: Bytes, at: int, end: int, update: bool, partial: bool) -> int:
        """Return how many rows are in p[at:end], of the event that `begin_rows` read, whose table is known.

        MAP_MALFORMED: the rows do not fill the range exactly; MAP_UNKNOWN_TYPE: a column of a type of unknown width.
        """
        if self.before.width > self.slots[self.row_slot + SLOT_COLUMNS]:
            return MAP_MALFORMED
        if at == end:
            return 1 if self.before.present + self.after.present == 0 else 0
        count = 0
        while at < end:
            start = at
            at = self.image_end(self.before, p, at, end)
            if at < 0:
                return at
            if update:
                if partial:
                    at = self.pass_options(p, at, end)
                    if at < 0:
                        return at
                at = self.image_end(self.after, p, at, end)
                if at < 0:
                    return at
            if at == start:
                return MAP_MALFORMED
            count += 1
        return count

    def pass_options(self, p: Bytes, at: int, end: int) -> int:
        """Return where the options of a partial update at `at` end, or MAP_MALFORMED.

        `partial_at` is where one bit for each JSON column of the table is, set if it is given as differences; -1: nowhere.
        """
        self.partial_at = -1
        self.cursor = at
        options = self.read_packed(p, end)
        if options < 0:
            return MAP_MALFORMED
        at = self.cursor
        if options & PARTIAL_JSON_UPDATES:
            self.partial_at = at
            at += (self.slots[self.row_slot + SLOT_JSON] + 7) >> 3
        return at if at <= end else MAP_MALFORMED

    def image_end(self, columns: ImageColumns, p: Bytes, at: int, end: int) -> int:
        """Return where the row image at `at` ends: bits of its NULLs, then the values of the `columns` that are not NULL.

        MAP_MALFORMED: after `end`; MAP_UNKNOWN_TYPE.
        """
        widths = self.slots[self.row_slot + SLOT_WIDTHS]
        bits = columns.bits
        bitmap = columns.at
        nulls = at
        at += (columns.present + 7) >> 3
        if at > end:
            return MAP_MALFORMED
        k = 0
        for i in range(columns.width):
            if bits[bitmap + (i >> 3)] >> (i & 7) & 1:
                if not p[nulls + (k >> 3)] >> (k & 7) & 1:
                    w = widths + i * 4
                    code = self.arena[w]
                    if code == 0:
                        at += self.arena[w + 1] | self.arena[w + 2] << 8
                    else:
                        if code > 4:
                            return MAP_UNKNOWN_TYPE
                        if at + code > end:
                            return MAP_MALFORMED
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
                        return MAP_MALFORMED
                k += 1
        return at


def packed_names(names: Sequence[bytes] | None) -> bytes:
    """Return each name after its length; a name longer than any server has is omitted."""
    return b"".join(bytes([len(name)]) + name for name in names or () if len(name) <= LONGEST_NAME)
