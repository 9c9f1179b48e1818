# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The rows of a rows event, one after the other, with their images as JSON text."""

import cython

from protocol.columns.rows.row_batch import OPERATIONS, RowBatch
from protocol.columns.rows.row_values import RowValues

if not cython.compiled:
    from protocol.columns.row_event_types import inserts_rows, updates_rows
    from protocol.kernel.pure import load16

C_DONE = cython.declare(cython.int, 0)
C_FULL = cython.declare(cython.int, 1)
C_OPEN_ROWS = cython.declare(cython.int, 2)
C_GROW = cython.declare(cython.int, 5)

# Findings, as row_columns has them.
C_ROWS_UNREADABLE = cython.declare(cython.int, 6)
C_TABLE_MAP_MISSING = cython.declare(cython.int, 9)
C_COLUMN_TYPE_UNKNOWN = cython.declare(cython.int, 10)
C_ROW_MALFORMED = cython.declare(cython.int, 11)
C_VALUE_MALFORMED = cython.declare(cython.int, 12)
C_ROW_TOO_LARGE = cython.declare(cython.int, 13)

# Numbers of OPERATIONS.
INSERT = cython.declare(cython.int, 1)
UPDATE = cython.declare(cython.int, 2)
DELETE = cython.declare(cython.int, 3)

NO_ROOM = cython.declare(cython.int, -2)
MALFORMED = cython.declare(cython.int, -3)
UNKNOWN_TYPE = cython.declare(cython.int, -4)
TABLES_UNKNOWN_TYPE = cython.declare(cython.int, -3)
SLOT_COLUMNS = cython.declare(cython.int, 7)
SLOT_WIDTHS = cython.declare(cython.int, 8)
SLOT_JSON = cython.declare(cython.int, 9)
SLOT_MARK = cython.declare(cython.int, 11)  # the plan's number
STATEMENT_END = cython.declare(cython.int, 1)


class RowWriter(RowBatch):
    """Filters are of the rows: their event's time, in µs, and their operation, one bit for each."""

    def __init__(self, capacity, wanted):
        RowBatch.__init__(self, capacity, wanted)
        self.values = RowValues()
        self.time_from = -(1 << 62)
        self.time_to = 1 << 62
        self.operations = 0b1110
        self.rows_begun = False
        self.event_fault = 0

    def keep_times(self, low, high):
        """Only rows whose event's time, in µs, is in this range (both ends included)."""
        self.time_from = max(low, -(1 << 62))
        self.time_to = min(high, 1 << 62)

    def keep_operations(self, names):
        """Only rows of these OPERATIONS."""
        self.operations = 0
        for name in names:
            self.operations |= 1 << OPERATIONS.index(name)

    def take_rows(self, p, at, stop, t):
        """Writes the rows of the event in p[at:stop]. DONE, FULL, GROW: again; OPEN_ROWS."""
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
                status = self.put_rows(p, cython.address(self.opened_data[0]), self.opened_size)
            else:
                status = self.put_rows(p, self.opened_data, self.opened_size)
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
        self.operation = UPDATE if updates_rows(t) else INSERT if inserts_rows(t) else DELETE
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
