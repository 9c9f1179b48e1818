# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What each event of a transaction counts for: its statements, its rows, its tables, its GTID, and what closes it."""

import cython

from protocol.columns.transactions.transaction_batch import TransactionBatch

if not cython.compiled:
    from protocol.columns.gtid_text import signed
    from protocol.columns.row_event_types import inserts_rows, updates_rows
    from protocol.columns.statement_words import changes_rows
    from protocol.kernel.pure import load16, load64

C_DONE = cython.declare(cython.int, 0)
C_OPEN_ROWS = cython.declare(cython.int, 2)
C_OPEN_QUERY = cython.declare(cython.int, 3)
C_OPEN_PAYLOAD = cython.declare(cython.int, 4)
C_GROW = cython.declare(cython.int, 5)

# Findings, as transaction_columns has them.
C_EVENT_MALFORMED = cython.declare(cython.int, 5)
C_ROWS_UNREADABLE = cython.declare(cython.int, 6)

# Numbers of CLOSERS.
BY_XID = cython.declare(cython.int, 1)
BY_COMMIT = cython.declare(cython.int, 2)
BY_ROLLBACK = cython.declare(cython.int, 3)
BY_XA_PREPARE = cython.declare(cython.int, 4)
BY_XA_COMMIT = cython.declare(cython.int, 5)
BY_XA_ROLLBACK = cython.declare(cython.int, 6)

K_QUERY = cython.declare(cython.int, 7)
K_QUERY_COMPRESSED = cython.declare(cython.int, 8)
K_EXECUTE_LOAD_QUERY = cython.declare(cython.int, 9)
K_LOAD_WHOLE = cython.declare(cython.int, 12)
K_LOAD_CLOSES = cython.declare(cython.int, 14)
K_ROWS = cython.declare(cython.int, 16)
K_ROW_FRAGMENT = cython.declare(cython.int, 20)
S_OTHER = cython.declare(cython.int, 0)
S_COMMIT = cython.declare(cython.int, 2)
S_ROLLBACK = cython.declare(cython.int, 3)
S_XA_COMMIT = cython.declare(cython.int, 5)
S_XA_ROLLBACK = cython.declare(cython.int, 6)
NO_ROOM = cython.declare(cython.int, -2)
SLOT_SCHEMA = cython.declare(cython.int, 3)
SLOT_SCHEMA_LENGTH = cython.declare(cython.int, 4)
SLOT_TABLE = cython.declare(cython.int, 5)
SLOT_TABLE_LENGTH = cython.declare(cython.int, 6)
SLOT_MARK = cython.declare(cython.int, 11)
HAS_DDL = cython.declare(cython.int, 1)
HAS_ROWS = cython.declare(cython.int, 2)
HAS_STATEMENTS = cython.declare(cython.int, 4)


