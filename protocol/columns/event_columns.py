# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Events as columns: what the kernel's walker found in a run becomes buffers as Apache Arrow lays them out.

`Ingest`, with a table and `detailed`, checks and infers; this adds what is inside events (schema and table), leaves out what
a filter does not want, and fills only the columns that were asked for. No Python runs for an event.
"""

import cython

from protocol.columns.column_reader import DONE as DONE
from protocol.columns.column_reader import FULL as FULL
from protocol.columns.column_reader import ColumnReader

if not cython.compiled:
    from protocol.columns.event_facts import event_finding, is_transaction
    from protocol.kernel.pure import copy_bytes, load16, load32

C_DONE = cython.declare(cython.int, 0)
C_FULL = cython.declare(cython.int, 1)
C_GROW = cython.declare(cython.int, 5)

# Findings of an event, in the column `finding`; 0: nothing is wrong with it.
CHECKSUM_MISMATCH = 1
BOUNDARY_VIOLATION = 2
POSITION_CHAIN_BROKEN = 3
UNKNOWN_EVENT_TYPE = 4
EVENT_MALFORMED = 5
C_EVENT_MALFORMED = cython.declare(cython.int, 5)

# Column -> format of its values, "s": text with nulls, "n": i64 with nulls.
COLUMNS = {
    "position": "q",
    "end": "q",
    "end_log_pos": "q",
    "time": "q",  # µs since 1970
    "server_id": "q",
    "type": "B",
    "flags": "i",
    "boundary": "B",
    "stamped": "B",
    "inferred": "B",
    "crc": "B",  # 0 none, 1 ok, 2 bad
    "transaction": "n",  # where the event's transaction starts
    "transaction_ordinal": "n",  # from 1 in the file
    "schema": "s",
    "table": "s",
    "finding": "B",
}

START = cython.declare(cython.int, 3)
INSIDE = cython.declare(cython.int, 4)
SELF_CONTAINED = cython.declare(cython.int, 2)
END = cython.declare(cython.int, 5)
K_UNKNOWN = cython.declare(cython.int, 0)
K_QUERY = cython.declare(cython.int, 7)
K_QUERY_COMPRESSED = cython.declare(cython.int, 8)
K_EXECUTE_LOAD_QUERY = cython.declare(cython.int, 9)
K_ROWS = cython.declare(cython.int, 16)
NO_ROOM = cython.declare(cython.int, -2)
S_SCHEMA = cython.declare(cython.int, 3)
S_SCHEMA_LENGTH = cython.declare(cython.int, 4)
S_TABLE = cython.declare(cython.int, 5)
S_TABLE_LENGTH = cython.declare(cython.int, 6)
S_WANTED = cython.declare(cython.int, 10)
NAME_ROOM = cython.declare(cython.int, 256)  # a name is at most 255 bytes
FAULTS = cython.declare(cython.longlong, 32 | 64 | 2048 | 4096)  # of `info`: see event_finding
MICROSECONDS = cython.declare(cython.longlong, 1000000)


def whole_events(buf, start, stop):
    """Where the last event that is whole in buf[start:stop] ends; not before an event whose length cannot be.

    Raises IndexError for a bad range.
    """
    if start < 0 or stop < start or stop > len(buf):
        raise IndexError(f"range {start}:{stop} outside a buffer of {len(buf)} bytes")
    if start == stop:
        return start
    if cython.compiled:
        view = buf
        return chain_end(cython.address(view[0]), start, stop)
    else:
        return chain_end(buf, start, stop)


def chain_end(p, start, stop):
    at = start
    while stop - at >= 19:
        length = load32(p, at + 9)
        if length < 19 or length > stop - at:
            break
        at += length
    return at


class EventColumns(ColumnReader):
    """Columns of the events that `take` is given, `capacity` rows at most in a batch. `wanted`: names of COLUMNS.

    `column` and `text_column` give the batch's buffers, which nothing writes to any more once the next batch has begun.
    """

    def __init__(self, wanted, capacity):
        unknown = [name for name in wanted if name not in COLUMNS]
        if unknown:
            raise ValueError(f"there is no column {', '.join(unknown)}")
        ColumnReader.__init__(self, capacity)
        self.text_room = capacity * 16 + 4096
        self.wanted = tuple(wanted)
        if not cython.compiled:
            self.type_wanted = bytearray(256)
        self.has_position = "position" in wanted
        self.has_end = "end" in wanted
        self.has_end_log_pos = "end_log_pos" in wanted
        self.has_time = "time" in wanted
        self.has_server_id = "server_id" in wanted
        self.has_type = "type" in wanted
        self.has_flags = "flags" in wanted
        self.has_boundary = "boundary" in wanted
        self.has_stamped = "stamped" in wanted
        self.has_inferred = "inferred" in wanted
        self.has_crc = "crc" in wanted
        self.has_transaction = "transaction" in wanted
        self.has_ordinal = "transaction_ordinal" in wanted
        self.has_schema = "schema" in wanted
        self.has_table = "table" in wanted
        self.has_finding = "finding" in wanted
        self.taken = 0
        self.keep_all()
        self.begin_file(b"", False)
        self.begin_batch()

    def keep_all(self):
        """No filter."""
        self.time_from = -(1 << 62)
        self.time_to = 1 << 62
        self.position_from = 0
        self.position_to = 1 << 62
        self.only_findings = False
        for i in range(256):
            self.type_wanted[i] = 1
        self.tables.set_names(None, None)
        self.filters_names = False
        self.needs_names = self.has_schema or self.has_table

    def keep_times(self, time_from, time_to):
        """Only events with time_from <= time <= time_to, in µs since 1970."""
        self.time_from = max(time_from, -(1 << 62))
        self.time_to = min(time_to, 1 << 62)

    def keep_positions(self, position_from, position_to):
        """Only events that start in [position_from, position_to]."""
        self.position_from = max(position_from, 0)
        self.position_to = min(position_to, 1 << 62)

    def keep_types(self, types):
        """Only events of these type codes."""
        for i in range(256):
            self.type_wanted[i] = i in types

    def keep_names(self, schemas, tables):
        """Only events of these schemas and tables (lists of bytes); None: of any, and of none at all."""
        self.tables.set_names(schemas, tables)
        self.filters_names = schemas is not None or tables is not None
        self.needs_names = self.filters_names or self.has_schema or self.has_table

    def keep_findings(self):
        """Only events with which something is wrong."""
        self.only_findings = True

    def begin_file(self, post_lengths, in_use):
        """Another file or another split of one. `post_lengths`: Ingest's; `in_use`: the file's first event has the flag."""
        self.begin_stream(post_lengths)
        self.in_use = in_use
        self.open = False
        self.group_start = 0
        self.ordinal = 0

    def begin_batch(self):
        """Fresh buffers for the wanted columns."""
        self.new_buffers({name: COLUMNS[name] for name in self.wanted})
        self.schema_used = 0
        self.table_used = 0
        for name in self.wanted:
            if COLUMNS[name] == "s":
                self.buffers[name + ":data"] = bytearray(self.text_room)
        self.position_out = self.view("position", "q")
        self.end_out = self.view("end", "q")
        self.end_log_pos_out = self.view("end_log_pos", "q")
        self.time_out = self.view("time", "q")
        self.server_id_out = self.view("server_id", "q")
        self.type_out = self.view("type", "B")
        self.flags_out = self.view("flags", "i")
        self.boundary_out = self.view("boundary", "B")
        self.stamped_out = self.view("stamped", "B")
        self.inferred_out = self.view("inferred", "B")
        self.crc_out = self.view("crc", "B")
        self.transaction_out = self.view("transaction", "q")
        self.transaction_valid = self.view("transaction:valid", "B")
        self.ordinal_out = self.view("transaction_ordinal", "q")
        self.ordinal_valid = self.view("transaction_ordinal:valid", "B")
        self.schema_out = self.view("schema", "i")
        self.schema_data = self.view("schema:data", "B")
        self.schema_valid = self.view("schema:valid", "B")
        self.table_out = self.view("table", "i")
        self.table_data = self.view("table:data", "B")
        self.table_valid = self.view("table:valid", "B")
        self.finding_out = self.view("finding", "B")

    def view(self, name, kind):
        # what is not wanted is never written to, but a view must have a byte
        return memoryview(self.buffers.get(name) or bytearray(8)).cast(kind)

    def walk(self, p, have, base, table, count):
        while self.next_row < count:
            if self.rows >= self.capacity or (
                self.needs_names
                and (self.schema_used + NAME_ROOM > self.text_room or self.table_used + NAME_ROOM > self.text_room)
            ):
                return C_FULL
            r = self.next_row * 8
            info = table[r + 7]
            t = table[r + 2]
            position = table[r]
            kind = self.inference.kind[t]
            boundary = info & 7
            finding = 0
            if info & FAULTS or kind == K_UNKNOWN:
                finding = event_finding(info, kind, table[r + 3])

            if boundary == START:
                self.tables.between_groups()
            # Names: a Table_map is always read, since what it says is needed later.
            slot = -1
            at = position - base
            stop = at + table[r + 1] - (4 if info & 16 else 0)
            if stop > have:
                stop = have
            schema_at = -1
            schema_length = 0
            if self.needs_names:
                if t == 19:
                    id_size = 4 if self.inference.post_length[19] == 6 else 6
                    slot = self.tables.take_map(p, at + 19, stop, id_size)
                    if slot == NO_ROOM:
                        return C_GROW
                    if slot < 0 and finding == 0:
                        finding = C_EVENT_MALFORMED
                elif kind == K_ROWS:
                    id_size = 4 if self.inference.post_length[t] == 6 else 6
                    if at + 19 + id_size <= stop:
                        table_id = load32(p, at + 19)
                        if id_size == 6:
                            high = load16(p, at + 23)
                            table_id = table_id | high << 32
                        slot = self.tables.find(table_id)
                elif kind == K_QUERY or kind == K_QUERY_COMPRESSED or kind == K_EXECUTE_LOAD_QUERY:
                    # thread id 4, time 4, schema length 1, error code 2, [status length 2], status variables, schema
                    schema_at = at + 19 + 11
                    if kind == K_EXECUTE_LOAD_QUERY:
                        schema_at = at + 19 + 26
                    elif self.inference.post_length[2] != 11:
                        schema_at = at + 19 + 13
                    if schema_at <= stop:
                        schema_length = p[at + 27]
                        if schema_at > at + 19 + 11:
                            schema_at += load16(p, at + 30)
                    if schema_at + schema_length > stop:
                        schema_at = -1

            # Where it stands
            was_open = self.open
            if boundary == START or (boundary == SELF_CONTAINED and is_transaction(kind)):
                self.group_start = position
                self.ordinal += 1
                was_open = True
                self.open = boundary == START
            elif boundary == END or boundary == SELF_CONTAINED:
                self.open = False
                if boundary == SELF_CONTAINED:
                    was_open = False
            elif boundary == INSIDE and not info & 128:
                self.open = was_open = False

            self.timestamp = table[r + 4]
            if self.filtered_out(p, table, r, slot, schema_at, schema_length, t, position, finding):
                self.next_row += 1
                self.taken += 1
                continue
            n = self.rows
            if self.has_position:
                self.position_out[n] = position
            if self.has_end:
                self.end_out[n] = position + table[r + 1]
            if self.has_end_log_pos:
                self.end_log_pos_out[n] = table[r + 6]
            if self.has_time:
                self.time_out[n] = table[r + 4] * MICROSECONDS
            if self.has_server_id:
                self.server_id_out[n] = table[r + 5]
            if self.has_type:
                self.type_out[n] = t
            if self.has_flags:
                self.flags_out[n] = table[r + 3] | (1 if self.in_use and position == 4 else 0)
            if self.has_boundary:
                self.boundary_out[n] = boundary
            if self.has_stamped:
                self.stamped_out[n] = (info >> 3) & 1
            if self.has_inferred:
                self.inferred_out[n] = (info >> 8) & 7
            if self.has_crc:
                self.crc_out[n] = 2 if info & 32 else (1 if info & 16 else 0)
            if self.has_transaction and was_open:
                self.transaction_out[n] = self.group_start
                self.transaction_valid[n >> 3] |= 1 << (n & 7)
            if self.has_ordinal and was_open:
                self.ordinal_out[n] = self.ordinal
                self.ordinal_valid[n >> 3] |= 1 << (n & 7)
            if self.has_schema:
                if slot >= 0:
                    schema_length = self.tables.slots[slot + S_SCHEMA_LENGTH]
                    self.tables.copy_from_arena(
                        self.start_of(self.schema_data),
                        self.schema_used,
                        self.tables.slots[slot + S_SCHEMA],
                        schema_length,
                    )
                elif schema_at >= 0:
                    copy_bytes(self.start_of(self.schema_data), self.schema_used, p, schema_at, schema_length)
                if slot >= 0 or schema_at >= 0:
                    self.schema_used += schema_length
                    self.schema_valid[n >> 3] |= 1 << (n & 7)
                self.schema_out[n + 1] = self.schema_used
            if self.has_table:
                if slot >= 0:
                    length = self.tables.slots[slot + S_TABLE_LENGTH]
                    self.tables.copy_from_arena(
                        self.start_of(self.table_data), self.table_used, self.tables.slots[slot + S_TABLE], length
                    )
                    self.table_used += length
                    self.table_valid[n >> 3] |= 1 << (n & 7)
                self.table_out[n + 1] = self.table_used
            if self.has_finding:
                self.finding_out[n] = finding
            if finding:
                self.findings += 1
            self.rows = n + 1
            self.next_row += 1
            self.taken += 1
        self.next_row = 0
        return C_DONE

    def start_of(self, view):
        if cython.compiled:
            return cython.address(view[0])
        else:
            return view

    def filtered_out(self, p, table, r, slot, schema_at, schema_length, t, position, finding):
        """Whether a filter does not want the event."""
        if finding == 0 and self.only_findings:
            return True
        if position < self.position_from or position > self.position_to or not self.type_wanted[t]:
            return True
        time = table[r + 4] * MICROSECONDS
        if time < self.time_from or time > self.time_to:
            return True
        if self.filters_names:
            if slot >= 0:
                return self.tables.slots[slot + S_WANTED] == 0
            if schema_at < 0 or self.tables.filters_tables:
                return True
            return not self.tables.schema_wanted(p, schema_at, schema_length)
        return False
