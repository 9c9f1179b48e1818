cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from protocol.columns.column_batch cimport ColumnBatch, TextColumn
from protocol.columns.codes.column_codes cimport *
from protocol.columns.column_reader cimport ColumnReader, EventFacts, GroupReader
from protocol.columns.digest cimport changes_rows
from protocol.columns.gtid_text cimport GtidText
from protocol.columns.tables cimport TableMaps, inserts_rows, is_packed, same_bytes, table_id_size, updates_rows
from protocol.kernel.codes cimport *
from protocol.kernel.inference cimport kind_of_text
from protocol.kernel.native cimport bytes_of, copy_bytes, ints_of, load16, load64, longs_of, signed64

@cython.final
cdef class Transaction:
    cdef int64_t number
    cdef int64_t start, end, first_time, last_time, server_id
    cdef GtidText gtid
    cdef int64_t xid
    cdef bint has_xid
    cdef int parts
    cdef int64_t events, statements, row_events, inserted, updated, deleted, violations, row_flags
    cdef bint rolled_back
    cdef int closed_by
    cdef int finding
    cdef int64_t finding_position
    # its tables
    cdef bytearray table_bytes
    cdef int64_t* tables
    cdef int64_t table_room
    cdef int64_t table_count
    cdef int64_t tables_size
    cdef bint lacks_room

    cdef void begin(self, int64_t position, int64_t server_id) noexcept nogil
    cdef void found(self, int finding, int64_t position) noexcept nogil
    cdef void count(self, EventFacts event) noexcept nogil
    @cython.locals(schema=int64_t, schema_length=int64_t, table=int64_t, table_length=int64_t, i=int64_t, k=int64_t)
    cdef bint note_table(self, TableMaps maps, int64_t slot) noexcept nogil
    cpdef grow(self)

cdef class TransactionBatch(ColumnBatch):
    cdef int64_t names_room, list_room
    cdef int64_t names_used, list_used
    cdef bytearray name_offset_bytes, name_bytes
    cdef TextColumn gtid
    cdef int32_t* name_offsets
    cdef uint8_t* names
    cdef int64_t* start_out
    cdef int64_t* end_out
    cdef int64_t* first_out
    cdef int64_t* last_out
    cdef int64_t* server_out
    cdef int64_t* xid_out
    cdef int64_t* events_out
    cdef int64_t* statements_out
    cdef int64_t* row_events_out
    cdef int64_t* row_flags_out
    cdef int64_t* inserted_out
    cdef int64_t* updated_out
    cdef int64_t* deleted_out
    cdef int64_t* violations_out
    cdef int64_t* finding_position_out
    cdef int32_t* tables_out
    cdef uint8_t* xid_valid
    cdef uint8_t* row_flags_valid
    cdef uint8_t* kind_out
    cdef uint8_t* rolled_back_out
    cdef uint8_t* closed_by_out
    cdef uint8_t* finding_out

    cpdef begin(self)
    cpdef make_room(self, Transaction transaction)
    @cython.final
    @cython.locals(n=int64_t)
    cdef bint put(self, Transaction transaction, TableMaps maps) noexcept nogil
    @cython.final
    @cython.locals(i=int64_t, k=int64_t)
    cdef void put_tables(self, Transaction transaction, TableMaps maps) noexcept nogil
    @cython.final
    cdef void put_name(self, TableMaps maps, int64_t at, int64_t length) noexcept nogil

cdef int kind_of(int parts) noexcept nogil

cdef class TransactionColumns(GroupReader):
    cdef readonly TransactionBatch batch
    cdef Transaction transaction
    cdef bint counts_rows
    # the filter
    cdef int64_t first_from, first_to, last_from, last_to
    cdef bint only_findings

    cpdef make_room(self)
    @cython.locals(query=cython.bint)
    cpdef opened(self, bytes data)
    @cython.locals(finding=cython.int)
    cpdef not_opened(self)
    cdef void begin_group(self, int64_t position, int64_t server_id) noexcept nogil
    cdef void leave(self) noexcept nogil
    cdef void end_group(self, bint unfinished) noexcept nogil
    @cython.final
    cdef bint is_wanted(self) noexcept nogil
    cdef int flush(self) noexcept nogil
    @cython.locals(kind=cython.int, slot=int64_t)
    cdef int take_event(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    cdef void found(self, int finding) noexcept nogil
    @cython.final
    @cython.locals(text=int64_t, statement=cython.int)
    cdef void take_query(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    cdef void count_statement(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
    @cython.final
    @cython.locals(rows=int64_t)
    cdef int take_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    @cython.locals(k=int64_t, flags=int64_t)
    cdef void note_flags(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    @cython.locals(count=int64_t, update=cython.bint)
    cdef void count_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