class TransactionCounts(TransactionBatch):
    """`count_rows`: walk rows events for rows_inserted, _updated and _deleted."""

    def __init__(self, capacity, count_rows):
        TransactionBatch.__init__(self, capacity)
        self.counts_rows = count_rows
        self.open_position = 0

    def accumulate(self, p, at, stop, t):
        """Counts what the event in p[at:stop], without checksum, does. DONE, C_GROW: again with more room, or OPEN_..."""
        kind = self.inference.kind[t]
        body = at + 19
        if kind == K_QUERY:
            statement = self.inference.statement_kind(p, at, stop)
            if statement == S_COMMIT:
                self.closed_by = BY_COMMIT
            elif statement == S_ROLLBACK or statement == S_XA_ROLLBACK:
                self.rolled_back = True
                self.closed_by = BY_ROLLBACK if statement == S_ROLLBACK else BY_XA_ROLLBACK
            elif statement == S_XA_COMMIT:
                self.closed_by = BY_XA_COMMIT
            elif statement == S_OTHER:
                self.take_statement(p, self.text_at(p, at), stop)
            elif statement < 0 and self.opening > 0:  # in a payload, where no walker was before
                self.found(C_EVENT_MALFORMED, self.open_position)
        elif kind == K_ROWS:
            return self.take_rows(p, at, stop, t)
        elif t == 19:
            slot = self.tables.take_map(p, body, stop, 4 if self.inference.post_length[19] == 6 else 6)
            if slot == NO_ROOM:
                self.lacks_tables = True
                return C_GROW
            if slot < 0:
                self.found(C_ROWS_UNREADABLE, self.group_end)
            elif self.tables.slots[slot + SLOT_MARK] != self.group:
                if self.table_count * 4 >= self.group_tables.shape[0]:
                    self.lacks_list = True
                    return C_GROW
                self.tables.slots[slot + SLOT_MARK] = self.group
                self.add_table(slot)
        elif t == 38:
            self.closed_by = BY_XA_PREPARE
        elif t == 16:  # Xid
            self.closed_by = BY_XID
            if stop - body >= 8:
                self.xid = signed(load64(p, body))
                self.has_xid = True
        elif t == 33 or t == 34 or t == 42 or t == 162:
            self.gtid.take(p, body, stop, t, at)
        elif kind == K_EXECUTE_LOAD_QUERY or kind == K_LOAD_WHOLE or kind == K_LOAD_CLOSES:
            if t != 11:  # Delete_file: the statement failed
                self.statements += 1
                self.parts |= HAS_STATEMENTS
        elif kind == K_QUERY_COMPRESSED:
            self.open_start = self.text_at(p, at) if stop - at >= 32 else stop + 1
            self.open_stop = stop
            if self.open_start > stop:
                self.found(C_EVENT_MALFORMED, self.group_end)
                return C_DONE
            return C_OPEN_QUERY
        elif t == 40:
            self.open_start = body
            self.open_stop = stop
            return C_OPEN_PAYLOAD
        elif kind == K_ROW_FRAGMENT:
            self.found(C_ROWS_UNREADABLE, self.group_end)
        return C_DONE

    def text_at(self, p, at):
        """Where a Query's text starts."""
        post = self.inference.post_length[2]
        if post < 11:
            post = 13
        return at + 19 + post + (load16(p, at + 30) if post >= 13 else 0) + p[at + 27] + 1

    def take_statement(self, p, at, stop):
        self.statements += 1
        if changes_rows(p, at, stop):
            self.parts |= HAS_STATEMENTS
        else:
            self.parts |= HAS_DDL

    def add_table(self, slot):
        """Notes a table of the group, by its names: after a FLUSH the same table has another id."""
        schema = self.tables.slots[slot + SLOT_SCHEMA]
        schema_length = self.tables.slots[slot + SLOT_SCHEMA_LENGTH]
        table = self.tables.slots[slot + SLOT_TABLE]
        table_length = self.tables.slots[slot + SLOT_TABLE_LENGTH]
        for i in range(self.table_count):
            k = i * 4
            if (
                self.group_tables[k + 1] == schema_length
                and self.group_tables[k + 3] == table_length
                and self.same_names(self.group_tables[k], schema, schema_length)
                and self.same_names(self.group_tables[k + 2], table, table_length)
            ):
                return
        k = self.table_count * 4
        self.group_tables[k] = schema
        self.group_tables[k + 1] = schema_length
        self.group_tables[k + 2] = table
        self.group_tables[k + 3] = table_length
        self.table_count += 1
        self.tables_size += schema_length + table_length + 1

    def same_names(self, a, b, length):
        for i in range(length):
            if self.tables.arena[a + i] != self.tables.arena[b + i]:
                return False
        return True

    def take_rows(self, p, at, stop, t):
        self.row_events += 1
        self.parts |= HAS_ROWS
        if not self.counts_rows:
            return C_DONE
        if t < 23:
            # the first betas of 5.1 wrote rows in the layout of the table's record
            self.found(C_ROWS_UNREADABLE, self.group_end)
            return C_DONE
        rows = self.tables.begin_rows(p, at, stop, t, self.inference.post_length[t])
        if rows < 0:
            self.found(C_ROWS_UNREADABLE, self.group_end)
            return C_DONE
        if t >= 166:
            self.open_start = rows
            self.open_stop = stop
            return C_OPEN_ROWS
        self.add_rows(p, p, rows, stop, t)
        return C_DONE

    def add_rows(self, q, p, at, stop, t):
        """Counts the rows in p[at:stop]; the event's bitmaps stand in q."""
        if self.tables.row_slot < 0:
            self.found(C_ROWS_UNREADABLE, self.group_end)
            return
        update = updates_rows(t)
        count = self.tables.count_rows(q, p, at, stop, self.tables.row_slot, update, t == 39)
        if count < 0:
            self.found(C_ROWS_UNREADABLE, self.group_end)
        elif update:
            self.updated += count
        elif inserts_rows(t):
            self.inserted += count
        else:
            self.deleted += count

    def count_opened_rows(self, p, at, stop, t, position):
        """The rows that `opened` gave, of the event at p[at:stop], whose bitmaps are not compressed."""
        if self.tables.begin_rows(p, at, stop, t, self.inference.post_length[t]) < 0:
            self.found(C_ROWS_UNREADABLE, position)
            return
        if cython.compiled:
            self.add_rows(p, cython.address(self.opened_data[0]), 0, self.opened_size, t)
        else:
            self.add_rows(p, self.opened_data, 0, self.opened_size, t)
