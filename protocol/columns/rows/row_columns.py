# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Changed rows as columns: one row for each row that a transaction inserted, updated or deleted, its images as JSON text.

Takes what `Ingest` found in a run, as `event_columns` does; its events must be whole. What is compressed inside an event,
and what a table's columns are called where the binlog does not say, is asked for: `take` stops with OPEN_..., the owner gives
it, and `take` goes on. What cannot be read becomes a row that is only a finding, and the walk goes on.
"""

import cython

from protocol.columns.column_reader import DONE as DONE
from protocol.columns.column_reader import FULL as FULL
from protocol.columns.column_reader import OPEN_PAYLOAD as OPEN_PAYLOAD
from protocol.columns.column_reader import OPEN_ROWS as OPEN_ROWS
from protocol.columns.column_reader import OPEN_TABLE as OPEN_TABLE
from protocol.columns.column_reader import PackedReader
from protocol.columns.rows.row_batch import COLUMNS as COLUMNS
from protocol.columns.rows.row_batch import OPERATIONS as OPERATIONS
from protocol.columns.rows.row_tables import RowTables
from protocol.columns.rows.row_writer import RowWriter

if not cython.compiled:
    from protocol.columns.event_facts import event_finding, is_transaction
    from protocol.kernel.pure import copy_bytes, load32

C_DONE = cython.declare(cython.int, 0)
C_FULL = cython.declare(cython.int, 1)
C_OPEN_ROWS = cython.declare(cython.int, 2)
C_OPEN_PAYLOAD = cython.declare(cython.int, 4)
C_GROW = cython.declare(cython.int, 5)
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

START = cython.declare(cython.int, 3)
INSIDE = cython.declare(cython.int, 4)
SELF_CONTAINED = cython.declare(cython.int, 2)
END = cython.declare(cython.int, 5)
K_ROWS = cython.declare(cython.int, 16)
K_ROW_FRAGMENT = cython.declare(cython.int, 20)
NO_ROOM = cython.declare(cython.int, -2)
SLOT_WANTED = cython.declare(cython.int, 10)
SLOT_MARK = cython.declare(cython.int, 11)  # the plan's number
MICROSECONDS = cython.declare(cython.longlong, 1000000)


class RowColumns(RowWriter):
    """Columns of changed rows, `capacity` rows at most in a batch, from the events that `take` is given.

    `wanted`: names of COLUMNS, None for all; texts that are not wanted are not made. `asks`: stop with OPEN_TABLE at a
    Table_map not seen before: `asked_table` is schema, table and the type codes, to be answered with `described` or
    `not_described`.
    """

    def __init__(self, capacity, wanted=None, asks=False):
        RowWriter.__init__(self, capacity, wanted)
        self.plans = RowTables(self.tables, self.values.plans, asks)
        self.asked_position = 0
        self.begin_file(b"")
        self.begin_batch()

    @property
    def asked_table(self):
        """Schema, table and type codes of the table that `take` stopped for; None: for none."""
        return self.plans.asked

    def keep_names(self, schemas, tables):
        """Only rows of tables with these names (lists of bytes; None: all), for the Table_maps that come from now on."""
        self.tables.set_names(schemas, tables)

    def begin_file(self, post_lengths):
        """Another file or another split of one. `post_lengths`: Ingest's."""
        self.begin_stream(post_lengths)
        self.plans.begin_file(
            4 if self.inference.post_length[19] == 6 else 6, len(post_lengths) > 162 and post_lengths[162] != 0
        )
        self.forget_names()
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

    # ---- events in ----------------------------------------------------------------------------------------------

    def take(self, buf, base, table, count):
        """As ColumnReader; raises what Python code below the walk raised."""
        if self.plans.asked is not None:
            return OPEN_TABLE
        if not self.in_group and self.next_row == 0 and self.plans.are_too_many():
            self.plans.forget()
            self.forget_names()
        return self.raised(PackedReader.take(self, buf, base, table, count))

    def opened_events(self, buf, start, stop):
        """As PackedReader; raises what Python code below the walk raised."""
        if self.plans.asked is not None:
            self.opened_at = start
            return OPEN_TABLE
        return self.raised(PackedReader.opened_events(self, buf, start, stop))

    def raised(self, status):
        if self.values.charsets.failure is not None:
            raise self.values.charsets.failure
        return status

    def resolve(self, status):
        """Does what a walk stopped for; False: the owner is asked."""
        if status != C_PLAN:
            self.make_room()
            return True
        known = self.plans.make_plan()
        if self.plans.malformed:
            self.found(C_EVENT_MALFORMED)
        self.reserve_plan(self.values.plans.count + 1)
        self.asked_position = self.position
        return known

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

    def described(self, description):
        """What `asked_table` was asked for (see column_description.encode_columns).

        False: it has not as many columns as the Table_map, so it is of another version of the table; none is used.
        Raises: Malformed.
        """
        return self.plans.describe(description)

    def not_described(self):
        """Nobody knows the columns of `asked_table`: they are called @1, @2 …"""
        self.plans.add_plan(None)

    def not_opened(self):
        """What was asked for cannot be unpacked."""
        self.found(C_ROWS_UNREADABLE if self.opening == C_OPEN_ROWS else C_PAYLOAD_UNREADABLE)
        self.opening = -1
        self.row_plan = 0
        self.rows_begun = False

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
                return C_DONE  # nothing in a payload is packed once more
            if status != C_DONE:
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
                self.plans.slot = slot
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
