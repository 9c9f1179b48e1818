cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from protocol.columns.column_reader cimport ColumnReader, PackedReader
from protocol.columns.gtid_text cimport GtidText

cdef class TransactionBatch(PackedReader):
    cdef int64_t gtid_room
    cdef int64_t text_room
    cdef int64_t list_room
    cdef bint lacks_tables
    cdef bint lacks_list
    # filters
    cdef int64_t first_from, first_to, last_from, last_to
    cdef bint only_findings
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
    cdef bint pending
    cdef int64_t gtid_used, text_used, list_used
    cdef int64_t[::1] start_out, end_out, first_out, last_out, server_out, xid_out, events_out, statements_out, row_events_out
    cdef int64_t[::1] inserted_out, updated_out, deleted_out, violations_out, finding_position_out
    cdef int32_t[::1] gtid_out, tables_out, text_out
    cdef uint8_t[::1] gtid_data, gtid_valid, xid_valid, kind_out, text_data, rolled_back_out, closed_by_out, finding_out

    cdef void clear_group(self, int64_t position) noexcept nogil
    @cython.locals(known=int64_t[::1])
    cpdef make_room(self)
    cdef void found(self, int finding, int64_t position) noexcept nogil
    @cython.locals(n=int64_t, i=int64_t, k=int64_t, parts=cython.int)
    cdef bint emit(self) noexcept nogil
    cdef void put_name(self, int64_t at, int64_t length) noexcept nogil
