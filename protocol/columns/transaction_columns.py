# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Transactions as columns: one row for each group of events, counted by the kernel as it walks them.

It takes what `Ingest` found in a run, as `event_columns` does; its events must be whole. It asks for compressed data in an event:
`take` stops with OPEN_..., the owner unpacks the data and gives it back, and `take` continues.
"""

import cython

from protocol.columns.column_batch import ColumnBatch
from protocol.columns.column_reader import ColumnReader, EventFacts, GroupReader
from protocol.columns.gtid_text import GtidText
from protocol.columns.tables import TableMaps

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.digest import changes_rows
    from protocol.columns.tables import inserts_rows, is_packed, same_bytes, table_id_size, updates_rows
    from protocol.kernel.codes import *
    from protocol.kernel.inference import kind_of_text
    from protocol.kernel.pure import Bytes, bytes_of, copy_bytes, ints_of, load16, load64, longs_of, signed64

# Values of `kind`.
KINDS = ("none", "ddl", "row", "statement", "mixed")
# Values of `closed_by`: the event that ends the group; "statement": one that is, or ends, a group by itself.
CLOSERS = ("none", "xid", "commit", "rollback", "xa_prepare", "xa_commit", "xa_rollback", "statement")

# The format of each column's values, "s": text with nulls, "n": i64 with nulls, "l": list of texts.
COLUMNS = {
    "start": "q",
    "end": "q",
    "first_time": "q",  # µs since 1970, the least and greatest of its events
    "last_time": "q",
    "server_id": "q",
    "gtid": "s",
    "xid": "n",
    "kind": "B",
    "events": "q",
    "statements": "q",
    "row_events": "q",
    "row_flags": "n",  # bits that all of its events have that update or delete rows; null: it has none
    "rows_inserted": "q",
    "rows_updated": "q",
    "rows_deleted": "q",
    "tables": "l",
    "rolled_back": "B",
    "closed_by": "B",
    "violations": "q",
    "finding": "B",
    "finding_position": "q",
}


class Transaction:
    """The counts of a group so far. `number` is its mark in the slots of tables; `tables` contains its tables, with the places of
    their names in the arena. `last_time` is -1 if no event had a time.
    """

    def __init__(self) -> None:
        self.number = 0
        self.gtid = GtidText()
        self.table_room = 16
        self.table_bytes = bytearray(self.table_room * TABLE_NUMBERS * 8)
        self.tables = longs_of(self.table_bytes)
        self.lacks_room = False
        self.begin(0, 0)

    def begin(self, position: int, server_id: int) -> None:
        """Begin another group at `position`."""
        self.number += 1
        self.start = position
        self.end = position
        self.server_id = server_id
        self.first_time = FAR
        self.last_time = -1
        self.gtid.length = 0
        self.xid = 0
        self.has_xid = False
        self.parts = 0
        self.events = self.statements = self.row_events = 0
        self.inserted = self.updated = self.deleted = 0
        self.row_flags = -1
        self.rolled_back = False
        self.closed_by = CLOSED_BY_NOTHING
        self.violations = 0
        self.finding = 0
        self.finding_position = 0
        self.table_count = 0
        self.tables_size = 0

    def found(self, finding: int, position: int) -> None:
        """Record a defect of the group; the first counts."""
        if self.finding == 0:
            self.finding = finding
            self.finding_position = position

    def count(self, event: EventFacts) -> None:
        """Count what all events have in common."""
        if event.info & INFO_VIOLATION:
            self.violations += 1
        if event.finding:
            self.found(event.finding, event.position)
        self.events += 1
        self.end = event.end
        if event.time:
            if event.time < self.first_time:
                self.first_time = event.time
            if event.time > self.last_time:
                self.last_time = event.time

    def note_table(self, maps: TableMaps, slot: int) -> bool:
        """Note a table by its names: after a FLUSH the same table has another id. False: `grow`, and again."""
        if maps.slots[slot + SLOT_MARK] == self.number:
            return True
        if self.table_count >= self.table_room:
            self.lacks_room = True
            return False
        maps.slots[slot + SLOT_MARK] = self.number
        schema = maps.slots[slot + SLOT_SCHEMA]
        schema_length = maps.slots[slot + SLOT_SCHEMA_LENGTH]
        table = maps.slots[slot + SLOT_TABLE]
        table_length = maps.slots[slot + SLOT_TABLE_LENGTH]
        for i in range(self.table_count):
            k = i * TABLE_NUMBERS
            if (
                self.tables[k + 1] == schema_length
                and self.tables[k + 3] == table_length
                and same_bytes(maps.arena, self.tables[k], maps.arena, schema, schema_length)
                and same_bytes(maps.arena, self.tables[k + 2], maps.arena, table, table_length)
            ):
                return True
        k = self.table_count * TABLE_NUMBERS
        self.tables[k] = schema
        self.tables[k + 1] = schema_length
        self.tables[k + 2] = table
        self.tables[k + 3] = table_length
        self.table_count += 1
        self.tables_size += schema_length + table_length + 1
        return True

    def grow(self) -> None:
        """Make the room that `note_table` did not find."""
        if self.lacks_room:
            self.table_room = self.table_room * 2
            self.table_bytes = self.table_bytes + bytes(len(self.table_bytes))
            self.tables = longs_of(self.table_bytes)
            self.lacks_room = False


class TransactionBatch(ColumnBatch):
    """Rows of transactions. The lists of their tables contain at most `list_room` names, with `names_room` bytes."""

    def __init__(self, capacity: int) -> None:
        ColumnBatch.__init__(self, capacity, COLUMNS, 48)
        self.names_room = capacity * 32 + 4096
        self.list_room = capacity * 2 + 64
        self.gtid = self.text("gtid")
        self.begin()

    def begin(self) -> None:
        """Begin another batch with new buffers."""
        ColumnBatch.begin(self)
        self.names_used = self.list_used = 0
        self.name_offset_bytes = bytearray(4 * (self.list_room + 1))
        self.name_bytes = bytearray(self.names_room)
        self.start_out = self.i64("start")
        self.end_out = self.i64("end")
        self.first_out = self.i64("first_time")
        self.last_out = self.i64("last_time")
        self.server_out = self.i64("server_id")
        self.xid_out = self.i64("xid")
        self.xid_valid = self.bits("xid")
        self.kind_out = self.u8("kind")
        self.events_out = self.i64("events")
        self.statements_out = self.i64("statements")
        self.row_events_out = self.i64("row_events")
        self.row_flags_out = self.i64("row_flags")
        self.row_flags_valid = self.bits("row_flags")
        self.inserted_out = self.i64("rows_inserted")
        self.updated_out = self.i64("rows_updated")
        self.deleted_out = self.i64("rows_deleted")
        self.tables_out = self.i32("tables")
        self.name_offsets = ints_of(self.name_offset_bytes)
        self.names = bytes_of(self.name_bytes)
        self.rolled_back_out = self.u8("rolled_back")
        self.closed_by_out = self.u8("closed_by")
        self.violations_out = self.i64("violations")
        self.finding_out = self.u8("finding")
        self.finding_position_out = self.i64("finding_position")

    def list_column(self, name: str) -> tuple[bytearray, int, bytearray, bytearray]:
        """Return offsets of the lists (i32, rows + 1 of them), the number of their texts, and offsets and bytes of the texts."""
        return self.buffers[name], self.list_used, self.name_offset_bytes, self.name_bytes

    def make_room(self, transaction: Transaction) -> None:
        """Give an empty batch room for the transaction."""
        if self.rows == 0 and (transaction.tables_size > self.names_room or transaction.table_count > self.list_room):
            self.names_room = max(self.names_room, transaction.tables_size * 2)
            self.list_room = max(self.list_room, transaction.table_count * 2)
            self.begin()

    def put(self, transaction: Transaction, maps: TableMaps) -> bool:
        """Put a row; False: no room in this batch."""
        n = self.rows
        if (
            n >= self.capacity
            or not self.gtid.fits(transaction.gtid.length)
            or self.names_used + transaction.tables_size > self.names_room
            or self.list_used + transaction.table_count > self.list_room
        ):
            return False
        self.start_out[n] = transaction.start
        self.end_out[n] = transaction.end
        self.first_out[n] = transaction.first_time
        self.last_out[n] = transaction.last_time
        self.server_out[n] = transaction.server_id
        if transaction.gtid.length:
            self.gtid.put(n, transaction.gtid.text, 0, transaction.gtid.length)
        else:
            self.gtid.skip(n)
        if transaction.has_xid:
            self.xid_out[n] = transaction.xid
            self.xid_valid[n >> 3] |= 1 << (n & 7)
        self.kind_out[n] = kind_of(transaction.parts)
        self.events_out[n] = transaction.events
        self.statements_out[n] = transaction.statements
        self.row_events_out[n] = transaction.row_events
        if transaction.row_flags >= 0:
            self.row_flags_out[n] = transaction.row_flags
            self.row_flags_valid[n >> 3] |= 1 << (n & 7)
        self.inserted_out[n] = transaction.inserted
        self.updated_out[n] = transaction.updated
        self.deleted_out[n] = transaction.deleted
        self.put_tables(transaction, maps)
        self.rolled_back_out[n] = transaction.rolled_back
        self.closed_by_out[n] = transaction.closed_by
        self.violations_out[n] = transaction.violations
        self.finding_out[n] = transaction.finding
        self.finding_position_out[n] = transaction.finding_position
        if transaction.finding:
            self.findings += 1
        self.rows = n + 1
        return True

    def put_tables(self, transaction: Transaction, maps: TableMaps) -> None:
        for i in range(transaction.table_count):
            k = i * TABLE_NUMBERS
            self.put_name(maps, transaction.tables[k], transaction.tables[k + 1])
            self.names[self.names_used] = 46
            self.names_used += 1
            self.put_name(maps, transaction.tables[k + 2], transaction.tables[k + 3])
            self.list_used += 1
            self.name_offsets[self.list_used] = self.names_used
        self.tables_out[self.rows + 1] = self.list_used

    def put_name(self, maps: TableMaps, at: int, length: int) -> None:
        copy_bytes(self.names, self.names_used, maps.arena, at, length)
        self.names_used += length


def kind_of(parts: int) -> int:
    """Return the number in KINDS of a transaction's contents."""
    if parts == 0:
        return KIND_NONE
    if parts == HAS_DDL:
        return KIND_DDL
    if parts == HAS_ROWS:
        return KIND_ROWS
    return KIND_STATEMENTS if parts == HAS_STATEMENTS else KIND_MIXED


