# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Changed rows as columns: one row for each row that a transaction inserted, updated or deleted, its images as JSON text.

Takes what `Ingest` found in a run, as `event_columns` does; its events must be whole. What is compressed inside an event,
and what a table's columns are called where the binlog does not say, is asked for: `take` stops with OPEN_..., the owner gives
it, and `take` goes on. What cannot be read becomes a row that is only a finding, and the walk goes on.
"""

import cython

from protocol.binlog.column_description import decode_columns
from protocol.binlog.table_columns import decode_table_columns
from protocol.kernel.batch_texts import BatchTexts
from protocol.kernel.gtid_text import GtidText
from protocol.kernel.inference import Inference
from protocol.kernel.row_values import RowValues
from protocol.kernel.tables import TableMaps

if not cython.compiled:
    from protocol.kernel.event_facts import event_finding, is_transaction
    from protocol.kernel.pure import copy_bytes, load16, load32

# What `take` returns.
DONE = 0
FULL = 1
OPEN_ROWS = 2
OPEN_PAYLOAD = 4
OPEN_TABLE = 6
C_DONE = cython.declare(cython.int, 0)
C_FULL = cython.declare(cython.int, 1)
C_OPEN_ROWS = cython.declare(cython.int, 2)
C_OPEN_PAYLOAD = cython.declare(cython.int, 4)
C_GROW = cython.declare(cython.int, 5)
C_OPEN_TABLE = cython.declare(cython.int, 6)
C_PLAN = cython.declare(cython.int, 7)

# Findings; up to TRANSACTION_UNFINISHED as in transaction_columns.
FINDINGS = {
    1: "checksum_mismatch",
    2: "boundary_violation",
    3: "position_chain_broken",
    4: "unknown_event_type",
    5: "event_malformed",
    6: "rows_unreadable",
    7: "payload_unreadable",
    8: "transaction_unfinished",
    9: "table_map_missing",
    10: "column_type_unknown",
    11: "row_malformed",
    12: "value_malformed",
    13: "row_too_large",
}
C_EVENT_MALFORMED = cython.declare(cython.int, 5)
C_ROWS_UNREADABLE = cython.declare(cython.int, 6)
C_PAYLOAD_UNREADABLE = cython.declare(cython.int, 7)
C_TRANSACTION_UNFINISHED = cython.declare(cython.int, 8)
C_TABLE_MAP_MISSING = cython.declare(cython.int, 9)
C_COLUMN_TYPE_UNKNOWN = cython.declare(cython.int, 10)
C_ROW_MALFORMED = cython.declare(cython.int, 11)
C_VALUE_MALFORMED = cython.declare(cython.int, 12)
C_ROW_TOO_LARGE = cython.declare(cython.int, 13)

# Values of `operation`; none: the row is only a finding.
OPERATIONS = ("", "insert", "update", "delete")
INSERT = cython.declare(cython.int, 1)
UPDATE = cython.declare(cython.int, 2)
DELETE = cython.declare(cython.int, 3)

# Column -> format of its values, "s": text with nulls, "d": text with nulls that rows share.
COLUMNS = {
    "transaction": "q",  # where the transaction starts
    "row": "q",  # from 0 in the transaction, other tables' rows counted too
    "position": "q",  # of the rows event; of a compressed transaction, the payload event
    "end": "q",
    "time": "q",  # µs since 1970
    "server_id": "q",
    "operation": "B",
    "gtid": "d",
    "schema": "d",
    "table": "d",
    "statement": "d",
    "before": "s",
    "after": "s",
    "finding": "B",
    "finding_position": "q",
}

START = cython.declare(cython.int, 3)
INSIDE = cython.declare(cython.int, 4)
SELF_CONTAINED = cython.declare(cython.int, 2)
END = cython.declare(cython.int, 5)
K_ROWS = cython.declare(cython.int, 16)
K_ROW_FRAGMENT = cython.declare(cython.int, 20)
NO_ROOM = cython.declare(cython.int, -2)
MALFORMED = cython.declare(cython.int, -3)
UNKNOWN_TYPE = cython.declare(cython.int, -4)
TABLES_UNKNOWN_TYPE = cython.declare(cython.int, -3)
SLOT_RAW = cython.declare(cython.int, 1)
SLOT_RAW_LENGTH = cython.declare(cython.int, 2)
SLOT_SCHEMA = cython.declare(cython.int, 3)
SLOT_SCHEMA_LENGTH = cython.declare(cython.int, 4)
SLOT_TABLE = cython.declare(cython.int, 5)
SLOT_TABLE_LENGTH = cython.declare(cython.int, 6)
SLOT_COLUMNS = cython.declare(cython.int, 7)
SLOT_WIDTHS = cython.declare(cython.int, 8)
SLOT_JSON = cython.declare(cython.int, 9)
SLOT_WANTED = cython.declare(cython.int, 10)
SLOT_MARK = cython.declare(cython.int, 11)  # the plan's number
STATEMENT_END = cython.declare(cython.int, 1)
MICROSECONDS = cython.declare(cython.longlong, 1000000)
FAR = cython.declare(cython.longlong, 4611686018427387904)
IMAGE_ROOM = 256  # of a row, at first
LARGEST_ROOM = 1 << 30  # Arrow's offsets of 32 bits end soon after
MOST_PLANS = 4096
MOST_ARENA = 1 << 24


class RowColumns:
    """Columns of changed rows, `capacity` rows at most in a batch, from the events that `take` is given.

    `wanted`: names of COLUMNS, None for all; texts that are not wanted are not made. `asks`: stop with OPEN_TABLE at a
    Table_map not seen before: `asked_table` is schema, table and the type codes, to be answered with `described` or
    `not_described`. `findings` counts rows whose `finding` is not 0, over all batches.
    """

    def __init__(self, capacity, wanted=None, asks=False):
        if capacity < 1:
            raise ValueError(f"a batch of {capacity} rows holds nothing")
        unknown = set(wanted or ()) - set(COLUMNS)
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
        names = set(COLUMNS) if wanted is None else set(wanted)
        self.makes_before = "before" in names
        self.makes_after = "after" in names
        self.makes_statement = "statement" in names
        self.makes_gtid = "gtid" in names
        self.capacity = capacity
        self.asks = asks
        self.asked_table = None
        self.asked_position = 0
        self.buffers = {}
        self.inference = Inference()
        self.tables = TableMaps()
        self.values = RowValues()
        self.gtid = GtidText()
        self.findings = 0
        self.timestamp = 0
        self.time_from = -(1 << 62)
        self.time_to = 1 << 62
        self.operations = 0b1110
        self.plan_numbers = {}
        self.plan_slot = 0
        self.before_room = capacity * IMAGE_ROOM + 4096 if self.makes_before else 128
        self.after_room = capacity * IMAGE_ROOM + 4096 if self.makes_after else 128
        self.schema_texts = BatchTexts(1024, 16384)
        self.table_texts = BatchTexts(1024, 16384)
        self.statement_texts = BatchTexts(capacity, capacity * 64 + 4096)
        self.gtid_texts = BatchTexts(capacity, capacity * 48 + 4096)
        self.statement = memoryview(bytearray(4096))
        self.statement_size = 0
        self.opened_rows = memoryview(bytes(1))
        self.open_start = self.open_stop = self.opened_at = 0
        self.lacks_tables = self.lacks_images = self.lacks_statement = self.skips_row = False
        self.plan_schemas = memoryview(bytearray(4 * 16)).cast("i")
        self.plan_tables = memoryview(bytearray(4 * 16)).cast("i")
        self.begin_file(b"")
        self.begin_batch()

    def keep_names(self, schemas, tables):
        """Only rows of tables with these names (lists of bytes; None: all), for the Table_maps that come from now on."""
        self.tables.set_names(schemas, tables)

    def keep_times(self, low, high):
        """Only rows whose event's time, in µs, is in this range (both ends included)."""
        self.time_from = max(low, -(1 << 62))
        self.time_to = min(high, 1 << 62)

    def keep_operations(self, names):
        """Only rows of these OPERATIONS."""
        self.operations = 0
        for name in names:
            self.operations |= 1 << OPERATIONS.index(name)

    def begin_file(self, post_lengths):
        """Another file or another split of one. `post_lengths`: Ingest's."""
        self.forget_tables()
        for i in range(256):
            self.inference.post_length[i] = post_lengths[i] if i < len(post_lengths) else 0
        self.mariadb = len(post_lengths) > 162 and post_lengths[162] != 0
        self.next_row = 0
        self.entered = False
        self.in_group = False
        self.stray = False
        self.opening = 0
        self.rows_begun = False
        self.event_fault = 0
        self.finding = 0
        self.row_plan = 0
        self.position = self.end = self.time = 0
        self.begin_group(0)

    def forget_tables(self):
        """All Table_maps and what was made of them."""
        self.tables.reset()
        self.values.plans.reset()
        self.plan_numbers = {}
        for i in range(len(self.plan_schemas)):
            self.plan_schemas[i] = -1

    def begin_group(self, position):
        self.group_start = position
        self.ordinal = 0
        self.server_id = 0
        self.has_statement = False
        self.statement_index = -1
        self.gtid.length = 0
        self.gtid_index = -1

    # ---- batches ------------------------------------------------------------------------------------------------

    def begin_batch(self):
        """A new batch: buffers of its own."""
        n = self.capacity
        self.rows = 0
        self.lacks_images = False
        self.before_used = 0
        self.after_used = 0
        self.statement_index = -1
        self.gtid_index = -1
        for texts in (self.schema_texts, self.table_texts, self.statement_texts, self.gtid_texts):
            texts.begin_batch()
        for i in range(len(self.plan_schemas)):
            self.plan_schemas[i] = -1
        self.buffers = {}
        for name, kind in COLUMNS.items():
            if kind == "s":
                self.buffers[name] = bytearray(4 * (n + 1))
                self.buffers[name + ":data"] = bytearray(self.before_room if name == "before" else self.after_room)
            else:
                self.buffers[name] = bytearray(n * {"q": 8, "B": 1, "d": 4}[kind])
            if kind in "sd":
                self.buffers[name + ":valid"] = bytearray((n + 7) >> 3)
        self.transaction_out = memoryview(self.buffers["transaction"]).cast("q")
        self.row_out = memoryview(self.buffers["row"]).cast("q")
        self.position_out = memoryview(self.buffers["position"]).cast("q")
        self.end_out = memoryview(self.buffers["end"]).cast("q")
        self.time_out = memoryview(self.buffers["time"]).cast("q")
        self.server_out = memoryview(self.buffers["server_id"]).cast("q")
        self.operation_out = memoryview(self.buffers["operation"])
        self.gtid_out = memoryview(self.buffers["gtid"]).cast("i")
        self.gtid_valid = memoryview(self.buffers["gtid:valid"])
        self.schema_out = memoryview(self.buffers["schema"]).cast("i")
        self.schema_valid = memoryview(self.buffers["schema:valid"])
        self.table_out = memoryview(self.buffers["table"]).cast("i")
        self.table_valid = memoryview(self.buffers["table:valid"])
        self.statement_out = memoryview(self.buffers["statement"]).cast("i")
        self.statement_valid = memoryview(self.buffers["statement:valid"])
        self.before_out = memoryview(self.buffers["before"]).cast("i")
        self.before_data = memoryview(self.buffers["before:data"])
        self.before_valid = memoryview(self.buffers["before:valid"])
        self.after_out = memoryview(self.buffers["after"]).cast("i")
        self.after_data = memoryview(self.buffers["after:data"])
        self.after_valid = memoryview(self.buffers["after:valid"])
        self.finding_out = memoryview(self.buffers["finding"])
        self.finding_position_out = memoryview(self.buffers["finding_position"]).cast("q")

    def column(self, name):
        """The buffer of a column of numbers; its first `rows` values count."""
        return self.buffers[name]

    def validity(self, name):
        """Arrow's validity bitmap of a column with nulls."""
        return self.buffers[name + ":valid"]

    def text_column(self, name):
        """Offsets (i32, rows + 1 of them) and bytes of a text column."""
        return self.buffers[name], self.buffers[name + ":data"]

    def dictionary_column(self, name):
        """Which text each row has (i32), the validity bitmap, how many texts there are, their offsets and bytes."""
        texts = {
            "gtid": self.gtid_texts,
            "schema": self.schema_texts,
            "table": self.table_texts,
            "statement": self.statement_texts,
        }[name]
        return self.buffers[name], self.buffers[name + ":valid"], texts.count, texts.offsets_buffer, texts.data_buffer

    # ---- events in ----------------------------------------------------------------------------------------------

    def take(self, buf, base, table, count):
        """Takes `count` rows of Ingest's `table`, whose events stand whole in `buf`, buf[0] being at `base` of the file.

        DONE: all rows were taken. Otherwise call again with the same, after FULL with another batch begun, after OPEN_...
        with what was asked for given back.
        """
        if count == 0:
            return DONE
        if self.asked_table is not None:
            return OPEN_TABLE
        if not self.in_group and self.next_row == 0:
            if self.values.plans.count > MOST_PLANS or self.values.plans.arena_used > MOST_ARENA:
                self.forget_tables()
        while True:
            if cython.compiled:
                view = buf
                rows = table
                with cython.nogil:
                    status = self.walk(cython.address(view[0]), view.shape[0], base, cython.address(rows[0]), count)
            else:
                status = self.walk(memoryview(buf).cast("B"), len(buf), base, memoryview(table), count)
            if self.values.charsets.failure is not None:
                raise self.values.charsets.failure
            if status != C_GROW and status != C_PLAN:
                return status
            if not self.resolve(status):
                return OPEN_TABLE

    def resolve(self, status):
        """Does what a walk stopped for; False: the owner is asked."""
        if status == C_PLAN:
            return self.make_plan()
        self.make_room()
        return True

    def finish(self):
        """Nothing follows: an open transaction becomes a finding. DONE, or FULL as `take`."""
        if self.in_group:
            if not self.stray:
                self.finding = C_TRANSACTION_UNFINISHED
                self.finding_position = self.group_start
            self.in_group = False
            self.row_plan = 0
        while self.finding and not self.put_finding():
            if self.rows:
                return FULL
            self.make_room()
        return DONE

    def make_room(self):
        """Of what the last walk did not find room for."""
        if self.lacks_tables:
            self.tables.grow()
            self.lacks_tables = False
        if self.lacks_statement:
            self.statement = memoryview(bytearray(self.statement_lacking * 2))
            self.lacks_statement = False
        if self.rows == 0:
            if self.lacks_images:
                self.skips_row = self.before_room >= LARGEST_ROOM or self.after_room >= LARGEST_ROOM
                if not self.skips_row:
                    self.before_room *= 2 if self.makes_before else 1
                    self.after_room *= 2 if self.makes_after else 1
            for texts in (self.schema_texts, self.table_texts, self.statement_texts, self.gtid_texts):
                texts.make_room()
            self.begin_batch()

    def make_plan(self):
        """Of the Table_map that was just read; False: the owner is asked what it knows of the table."""
        slot = self.plan_slot
        raw = self.tables.slots[slot + SLOT_RAW]
        id_size = 4 if self.inference.post_length[19] == 6 else 6
        body = bytes(self.tables.arena[raw : raw + self.tables.slots[slot + SLOT_RAW_LENGTH]])
        # A server gives a table another id when its definition changed; what is known elsewhere may be other then.
        key = body if self.asks else body[id_size:]
        number = self.plan_numbers.get(key)
        if number is not None:
            self.tables.slots[slot + SLOT_MARK] = number
            return True
        known = decode_table_columns(body, id_size, self.mariadb)
        if known.optional_malformed:
            self.found(C_EVENT_MALFORMED)
        widths = self.tables.slots[slot + SLOT_WIDTHS]
        self.asked_widths = bytes(self.tables.arena[widths : widths + 4 * len(known.columns)])
        self.asked_columns = known.columns
        self.asked_key = key
        if self.asks:
            schema = self.tables.slots[slot + SLOT_SCHEMA] - raw
            table = self.tables.slots[slot + SLOT_TABLE] - raw
            self.asked_table = (
                body[schema : schema + self.tables.slots[slot + SLOT_SCHEMA_LENGTH]],
                body[table : table + self.tables.slots[slot + SLOT_TABLE_LENGTH]],
                bytes([column.type for column in known.columns]),
            )
            self.asked_position = self.position
            return False
        self.add_plan(None)
        return True

    def add_plan(self, described):
        number = self.values.plans.add(self.asked_columns, self.asked_widths, described)
        self.plan_numbers[self.asked_key] = number
        self.tables.slots[self.plan_slot + SLOT_MARK] = number
        if number >= len(self.plan_schemas):
            schemas = memoryview(bytearray(b"\xff" * (8 * (number + 1)))).cast("i")
            tables = memoryview(bytearray(8 * (number + 1))).cast("i")
            schemas[: len(self.plan_schemas)] = self.plan_schemas
            tables[: len(self.plan_tables)] = self.plan_tables
            self.plan_schemas = schemas
            self.plan_tables = tables

    def described(self, description):
        """What `asked_table` was asked for (see column_description.encode_columns).

        False: it has not as many columns as the Table_map, so it is of another version of the table; none is used.
        Raises: Malformed.
        """
        columns = decode_columns(description)
        fits = len(columns) == len(self.asked_columns)
        self.add_plan(columns if fits else None)
        self.asked_table = None
        return fits

    def not_described(self):
        """Nobody knows the columns of `asked_table`: they are called @1, @2 …"""
        self.add_plan(None)
        self.asked_table = None

    def opened(self, data):
        """What was asked for with OPEN_ROWS, unpacked."""
        self.opened_rows = memoryview(bytes(data) + b"\0")  # an empty buffer has no address
        self.opened_size = len(data)
        self.opening = -2

    def not_opened(self):
        """What was asked for cannot be unpacked."""
        self.found(C_ROWS_UNREADABLE if self.opening == C_OPEN_ROWS else C_PAYLOAD_UNREADABLE)
        self.opening = -1
        self.row_plan = 0
        self.rows_begun = False

    def opened_events(self, buf, start, stop):
        """Takes the whole events at buf[start:stop] of the payload that was asked for; `opened_at` is where it stopped.

        DONE: nothing whole is left. FULL, OPEN_TABLE: as `take`; call again with `opened_at` as start.
        After the last, call `payload_done`.
        """
        if start < 0 or stop < start or stop > len(buf):
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(buf)} bytes")
        self.opened_at = start
        if self.asked_table is not None:
            return OPEN_TABLE
        if start == stop:
            return DONE
        while True:
            if cython.compiled:
                view = buf
                with cython.nogil:
                    status = self.walk_opened(cython.address(view[0]), self.opened_at, stop)
            else:
                status = self.walk_opened(memoryview(buf).cast("B"), self.opened_at, stop)
            if self.values.charsets.failure is not None:
                raise self.values.charsets.failure
            if status != C_GROW and status != C_PLAN:
                return status
            if not self.resolve(status):
                return OPEN_TABLE

    def payload_done(self):
        """All events of the payload were given."""
        self.opening = -1

    def walk_opened(self, p, start, stop):
        """The events of a payload: they have no checksums, and no position of their own."""
        while True:
            if self.finding and not self.put_finding():
                return C_FULL if self.rows else C_GROW
            if stop - start < 19:
                return C_DONE
            length = load32(p, start + 9)
            if length < 19 or length > stop - start:
                return C_DONE
            self.time = load32(p, start) * MICROSECONDS
            status = self.take_event(p, start, start + length, p[start + 4])
            if status == C_OPEN_ROWS or status == C_OPEN_PAYLOAD:
                # nothing in a payload is packed once more
                self.found(C_EVENT_MALFORMED)
                self.rows_begun = False
            elif status != C_DONE:
                return status
            start += length
            self.opened_at = start

    def walk(self, p, have, base, table, count):
        while True:
            if self.finding and not self.put_finding():
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
                    self.in_group = False
                    if not self.stray:
                        self.row_plan = 0
                        self.finding = C_TRANSACTION_UNFINISHED
                        self.finding_position = self.group_start
                        continue
                self.position = position
                self.end = position + table[r + 1]
                self.time = table[r + 4] * MICROSECONDS
                self.row_plan = 0
                self.fault_shown = False
                self.event_fault = event_finding(info, kind, table[r + 3])
                if not self.in_group and (opens or boundary == INSIDE or boundary == END):
                    self.stray = not opens
                    self.tables.between_groups()
                    self.begin_group(position)
                    self.in_group = True
                    self.server_id = table[r + 5]
                self.entered = True
            if self.opening > 0:
                return self.opening  # asked for, and not given
            if self.in_group and self.opening != -1:
                at = position - base
                stop = at + table[r + 1]
                if stop > have:
                    stop = have
                if info & 16:
                    stop -= 4
                status = self.take_event(p, at, stop, t)
                if status == C_OPEN_ROWS or status == C_OPEN_PAYLOAD:
                    self.opening = status
                    return status
                if status != C_DONE:
                    return status
            self.opening = 0
            if self.event_fault and not self.fault_shown:
                self.found(self.event_fault)
                self.event_fault = 0
            self.entered = False
            self.next_row += 1
            if self.stray:
                if boundary != INSIDE and boundary != END:
                    self.in_group = False
            elif boundary == END or boundary == SELF_CONTAINED:
                self.in_group = False

    def take_event(self, p, at, stop, t):
        """What the event in p[at:stop], without checksum, says. DONE, FULL, GROW or PLAN: again, or OPEN_..."""
        if self.inference.kind[t] == K_ROWS:
            return self.take_rows(p, at, stop, t)
        if t == 19:
            return self.take_map(p, at + 19, stop)
        if t == 29:  # Rows_query: a length that is not right above 255, text
            return self.take_statement(p, at + 20, stop)
        if t == 160:
            return self.take_statement(p, at + 19, stop)
        if t == 33 or t == 34 or t == 42 or t == 162:
            self.gtid.take(p, at + 19, stop, t, at)
            self.gtid_index = -1
        elif t == 40:
            self.open_start = at + 19
            self.open_stop = stop
            return C_OPEN_PAYLOAD
        elif self.inference.kind[t] == K_ROW_FRAGMENT:
            self.found(C_ROWS_UNREADABLE)
        return C_DONE

    def take_map(self, p, body, stop):
        slot = self.tables.take_map(p, body, stop, 4 if self.inference.post_length[19] == 6 else 6)
        if slot == NO_ROOM:
            self.lacks_tables = True
            return C_GROW
        if slot < 0:
            self.found(C_EVENT_MALFORMED)
        elif self.tables.slots[slot + SLOT_MARK] < 0:
            if self.tables.slots[slot + SLOT_WANTED]:
                self.plan_slot = slot
                return C_PLAN
            self.tables.slots[slot + SLOT_MARK] = 0
        return C_DONE

    def take_statement(self, p, at, stop):
        if not self.makes_statement or at > stop:
            return C_DONE
        if stop - at > self.statement.shape[0]:
            self.lacks_statement = True
            self.statement_lacking = stop - at
            return C_GROW
        if cython.compiled:
            copy_bytes(cython.address(self.statement[0]), 0, p, at, stop - at)
        else:
            copy_bytes(self.statement, 0, p, at, stop - at)
        self.statement_size = stop - at
        self.has_statement = True
        self.statement_index = -1
        return C_DONE

    # ---- rows ---------------------------------------------------------------------------------------------------

    def take_rows(self, p, at, stop, t):
        if not self.rows_begun:
            if t < 23:
                # the first betas of 5.1 wrote rows in the layout of the table's record
                self.found(C_ROWS_UNREADABLE)
                return C_DONE
            rows = self.tables.begin_rows(p, at, stop, t, self.inference.post_length[t])
            if rows < 0:
                self.found(C_ROW_MALFORMED)
                return C_DONE
            if t >= 166 and self.opening != -2:
                self.open_start = rows
                self.open_stop = stop
                return C_OPEN_ROWS
            self.row_at = 0 if t >= 166 else rows
            status = self.begin_rows(p, p, at, stop, t)
            if status != C_DONE:
                return status
            self.rows_begun = True
        if self.opening == -2:
            if cython.compiled:
                status = self.put_rows(p, cython.address(self.opened_rows[0]), self.opened_size)
            else:
                status = self.put_rows(p, self.opened_rows, self.opened_size)
        else:
            status = self.put_rows(p, p, stop)
        if status != C_DONE:
            return status
        self.rows_begun = False
        flags = load16(p, at + 19 + (4 if self.inference.post_length[t] == 6 else 6))
        if flags & STATEMENT_END:
            self.has_statement = False
            self.statement_index = -1
        return C_DONE

    def begin_rows(self, q, p, at, stop, t):
        """What is the same for all rows of the event."""
        self.partial = t == 39
        self.operation = DELETE
        if t == 24 or t == 31 or t == 39 or t == 167 or t == 170:
            self.operation = UPDATE
        elif t == 23 or t == 30 or t == 166 or t == 169:
            self.operation = INSERT
        self.row_plan = 0
        if self.tables.row_slot < 0:
            self.found(C_TABLE_MAP_MISSING)
            self.row_plan = -1
            return C_DONE
        mark = self.tables.slots[self.tables.row_slot + SLOT_MARK]
        wanted = mark > 0 and self.time_from <= self.time <= self.time_to and self.operations >> self.operation & 1
        if wanted:
            self.row_plan = mark
            if self.tables.row_width > self.tables.slots[self.tables.row_slot + SLOT_COLUMNS]:
                self.found(C_ROW_MALFORMED)
                return C_DONE
            self.before_present = self.tables.present(q, self.tables.before_at)
            self.after_present = self.tables.present(q, self.tables.after_at) if self.operation == UPDATE else 0
        return C_DONE

    def put_rows(self, q, p, stop):
        """The rows from `row_at` on; the event's bitmaps stand in q."""
        if self.row_plan < 0 or self.finding:
            return C_DONE
        if self.row_plan == 0:  # not wanted, only counted
            status = self.tables.count_rows(
                q, p, self.row_at, stop, self.tables.row_slot, self.operation == UPDATE, self.partial
            )
            if status > 0:
                self.ordinal += status
            return C_DONE
        if self.row_at == stop and self.before_present + self.after_present == 0:
            # one row with no column in its images: such an event has no bytes for it
            status = self.put_row(q, p, stop)
            return C_FULL if status == NO_ROOM and self.rows else C_GROW if status == NO_ROOM else C_DONE
        while self.row_at < stop:
            status = self.put_row(q, p, stop)
            if status == NO_ROOM:
                return C_FULL if self.rows else C_GROW
            if status < 0:
                self.skips_row = False
                self.found(C_COLUMN_TYPE_UNKNOWN if status == UNKNOWN_TYPE else C_ROW_MALFORMED)
                return C_DONE
            if status == self.row_at:
                self.found(C_ROW_MALFORMED)
                return C_DONE
            self.row_at = status
        return C_DONE

    def put_row(self, q, p, stop):
        """Writes the row at `row_at`; returns where the next begins, or NO_ROOM, MALFORMED, UNKNOWN_TYPE."""
        n = self.rows
        if n >= self.capacity:
            return NO_ROOM
        if self.note_names() < 0 or self.note_shared() < 0:
            return NO_ROOM
        at = self.row_at
        self.values.malformed = False
        self.before_end = self.before_used
        self.after_end = self.after_used
        if self.operation != INSERT:
            at = self.put_before(q, p, at, stop)
            if at < 0:
                return at
        if self.operation != DELETE:
            bitmap = self.tables.before_at
            present = self.before_present
            if self.operation == UPDATE:
                bitmap = self.tables.after_at
                present = self.after_present
            partial = -1
            if self.partial:
                self.tables.cursor = at
                options = self.tables.read_packed(p, stop)
                if options < 0:
                    return MALFORMED
                at = self.tables.cursor
                if options & 1:  # PARTIAL_JSON_UPDATES: one bit for each JSON column of the table
                    partial = at
                    at += (self.tables.slots[self.tables.row_slot + SLOT_JSON] + 7) >> 3
                if at > stop:
                    return MALFORMED
            at = self.put_after(q, p, at, stop, bitmap, present, partial)
            if at < 0:
                return at
        if self.skips_row:
            self.skips_row = False
            self.put_numbers(n, self.operation, C_ROW_TOO_LARGE, self.position)
            self.ordinal += 1
            return at
        if self.operation != INSERT and self.makes_before:
            self.before_used = self.before_end
            self.before_valid[n >> 3] |= 1 << (n & 7)
        if self.operation != DELETE and self.makes_after:
            self.after_used = self.after_end
            self.after_valid[n >> 3] |= 1 << (n & 7)
        if self.event_fault:
            self.fault_shown = True
            self.put_numbers(n, self.operation, self.event_fault, self.position)
        elif self.values.malformed:
            self.put_numbers(n, self.operation, C_VALUE_MALFORMED, self.position)
        else:
            self.put_numbers(n, self.operation, 0, 0)
        self.ordinal += 1
        return at

    def put_before(self, q, p, at, stop):
        """Writes the image at `at` to the column `before`; returns where it ends, or as put_row."""
        if self.skips_row or not self.makes_before:
            return self.pass_image(q, p, at, stop, self.tables.before_at, self.before_present)
        if cython.compiled:
            end = self.values.put_image(
                cython.address(self.before_data[0]), self.before_end, self.before_room, q, self.tables.before_at,
                self.tables.row_width, p, at, stop, self.row_plan, self.before_present, -1
            )  # fmt: skip
        else:
            end = self.values.put_image(
                self.before_data, self.before_end, self.before_room, q, self.tables.before_at,
                self.tables.row_width, p, at, stop, self.row_plan, self.before_present, -1
            )  # fmt: skip
        if end < 0:
            self.lacks_images = end == NO_ROOM
            return end
        self.before_end = end
        return self.values.cursor

    def put_after(self, q, p, at, stop, bitmap, present, partial):
        """Writes the image at `at` to the column `after`; returns where it ends, or as put_row."""
        if self.skips_row or not self.makes_after:
            return self.pass_image(q, p, at, stop, bitmap, present)
        if cython.compiled:
            end = self.values.put_image(
                cython.address(self.after_data[0]), self.after_end, self.after_room, q, bitmap, self.tables.row_width,
                p, at, stop, self.row_plan, present, partial
            )  # fmt: skip
        else:
            end = self.values.put_image(
                self.after_data, self.after_end, self.after_room, q, bitmap, self.tables.row_width,
                p, at, stop, self.row_plan, present, partial
            )  # fmt: skip
        if end < 0:
            self.lacks_images = end == NO_ROOM
            return end
        self.after_end = end
        return self.values.cursor

    def pass_image(self, q, p, at, stop, bitmap, present):
        """Where the image at `at` ends, which is not wanted."""
        at = self.tables.image_end(
            q, bitmap, p, at, stop, self.tables.slots[self.tables.row_slot + SLOT_WIDTHS], present
        )
        if at == TABLES_UNKNOWN_TYPE:
            return UNKNOWN_TYPE
        return at if at >= 0 else MALFORMED

    def note_names(self):
        """The batch's numbers of the table's names; NO_ROOM."""
        if self.plan_schemas[self.row_plan] >= 0:
            return 0
        schema = self.tables.slots[self.tables.row_slot + SLOT_SCHEMA]
        schema_end = schema + self.tables.slots[self.tables.row_slot + SLOT_SCHEMA_LENGTH]
        table = self.tables.slots[self.tables.row_slot + SLOT_TABLE]
        table_end = table + self.tables.slots[self.tables.row_slot + SLOT_TABLE_LENGTH]
        if cython.compiled:
            number = self.table_texts.add(cython.address(self.tables.arena[0]), table, table_end)
        else:
            number = self.table_texts.add(self.tables.arena, table, table_end)
        if number < 0:
            return NO_ROOM
        self.plan_tables[self.row_plan] = number
        if cython.compiled:
            number = self.schema_texts.add(cython.address(self.tables.arena[0]), schema, schema_end)
        else:
            number = self.schema_texts.add(self.tables.arena, schema, schema_end)
        if number < 0:
            return NO_ROOM
        self.plan_schemas[self.row_plan] = number
        return 0

    def note_shared(self):
        """The batch's numbers of the statement and of the GTID; NO_ROOM."""
        if self.has_statement and self.statement_index < 0:
            if cython.compiled:
                self.statement_index = self.statement_texts.add(
                    cython.address(self.statement[0]), 0, self.statement_size
                )
            else:
                self.statement_index = self.statement_texts.add(self.statement, 0, self.statement_size)
            if self.statement_index < 0:
                return NO_ROOM
        if self.makes_gtid and self.gtid.length and self.gtid_index < 0:
            if cython.compiled:
                self.gtid_index = self.gtid_texts.add(self.gtid.text, 0, self.gtid.length)
            else:
                self.gtid_index = self.gtid_texts.add(self.gtid.text, 0, self.gtid.length)
            if self.gtid_index < 0:
                return NO_ROOM
        return 0

    def found(self, finding):
        """Something is wrong with the event: a row for it comes next. The first counts."""
        if self.finding == 0:
            self.finding = finding
            self.finding_position = self.position

    def put_finding(self):
        """A row that is only a finding; False: no room for it in this batch."""
        if self.rows >= self.capacity or self.note_shared() < 0:
            return False
        if self.row_plan > 0 and self.note_names() < 0:
            return False
        self.put_numbers(self.rows, 0, self.finding, self.finding_position)
        self.finding = 0
        return True

    def put_numbers(self, n, operation, finding, finding_position):
        self.transaction_out[n] = self.group_start
        self.row_out[n] = self.ordinal
        self.position_out[n] = self.position
        self.end_out[n] = self.end
        self.time_out[n] = self.time
        self.server_out[n] = self.server_id
        self.operation_out[n] = operation
        self.finding_out[n] = finding
        self.finding_position_out[n] = finding_position
        self.before_out[n + 1] = self.before_used
        self.after_out[n + 1] = self.after_used
        if self.row_plan > 0:
            self.put_names(n)
        if self.statement_index >= 0:
            self.statement_out[n] = self.statement_index
            self.statement_valid[n >> 3] |= 1 << (n & 7)
        if self.gtid_index >= 0:
            self.gtid_out[n] = self.gtid_index
            self.gtid_valid[n >> 3] |= 1 << (n & 7)
        if finding:
            self.findings += 1
        self.rows = n + 1

    def put_names(self, n):
        self.schema_out[n] = self.plan_schemas[self.row_plan]
        self.schema_valid[n >> 3] |= 1 << (n & 7)
        self.table_out[n] = self.plan_tables[self.row_plan]
        self.table_valid[n >> 3] |= 1 << (n & 7)
