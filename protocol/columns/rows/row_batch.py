# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The batch of changed rows: the place of each row, its images, and the texts that rows share."""

from collections.abc import Iterable

import cython

from protocol.columns.column_batch import ColumnBatch, SharedTexts
from protocol.columns.column_reader import EventFacts
from protocol.columns.gtid_text import GtidText
from protocol.columns.rows.table_plans import ColumnPlans
from protocol.columns.rows.value_columns import ValueColumns
from protocol.columns.tables import TableMaps

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.kernel.pure import Bytes, bytes_of, copy_bytes, ints_of

# Values of `operation`; none: the row is only a finding.
OPERATIONS = ("", "insert", "update", "delete")

# Values of `named`, the origin of the names of the table's columns; none: the row has no table.
NAMED = ("", "binlog", "recorded", "ddl", "none")

# The format of each column's values, "s": text with nulls, "d": text with nulls that rows share.
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
    "named": "B",
}
VALUES = "values"
"""The name that requests, beside the columns, each value of the images in a column of its own, and these columns:"""
VALUE_COLUMNS = {
    "shape": "d",  # names and forms of the table's columns, see ColumnPlans
    "whole": "B",  # 1 if the image after has all columns
    "odd": "B",  # 1 if a value is not in its form
}

_TEXT_ROOM = 256  # bytes of an image or a statement, at first
_VALUE_ROOM = 24  # bytes of a value, at first


