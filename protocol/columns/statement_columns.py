# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Statements as columns, one row each, or the Table_maps of a binlog, each of them once.

Takes what `Ingest` found in a run, as `event_columns` does. What is compressed inside an event is asked for: `take` stops
with OPEN_..., the owner unpacks and gives it back, and `take` goes on.
"""

import cython

from protocol.columns.column_reader import DONE as DONE
from protocol.columns.column_reader import FULL as FULL
from protocol.columns.column_reader import OPEN_PAYLOAD as OPEN_PAYLOAD
from protocol.columns.column_reader import OPEN_QUERY as OPEN_QUERY
from protocol.columns.column_reader import (
    ColumnReader,
    PackedReader,
)
from protocol.columns.digest import StatementDigest
from protocol.columns.text_column import TextColumn

if not cython.compiled:
    from protocol.columns.event_facts import is_transaction
    from protocol.columns.statement_words import changes_rows
    from protocol.kernel.pure import load16, load32

C_DONE = cython.declare(cython.int, 0)
C_FULL = cython.declare(cython.int, 1)
C_OPEN_QUERY = cython.declare(cython.int, 3)
C_OPEN_PAYLOAD = cython.declare(cython.int, 4)
C_GROW = cython.declare(cython.int, 5)

# Findings of a row, as in event_columns and transaction_columns.
CHECKSUM_MISMATCH = 1
EVENT_MALFORMED = 5
PAYLOAD_UNREADABLE = 7
C_CHECKSUM_MISMATCH = cython.declare(cython.int, 1)
C_EVENT_MALFORMED = cython.declare(cython.int, 5)
C_PAYLOAD_UNREADABLE = cython.declare(cython.int, 7)

# Bits of `seeds`: what events before the statement said of it.
LAST_INSERT_ID = 1
INSERT_ID = 2
RAND = 4
USER_VARIABLE = 8

# Column -> format of its values, "s": text with nulls, "n": i64 with nulls.
COLUMNS = {
    "position": "q",
    "end": "q",
    "transaction": "n",
    "time": "q",  # µs since 1970
    "server_id": "q",
    "type": "B",
    "thread_id": "n",
    "error_code": "n",
    "sql_mode": "n",  # bits; none where the event does not tell
    "seeds": "B",
    "schema": "s",
    "table": "s",
    "status_variables": "s",  # bytes, no text
    "statement": "s",
    "digest_text": "s",
    "table_map": "s",  # bytes: the body from the flags on
    "finding": "B",
}

START = cython.declare(cython.int, 3)
INSIDE = cython.declare(cython.int, 4)
SELF_CONTAINED = cython.declare(cython.int, 2)
END = cython.declare(cython.int, 5)
K_QUERY = cython.declare(cython.int, 7)
K_QUERY_COMPRESSED = cython.declare(cython.int, 8)
K_EXECUTE_LOAD_QUERY = cython.declare(cython.int, 9)
NO_ROOM = cython.declare(cython.int, -2)
SLOT_RAW = cython.declare(cython.int, 1)
SLOT_SCHEMA = cython.declare(cython.int, 3)
SLOT_SCHEMA_LENGTH = cython.declare(cython.int, 4)
SLOT_TABLE = cython.declare(cython.int, 5)
SLOT_TABLE_LENGTH = cython.declare(cython.int, 6)
ANSI_QUOTES = cython.declare(cython.int, 4)
NO_BACKSLASH_ESCAPES = cython.declare(cython.int, 1048576)
MICROSECONDS = cython.declare(cython.longlong, 1000000)
# A batch ends where a text column has this much.
TEXT_BYTES = cython.declare(cython.longlong, 4194304)


class StatementColumns(PackedReader):
    """Columns of statements, or with `maps` of Table_maps, `capacity` rows at most in a batch. `wanted`: names of COLUMNS.

    A Table_map is a row where its bytes are not those seen last for its number: once, or a few times, for a table.
    """

    def __init__(self, wanted, capacity, maps=False):
        unknown = [name for name in wanted if name not in COLUMNS]
        if unknown:
            raise ValueError(f"there is no column {', '.join(unknown)}")
        PackedReader.__init__(self, capacity)
        self.maps = maps
        self.digest = StatementDigest()
        self.schema = TextColumn(capacity)
        self.table = TextColumn(capacity)
        self.status = TextColumn(capacity)
        self.text = TextColumn(capacity)
        self.digest_text = TextColumn(capacity)
        self.map = TextColumn(capacity)
        self.has_status = "status_variables" in wanted
        self.has_text = "statement" in wanted
        self.has_digest = "digest_text" in wanted
        self.has_map = "table_map" in wanted
        self.time_from = -(1 << 62)
        self.time_to = 1 << 62
        self.lacks_tables = False
        self.lacks_bytes = 0
        self.begin_file(b"")
        self.begin_batch()

    def keep_times(self, time_from, time_to):
        """Only what has time_from <= time <= time_to, in µs since 1970."""
        self.time_from = max(time_from, -(1 << 62))
        self.time_to = min(time_to, 1 << 62)

    def begin_file(self, post_lengths):
        """Another file or another split of one. `post_lengths`: Ingest's."""
        self.begin_stream(post_lengths)
        self.opening = 0
        self.open = False
        self.was_open = False
        self.group_start = 0
        self.seeds = 0

    def begin_batch(self):
        """Fresh buffers."""
        self.new_buffers({name: kind for name, kind in COLUMNS.items() if kind != "s"})
        for column in (self.schema, self.table, self.status, self.text, self.digest_text, self.map):
            column.begin()
        self.position_out = memoryview(self.buffers["position"]).cast("q")
        self.end_out = memoryview(self.buffers["end"]).cast("q")
        self.transaction_out = memoryview(self.buffers["transaction"]).cast("q")
        self.transaction_valid = memoryview(self.buffers["transaction:valid"])
        self.time_out = memoryview(self.buffers["time"]).cast("q")
        self.server_id_out = memoryview(self.buffers["server_id"]).cast("q")
        self.type_out = memoryview(self.buffers["type"])
        self.thread_out = memoryview(self.buffers["thread_id"]).cast("q")
        self.thread_valid = memoryview(self.buffers["thread_id:valid"])
        self.error_out = memoryview(self.buffers["error_code"]).cast("q")
        self.error_valid = memoryview(self.buffers["error_code:valid"])
        self.mode_out = memoryview(self.buffers["sql_mode"]).cast("q")
        self.mode_valid = memoryview(self.buffers["sql_mode:valid"])
        self.seeds_out = memoryview(self.buffers["seeds"])
        self.finding_out = memoryview(self.buffers["finding"])

    def texts_of(self, name):
        return {
            "schema": self.schema,
            "table": self.table,
            "status_variables": self.status,
            "statement": self.text,
            "digest_text": self.digest_text,
            "table_map": self.map,
        }.get(name)

    def validity(self, name):
        """Arrow's validity bitmap of a column with nulls."""
        column = self.texts_of(name)
        return self.buffers[name + ":valid"] if column is None else column.valid_buffer

    def text_column(self, name):
        """Offsets (i32, rows + 1 of them) and bytes of a text column."""
        column = self.texts_of(name)
        return column.offsets_buffer, column.data_buffer

    def make_room(self):
        """Of what the last walk did not find room for."""
        if self.lacks_tables:
            ColumnReader.make_room(self)
            self.lacks_tables = False
        if self.lacks_bytes:
            more = self.lacks_bytes
            self.schema.grow(256)
            self.table.grow(256)
            if self.has_status:
                self.status.grow(65536)
            if self.has_text:
                self.text.grow(more)
            if self.has_digest:
                self.digest_text.grow(more)
            if self.has_map:
                self.map.grow(more)
            self.lacks_bytes = 0

    def not_opened(self):
        """What was asked for cannot be unpacked."""
        self.opening = -3

    def take_opened(self, p, at, stop, t):
        return self.accumulate(p, at, stop, t, load32(p, at))

    def walk(self, p, have, base, table, count):
        while self.next_row < count:
            r = self.next_row * 8
            position = table[r]
            t = table[r + 2]
            info = table[r + 7]
            boundary = info & 7
            kind = self.inference.kind[t]
            self.timestamp = table[r + 4]
            if self.opening > 0:
                return self.opening  # asked for, and not given
            if self.opening == 0:
                # Where it stands
                self.was_open = self.open
                if boundary == START or (boundary == SELF_CONTAINED and is_transaction(kind)):
                    self.group_start = position
                    self.was_open = True
                    self.open = boundary == START
                    self.seeds = 0
                    self.tables.between_groups()
                elif boundary == END or boundary == SELF_CONTAINED:
                    self.open = False
                    if boundary == SELF_CONTAINED:
                        self.was_open = False
                elif boundary == INSIDE and not info & 128:
                    self.open = self.was_open = False
                self.position = position
                self.position_end = position + table[r + 1]
                self.server_id = table[r + 5]
                self.bad_checksum = info & 32 != 0
            at = position - base
            stop = at + table[r + 1]
            if stop > have:
                stop = have
            if info & 16:
                stop -= 4
            if self.opening == -1:
                status = C_DONE
            elif self.opening == -3:
                status = self.put_row(p, at, stop, t, table[r + 4], C_PAYLOAD_UNREADABLE)
            else:
                status = self.accumulate(p, at, stop, t, table[r + 4])
            if status == C_OPEN_QUERY or status == C_OPEN_PAYLOAD:
                self.opening = status
                return status
            if status != C_DONE:
                # the same event again, but where it stands is known already
                if self.opening == 0:
                    self.opening = -4
                return status
            self.opening = 0
            self.next_row += 1
        self.next_row = 0
        return C_DONE

    def accumulate(self, p, at, stop, t, timestamp):
        """The row of the event in p[at:stop], without checksum, if it has one. DONE, FULL, C_GROW, or OPEN_..."""
        kind = self.inference.kind[t]
        if t == 40:
            self.open_start = at + 19
            self.open_stop = stop
            return C_OPEN_PAYLOAD
        if self.maps:
            if t == 19 and self.is_wanted(timestamp):
                return self.take_map(p, at, stop, timestamp)
            return C_DONE
        if t == 5 and stop - at >= 20:
            if p[at + 19] == 1 or p[at + 19] == 2:
                self.seeds |= p[at + 19]
        elif t == 13:
            self.seeds |= 4
        elif t == 14:
            self.seeds |= 8
        elif kind == K_QUERY or kind == K_QUERY_COMPRESSED or kind == K_EXECUTE_LOAD_QUERY:
            if not self.is_wanted(timestamp):
                self.seeds = 0
                return C_DONE
            if kind == K_QUERY_COMPRESSED and self.opening != -2:
                text = self.text_at(p, at, stop, t)
                if text >= 0:
                    self.open_start = text
                    self.open_stop = stop
                    return C_OPEN_QUERY
            return self.put_row(p, at, stop, t, timestamp, 0)
        return C_DONE

    def is_wanted(self, timestamp):
        time = timestamp * MICROSECONDS
        return self.time_from <= time <= self.time_to

    def text_at(self, p, at, stop, t):
        """Where a statement's text starts; -1: lengths inside the event pass its end. Sets where the other parts are.

        Layout: thread id 4, time 4, schema length 1, error code 2, [status length 2], [of Execute_load_query 13 more],
        status variables, schema + NUL, text.
        """
        body = at + 19
        post = self.inference.post_length[2]
        if post < 11:
            post = 13
        self.status_length = 0
        fixed = post
        if t == 18:
            fixed = self.inference.post_length[18]
            if fixed < 26:
                fixed = 26
        if body + fixed > stop:
            return -1
        if post >= 13 or t == 18:
            self.status_length = load16(p, body + 11)
        self.status_at = body + fixed
        self.schema_at = self.status_at + self.status_length
        self.schema_length = p[body + 8]
        if self.schema_at + self.schema_length + 1 > stop:
            return -1
        return self.schema_at + self.schema_length + 1

    def has_room(self, count):
        """Whether a row fits whose longest text has `count` bytes; otherwise what is lacking is noted."""
        if (
            self.schema.fits(256)
            and self.table.fits(256)
            and (not self.has_status or self.status.fits(65536))
            and (not self.has_text or self.text.fits(count))
            and (not self.has_digest or self.digest_text.fits(count))
            and (not self.has_map or self.map.fits(count))
        ):
            return True
        self.lacks_bytes = count if count > 0 else 1
        return False

    def is_full(self):
        return self.rows >= self.capacity or (
            self.rows > 0 and self.text.used + self.digest_text.used + self.map.used + self.status.used > TEXT_BYTES
        )

    def begin_row(self, timestamp, t, finding):
        n = self.rows
        if finding == 0 and self.bad_checksum:
            finding = C_CHECKSUM_MISMATCH
        self.position_out[n] = self.position
        self.end_out[n] = self.position_end
        if self.was_open:
            self.transaction_out[n] = self.group_start
            self.transaction_valid[n >> 3] |= 1 << (n & 7)
        self.time_out[n] = timestamp * MICROSECONDS
        self.server_id_out[n] = self.server_id
        self.type_out[n] = t
        self.seeds_out[n] = self.seeds
        self.finding_out[n] = finding
        if finding:
            self.findings += 1

    def put_row(self, p, at, stop, t, timestamp, finding):
        """The row of a statement; with `finding`, of what cannot be read."""
        if self.is_full():
            return C_FULL
        text = -1
        mode = -1
        if finding == 0 or t != 40:
            text = self.text_at(p, at, stop, t)
        size = 0
        if text >= 0:
            size = self.opened_size if self.opening == -2 else stop - text
        if not self.has_room(size):
            return C_GROW
        if text < 0 and finding == 0:
            finding = C_EVENT_MALFORMED
        n = self.rows
        self.begin_row(timestamp, t, finding)
        self.table.skip(n)
        self.map.skip(n)
        if text < 0:
            self.schema.skip(n)
            self.status.skip(n)
        else:
            body = at + 19
            self.thread_out[n] = load32(p, body)
            self.thread_valid[n >> 3] |= 1 << (n & 7)
            self.error_out[n] = load16(p, body + 9)
            self.error_valid[n >> 3] |= 1 << (n & 7)
            mode = self.sql_mode(p)
            if mode >= 0:
                self.mode_out[n] = mode
                self.mode_valid[n >> 3] |= 1 << (n & 7)
            self.schema.put(n, p, self.schema_at, self.schema_length)
            if self.has_status:
                self.status.put(n, p, self.status_at, self.status_length)
            else:
                self.status.skip(n)
        if text < 0 or finding == C_PAYLOAD_UNREADABLE:
            self.text.skip(n)
            self.digest_text.skip(n)
        else:
            if mode < 0:
                mode = 0
            if self.opening == -2:
                if cython.compiled:
                    self.put_text(n, cython.address(self.opened_data[0]), 0, size, mode)
                else:
                    self.put_text(n, self.opened_data, 0, size, mode)
            else:
                self.put_text(n, p, text, size, mode)
        self.seeds = 0
        self.rows = n + 1
        return C_DONE

    def sql_mode(self, p):
        """The statement's sql_mode, which servers write among the first of the status variables; -1 without, or with one that
        no server has (its highest bit set).
        """
        at = self.status_at
        end = at + self.status_length
        if at + 5 <= end and p[at] == 0:
            at += 5
        if at + 9 <= end and p[at] == 1:
            low = load32(p, at + 1)
            high = load32(p, at + 5)
            return -1 if high >> 31 else high << 32 | low
        return -1

    def put_text(self, n, p, at, size, mode):
        """The statement, and its digest text: of what changes rows; anything else is kept as it is."""
        if self.has_text:
            self.text.put(n, p, at, size)
        else:
            self.text.skip(n)
        if not self.has_digest:
            self.digest_text.skip(n)
        elif changes_rows(p, at, at + size):
            if cython.compiled:
                used = self.digest.write(
                    p,
                    at,
                    at + size,
                    cython.address(self.digest_text.data[0]),
                    self.digest_text.used,
                    mode & ANSI_QUOTES != 0,
                    mode & NO_BACKSLASH_ESCAPES != 0,
                )
            else:
                used = self.digest.write(
                    p,
                    at,
                    at + size,
                    self.digest_text.data,
                    self.digest_text.used,
                    mode & ANSI_QUOTES != 0,
                    mode & NO_BACKSLASH_ESCAPES != 0,
                )
            self.digest_text.close(n, used)
        else:
            self.digest_text.put(n, p, at, size)

    def take_map(self, p, at, stop, timestamp):
        """The row of a Table_map that was not seen."""
        if self.is_full():
            return C_FULL
        if not self.has_room(stop - at):
            return C_GROW
        id_size = 4 if self.inference.post_length[19] == 6 else 6
        known = self.tables.seen
        slot = self.tables.take_map(p, at + 19, stop, id_size)
        if slot == NO_ROOM:
            self.lacks_tables = True
            return C_GROW
        if slot >= 0 and self.tables.seen == known:
            return C_DONE
        n = self.rows
        self.begin_row(timestamp, 19, C_EVENT_MALFORMED if slot < 0 else 0)
        self.status.skip(n)
        self.text.skip(n)
        self.digest_text.skip(n)
        if slot < 0:
            self.schema.skip(n)
            self.table.skip(n)
            self.map.skip(n)
        else:
            raw = self.tables.slots[slot + SLOT_RAW]
            schema = at + 19 + self.tables.slots[slot + SLOT_SCHEMA] - raw
            name = at + 19 + self.tables.slots[slot + SLOT_TABLE] - raw
            self.schema.put(n, p, schema, self.tables.slots[slot + SLOT_SCHEMA_LENGTH])
            self.table.put(n, p, name, self.tables.slots[slot + SLOT_TABLE_LENGTH])
            if self.has_map:
                self.map.put(n, p, at + 19 + id_size, stop - at - 19 - id_size)
            else:
                self.map.skip(n)
        self.rows = n + 1
        return C_DONE
