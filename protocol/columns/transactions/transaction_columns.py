# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Transactions as columns: one row for each group of events, counted by the kernel as it walks them.

Takes what `Ingest` found in a run, as `event_columns` does; its events must be whole. What is compressed inside an event is
asked for: `take` stops with OPEN_..., the owner unpacks and gives it back, and `take` goes on.
"""

import cython

from protocol.columns.column_reader import GroupReader, PackedReader
from protocol.columns.transactions.transaction_batch import CLOSERS as CLOSERS
from protocol.columns.transactions.transaction_batch import COLUMNS as COLUMNS
from protocol.columns.transactions.transaction_batch import KINDS as KINDS
from protocol.columns.transactions.transaction_batch import Transaction, TransactionBatch

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.digest import changes_rows
    from protocol.columns.tables import inserts_rows, is_packed, updates_rows
    from protocol.kernel.codes import *
    from protocol.kernel.inference import kind_of_text
    from protocol.kernel.pure import Bytes, load64, signed64


class TransactionColumns(GroupReader):
    """Rows of transactions, in `batch`, `capacity` of them at most, from the events that `take` is given.

    `count_rows`: walk rows events for rows_inserted, _updated and _deleted.
    """

    def __init__(self, capacity: int, count_rows: bool = True) -> None:
        GroupReader.__init__(self)
        self.transaction = Transaction()
        self.batch = TransactionBatch(capacity)
        self.counts_rows = count_rows
        self.groups_findings = True
        self.first_from = self.last_from = -FAR
        self.first_to = self.last_to = FAR
        self.only_findings = False
        self.begin_file(b"")

    def keep_times(self, first_from: int, first_to: int, last_from: int, last_to: int) -> None:
        """Only transactions whose first and last time, in µs, are in these ranges (both ends included)."""
        self.first_from = max(first_from, -FAR)
        self.first_to = min(first_to, FAR)
        self.last_from = max(last_from, -FAR)
        self.last_to = min(last_to, FAR)

    def keep_findings(self) -> None:
        """Only transactions with which something is wrong."""
        self.only_findings = True

    def begin_file(self, post_lengths: bytes) -> None:
        """Another file or another split of one. `post_lengths`: Ingest's."""
        GroupReader.begin_file(self, post_lengths)
        self.pending = False

    def make_room(self) -> None:
        """Of what the last walk did not find room for."""
        GroupReader.make_room(self)
        self.transaction.grow()
        self.batch.make_room(self.transaction)

    def opened(self, data: bytes) -> None:
        """What was asked for with OPEN_ROWS or OPEN_QUERY, unpacked."""
        query = self.opening == OPEN_QUERY
        PackedReader.opened(self, data)
        if query:
            self.count_statement(self.opened_data, 0, self.opened_size)
            self.opening = EVENT_DONE

    def not_opened(self) -> None:
        """What was asked for cannot be unpacked."""
        finding = ROWS_UNREADABLE if self.opening == OPEN_ROWS else PAYLOAD_UNREADABLE
        self.transaction.found(finding, self.event.position)
        self.opening = EVENT_DONE

    # ---- groups ----

    def begin_group(self) -> None:
        self.transaction.begin(self.event.position, self.event.server_id)

    def leave(self) -> None:
        if self.in_group:
            self.transaction.count(self.event)
        GroupReader.leave(self)

    def end_group(self, unfinished: bool) -> None:
        if unfinished:
            self.transaction.found(TRANSACTION_UNFINISHED, self.transaction.start)
        elif not self.stray and self.transaction.closed_by == CLOSED_BY_NOTHING:
            self.transaction.closed_by = CLOSED_BY_STATEMENT
        if self.transaction.last_time < 0:
            self.transaction.first_time = self.transaction.last_time = 0
        self.pending = self.is_wanted()

    def is_wanted(self) -> bool:
        return self.transaction.finding != 0 or (
            not self.only_findings
            and self.first_from <= self.transaction.first_time <= self.first_to
            and self.last_from <= self.transaction.last_time <= self.last_to
        )

    def flush(self) -> int:
        if self.pending:
            if not self.batch.put(self.transaction, self.tables):
                return FULL if self.batch.rows else GROW
            self.pending = False
        return DONE

    # ---- what events count for ----

    def take_event(self, p: Bytes, at: int, stop: int, t: int) -> int:
        if not self.in_group:
            return DONE
        kind = self.inference.kind[t]
        if kind == K_ROWS:
            return self.take_rows(p, at, stop, t)
        if t == TABLE_MAP_EVENT:
            slot = self.learn_map(p, at, stop)
            if slot == NO_ROOM:
                return GROW
            if slot < 0:
                self.found(ROWS_UNREADABLE)
            elif not self.transaction.note_table(self.tables, slot):
                return GROW
        elif kind == K_QUERY:
            self.take_query(p, at, stop, t)
        elif t == XID_EVENT:
            self.transaction.closed_by = CLOSED_BY_XID
            if stop - at >= HEADER_SIZE + 8:
                self.transaction.xid = signed64(load64(p, at + HEADER_SIZE))
                self.transaction.has_xid = True
        elif kind == K_GTID or kind == K_MARIADB_GTID:
            self.transaction.gtid.take(p, at, stop, t)
        elif t == XA_PREPARE_EVENT:
            self.transaction.closed_by = CLOSED_BY_XA_PREPARE
        elif kind == K_EXECUTE_LOAD_QUERY or kind == K_LOAD_WHOLE or kind == K_LOAD_CLOSES:
            if t != DELETE_FILE_EVENT:  # the statement failed
                self.transaction.statements += 1
                self.transaction.parts |= HAS_STATEMENTS
        elif kind == K_QUERY_COMPRESSED:
            self.open_start = self.inference.query_text(p, at, stop, t)
            self.open_stop = stop
            if self.open_start >= 0:
                return OPEN_QUERY
            self.found(EVENT_MALFORMED)
        elif t == TRANSACTION_PAYLOAD_EVENT:
            self.open_start = at + HEADER_SIZE
            self.open_stop = stop
            return OPEN_PAYLOAD
        elif kind == K_ROW_FRAGMENT:
            self.found(ROWS_UNREADABLE)
        return DONE

    def found(self, finding: int) -> None:
        """Something is wrong with the event; with one of a payload, where the payload stands."""
        self.transaction.found(finding, self.event.position)

    def take_query(self, p: Bytes, at: int, stop: int, t: int) -> None:
        text = self.inference.query_text(p, at, stop, t)
        if text < 0:
            if self.opening > NOTHING_ASKED:  # in a payload, where no walker was before
                self.found(EVENT_MALFORMED)
            return
        statement = kind_of_text(p, text, stop)
        if statement == S_OTHER:
            self.count_statement(p, text, stop)
        elif statement == S_COMMIT:
            self.transaction.closed_by = CLOSED_BY_COMMIT
        elif statement == S_XA_COMMIT:
            self.transaction.closed_by = CLOSED_BY_XA_COMMIT
        elif statement == S_ROLLBACK or statement == S_XA_ROLLBACK:
            self.transaction.rolled_back = True
            self.transaction.closed_by = CLOSED_BY_ROLLBACK if statement == S_ROLLBACK else CLOSED_BY_XA_ROLLBACK

    def count_statement(self, p: Bytes, at: int, stop: int) -> None:
        self.transaction.statements += 1
        self.transaction.parts |= HAS_STATEMENTS if changes_rows(p, at, stop) else HAS_DDL

    def take_rows(self, p: Bytes, at: int, stop: int, t: int) -> int:
        if self.opening != ANSWERED:
            self.transaction.row_events += 1
            self.transaction.parts |= HAS_ROWS
        if not self.counts_rows:
            return DONE
        if t <= PRE_GA_DELETE_ROWS_EVENT:
            # the first betas of 5.1 wrote rows in the layout of the table's record
            self.found(ROWS_UNREADABLE)
            return DONE
        rows = self.tables.begin_rows(p, at, stop, t, self.inference.post_length[t])
        if rows < 0:
            self.found(ROWS_UNREADABLE)
        elif not is_packed(t):
            self.count_rows(p, rows, stop, t)
        elif self.opening == ANSWERED:
            self.count_rows(self.opened_data, 0, self.opened_size, t)
        else:
            self.open_start = rows
            self.open_stop = stop
            return OPEN_ROWS
        return DONE

    def count_rows(self, p: Bytes, at: int, stop: int, t: int) -> None:
        """Counts the rows in p[at:stop] of the rows event that is read."""
        count = -1
        update = updates_rows(t)
        if self.tables.row_slot >= 0:
            count = self.tables.count_rows(p, at, stop, update, t == PARTIAL_UPDATE_ROWS_EVENT)
        if count < 0:
            self.found(ROWS_UNREADABLE)
        elif update:
            self.transaction.updated += count
        elif inserts_rows(t):
            self.transaction.inserted += count
        else:
            self.transaction.deleted += count
