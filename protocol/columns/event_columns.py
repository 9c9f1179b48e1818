# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Events as columns: the events of a run that the kernel's walker found become buffers in the layout of Apache Arrow.

`Ingest`, with a table and `detailed`, checks and infers; this adds the content of events (schema and table), omits what a filter
excludes, and fills only the requested columns. No Python runs for an event.
"""

from collections.abc import Collection, Sequence

import cython

from protocol.columns.column_batch import ColumnBatch
from protocol.columns.column_reader import ColumnReader, EventFacts

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.tables import TableMaps, table_id, table_id_size
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes

# The format of each column's values, "s": text with nulls, "n": i64 with nulls.
COLUMNS = {
    "position": "q",
    "end": "q",
    "end_log_pos": "q",
    "time": "q",  # µs since 1970
    "server_id": "q",
    "type": "B",
    "flags": "i",
    "boundary": "B",
    "stamped": "B",
    "inferred": "B",
    "crc": "B",  # 0 none, 1 ok, 2 bad
    "transaction": "n",  # where the event's transaction starts
    "transaction_ordinal": "n",  # from 1 in the file
    "schema": "s",
    "table": "s",
    "finding": "B",
}


class EventFilter:
    """The wanted events, by their headers; initially all."""

    def __init__(self) -> None:
        if not cython.compiled:
            self.types = bytearray(256)
        self.time_from = -FAR
        self.time_to = FAR
        self.position_from = 0
        self.position_to = FAR
        self.only_findings = False
        for i in range(256):
            self.types[i] = 1

    def wants(self, event: EventFacts, finding: int) -> bool:
        """Return whether the filter includes the event with this `finding`."""
        return (
            (finding != 0 or not self.only_findings)
            and self.position_from <= event.position <= self.position_to
            and self.types[event.type] != 0
            and self.time_from <= event.time <= self.time_to
        )


class EventBatch(ColumnBatch):
    """Rows of events; `columns` are the wanted ones of COLUMNS. `schema` and `table` are put in last."""

    def __init__(self, wanted: Collection[str], capacity: int) -> None:
        unknown = [name for name in wanted if name not in COLUMNS]
        if unknown:
            raise ValueError(f"there is no column {', '.join(unknown)}")
        ColumnBatch.__init__(self, capacity, {name: COLUMNS[name] for name in wanted}, 16)
        self.has_position = "position" in wanted
        self.has_end = "end" in wanted
        self.has_end_log_pos = "end_log_pos" in wanted
        self.has_time = "time" in wanted
        self.has_server_id = "server_id" in wanted
        self.has_type = "type" in wanted
        self.has_flags = "flags" in wanted
        self.has_boundary = "boundary" in wanted
        self.has_stamped = "stamped" in wanted
        self.has_inferred = "inferred" in wanted
        self.has_crc = "crc" in wanted
        self.has_transaction = "transaction" in wanted
        self.has_ordinal = "transaction_ordinal" in wanted
        self.has_schema = "schema" in wanted
        self.has_table = "table" in wanted
        self.has_finding = "finding" in wanted
        self.has_place = self.has_transaction or self.has_ordinal
        self.has_names = self.has_schema or self.has_table
        self.schema = self.text("schema")
        self.table = self.text("table")
        self.begin()

    def begin(self) -> None:
        """Begin another batch with new buffers."""
        ColumnBatch.begin(self)
        self.position_out = self.i64("position")
        self.end_out = self.i64("end")
        self.end_log_pos_out = self.i64("end_log_pos")
        self.time_out = self.i64("time")
        self.server_id_out = self.i64("server_id")
        self.type_out = self.u8("type")
        self.flags_out = self.i32("flags")
        self.boundary_out = self.u8("boundary")
        self.stamped_out = self.u8("stamped")
        self.inferred_out = self.u8("inferred")
        self.crc_out = self.u8("crc")
        self.transaction_out = self.i64("transaction")
        self.transaction_valid = self.bits("transaction")
        self.ordinal_out = self.i64("transaction_ordinal")
        self.ordinal_valid = self.bits("transaction_ordinal")
        self.finding_out = self.u8("finding")

    def is_full(self) -> bool:
        return self.rows >= self.capacity or (
            self.has_names
            and (
                (self.has_schema and self.schema.used + LONGEST_NAME > self.schema.room)
                or (self.has_table and self.table.used + LONGEST_NAME > self.table.room)
            )
        )

    def put(self, event: EventFacts, finding: int) -> None:
        """Put a row with the table's facts of the event; the names are put in before, the transaction after it."""
        n = self.rows
        if self.has_position:
            self.position_out[n] = event.position
        if self.has_end:
            self.end_out[n] = event.end
        if self.has_end_log_pos:
            self.end_log_pos_out[n] = event.log_pos
        if self.has_time:
            self.time_out[n] = event.time
        if self.has_server_id:
            self.server_id_out[n] = event.server_id
        if self.has_type:
            self.type_out[n] = event.type
        if self.has_flags:
            self.flags_out[n] = event.flags
        if self.has_boundary:
            self.boundary_out[n] = event.boundary
        if self.has_stamped:
            self.stamped_out[n] = event.info & INFO_STAMPED != 0
        if self.has_inferred:
            self.inferred_out[n] = event.info >> INFO_INFERRED_SHIFT & INFO_BOUNDARY
        if self.has_crc:
            self.crc_out[n] = 2 if event.info & INFO_BAD_CHECKSUM else (1 if event.info & INFO_CHECKSUM else 0)
        if self.has_finding:
            self.finding_out[n] = finding
        if finding:
            self.findings += 1

    def put_transaction(self, start: int, ordinal: int) -> None:
        """Put the event's transaction into the same row."""
        n = self.rows
        if self.has_transaction:
            self.transaction_out[n] = start
            self.transaction_valid[n >> 3] |= 1 << (n & 7)
        if self.has_ordinal:
            self.ordinal_out[n] = ordinal
            self.ordinal_valid[n >> 3] |= 1 << (n & 7)

    def put_names(self, tables: TableMaps, slot: int) -> None:
        """Put the names of the slot's table into the same row."""
        if self.has_schema:
            self.schema.put(
                self.rows, tables.arena, tables.slots[slot + SLOT_SCHEMA], tables.slots[slot + SLOT_SCHEMA_LENGTH]
            )
        if self.has_table:
            self.table.put(
                self.rows, tables.arena, tables.slots[slot + SLOT_TABLE], tables.slots[slot + SLOT_TABLE_LENGTH]
            )

    def put_schema(self, p: Bytes, at: int, length: int) -> None:
        """Put a schema without a table into the same row; `at` < 0: not even a schema."""
        if self.has_schema:
            if at >= 0:
                self.schema.put(self.rows, p, at, length)
            else:
                self.schema.skip(self.rows)
        if self.has_table:
            self.table.skip(self.rows)


