# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The batch that changed rows are written to: Arrow's buffers, the texts that rows share, and where each row stands."""

import cython

from protocol.columns.batch_texts import BatchTexts
from protocol.columns.column_reader import ColumnReader, PackedReader
from protocol.columns.gtid_text import GtidText

if not cython.compiled:
    from protocol.kernel.pure import unset_bytes

# Values of `operation`; none: the row is only a finding.
OPERATIONS = ("", "insert", "update", "delete")

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

NO_ROOM = cython.declare(cython.int, -2)
SLOT_SCHEMA = cython.declare(cython.int, 3)
SLOT_SCHEMA_LENGTH = cython.declare(cython.int, 4)
SLOT_TABLE = cython.declare(cython.int, 5)
SLOT_TABLE_LENGTH = cython.declare(cython.int, 6)
TEXT_ROOM = 256  # of an image or a statement, at first
LARGEST_ROOM = 1 << 30  # Arrow's offsets of 32 bits end soon after


class RowBatch(PackedReader):
    """What is to be written of the next row is set before: of the group, of the event, and `row_plan`, its table (0: none)."""

    def __init__(self, capacity, wanted):
        PackedReader.__init__(self, capacity)
        unknown = set(wanted or ()) - set(COLUMNS)
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
        names = set(COLUMNS) if wanted is None else set(wanted)
        self.makes_before = "before" in names
        self.makes_after = "after" in names
        self.makes_statement = "statement" in names
        self.makes_gtid = "gtid" in names
        self.before_room = capacity * TEXT_ROOM + 4096 if self.makes_before else 128
        self.after_room = capacity * TEXT_ROOM + 4096 if self.makes_after else 128
        self.lacks_tables = self.lacks_images = self.lacks_statement = self.skips_row = False
        self.schema_texts = BatchTexts(1024, 16384)
        self.table_texts = BatchTexts(1024, 16384)
        self.statement_texts = BatchTexts(capacity, capacity * TEXT_ROOM + 4096)
        self.gtid_texts = BatchTexts(capacity, capacity * 48 + 4096)
        self.statement = memoryview(bytearray(4096))
        self.statement_size = 0
        self.gtid = GtidText()
        self.plan_schemas = memoryview(bytearray(4 * 16)).cast("i")
        self.plan_tables = memoryview(bytearray(4 * 16)).cast("i")
        self.finding = 0
        self.row_plan = 0
        self.position = self.end = self.time = 0

    def begin_group(self, position):
        """Rows of another transaction."""
        self.group_start = position
        self.ordinal = 0
        self.server_id = 0
        self.has_statement = False
        self.statement_index = -1
        self.gtid.length = 0
        self.gtid_index = -1

    def begin_batch(self):
        """A new batch: buffers of its own."""
        self.new_buffers(COLUMNS)
        self.lacks_images = False
        self.before_used = 0
        self.after_used = 0
        self.statement_index = -1
        self.gtid_index = -1
        for texts in (self.schema_texts, self.table_texts, self.statement_texts, self.gtid_texts):
            texts.begin_batch()
        self.forget_names()
        self.buffers["before:data"] = unset_bytes(self.before_room)
        self.buffers["after:data"] = unset_bytes(self.after_room)
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

    def dictionary_column(self, name):
        """Which text each row has (i32), the validity bitmap, how many texts there are, their offsets and bytes."""
        texts = {
            "gtid": self.gtid_texts,
            "schema": self.schema_texts,
            "table": self.table_texts,
            "statement": self.statement_texts,
        }[name]
        return self.buffers[name], self.buffers[name + ":valid"], texts.count, texts.offsets_buffer, texts.data_buffer

    def make_room(self):
        """Of what the last walk did not find room for."""
        if self.lacks_tables:
            ColumnReader.make_room(self)
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

    # ---- what rows share ----------------------------------------------------------------------------------------

    def forget_names(self):
        """No plan's names are in the batch."""
        for i in range(len(self.plan_schemas)):
            self.plan_schemas[i] = -1

    def reserve_plan(self, number):
        """Makes room for what is noted of plans up to this one."""
        if number >= len(self.plan_schemas):
            schemas = memoryview(bytearray(b"\xff" * (8 * (number + 1)))).cast("i")
            tables = memoryview(bytearray(8 * (number + 1))).cast("i")
            schemas[: len(self.plan_schemas)] = self.plan_schemas
            tables[: len(self.plan_tables)] = self.plan_tables
            self.plan_schemas = schemas
            self.plan_tables = tables

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

    # ---- rows out -----------------------------------------------------------------------------------------------

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
        """Row `n` but for its images, which are written; the batch has it then."""
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
            self.schema_out[n] = self.plan_schemas[self.row_plan]
            self.schema_valid[n >> 3] |= 1 << (n & 7)
            self.table_out[n] = self.plan_tables[self.row_plan]
            self.table_valid[n >> 3] |= 1 << (n & 7)
        if self.statement_index >= 0:
            self.statement_out[n] = self.statement_index
            self.statement_valid[n >> 3] |= 1 << (n & 7)
        if self.gtid_index >= 0:
            self.gtid_out[n] = self.gtid_index
            self.gtid_valid[n >> 3] |= 1 << (n & 7)
        if finding:
            self.findings += 1
        self.rows = n + 1
