cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from protocol.columns.column_reader cimport ColumnReader
from protocol.columns.event_facts cimport event_finding, is_transaction
from protocol.kernel.native cimport copy_bytes, load16, load32

cdef class EventColumns(ColumnReader):
    cdef readonly int64_t taken
    cdef int64_t text_room
    cdef readonly tuple wanted
    # filters
    cdef int64_t time_from
    cdef int64_t time_to
    cdef int64_t position_from
    cdef int64_t position_to
    cdef bint only_findings
    cdef bint filters_names
    cdef bint needs_names
    cdef uint8_t type_wanted[256]
    # where the stream stands
    cdef bint in_use
    cdef bint open
    cdef int64_t group_start
    cdef int64_t ordinal
    # the batch
    cdef int64_t schema_used
    cdef int64_t table_used
    cdef bint has_position, has_end, has_end_log_pos, has_time, has_server_id, has_type, has_flags, has_boundary
    cdef bint has_stamped, has_inferred, has_crc, has_transaction, has_ordinal, has_schema, has_table, has_finding
    cdef int64_t[::1] position_out, end_out, end_log_pos_out, time_out, server_id_out, transaction_out, ordinal_out
    cdef int32_t[::1] flags_out, schema_out, table_out
    cdef uint8_t[::1] type_out, boundary_out, stamped_out, inferred_out, crc_out, finding_out
    cdef uint8_t[::1] transaction_valid, ordinal_valid, schema_valid, table_valid, schema_data, table_data

    cpdef begin_file(self, bytes post_lengths, bint in_use)
    @cython.locals(
        r=int64_t, info=int64_t, t=cython.int, position=int64_t, kind=cython.int, boundary=cython.int, finding=cython.int,
        slot=int64_t, at=int64_t, stop=int64_t, schema_at=int64_t, schema_length=int64_t, id_size=cython.int,
        table_id=int64_t, high=int64_t, was_open=cython.bint, n=int64_t, length=int64_t
    )
    cdef int walk(self, const uint8_t* p, int64_t have, int64_t base, const int64_t* table, int64_t count) noexcept nogil
    cdef uint8_t* start_of(self, uint8_t[::1] view) noexcept nogil
    @cython.locals(time=int64_t)
    cdef bint filtered_out(
        self, const uint8_t* p, const int64_t* table, int64_t r, int64_t slot, int64_t schema_at, int64_t schema_length,
        int t, int64_t position, int finding
    ) noexcept nogil

@cython.locals(view=cython.uchar[::1])
cpdef int64_t whole_events(buf, int64_t start, int64_t stop) except -1
@cython.locals(at=int64_t, length=int64_t)
cdef int64_t chain_end(const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