class EventColumns(ColumnReader):
    """Columns of the events that `take` gets, in `batch`. `wanted` are names of COLUMNS; `capacity` is the rows of a batch."""

    def __init__(self, wanted: Collection[str], capacity: int) -> None:
        ColumnReader.__init__(self)
        self.batch = EventBatch(wanted, capacity)
        self.schema_at = -1
        self.schema_length = 0
        self.keep_all()
        self.begin_file(b"")

    def keep_all(self) -> None:
        """Remove the filter."""
        self.filter = EventFilter()
        self.keep_names(None, None)

    def keep_times(self, time_from: int, time_to: int) -> None:
        """Keep only events with time_from <= time <= time_to, in µs since 1970."""
        self.filter.time_from = max(time_from, -FAR)
        self.filter.time_to = min(time_to, FAR)

    def keep_positions(self, position_from: int, position_to: int) -> None:
        """Keep only events that start in [position_from, position_to]."""
        self.filter.position_from = max(position_from, 0)
        self.filter.position_to = min(position_to, FAR)

    def keep_types(self, types: Collection[int]) -> None:
        """Keep only events of these type codes."""
        for i in range(256):
            self.filter.types[i] = i in types
        self.choose_types()

    def keep_names(self, schemas: Sequence[bytes] | None, tables: Sequence[bytes] | None) -> None:
        """Keep only events of these schemas and tables; None: of any, and without one."""
        self.tables.set_names(schemas, tables)
        self.filters_names = schemas is not None or tables is not None
        self.needs_names = self.filters_names or self.batch.has_names
        self.choose_types()

    def keep_findings(self) -> None:
        """Keep only events with a defect."""
        self.filter.only_findings = True
        self.choose_types()

    def choose_types(self) -> None:
        """Take only events that the filter may include, and Table_maps, since their content is needed later."""
        for i in range(256):
            self.takes[i] = self.filter.types[i] and not self.filter.only_findings
        if self.needs_names:
            self.takes[TABLE_MAP_EVENT] = True

    def begin_file(self, post_lengths: bytes, in_use: bool = False) -> None:
        """Begin another file or another split of one. `post_lengths` are Ingest's; `in_use`: the file's first event has the flag."""
        ColumnReader.begin_file(self, post_lengths)
        self.in_use = in_use
        self.ordinal = 0

    def begin_group(self, position: int, server_id: int) -> None:
        self.ordinal += 1
        self.tables.between_groups()

    def take_event(self, p: Bytes, at: int, stop: int, t: int) -> int:
        if self.batch.is_full():
            return FULL
        finding = self.event.finding
        slot = -1
        self.schema_at = -1
        if self.needs_names:
            if t == TABLE_MAP_EVENT:
                slot = self.learn_map(p, at, stop)
                if slot == NO_ROOM:
                    return GROW
                if slot < 0 and finding == 0:
                    finding = EVENT_MALFORMED
            else:
                slot = self.find_names(p, at, stop, t)
        if not self.filter.wants(self.event, finding) or (self.filters_names and not self.wants_names(p, slot)):
            return DONE
        if self.in_use and self.event.position == FIRST_EVENT:
            self.event.flags |= FLAG_IN_USE
        self.batch.put(self.event, finding)
        if self.was_open and self.batch.has_place:
            self.batch.put_transaction(self.group_start, self.ordinal)
        if self.batch.has_names:
            if slot >= 0:
                self.batch.put_names(self.tables, slot)
            else:
                self.batch.put_schema(p, self.schema_at, self.schema_length)
        self.batch.rows += 1
        return DONE

    def find_names(self, p: Bytes, at: int, stop: int, t: int) -> int:
        """Return the slot of the event's table, or -1; then `schema_at` is where the event names a schema, or -1."""
        if self.event.kind == K_ROWS:
            size = table_id_size(self.inference.post_length[t])
            if at + HEADER_SIZE + size <= stop:
                return self.tables.find(table_id(p, at + HEADER_SIZE, size))
        elif (
            self.event.kind == K_QUERY
            or self.event.kind == K_QUERY_COMPRESSED
            or self.event.kind == K_EXECUTE_LOAD_QUERY
        ):
            text = self.inference.query_text(p, at, stop, t)
            if text >= 0:
                self.schema_length = p[at + HEADER_SIZE + QUERY_SCHEMA_LENGTH_AT]
                self.schema_at = text - 1 - self.schema_length
        return -1

    def wants_names(self, p: Bytes, slot: int) -> bool:
        """Return whether the filter includes the names of the event: the table's in the slot, or a schema alone."""
        if slot >= 0:
            return self.tables.slots[slot + SLOT_WANTED] != 0
        if self.schema_at < 0 or self.tables.filters_tables:
            return False
        return self.tables.schema_wanted(p, self.schema_at, self.schema_length)
