cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from protocol.kernel.column_reader cimport ColumnReader, PackedReader
from protocol.kernel.event_facts cimport event_finding, is_transaction
from protocol.kernel.gtid_text cimport GtidText, signed
from protocol.kernel.native cimport load16, load64
from protocol.kernel.row_event_types cimport inserts_rows, updates_rows
from protocol.kernel.statement_words cimport changes_rows

cdef class TransactionColumns(PackedReader):
    cdef int64_t gtid_room
    cdef int64_t text_room
    cdef int64_t list_room
    cdef bint counts_rows
    # filters
    cdef int64_t first_from, first_to, last_from, last_to
    cdef bint only_findings
    # where the stream stands
    cdef bint entered
    cdef bint in_group
    cdef bint stray
    cdef bint pending
    cdef int64_t open_position
    cdef bint lacks_tables
    cdef bint lacks_list
    # the group
    cdef int64_t group
    cdef int64_t group_start, group_end, first_time, last_time, server_id
    cdef GtidText gtid
    cdef int64_t xid
    cdef bint has_xid
    cdef int parts
    cdef int64_t events, statements, row_events, inserted, updated, deleted, violations, finding_position
    cdef bint rolled_back
    cdef int closed_by
    cdef int finding
    cdef int64_t[::1] group_tables
    cdef int64_t table_count
    cdef int64_t tables_size
    # the batch
    cdef int64_t gtid_used, text_used, list_used
    cdef int64_t[::1] start_out, end_out, first_out, last_out, server_out, xid_out, events_out, statements_out, row_events_out
    cdef int64_t[::1] inserted_out, updated_out, deleted_out, violations_out, finding_position_out
    cdef int32_t[::1] gtid_out, tables_out, text_out
    cdef uint8_t[::1] gtid_data, gtid_valid, xid_valid, kind_out, text_data, rolled_back_out, closed_by_out, finding_out

    cpdef begin_file(self, bytes post_lengths)
    cdef void clear_group(self, int64_t position) noexcept nogil
    @cython.locals(known=int64_t[::1])
    cpdef make_room(self)
    @cython.locals(query=cython.bint)
    cpdef opened(self, bytes data)
    cdef int take_opened(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(
        r=int64_t, position=int64_t, t=cython.int, info=int64_t, boundary=cython.int, kind=cython.int, opens=cython.bint,
        at=int64_t, stop=int64_t, status=cython.int, finding=cython.int, time=int64_t
    )
    cdef int walk(self, const uint8_t* p, int64_t have, int64_t base, const int64_t* table, int64_t count) noexcept nogil
    cdef void found(self, int finding, int64_t position) noexcept nogil
    @cython.locals(kind=cython.int, body=int64_t, statement=cython.int, slot=int64_t)
    cdef int accumulate(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(post=int64_t)
    cdef int64_t text_at(self, const uint8_t* p, int64_t at) noexcept nogil
    cdef void take_statement(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
    @cython.locals(schema=int64_t, schema_length=int64_t, table=int64_t, table_length=int64_t, i=int64_t, k=int64_t)
    cdef void add_table(self, int64_t slot) noexcept nogil
    @cython.locals(i=int64_t)
    cdef bint same_names(self, int64_t a, int64_t b, int64_t length) noexcept nogil
    @cython.locals(rows=int64_t)
    cdef int take_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(update=cython.bint, count=int64_t)
    cdef void add_rows(self, const uint8_t* q, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    cdef void count_opened_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t, int64_t position) noexcept nogil
    @cython.locals(n=int64_t, i=int64_t, k=int64_t, parts=cython.int)
    cdef bint emit(self) noexcept nogil
    cdef void put_name(self, int64_t at, int64_t length) noexcept nogil
