# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Changed rows as columns: one row for each row that a transaction inserted, updated or deleted, its images as JSON text.

It takes what `Ingest` found in a run, as `event_columns` does; its events must be whole. It asks for compressed data in an event, and
for the names of a table's columns that the binlog does not contain: `take` stops with OPEN_..., the owner answers, and `take`
continues. A part that cannot be read becomes a row that is only a finding, and the walk continues.
"""

from array import array
from collections.abc import Iterable, Sequence

import cython

from protocol.columns.column_reader import ColumnReader, GroupReader
from protocol.columns.rows.row_batch import COLUMNS as COLUMNS
from protocol.columns.rows.row_batch import NAMED as NAMED
from protocol.columns.rows.row_batch import OPERATIONS as OPERATIONS
from protocol.columns.rows.row_batch import VALUES as VALUES
from protocol.columns.rows.row_batch import RowBatch
from protocol.columns.rows.row_values import RowValues
from protocol.columns.rows.row_writer import RowWriter
from protocol.columns.rows.table_plans import RowTables

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.tables import is_packed
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes


class RowColumns(GroupReader):
    """Rows of changed rows, in `batch`, `capacity` of them at most, from the events that `take` gets.

    `wanted` are names of COLUMNS, None for all, and VALUES; texts that are not wanted are not made. With `asks` it stops with
    OPEN_TABLE at a new Table_map: `asked_table` is schema, table, the type codes and their arguments, to be answered with `described`
    or `not_described`; `asked_position` is the event's position.
    """

    def __init__(self, capacity: int, wanted: Iterable[str] | None = None, asks: bool = False) -> None:
        GroupReader.__init__(self)
        values = RowValues()
        self.batch = RowBatch(capacity, wanted, self.tables, self.event, values.plans)
        self.writer = RowWriter(self.tables, self.batch, values)
        self.plans = RowTables(self.tables, values.plans, asks)
        self.asked_position = 0
        self.time_from = -FAR
        self.time_to = FAR
        self.keeps_inserts = self.keeps_updates = self.keeps_deletes = True
        self.begin_file(b"")

    @property
    def asked_table(self) -> tuple[bytes, bytes, bytes, list[tuple[int, int]]] | None:
        """Schema, table, type codes and their arguments of the table for which `take` stopped; None: there is none."""
        return self.plans.asked

    def keep_names(self, schemas: Sequence[bytes] | None, tables: Sequence[bytes] | None) -> None:
        """Keep only rows of tables with these names (None: all), for the Table_maps that come from now on."""
        self.tables.set_names(schemas, tables)

    def keep_times(self, low: int, high: int) -> None:
        """Keep only rows whose event's time, in µs, is in this range (both ends included)."""
        self.time_from = max(low, -FAR)
        self.time_to = min(high, FAR)

    def keep_operations(self, names: Iterable[str]) -> None:
        """Keep only rows of these OPERATIONS."""
        wanted = set(names)
        self.keeps_inserts = "insert" in wanted
        self.keeps_updates = "update" in wanted
        self.keeps_deletes = "delete" in wanted

    def begin_file(self, post_lengths: bytes) -> None:
        """Begin another file or another split of one. `post_lengths` are Ingest's."""
        GroupReader.begin_file(self, post_lengths)
        self.plans.begin_file(len(post_lengths) > MARIADB_GTID_EVENT and post_lengths[MARIADB_GTID_EVENT] != 0)
        self.batch.begin_file()
        self.writer.begin_file()

    # ---- what Python does between two walks ----

    def take(self, buf: Bytes, base: int, table: "array[int]", count: int) -> int:
        """Take rows like ColumnReader; raise the errors of Python code below the walk."""
        if self.plans.asked is not None:
            return OPEN_TABLE
        if not self.in_group and self.next_row == 0 and self.plans.are_too_many():
            self.plans.forget()
            self.batch.forget_names()
        return self.raised(ColumnReader.take(self, buf, base, table, count))

    def opened_events(self, buf: Bytes, start: int, stop: int) -> int:
        """Take a payload's events like ColumnReader; raise the errors of Python code below the walk."""
        if self.plans.asked is not None:
            self.opened_at = start
            return OPEN_TABLE
        return self.raised(ColumnReader.opened_events(self, buf, start, stop))

    def raised(self, status: int) -> int:
        if self.writer.values.charsets.failure is not None:
            raise self.writer.values.charsets.failure
        return status

    def resolve(self, status: int) -> bool:
        """Provide what stopped a walk; False: the owner must answer."""
        if status != PLAN:
            self.make_room()
            return True
        known = self.plans.make_plan()
        if self.plans.malformed:
            self.found(EVENT_MALFORMED)
        self.batch.reserve_plan(self.plans.plans.count + 1)
        self.asked_position = self.event.position
        return known

    def make_room(self) -> None:
        """Make the room that the last walk did not find."""
        GroupReader.make_room(self)
        self.batch.make_room()

    def described(self, description: bytes, named_by: int = NAMED_BY_RECORD) -> bool:
        """Answer `asked_table` with a description (see column_description.encode_columns) and its origin.

        False: its number of columns differs from the Table_map's, so it is of another version of the table; none is used.
        Raises: Malformed.
        """
        return self.plans.describe(description, named_by)

    def not_described(self) -> None:
        """Answer that the columns of `asked_table` are unknown: they are named @1, @2 …"""
        self.plans.add_plan(None, NAMED_BY_NOBODY)

    def not_opened(self) -> None:
        """Note that the data that was asked for cannot be unpacked."""
        self.batch.plan = 0
        self.found(ROWS_UNREADABLE if self.opening == OPEN_ROWS else PAYLOAD_UNREADABLE)
        self.opening = EVENT_DONE
        self.writer.begun = False

    # ---- groups ----

    def found(self, finding: int) -> None:
        """Record a defect of the event: a row for it comes next."""
        self.batch.found(finding)
        self.pending = True

    def flush(self) -> int:
        if not self.batch.put_finding():
            return FULL if self.batch.rows else GROW
        self.pending = False
        return DONE

    def leave(self) -> None:
        if self.event.finding and not self.writer.finding_shown:
            self.found(self.event.finding)
        self.writer.finding_shown = False
        GroupReader.leave(self)

    def begin_group(self, position: int, server_id: int) -> None:
        self.batch.begin_group(position, server_id)

    def end_group(self, unfinished: bool) -> None:
        if unfinished:
            self.batch.plan = 0
            self.batch.finding = TRANSACTION_UNFINISHED
            self.batch.finding_position = self.batch.group_start
            self.pending = True

    # ---- events ----

    def take_event(self, p: Bytes, at: int, stop: int, t: int) -> int:
        kind = self.inference.kind[t]
        if kind == K_ROWS and self.in_group:
            return self.take_rows(p, at, stop, t)
        self.batch.plan = 0
        if not self.in_group:
            if self.event.finding:
                self.found(self.event.finding)
            return DONE
        if t == TABLE_MAP_EVENT:
            return self.take_map(p, at, stop)
        if t == ROWS_QUERY_EVENT:  # a length that is not right above 255, text
            return self.take_statement(p, at + HEADER_SIZE + 1, stop)
        if t == ANNOTATE_ROWS_EVENT:
            return self.take_statement(p, at + HEADER_SIZE, stop)
        if kind == K_GTID or kind == K_MARIADB_GTID:
            self.batch.gtid.take(p, at, stop, t)
            self.batch.gtid_number = -1
        elif t == TRANSACTION_PAYLOAD_EVENT:
            self.open_start = at + HEADER_SIZE
            self.open_stop = stop
            return OPEN_PAYLOAD
        elif kind == K_ROW_FRAGMENT:
            self.found(ROWS_UNREADABLE)
        return DONE

    def take_rows(self, p: Bytes, at: int, stop: int, t: int) -> int:
        status = DONE
        if self.begin_rows(p, at, stop, t):
            if self.opening == ANSWERED:
                status = self.writer.put_rows(self.opened_data, self.opened_size)
            elif is_packed(t):
                return OPEN_ROWS
            else:
                status = self.writer.put_rows(p, stop)
            if status == DONE and self.inference.ends_statement(p, at, t):
                self.batch.end_statement()
        self.pending = self.batch.finding != 0
        return status

    def begin_rows(self, p: Bytes, at: int, stop: int, t: int) -> bool:
        """Read the rows event up to its rows, unless that is done already; False: they cannot be read."""
        if self.writer.begun:
            self.tables.stand_in(p)
            return True
        rows = self.writer.begin(p, at, stop, t, self.inference.post_length[t])
        if rows < 0:
            return False
        self.open_start = rows
        self.open_stop = stop
        if not is_packed(t):
            self.writer.begin_rows(rows, self.wants(self.writer.operation))
        elif self.opening == ANSWERED:
            self.writer.begin_rows(0, self.wants(self.writer.operation))
        return True

    def wants(self, operation: int) -> bool:
        """Return whether the filter includes rows of the event."""
        if self.event.time < self.time_from or self.event.time > self.time_to:
            return False
        if operation == OPERATION_INSERT:
            return self.keeps_inserts
        return self.keeps_updates if operation == OPERATION_UPDATE else self.keeps_deletes

    def take_map(self, p: Bytes, at: int, stop: int) -> int:
        slot = self.learn_map(p, at, stop)
        if slot == NO_ROOM:
            return GROW
        if slot < 0:
            self.found(EVENT_MALFORMED)
        elif self.tables.slots[slot + SLOT_MARK] < 0:
            if self.tables.slots[slot + SLOT_WANTED]:
                self.plans.slot = slot
                return PLAN
            self.tables.slots[slot + SLOT_MARK] = 0
        return DONE

    def take_statement(self, p: Bytes, at: int, stop: int) -> int:
        if self.batch.makes_statement and at <= stop and not self.batch.note_statement(p, at, stop - at):
            return GROW
        return DONE
