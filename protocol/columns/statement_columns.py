# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Statements as columns, one row each, or the Table_maps of a binlog, each of them once.

It takes what `Ingest` found in a run, as `event_columns` does. It asks for compressed data in an event: `take` stops with OPEN_...,
the owner unpacks the data and gives it back, and `take` continues.
"""

from collections.abc import Collection

import cython

from protocol.columns.column_batch import ColumnBatch
from protocol.columns.column_reader import ColumnReader, EventFacts
from protocol.columns.digest import StatementDigest

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.digest import changes_rows
    from protocol.columns.tables import TableMaps
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, load16, load32

# The format of each column's values, "s": text with nulls, "n": i64 with nulls.
COLUMNS = {
    "position": "q",
    "end": "q",
    "transaction": "n",
    "time": "q",  # µs since 1970
    "server_id": "q",
    "type": "B",
    "thread_id": "n",
    "error_code": "n",
    "sql_mode": "n",  # bits; none if it is not in the event
    "seeds": "B",
    "schema": "s",
    "table": "s",
    "status_variables": "s",  # bytes, no text
    "statement": "s",
    "digest_text": "s",
    "table_map": "s",  # bytes: the body from the flags on
    "finding": "B",
}
_LONG_TEXTS = ("status_variables", "statement", "digest_text", "table_map")


class StatementBatch(ColumnBatch):
    """Rows of statements, or of Table_maps. Only the wanted ones of the long texts are made."""

    def __init__(self, wanted: Collection[str], capacity: int) -> None:
        unknown = [name for name in wanted if name not in COLUMNS]
        if unknown:
            raise ValueError(f"there is no column {', '.join(unknown)}")
        made = {name: kind for name, kind in COLUMNS.items() if name not in _LONG_TEXTS or name in wanted}
        ColumnBatch.__init__(self, capacity, made, 16)
        self.has_status = "status_variables" in wanted
        self.has_statement = "statement" in wanted
        self.has_digest = "digest_text" in wanted
        self.has_map = "table_map" in wanted
        self.schema = self.text("schema")
        self.table = self.text("table")
        self.status = self.text("status_variables")
        self.statement = self.text("statement")
        self.digest_text = self.text("digest_text")
        self.map = self.text("table_map")
        self.lacks_bytes = 0
        self.begin()

    def begin(self) -> None:
        """Begin another batch with new buffers."""
        ColumnBatch.begin(self)
        self.position_out = self.i64("position")
        self.end_out = self.i64("end")
        self.transaction_out = self.i64("transaction")
        self.transaction_valid = self.bits("transaction")
        self.time_out = self.i64("time")
        self.server_id_out = self.i64("server_id")
        self.type_out = self.u8("type")
        self.thread_out = self.i64("thread_id")
        self.thread_valid = self.bits("thread_id")
        self.error_out = self.i64("error_code")
        self.error_valid = self.bits("error_code")
        self.mode_out = self.i64("sql_mode")
        self.mode_valid = self.bits("sql_mode")
        self.seeds_out = self.u8("seeds")
        self.finding_out = self.u8("finding")

    def is_full(self) -> bool:
        return self.rows >= self.capacity or (
            self.rows > 0
            and self.statement.used + self.digest_text.used + self.map.used + self.status.used > STATEMENT_BYTES
        )

    def has_room(self, count: int) -> bool:
        """Return whether a row fits whose longest text has `count` bytes; otherwise `make_room` makes it fit."""
        if (
            self.schema.fits(LONGEST_NAME)
            and self.table.fits(LONGEST_NAME)
            and (not self.has_status or self.status.fits(LONGEST_STATUS))
            and (not self.has_statement or self.statement.fits(count))
            and (not self.has_digest or self.digest_text.fits(count))
            and (not self.has_map or self.map.fits(count))
        ):
            return True
        self.lacks_bytes = count if count > 0 else 1
        return False

    def make_room(self) -> None:
        """Make the room that `has_room` did not find."""
        if not self.lacks_bytes:
            return
        self.schema.grow(LONGEST_NAME)
        self.table.grow(LONGEST_NAME)
        if self.has_status:
            self.status.grow(LONGEST_STATUS)
        if self.has_statement:
            self.statement.grow(self.lacks_bytes)
        if self.has_digest:
            self.digest_text.grow(self.lacks_bytes)
        if self.has_map:
            self.map.grow(self.lacks_bytes)
        self.lacks_bytes = 0

    # ---- parts of one row; the last completes it ----

    def put_event(self, event: EventFacts, t: int, seeds: int) -> None:
        """Put the event's place: for an event in a payload, the payload's."""
        n = self.rows
        self.position_out[n] = event.position
        self.end_out[n] = event.end
        self.time_out[n] = event.time
        self.server_id_out[n] = event.server_id
        self.type_out[n] = t
        self.seeds_out[n] = seeds

    def put_transaction(self, start: int) -> None:
        n = self.rows
        self.transaction_out[n] = start
        self.transaction_valid[n >> 3] |= 1 << (n & 7)

    def put_head(self, thread: int, error: int, mode: int) -> None:
        """Put the fields of a statement's event before the text; `mode` < 0: it is not in the event."""
        n = self.rows
        self.thread_out[n] = thread
        self.thread_valid[n >> 3] |= 1 << (n & 7)
        self.error_out[n] = error
        self.error_valid[n >> 3] |= 1 << (n & 7)
        if mode >= 0:
            self.mode_out[n] = mode
            self.mode_valid[n >> 3] |= 1 << (n & 7)

    def put_status(self, p: Bytes, at: int, count: int) -> None:
        if self.has_status:
            self.status.put(self.rows, p, at, count)

    def skip_text(self) -> None:
        """Record that there is no statement."""
        if self.has_statement:
            self.statement.skip(self.rows)
        if self.has_digest:
            self.digest_text.skip(self.rows)

    def put_table(self, tables: TableMaps, slot: int) -> None:
        """Put the names of the slot's table."""
        self.schema.put(
            self.rows, tables.arena, tables.slots[slot + SLOT_SCHEMA], tables.slots[slot + SLOT_SCHEMA_LENGTH]
        )
        self.table.put(self.rows, tables.arena, tables.slots[slot + SLOT_TABLE], tables.slots[slot + SLOT_TABLE_LENGTH])

    def put_map(self, p: Bytes, at: int, count: int) -> None:
        if self.has_map:
            self.map.put(self.rows, p, at, count)

    def skip_status(self) -> None:
        if self.has_status:
            self.status.skip(self.rows)

    def skip_map(self) -> None:
        if self.has_map:
            self.map.skip(self.rows)

    def put_finding(self, finding: int) -> None:
        """Put the row's defect, which completes the row."""
        self.finding_out[self.rows] = finding
        if finding:
            self.findings += 1
        self.rows += 1


