# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Transactions as columns: one row for each group of events, counted by the kernel as it walks them.

Takes what `Ingest` found in a run, as `event_columns` does; its events must be whole. What is compressed inside an event is
asked for: `take` stops with OPEN_..., the owner unpacks and gives it back, and `take` goes on.
"""

import cython

from protocol.kernel.column_reader import DONE as DONE
from protocol.kernel.column_reader import FULL as FULL
from protocol.kernel.column_reader import OPEN_PAYLOAD as OPEN_PAYLOAD
from protocol.kernel.column_reader import OPEN_QUERY as OPEN_QUERY
from protocol.kernel.column_reader import OPEN_ROWS as OPEN_ROWS
from protocol.kernel.column_reader import (
    ColumnReader,
    PackedReader,
)
from protocol.kernel.gtid_text import GtidText

if not cython.compiled:
    from protocol.kernel.event_facts import event_finding, is_transaction
    from protocol.kernel.gtid_text import signed
    from protocol.kernel.pure import load16, load64
    from protocol.kernel.row_event_types import inserts_rows, updates_rows
    from protocol.kernel.statement_words import changes_rows

C_DONE = cython.declare(cython.int, 0)
C_FULL = cython.declare(cython.int, 1)
C_OPEN_ROWS = cython.declare(cython.int, 2)
C_OPEN_QUERY = cython.declare(cython.int, 3)
C_OPEN_PAYLOAD = cython.declare(cython.int, 4)
C_GROW = cython.declare(cython.int, 5)

# Findings of a transaction, the first in it; up to EVENT_MALFORMED as in event_columns.
CHECKSUM_MISMATCH = 1
BOUNDARY_VIOLATION = 2
POSITION_CHAIN_BROKEN = 3
UNKNOWN_EVENT_TYPE = 4
EVENT_MALFORMED = 5
ROWS_UNREADABLE = 6
PAYLOAD_UNREADABLE = 7
TRANSACTION_UNFINISHED = 8
C_EVENT_MALFORMED = cython.declare(cython.int, 5)
C_ROWS_UNREADABLE = cython.declare(cython.int, 6)
C_PAYLOAD_UNREADABLE = cython.declare(cython.int, 7)
C_TRANSACTION_UNFINISHED = cython.declare(cython.int, 8)

# Values of `kind`.
KINDS = ("none", "ddl", "row", "statement", "mixed")
# Values of `closed_by`: the event that ends the group; "statement": one that is, or ends, a group by itself.
CLOSERS = ("none", "xid", "commit", "rollback", "xa_prepare", "xa_commit", "xa_rollback", "statement")
BY_NOTHING = cython.declare(cython.int, 0)
BY_XID = cython.declare(cython.int, 1)
BY_COMMIT = cython.declare(cython.int, 2)
BY_ROLLBACK = cython.declare(cython.int, 3)
BY_XA_PREPARE = cython.declare(cython.int, 4)
BY_XA_COMMIT = cython.declare(cython.int, 5)
BY_XA_ROLLBACK = cython.declare(cython.int, 6)
BY_STATEMENT = cython.declare(cython.int, 7)

# Column -> format of its values, "s": text with nulls, "n": i64 with nulls, "l": list of texts.
COLUMNS = {
    "start": "q",
    "end": "q",
    "first_time": "q",  # µs since 1970, the least and greatest of its events
    "last_time": "q",
    "server_id": "q",
    "gtid": "s",
    "xid": "n",
    "kind": "B",
    "events": "q",
    "statements": "q",
    "row_events": "q",
    "rows_inserted": "q",
    "rows_updated": "q",
    "rows_deleted": "q",
    "tables": "l",
    "rolled_back": "B",
    "closed_by": "B",
    "violations": "q",
    "finding": "B",
    "finding_position": "q",
}

START = cython.declare(cython.int, 3)
INSIDE = cython.declare(cython.int, 4)
SELF_CONTAINED = cython.declare(cython.int, 2)
END = cython.declare(cython.int, 5)
IGNORE = cython.declare(cython.int, 1)
K_QUERY = cython.declare(cython.int, 7)
K_QUERY_COMPRESSED = cython.declare(cython.int, 8)
K_EXECUTE_LOAD_QUERY = cython.declare(cython.int, 9)
K_LOAD_WHOLE = cython.declare(cython.int, 12)
K_LOAD_CLOSES = cython.declare(cython.int, 14)
K_ROWS = cython.declare(cython.int, 16)
K_ROW_FRAGMENT = cython.declare(cython.int, 20)
S_OTHER = cython.declare(cython.int, 0)
S_COMMIT = cython.declare(cython.int, 2)
S_ROLLBACK = cython.declare(cython.int, 3)
S_XA_COMMIT = cython.declare(cython.int, 5)
S_XA_ROLLBACK = cython.declare(cython.int, 6)
NO_ROOM = cython.declare(cython.int, -2)
SLOT_SCHEMA = cython.declare(cython.int, 3)
SLOT_SCHEMA_LENGTH = cython.declare(cython.int, 4)
SLOT_TABLE = cython.declare(cython.int, 5)
SLOT_TABLE_LENGTH = cython.declare(cython.int, 6)
SLOT_MARK = cython.declare(cython.int, 11)
HAS_DDL = cython.declare(cython.int, 1)
HAS_ROWS = cython.declare(cython.int, 2)
HAS_STATEMENTS = cython.declare(cython.int, 4)
MICROSECONDS = cython.declare(cython.longlong, 1000000)
FAR = cython.declare(cython.longlong, 4611686018427387904)


class TransactionColumns(PackedReader):
    """Columns of transactions, `capacity` rows at most in a batch, from the events that `take` is given.

    `count_rows`: walk rows events for rows_inserted, _updated and _deleted.
    """

    def __init__(self, capacity, count_rows=True):
        PackedReader.__init__(self, capacity)
        self.gtid_room = capacity * 48 + 256
        self.text_room = capacity * 32 + 4096
        self.list_room = capacity * 2 + 64
        self.counts_rows = count_rows
        self.gtid = GtidText()
        self.first_from = self.last_from = -(1 << 62)
        self.first_to = self.last_to = 1 << 62
        self.only_findings = False
        self.group = 0
        self.group_tables = memoryview(bytearray(8 * 4 * 16)).cast("q")
        self.open_position = 0
        self.lacks_tables = self.lacks_list = False
        self.begin_file(b"")
        self.begin_batch()

    def keep_times(self, first_from, first_to, last_from, last_to):
        """Only transactions whose first and last time, in µs, are in these ranges (both ends included)."""
        self.first_from = max(first_from, -(1 << 62))
        self.first_to = min(first_to, 1 << 62)
        self.last_from = max(last_from, -(1 << 62))
        self.last_to = min(last_to, 1 << 62)

    def keep_findings(self):
        """Only transactions with which something is wrong."""
        self.only_findings = True

    def begin_file(self, post_lengths):
        """Another file or another split of one. `post_lengths`: Ingest's."""
        self.begin_stream(post_lengths)
        self.entered = False
        self.in_group = False
        self.stray = False
        self.pending = False
        self.opening = 0
        self.clear_group(0)

    def clear_group(self, position):
        self.group += 1
        self.group_start = position
        self.group_end = position
        self.first_time = FAR
        self.last_time = -1
        self.server_id = 0
        self.gtid.length = 0
        self.xid = 0
        self.has_xid = False
        self.parts = 0
        self.events = self.statements = self.row_events = 0
        self.inserted = self.updated = self.deleted = 0
        self.rolled_back = False
        self.closed_by = BY_NOTHING
        self.violations = 0
        self.finding = 0
        self.finding_position = 0
        self.table_count = 0
        self.tables_size = 0

    def begin_batch(self):
        """Fresh buffers."""
        self.new_buffers(COLUMNS)
        self.gtid_used = self.text_used = self.list_used = 0
        self.buffers["gtid:data"] = bytearray(self.gtid_room)
        self.buffers["tables:text"] = bytearray(4 * (self.list_room + 1))
        self.buffers["tables:data"] = bytearray(self.text_room)
        self.start_out = memoryview(self.buffers["start"]).cast("q")
        self.end_out = memoryview(self.buffers["end"]).cast("q")
        self.first_out = memoryview(self.buffers["first_time"]).cast("q")
        self.last_out = memoryview(self.buffers["last_time"]).cast("q")
        self.server_out = memoryview(self.buffers["server_id"]).cast("q")
        self.gtid_out = memoryview(self.buffers["gtid"]).cast("i")
        self.gtid_data = memoryview(self.buffers["gtid:data"])
        self.gtid_valid = memoryview(self.buffers["gtid:valid"])
        self.xid_out = memoryview(self.buffers["xid"]).cast("q")
        self.xid_valid = memoryview(self.buffers["xid:valid"])
        self.kind_out = memoryview(self.buffers["kind"])
        self.events_out = memoryview(self.buffers["events"]).cast("q")
        self.statements_out = memoryview(self.buffers["statements"]).cast("q")
        self.row_events_out = memoryview(self.buffers["row_events"]).cast("q")
        self.inserted_out = memoryview(self.buffers["rows_inserted"]).cast("q")
        self.updated_out = memoryview(self.buffers["rows_updated"]).cast("q")
        self.deleted_out = memoryview(self.buffers["rows_deleted"]).cast("q")
        self.tables_out = memoryview(self.buffers["tables"]).cast("i")
        self.text_out = memoryview(self.buffers["tables:text"]).cast("i")
        self.text_data = memoryview(self.buffers["tables:data"])
        self.rolled_back_out = memoryview(self.buffers["rolled_back"])
        self.closed_by_out = memoryview(self.buffers["closed_by"])
        self.violations_out = memoryview(self.buffers["violations"]).cast("q")
        self.finding_out = memoryview(self.buffers["finding"])
        self.finding_position_out = memoryview(self.buffers["finding_position"]).cast("q")

    def list_column(self, name):
        """Offsets of the lists (i32, rows + 1 of them), how many texts they hold, offsets and bytes of the texts."""
        return self.buffers[name], self.list_used, self.buffers[name + ":text"], self.buffers[name + ":data"]

    def finish(self):
        """Nothing follows: an open transaction becomes a row with a finding. DONE, or FULL as `take`."""
        if self.in_group and not self.pending:
            if not self.stray:
                self.found(C_TRANSACTION_UNFINISHED, self.group_start)
            self.in_group = False
            self.pending = True
        while self.pending and not self.emit():
            if self.rows:
                return FULL
            self.make_room()
        return DONE

    def make_room(self):
        """Of what the last walk did not find room for."""
        if self.lacks_tables:
            ColumnReader.make_room(self)
            self.lacks_tables = False
        if self.lacks_list:
            known = self.group_tables
            self.group_tables = memoryview(bytearray(self.table_count * 4 * 16)).cast("q")
            self.group_tables[: self.table_count * 4] = known[: self.table_count * 4]
            self.lacks_list = False
        if self.rows == 0 and (self.tables_size > self.text_room or self.table_count > self.list_room):
            self.text_room = max(self.text_room, self.tables_size * 2)
            self.list_room = max(self.list_room, self.table_count * 2)
            self.begin_batch()

    def opened(self, data):
        """What was asked for with OPEN_ROWS or OPEN_QUERY, unpacked."""
        query = self.opening == C_OPEN_QUERY
        PackedReader.opened(self, data)
        if query:
            if cython.compiled:
                self.take_statement(cython.address(self.opened_data[0]), 0, self.opened_size)
            else:
                self.take_statement(self.opened_data, 0, self.opened_size)
            self.opening = -1

    def not_opened(self):
        """What was asked for cannot be unpacked."""
        self.found(C_ROWS_UNREADABLE if self.opening == C_OPEN_ROWS else C_PAYLOAD_UNREADABLE, self.open_position)
        self.opening = -1

    def take_opened(self, p, at, stop, t):
        return self.accumulate(p, at, stop, t)

    def walk(self, p, have, base, table, count):
        while True:
            if self.pending:
                if not self.emit():
                    return C_FULL if self.rows else C_GROW
            if self.next_row >= count:
                self.next_row = 0
                return C_DONE
            r = self.next_row * 8
            position = table[r]
            t = table[r + 2]
            info = table[r + 7]
            boundary = info & 7
            kind = self.inference.kind[t]
            self.timestamp = table[r + 4]
            if not self.entered:
                # Which group is this?
                opens = boundary == START or (boundary == SELF_CONTAINED and is_transaction(kind))
                if self.in_group and (
                    opens or boundary == SELF_CONTAINED or (self.stray and boundary != INSIDE and boundary != END)
                ):
                    if not self.stray:
                        self.found(C_TRANSACTION_UNFINISHED, self.group_start)
                    self.in_group = False
                    self.pending = True
                    continue
                if not self.in_group:
                    if opens:
                        self.stray = False
                    elif boundary == INSIDE or boundary == END:
                        self.stray = True
                    elif event_finding(info, kind, table[r + 3]) != 0:
                        self.stray = True  # a row for what is wrong between two transactions
                    else:
                        self.next_row += 1
                        continue
                    self.tables.between_groups()
                    self.clear_group(position)
                    self.in_group = True
                    self.server_id = table[r + 5]
                self.entered = True
            if self.opening == 0 or self.opening == -2:
                at = position - base
                stop = at + table[r + 1]
                if stop > have:
                    stop = have
                if info & 16:
                    stop -= 4
                if self.opening == -2:
                    self.count_opened_rows(p, at, stop, t, position)
                else:
                    status = self.accumulate(p, at, stop, t)
                    if status == C_GROW:
                        return C_GROW
                    if status != C_DONE:
                        self.opening = status
                        self.open_position = position
                        return status
            elif self.opening > 0:
                return self.opening  # asked for, and not given
            self.opening = 0
            self.entered = False

            # It is counted now.
            if info & 64:
                self.violations += 1
            finding = event_finding(info, kind, table[r + 3])
            if finding:
                self.found(finding, position)
            self.events += 1
            self.group_end = position + table[r + 1]
            time = table[r + 4] * MICROSECONDS
            if time:
                if time < self.first_time:
                    self.first_time = time
                if time > self.last_time:
                    self.last_time = time
            self.next_row += 1
            if self.stray:
                if boundary != INSIDE and boundary != END:
                    self.in_group = False
                    self.pending = True
            elif boundary == END or boundary == SELF_CONTAINED:
                if self.closed_by == BY_NOTHING:
                    self.closed_by = BY_STATEMENT
                self.in_group = False
                self.pending = True

    def found(self, finding, position):
        if self.finding == 0:
            self.finding = finding
            self.finding_position = position

    def accumulate(self, p, at, stop, t):
        """Counts what the event in p[at:stop], without checksum, does. DONE, C_GROW: again with more room, or OPEN_..."""
        kind = self.inference.kind[t]
        body = at + 19
        if kind == K_QUERY:
            statement = self.inference.statement_kind(p, at, stop)
            if statement == S_COMMIT:
                self.closed_by = BY_COMMIT
            elif statement == S_ROLLBACK or statement == S_XA_ROLLBACK:
                self.rolled_back = True
                self.closed_by = BY_ROLLBACK if statement == S_ROLLBACK else BY_XA_ROLLBACK
            elif statement == S_XA_COMMIT:
                self.closed_by = BY_XA_COMMIT
            elif statement == S_OTHER:
                self.take_statement(p, self.text_at(p, at), stop)
            elif statement < 0 and self.opening > 0:  # in a payload, where no walker was before
                self.found(C_EVENT_MALFORMED, self.open_position)
        elif kind == K_ROWS:
            return self.take_rows(p, at, stop, t)
        elif t == 19:
            slot = self.tables.take_map(p, body, stop, 4 if self.inference.post_length[19] == 6 else 6)
            if slot == NO_ROOM:
                self.lacks_tables = True
                return C_GROW
            if slot < 0:
                self.found(C_ROWS_UNREADABLE, self.group_end)
            elif self.tables.slots[slot + SLOT_MARK] != self.group:
                if self.table_count * 4 >= self.group_tables.shape[0]:
                    self.lacks_list = True
                    return C_GROW
                self.tables.slots[slot + SLOT_MARK] = self.group
                self.add_table(slot)
        elif t == 38:
            self.closed_by = BY_XA_PREPARE
        elif t == 16:  # Xid
            self.closed_by = BY_XID
            if stop - body >= 8:
                self.xid = signed(load64(p, body))
                self.has_xid = True
        elif t == 33 or t == 34 or t == 42 or t == 162:
            self.gtid.take(p, body, stop, t, at)
        elif kind == K_EXECUTE_LOAD_QUERY or kind == K_LOAD_WHOLE or kind == K_LOAD_CLOSES:
            if t != 11:  # Delete_file: the statement failed
                self.statements += 1
                self.parts |= HAS_STATEMENTS
        elif kind == K_QUERY_COMPRESSED:
            self.open_start = self.text_at(p, at) if stop - at >= 32 else stop + 1
            self.open_stop = stop
            if self.open_start > stop:
                self.found(C_EVENT_MALFORMED, self.group_end)
                return C_DONE
            return C_OPEN_QUERY
        elif t == 40:
            self.open_start = body
            self.open_stop = stop
            return C_OPEN_PAYLOAD
        elif kind == K_ROW_FRAGMENT:
            self.found(C_ROWS_UNREADABLE, self.group_end)
        return C_DONE

    def text_at(self, p, at):
        """Where a Query's text starts."""
        post = self.inference.post_length[2]
        if post < 11:
            post = 13
        return at + 19 + post + (load16(p, at + 30) if post >= 13 else 0) + p[at + 27] + 1

    def take_statement(self, p, at, stop):
        self.statements += 1
        if changes_rows(p, at, stop):
            self.parts |= HAS_STATEMENTS
        else:
            self.parts |= HAS_DDL

    def add_table(self, slot):
        """Notes a table of the group, by its names: after a FLUSH the same table has another id."""
        schema = self.tables.slots[slot + SLOT_SCHEMA]
        schema_length = self.tables.slots[slot + SLOT_SCHEMA_LENGTH]
        table = self.tables.slots[slot + SLOT_TABLE]
        table_length = self.tables.slots[slot + SLOT_TABLE_LENGTH]
        for i in range(self.table_count):
            k = i * 4
            if (
                self.group_tables[k + 1] == schema_length
                and self.group_tables[k + 3] == table_length
                and self.same_names(self.group_tables[k], schema, schema_length)
                and self.same_names(self.group_tables[k + 2], table, table_length)
            ):
                return
        k = self.table_count * 4
        self.group_tables[k] = schema
        self.group_tables[k + 1] = schema_length
        self.group_tables[k + 2] = table
        self.group_tables[k + 3] = table_length
        self.table_count += 1
        self.tables_size += schema_length + table_length + 1

    def same_names(self, a, b, length):
        for i in range(length):
            if self.tables.arena[a + i] != self.tables.arena[b + i]:
                return False
        return True

    def take_rows(self, p, at, stop, t):
        self.row_events += 1
        self.parts |= HAS_ROWS
        if not self.counts_rows:
            return C_DONE
        if t < 23:
            # the first betas of 5.1 wrote rows in the layout of the table's record
            self.found(C_ROWS_UNREADABLE, self.group_end)
            return C_DONE
        rows = self.tables.begin_rows(p, at, stop, t, self.inference.post_length[t])
        if rows < 0:
            self.found(C_ROWS_UNREADABLE, self.group_end)
            return C_DONE
        if t >= 166:
            self.open_start = rows
            self.open_stop = stop
            return C_OPEN_ROWS
        self.add_rows(p, p, rows, stop, t)
        return C_DONE

    def add_rows(self, q, p, at, stop, t):
        """Counts the rows in p[at:stop]; the event's bitmaps stand in q."""
        if self.tables.row_slot < 0:
            self.found(C_ROWS_UNREADABLE, self.group_end)
            return
        update = updates_rows(t)
        count = self.tables.count_rows(q, p, at, stop, self.tables.row_slot, update, t == 39)
        if count < 0:
            self.found(C_ROWS_UNREADABLE, self.group_end)
        elif update:
            self.updated += count
        elif inserts_rows(t):
            self.inserted += count
        else:
            self.deleted += count

    def count_opened_rows(self, p, at, stop, t, position):
        """The rows that `opened` gave, of the event at p[at:stop], whose bitmaps are not compressed."""
        if self.tables.begin_rows(p, at, stop, t, self.inference.post_length[t]) < 0:
            self.found(C_ROWS_UNREADABLE, position)
            return
        if cython.compiled:
            self.add_rows(p, cython.address(self.opened_data[0]), 0, self.opened_size, t)
        else:
            self.add_rows(p, self.opened_data, 0, self.opened_size, t)

    # ---- rows out -----------------------------------------------------------------------------------------------

    def emit(self):
        """Writes the group's row; False: no room in this batch."""
        if self.last_time < 0:
            self.first_time = self.last_time = 0
        if self.finding == 0 and (
            self.only_findings
            or self.first_time < self.first_from
            or self.first_time > self.first_to
            or self.last_time < self.last_from
            or self.last_time > self.last_to
        ):
            self.pending = False
            return True
        n = self.rows
        if (
            n >= self.capacity
            or self.gtid_used + self.gtid.length > self.gtid_room
            or self.text_used + self.tables_size > self.text_room
            or self.list_used + self.table_count > self.list_room
        ):
            return False
        self.start_out[n] = self.group_start
        self.end_out[n] = self.group_end
        self.first_out[n] = self.first_time
        self.last_out[n] = self.last_time
        self.server_out[n] = self.server_id
        for i in range(self.gtid.length):
            self.gtid_data[self.gtid_used + i] = self.gtid.text[i]
        if self.gtid.length:
            self.gtid_used += self.gtid.length
            self.gtid_valid[n >> 3] |= 1 << (n & 7)
        self.gtid_out[n + 1] = self.gtid_used
        if self.has_xid:
            self.xid_out[n] = self.xid
            self.xid_valid[n >> 3] |= 1 << (n & 7)
        parts = self.parts
        if parts == HAS_DDL:
            self.kind_out[n] = 1
        elif parts == HAS_ROWS:
            self.kind_out[n] = 2
        elif parts == HAS_STATEMENTS:
            self.kind_out[n] = 3
        elif parts:
            self.kind_out[n] = 4
        self.events_out[n] = self.events
        self.statements_out[n] = self.statements
        self.row_events_out[n] = self.row_events
        self.inserted_out[n] = self.inserted
        self.updated_out[n] = self.updated
        self.deleted_out[n] = self.deleted
        for i in range(self.table_count):
            k = i * 4
            self.put_name(self.group_tables[k], self.group_tables[k + 1])
            self.text_data[self.text_used] = 46
            self.text_used += 1
            self.put_name(self.group_tables[k + 2], self.group_tables[k + 3])
            self.list_used += 1
            self.text_out[self.list_used] = self.text_used
        self.tables_out[n + 1] = self.list_used
        self.rolled_back_out[n] = self.rolled_back
        self.closed_by_out[n] = self.closed_by
        self.violations_out[n] = self.violations
        self.finding_out[n] = self.finding
        self.finding_position_out[n] = self.finding_position
        if self.finding:
            self.findings += 1
        self.rows = n + 1
        self.pending = False
        return True

    def put_name(self, at, length):
        if cython.compiled:
            self.tables.copy_from_arena(cython.address(self.text_data[0]), self.text_used, at, length)
        else:
            self.tables.copy_from_arena(self.text_data, self.text_used, at, length)
        self.text_used += length