class TransactionColumns(GroupReader):
    """Rows of transactions, in `batch`, `capacity` of them at most, from the events that `take` gets.

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
        """Keep only transactions whose first and last time, in µs, are in these ranges (both ends included)."""
        self.first_from = max(first_from, -FAR)
        self.first_to = min(first_to, FAR)
        self.last_from = max(last_from, -FAR)
        self.last_to = min(last_to, FAR)

    def keep_findings(self) -> None:
        """Keep only transactions with a defect."""
        self.only_findings = True

    def make_room(self) -> None:
        """Make the room that the last walk did not find."""
        GroupReader.make_room(self)
        self.transaction.grow()
        self.batch.make_room(self.transaction)

    def opened(self, data: bytes) -> None:
        """Accept the unpacked data that was asked for with OPEN_ROWS or OPEN_QUERY."""
        query = self.opening == OPEN_QUERY
        ColumnReader.opened(self, data)
        if query:
            self.count_statement(self.opened_data, 0, self.opened_size)
            self.opening = EVENT_DONE

    def not_opened(self) -> None:
        """Note that the data that was asked for cannot be unpacked."""
        finding = ROWS_UNREADABLE if self.opening == OPEN_ROWS else PAYLOAD_UNREADABLE
        self.transaction.found(finding, self.event.position)
        self.opening = EVENT_DONE

    # ---- groups ----

    def begin_group(self, position: int, server_id: int) -> None:
        self.transaction.begin(position, server_id)

    def leave(self) -> None:
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
        if not self.batch.put(self.transaction, self.tables):
            return FULL if self.batch.rows else GROW
        self.pending = False
        return DONE

    # ---- counting events ----

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
        """Record a defect of the event; for an event of a payload, at the payload's position."""
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
            if not inserts_rows(t):
                self.note_flags(p, at, stop, t)
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

    def note_flags(self, p: Bytes, at: int, stop: int, t: int) -> None:
        """Note the flags of a rows event, which follow the table's id."""
        k = at + HEADER_SIZE + table_id_size(self.inference.post_length[t])
        if k + 2 <= stop:
            flags = load16(p, k)
            self.transaction.row_flags = flags if self.transaction.row_flags < 0 else self.transaction.row_flags & flags

    def count_rows(self, p: Bytes, at: int, stop: int, t: int) -> None:
        """Count the rows in p[at:stop] of the rows event that is read."""
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
