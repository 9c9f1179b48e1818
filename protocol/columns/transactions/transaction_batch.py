# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The batch that transactions are written to: the group that is being counted, and the row that it becomes."""

import cython

from protocol.columns.column_reader import ColumnReader, PackedReader
from protocol.columns.gtid_text import GtidText

# Values of `kind`.
KINDS = ("none", "ddl", "row", "statement", "mixed")
# Values of `closed_by`: the event that ends the group; "statement": one that is, or ends, a group by itself.
CLOSERS = ("none", "xid", "commit", "rollback", "xa_prepare", "xa_commit", "xa_rollback", "statement")

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

BY_NOTHING = cython.declare(cython.int, 0)
# What a group's `parts` are made of.
HAS_DDL = cython.declare(cython.int, 1)
HAS_ROWS = cython.declare(cython.int, 2)
HAS_STATEMENTS = cython.declare(cython.int, 4)
FAR = cython.declare(cython.longlong, 4611686018427387904)


class TransactionBatch(PackedReader):
    """What is to be written of the group is counted before; then `pending` is set, and `emit` writes it."""

    def __init__(self, capacity):
        PackedReader.__init__(self, capacity)
        self.gtid_room = capacity * 48 + 256
        self.text_room = capacity * 32 + 4096
        self.list_room = capacity * 2 + 64
        self.gtid = GtidText()
        self.first_from = self.last_from = -(1 << 62)
        self.first_to = self.last_to = 1 << 62
        self.only_findings = False
        self.group = 0
        self.group_tables = memoryview(bytearray(8 * 4 * 16)).cast("q")
        self.lacks_tables = self.lacks_list = False
        self.pending = False

    def keep_times(self, first_from, first_to, last_from, last_to):
        """Only transactions whose first and last time, in µs, are in these ranges (both ends included)."""
        self.first_from = max(first_from, -(1 << 62))
        self.first_to = min(first_to, 1 << 62)
        self.last_from = max(last_from, -(1 << 62))
        self.last_to = min(last_to, 1 << 62)

    def keep_findings(self):
        """Only transactions with which something is wrong."""
        self.only_findings = True

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

    def found(self, finding, position):
        if self.finding == 0:
            self.finding = finding
            self.finding_position = position

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
