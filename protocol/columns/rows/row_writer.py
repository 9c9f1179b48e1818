# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The rows of a rows event, one after the other, with their images as JSON text."""

import cython

from protocol.columns.column_batch import TextColumn
from protocol.columns.rows.row_batch import RowBatch
from protocol.columns.rows.row_values import RowValues
from protocol.columns.rows.value_columns import ValueColumns
from protocol.columns.tables import ImageColumns, TableMaps

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.tables import inserts_rows, updates_rows
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes


class RowWriter:
    """Writes rows to `batch`. `begun`: an event's rows are being written, the next of them at `row_at`; `finding_shown`: they show
    the defect of the event itself.
    """

    def __init__(self, tables: TableMaps, batch: RowBatch, values: RowValues) -> None:
        self.tables = tables
        self.batch = batch
        self.values = values
        self.before_end = self.after_end = self.image_end = 0
        self.operation = 0
        self.partial = False
        self.begin_file()

    def begin_file(self) -> None:
        """Begin another file."""
        self.begun = False
        self.row_at = 0
        self.finding_shown = False

    def begin(self, p: Bytes, at: int, stop: int, t: int, post: int) -> int:
        """Read the rows event in p[at:stop], of type `t`, and return where its rows begin; -1: they cannot be read."""
        self.batch.plan = 0
        if t <= PRE_GA_DELETE_ROWS_EVENT:
            # the first betas of 5.1 wrote rows in the layout of the table's record
            self.batch.found(ROWS_UNREADABLE)
            return -1
        rows = self.tables.begin_rows(p, at, stop, t, post)
        if rows < 0:
            self.batch.found(ROW_MALFORMED)
            return -1
        self.partial = t == PARTIAL_UPDATE_ROWS_EVENT
        self.operation = OPERATION_DELETE
        if updates_rows(t):
            self.operation = OPERATION_UPDATE
        elif inserts_rows(t):
            self.operation = OPERATION_INSERT
        return rows

    def begin_rows(self, row_at: int, wanted: bool) -> None:
        """Begin the rows of the event that `begin` read, from `row_at` on; if not `wanted`, they are only counted."""
        self.begun = True
        self.row_at = row_at
        if self.tables.row_slot < 0:
            self.batch.found(TABLE_MAP_MISSING)
        elif wanted and self.tables.slots[self.tables.row_slot + SLOT_MARK] > 0:
            self.batch.plan = self.tables.slots[self.tables.row_slot + SLOT_MARK]
            self.values.plan = self.batch.plan
            self.batch.named = self.values.plans.named[self.batch.plan]
            if self.tables.before.width > self.tables.slots[self.tables.row_slot + SLOT_COLUMNS]:
                self.batch.found(ROW_MALFORMED)

    def put_rows(self, p: Bytes, stop: int) -> int:
        """Write the rows in p[row_at:stop]. FULL, GROW: again, as `begun` says; DONE: there are no more."""
        status = self.put_rest(p, stop)
        if status == DONE:
            self.begun = False
        return status

    def put_rest(self, p: Bytes, stop: int) -> int:
        if self.batch.finding:
            return DONE
        if self.batch.plan == 0:
            count = self.tables.count_rows(p, self.row_at, stop, self.operation == OPERATION_UPDATE, self.partial)
            if count > 0:
                self.batch.ordinal += count
            return DONE
        # one row with no column in its images: such an event has no bytes for it
        is_bare = self.row_at == stop and self.tables.before.present + self.tables.after.present == 0
        while self.row_at < stop or is_bare:
            end = self.put_row(p, stop)
            if end == NO_ROOM:
                return FULL if self.batch.rows else GROW
            if is_bare:
                return DONE
            if end <= self.row_at:
                self.batch.skips_row = False
                self.batch.found(COLUMN_TYPE_UNKNOWN if end == IMAGE_UNKNOWN_TYPE else ROW_MALFORMED)
                return DONE
            self.row_at = end
        return DONE

    def put_row(self, p: Bytes, stop: int) -> int:
        """Write the row at `row_at`; return where the next begins, or NO_ROOM, IMAGE_MALFORMED, IMAGE_UNKNOWN_TYPE."""
        n = self.batch.rows
        if n >= self.batch.capacity or not self.batch.add_names() or not self.batch.add_shared():
            return NO_ROOM
        at = self.row_at
        partial = -1
        self.values.malformed = False
        self.values.uncertain = False
        self.values.odd = False
        if self.operation != OPERATION_INSERT:
            if not self.put_values(self.batch.before_values, self.tables.before, p, at, stop, partial):
                return self.image_end
            at = self.put_image(self.batch.before, self.batch.makes_before, self.tables.before, p, at, stop, partial)
            if at < 0:
                return at
            self.before_end = self.image_end
        if self.operation != OPERATION_DELETE:
            if self.partial:
                at = self.tables.pass_options(p, at, stop)
                if at < 0:
                    return IMAGE_MALFORMED
                partial = self.tables.partial_at
            if not self.put_values(self.batch.after_values, self.tables.after, p, at, stop, partial):
                return self.image_end
            at = self.put_image(self.batch.after, self.batch.makes_after, self.tables.after, p, at, stop, partial)
            if at < 0:
                return at
            self.after_end = self.image_end
        finding = 0
        if self.batch.skips_row:
            finding = ROW_TOO_LARGE
        elif self.batch.event.finding:
            self.finding_shown = True
            finding = self.batch.event.finding
        elif self.values.malformed:
            finding = VALUE_MALFORMED
        elif self.values.uncertain:
            finding = VALUE_UNCERTAIN
        self.close_image(
            self.batch.before, self.batch.makes_before and self.operation != OPERATION_INSERT, self.before_end
        )
        self.close_image(
            self.batch.after, self.batch.makes_after and self.operation != OPERATION_DELETE, self.after_end
        )
        if self.batch.makes_values and not self.batch.skips_row:
            if self.operation != OPERATION_INSERT:
                self.batch.before_values.close(n, self.tables.before.width)
            if self.operation != OPERATION_DELETE:
                self.batch.after_values.close(n, self.tables.after.width)
            self.batch.is_odd = self.values.odd
            self.batch.is_whole = (
                self.operation == OPERATION_DELETE or self.tables.after.present == self.tables.after.width
            )
        self.batch.skips_row = False
        self.batch.put(self.operation, finding, self.batch.event.position if finding else 0)
        self.batch.ordinal += 1
        return at

    def put_values(
        self, values: ValueColumns, columns: ImageColumns, p: Bytes, at: int, stop: int, partial: int
    ) -> bool:
        """Put the values of the image at p[at:] into the row's columns, if they are made. False: `image_end` is the error."""
        if self.batch.skips_row or not self.batch.makes_values:
            return True
        self.image_end = self.values.put_values(values, columns, p, at, stop, partial)
        if self.image_end == NO_ROOM:
            self.batch.lacks_values = True
            self.batch.values_width = columns.width
            values.lacks_room = columns.width <= values.width
        return self.image_end >= 0

    def put_image(
        self, column: TextColumn, made: bool, columns: ImageColumns, p: Bytes, at: int, stop: int, partial: int
    ) -> int:
        """Write the image at p[at:] after the column's content, up to `image_end`, if it is `made`; return as put_row."""
        if self.batch.skips_row or not made:
            at = self.tables.image_end(columns, p, at, stop)
            if at == MAP_UNKNOWN_TYPE:
                return IMAGE_UNKNOWN_TYPE
            return at if at >= 0 else IMAGE_MALFORMED
        self.image_end = self.values.put_image(column, columns, p, at, stop, partial)
        if self.image_end < 0:
            self.batch.lacks_images = self.image_end == NO_ROOM
            return self.image_end
        return self.values.cursor

    def close_image(self, column: TextColumn, made: bool, end: int) -> None:
        """End the row's image at `end`; if not `made`, it has none."""
        if made and not self.batch.skips_row:
            column.close(self.batch.rows, end)
        else:
            column.skip(self.batch.rows)