class StatementColumns(ColumnReader):
    """Rows of statements, or with `maps` of Table_maps, in `batch`. `wanted` are names of COLUMNS; `capacity` is the rows of a batch.

    A Table_map is a row if its bytes differ from the last ones for its number: once, or a few times, for a table.
    """

    def __init__(self, wanted: Collection[str], capacity: int, maps: bool = False) -> None:
        ColumnReader.__init__(self)
        self.batch = StatementBatch(wanted, capacity)
        self.maps = maps
        for i in range(256):
            kind = self.inference.kind[i]
            self.takes[i] = not maps and (
                kind == K_SEED or kind == K_QUERY or kind == K_QUERY_COMPRESSED or kind == K_EXECUTE_LOAD_QUERY
            )
        self.takes[TABLE_MAP_EVENT] = maps
        self.takes[TRANSACTION_PAYLOAD_EVENT] = True
        self.digest = StatementDigest()
        self.time_from = -FAR
        self.time_to = FAR
        self.begin_file(b"")

    def keep_times(self, time_from: int, time_to: int) -> None:
        """Keep only rows with time_from <= time <= time_to, in µs since 1970."""
        self.time_from = max(time_from, -FAR)
        self.time_to = min(time_to, FAR)

    def begin_file(self, post_lengths: bytes) -> None:
        """Begin another file or another split of one. `post_lengths` are Ingest's."""
        ColumnReader.begin_file(self, post_lengths)
        self.seeds = 0

    def make_room(self) -> None:
        """Make the room that the last walk did not find."""
        ColumnReader.make_room(self)
        self.batch.make_room()

    def begin_group(self, position: int, server_id: int) -> None:
        self.seeds = 0
        self.tables.between_groups()

    def take_event(self, p: Bytes, at: int, stop: int, t: int) -> int:
        """Take the event in p[at:stop], and write its row, if it has one."""
        if self.opening == NOT_ANSWERED:
            return self.put_statement(p, at, stop, t, PAYLOAD_UNREADABLE)
        if t == TRANSACTION_PAYLOAD_EVENT:
            self.open_start = at + HEADER_SIZE
            self.open_stop = stop
            return OPEN_PAYLOAD
        if self.maps:
            return self.take_map(p, at, stop) if t == TABLE_MAP_EVENT and self.is_wanted() else DONE
        kind = self.inference.kind[t]
        if kind == K_SEED:
            self.note_seed(p, at, stop, t)
        elif kind == K_QUERY or kind == K_QUERY_COMPRESSED or kind == K_EXECUTE_LOAD_QUERY:
            if not self.is_wanted():
                self.seeds = 0
                return DONE
            if kind == K_QUERY_COMPRESSED and self.opening != ANSWERED:
                text = self.inference.query_text(p, at, stop, t)
                if text >= 0:
                    self.open_start = text
                    self.open_stop = stop
                    return OPEN_QUERY
            return self.put_statement(p, at, stop, t, 0)
        return DONE

    def is_wanted(self) -> bool:
        return self.time_from <= self.event.time <= self.time_to

    def note_seed(self, p: Bytes, at: int, stop: int, t: int) -> None:
        """Note a value that the next statement's replay needs; the number of an Intvar's kind is its bit."""
        if t == RAND_EVENT:
            self.seeds |= SEED_RAND
        elif t == USER_VAR_EVENT:
            self.seeds |= SEED_USER_VARIABLE
        elif stop - at > HEADER_SIZE:
            kind = p[at + HEADER_SIZE]
            if kind == SEED_LAST_INSERT_ID or kind == SEED_INSERT_ID:
                self.seeds |= kind

    def begin_row(self, t: int) -> None:
        self.batch.put_event(self.event, t, self.seeds)
        if self.was_open:
            self.batch.put_transaction(self.group_start)

    def end_row(self, finding: int) -> None:
        if finding == 0 and self.event.info & INFO_BAD_CHECKSUM:
            finding = CHECKSUM_MISMATCH
        self.batch.put_finding(finding)

    def put_statement(self, p: Bytes, at: int, stop: int, t: int, finding: int) -> int:
        """Put the row of a statement; with `finding`, the row of one that cannot be read."""
        if self.batch.is_full():
            return FULL
        text = -1
        if t != TRANSACTION_PAYLOAD_EVENT:
            text = self.inference.query_text(p, at, stop, t)
        size = 0
        if text >= 0:
            size = self.opened_size if self.opening == ANSWERED else stop - text
        if not self.batch.has_room(size):
            return GROW
        if text < 0 and finding == 0:
            finding = EVENT_MALFORMED
        self.begin_row(t)
        self.batch.table.skip(self.batch.rows)
        self.batch.skip_map()
        mode = -1
        if text < 0:
            self.batch.schema.skip(self.batch.rows)
            self.batch.skip_status()
        else:
            body = at + HEADER_SIZE
            schema_length = p[body + QUERY_SCHEMA_LENGTH_AT]
            schema = text - 1 - schema_length
            status = schema - self.inference.status_length
            mode = sql_mode(p, status, schema)
            self.batch.put_head(load32(p, body), load16(p, body + QUERY_ERROR_AT), mode)
            self.batch.schema.put(self.batch.rows, p, schema, schema_length)
            self.batch.put_status(p, status, schema - status)
        if text < 0 or finding == PAYLOAD_UNREADABLE:
            self.batch.skip_text()
        elif self.opening == ANSWERED:
            self.put_text(self.opened_data, 0, size, mode)
        else:
            self.put_text(p, text, size, mode)
        self.seeds = 0
        self.end_row(finding)
        return DONE

    def put_text(self, p: Bytes, at: int, size: int, mode: int) -> None:
        """Put the statement and its digest text, which is made of statements that change rows; others are kept as they are."""
        row = self.batch.rows
        if self.batch.has_statement:
            self.batch.statement.put(row, p, at, size)
        if not self.batch.has_digest:
            return
        if not changes_rows(p, at, at + size):
            self.batch.digest_text.put(row, p, at, size)
            return
        used = self.digest.write(
            p,
            at,
            at + size,
            self.batch.digest_text.data,
            self.batch.digest_text.used,
            mode >= 0 and mode & ANSI_QUOTES != 0,
            mode >= 0 and mode & NO_BACKSLASH_ESCAPES != 0,
        )
        self.batch.digest_text.close(row, used)

    def take_map(self, p: Bytes, at: int, stop: int) -> int:
        """Take a new Table_map, and write its row."""
        if self.batch.is_full():
            return FULL
        if not self.batch.has_room(stop - at):
            return GROW
        known = self.tables.seen
        slot = self.learn_map(p, at, stop)
        if slot == NO_ROOM:
            return GROW
        if slot >= 0 and self.tables.seen == known:
            return DONE
        self.begin_row(TABLE_MAP_EVENT)
        self.batch.skip_status()
        self.batch.skip_text()
        if slot < 0:
            self.batch.schema.skip(self.batch.rows)
            self.batch.table.skip(self.batch.rows)
            self.batch.skip_map()
        else:
            flags = at + HEADER_SIZE + self.tables.id_size
            self.batch.put_table(self.tables, slot)
            self.batch.put_map(p, flags, stop - flags)
        self.end_row(EVENT_MALFORMED if slot < 0 else 0)
        return DONE


def sql_mode(p: Bytes, at: int, end: int) -> int:
    """Return the statement's sql_mode, which servers write among the first of the status variables, p[at:end].

    -1 without, or with an invalid one, whose highest bit is set.
    """
    if at + 5 <= end and p[at] == VARIABLE_FLAGS:
        at += 5
    if at + 9 <= end and p[at] == VARIABLE_SQL_MODE:
        low = load32(p, at + 1)
        high = load32(p, at + 5)
        return -1 if high >> 31 else high << 32 | low
    return -1