class RowBatch(ColumnBatch):
    """Rows of changed rows, of `event`. The other values of the next row are set before: those of its group, `plan`, which is its
    table's (0: none), and `named`, of NAMED.
    """

    def __init__(
        self, capacity: int, wanted: Iterable[str] | None, tables: TableMaps, event: EventFacts, plans: ColumnPlans
    ) -> None:
        names = set(COLUMNS if wanted is None else wanted)
        self.makes_values = VALUES in names
        unknown = names - {*COLUMNS, VALUES}
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
        ColumnBatch.__init__(self, capacity, COLUMNS | VALUE_COLUMNS if self.makes_values else COLUMNS, _TEXT_ROOM)
        self.tables = tables
        self.plans = plans
        self.event = event
        self.makes_before = "before" in names
        self.makes_after = "after" in names
        self.makes_statement = "statement" in names
        self.makes_gtid = "gtid" in names
        self.before = self.text("before")
        self.after = self.text("after")
        if not self.makes_before:
            self.before.room = 0
        if not self.makes_after:
            self.after.room = 0
        self.before_values = ValueColumns(capacity, capacity * _VALUE_ROOM)
        self.after_values = ValueColumns(capacity, capacity * _VALUE_ROOM)
        self.values_width = 0
        self.lacks_images = self.lacks_values = self.lacks_statement = self.skips_row = False
        self.is_whole = self.is_odd = False
        self.schemas = SharedTexts(capacity, 1024, 16384)
        self.table_names = SharedTexts(capacity, 1024, 16384)
        self.shapes = SharedTexts(capacity, 1024, 16384)
        self.statements = SharedTexts(capacity, capacity, capacity * _TEXT_ROOM + 4096)
        self.gtids = SharedTexts(capacity, capacity, capacity * 48 + 4096)
        self.statement_room = 4096
        self.statement_bytes = bytearray(self.statement_room)
        self.statement = bytes_of(self.statement_bytes)
        self.statement_size = 0
        self.gtid = GtidText()
        self.plan_room = 0
        self.plan_bytes = bytearray()
        self.reserve_plan(7)
        self.begin_file()
        self.begin()

    def begin_file(self) -> None:
        """Begin rows of another file, whose plans are others."""
        self.forget_names()
        self.finding = 0
        self.plan = 0
        self.named = 0
        self.begin_group(0, 0)

    def begin_group(self, position: int, server_id: int) -> None:
        """Begin rows of another transaction."""
        self.group_start = position
        self.server_id = server_id
        self.ordinal = 0
        self.has_statement = False
        self.statement_number = -1
        self.gtid.length = 0
        self.gtid_number = -1

    def begin(self) -> None:
        """Begin another batch with new buffers."""
        ColumnBatch.begin(self)
        self.lacks_images = self.lacks_values = False
        self.before_values.begin()
        self.after_values.begin()
        self.statement_number = -1
        self.gtid_number = -1
        for texts in (self.schemas, self.table_names, self.shapes, self.statements, self.gtids):
            texts.begin()
        self.forget_names()
        self.transaction_out = self.i64("transaction")
        self.row_out = self.i64("row")
        self.position_out = self.i64("position")
        self.end_out = self.i64("end")
        self.time_out = self.i64("time")
        self.server_out = self.i64("server_id")
        self.operation_out = self.u8("operation")
        self.finding_out = self.u8("finding")
        self.named_out = self.u8("named")
        self.whole_out = self.u8("whole")
        self.odd_out = self.u8("odd")
        self.finding_position_out = self.i64("finding_position")

    def dictionary_column(self, name: str) -> tuple[bytearray, bytearray, int, bytearray, bytearray]:
        """Return the number of each row's text (i32), Arrow's validity bitmap, the number of texts, their offsets and bytes."""
        texts = {
            "schema": self.schemas,
            "table": self.table_names,
            "shape": self.shapes,
            "statement": self.statements,
            "gtid": self.gtids,
        }[name]
        return texts.number_bytes, texts.valid_bytes, texts.count, texts.offset_bytes, texts.text_bytes

    def make_room(self) -> None:
        """Make the room that the last walk did not find. Images that are too large for any batch are omitted (`skips_row`)."""
        if self.lacks_statement:
            self.statement_room = self.statement_size * 2
            self.statement_bytes = bytearray(self.statement_room)
            self.statement = bytes_of(self.statement_bytes)
            self.lacks_statement = False
        if self.rows == 0:
            if self.lacks_images:
                self.skips_row = self.before.room >= LARGEST_IMAGES or self.after.room >= LARGEST_IMAGES
                if not self.skips_row:
                    self.before.room *= 2
                    self.after.room *= 2
            if self.lacks_values:
                self.make_value_room()
            for texts in (self.schemas, self.table_names, self.shapes, self.statements, self.gtids):
                texts.make_room()
            self.begin()

    def make_value_room(self) -> None:
        """Make room for the row whose values did not fit."""
        for values in (self.before_values, self.after_values):
            if self.values_width > values.width or values.lacks_room:
                self.skips_row = values.room * (values.width or 1) >= LARGEST_IMAGES
                if not self.skips_row:
                    values.make_room(self.values_width)

    # ---- what rows share ----

    def forget_names(self) -> None:
        """Forget the names of plans, which are not in a new batch."""
        for i in range(self.plan_room):
            self.plan_names[PLAN_NAMES * i] = -1

    def reserve_plan(self, number: int) -> None:
        """Make room for the numbers of the names of plans up to this one: schema i32, -1 if not in the batch, table, shape."""
        if number >= self.plan_room:
            more = 2 * (number + 1) - self.plan_room
            self.plan_bytes = self.plan_bytes + b"\xff" * (4 * PLAN_NAMES * more)
            self.plan_names = ints_of(self.plan_bytes)
            self.plan_room += more

    def note_statement(self, p: Bytes, at: int, count: int) -> bool:
        """Note p[at:at + count] as the statement of the next rows. False: no room; make it, and again."""
        self.statement_size = count
        if count > self.statement_room:
            self.lacks_statement = True
            return False
        copy_bytes(self.statement, 0, p, at, count)
        self.has_statement = True
        self.statement_number = -1
        return True

    def end_statement(self) -> None:
        """End the noted statement: the next rows are not of it."""
        self.has_statement = False
        self.statement_number = -1

    def add_names(self) -> bool:
        """Ensure that the names of the plan's table are in the batch; False: no room."""
        names = PLAN_NAMES * self.plan
        if self.plan_names[names] >= 0:
            return True
        slot = self.tables.row_slot
        start = self.tables.slots[slot + SLOT_TABLE]
        number = self.table_names.add(self.tables.arena, start, start + self.tables.slots[slot + SLOT_TABLE_LENGTH])
        if number < 0:
            return False
        self.plan_names[names + 1] = number
        if self.makes_values:
            start = self.plans.shapes[2 * self.plan]
            number = self.shapes.add(self.plans.arena, start, start + self.plans.shapes[2 * self.plan + 1])
            if number < 0:
                return False
            self.plan_names[names + 2] = number
        start = self.tables.slots[slot + SLOT_SCHEMA]
        number = self.schemas.add(self.tables.arena, start, start + self.tables.slots[slot + SLOT_SCHEMA_LENGTH])
        if number < 0:
            return False
        self.plan_names[names] = number
        return True

    def add_shared(self) -> bool:
        """Ensure that the statement and the GTID are in the batch; False: no room."""
        if self.has_statement and self.statement_number < 0:
            self.statement_number = self.statements.add(self.statement, 0, self.statement_size)
            if self.statement_number < 0:
                return False
        if self.makes_gtid and self.gtid.length and self.gtid_number < 0:
            self.gtid_number = self.gtids.add(self.gtid.text, 0, self.gtid.length)
            if self.gtid_number < 0:
                return False
        return True

    # ---- rows out ----

    def found(self, finding: int) -> None:
        """Record a defect of the event: a row for it comes next, before another event is read. The first counts."""
        if self.finding == 0:
            self.finding = finding
            self.finding_position = self.event.position

    def put_finding(self) -> bool:
        """Put a row that is only a finding; False: no room for it in this batch."""
        if self.rows >= self.capacity or not self.add_shared():
            return False
        if self.plan > 0 and not self.add_names():
            return False
        self.before.skip(self.rows)
        self.after.skip(self.rows)
        self.put(0, self.finding, self.finding_position)
        self.finding = 0
        return True

    def put(self, operation: int, finding: int, finding_position: int) -> None:
        """Put the next row except for its images, which are put in before; this completes the row."""
        n = self.rows
        self.transaction_out[n] = self.group_start
        self.row_out[n] = self.ordinal
        self.position_out[n] = self.event.position
        self.end_out[n] = self.event.end
        self.time_out[n] = self.event.time
        self.server_out[n] = self.server_id
        self.operation_out[n] = operation
        self.finding_out[n] = finding
        self.finding_position_out[n] = finding_position
        self.named_out[n] = self.named if self.plan > 0 else 0
        if self.makes_values:
            self.whole_out[n] = self.is_whole
            self.odd_out[n] = self.is_odd
        if self.plan > 0:
            self.schemas.put(n, self.plan_names[PLAN_NAMES * self.plan])
            self.table_names.put(n, self.plan_names[PLAN_NAMES * self.plan + 1])
            if self.makes_values:
                self.shapes.put(n, self.plan_names[PLAN_NAMES * self.plan + 2])
        if self.statement_number >= 0:
            self.statements.put(n, self.statement_number)
        if self.gtid_number >= 0:
            self.gtids.put(n, self.gtid_number)
        if finding:
            self.findings += 1
        self.rows = n + 1
