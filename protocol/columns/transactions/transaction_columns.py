# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Transactions as columns: one row for each group of events, counted by the kernel as it walks them.

Takes what `Ingest` found in a run, as `event_columns` does; its events must be whole. What is compressed inside an event is
asked for: `take` stops with OPEN_..., the owner unpacks and gives it back, and `take` goes on.
"""

import cython

from protocol.columns.column_reader import DONE as DONE
from protocol.columns.column_reader import FULL as FULL
from protocol.columns.column_reader import OPEN_PAYLOAD as OPEN_PAYLOAD
from protocol.columns.column_reader import OPEN_QUERY as OPEN_QUERY
from protocol.columns.column_reader import OPEN_ROWS as OPEN_ROWS
from protocol.columns.column_reader import PackedReader
from protocol.columns.transactions.transaction_batch import CLOSERS as CLOSERS
from protocol.columns.transactions.transaction_batch import COLUMNS as COLUMNS
from protocol.columns.transactions.transaction_batch import KINDS as KINDS
from protocol.columns.transactions.transaction_counts import TransactionCounts

if not cython.compiled:
    from protocol.columns.event_facts import event_finding, is_transaction

C_DONE = cython.declare(cython.int, 0)
C_FULL = cython.declare(cython.int, 1)
C_OPEN_ROWS = cython.declare(cython.int, 2)
C_OPEN_QUERY = cython.declare(cython.int, 3)
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
C_ROWS_UNREADABLE = cython.declare(cython.int, 6)
C_PAYLOAD_UNREADABLE = cython.declare(cython.int, 7)
C_TRANSACTION_UNFINISHED = cython.declare(cython.int, 8)

# Numbers of CLOSERS.
BY_NOTHING = cython.declare(cython.int, 0)
BY_STATEMENT = cython.declare(cython.int, 7)

START = cython.declare(cython.int, 3)
INSIDE = cython.declare(cython.int, 4)
SELF_CONTAINED = cython.declare(cython.int, 2)
END = cython.declare(cython.int, 5)
MICROSECONDS = cython.declare(cython.longlong, 1000000)


class TransactionColumns(TransactionCounts):
    """Columns of transactions, `capacity` rows at most in a batch, from the events that `take` is given.

    `count_rows`: walk rows events for rows_inserted, _updated and _deleted.
    """

    def __init__(self, capacity, count_rows=True):
        TransactionCounts.__init__(self, capacity, count_rows)
        self.begin_file(b"")
        self.begin_batch()

    def begin_file(self, post_lengths):
        """Another file or another split of one. `post_lengths`: Ingest's."""
        self.begin_stream(post_lengths)
        self.entered = False
        self.in_group = False
        self.stray = False
        self.pending = False
        self.opening = 0
        self.clear_group(0)

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
