cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from protocol.columns.batch_texts cimport BatchTexts
from protocol.columns.column_reader cimport ColumnReader, PackedReader
from protocol.columns.gtid_text cimport GtidText
from protocol.kernel.native cimport unset_bytes

cdef class RowBatch(PackedReader):
    cdef bint makes_before, makes_after, makes_statement, makes_gtid
    # the group
    cdef int64_t group_start
    cdef int64_t ordinal
    cdef int64_t server_id
    cdef GtidText gtid
    cdef int64_t gtid_index
    cdef uint8_t[::1] statement
    cdef int64_t statement_size
    cdef bint has_statement
    cdef int64_t statement_index
    # the event
    cdef int64_t position, end, time
    cdef int64_t row_plan
    cdef int finding
    cdef int64_t finding_position
    # what the last walk lacked
    cdef bint lacks_tables, lacks_images, lacks_statement
    cdef int64_t statement_lacking
    # the batch
    cdef int64_t before_room, after_room
    cdef int64_t before_used, after_used
    cdef bint skips_row
    cdef int32_t[::1] plan_schemas
    cdef int32_t[::1] plan_tables
    cdef BatchTexts schema_texts, table_texts, statement_texts, gtid_texts
    cdef int64_t[::1] transaction_out, row_out, position_out, end_out, time_out, server_out, finding_position_out
    cdef uint8_t[::1] operation_out, finding_out
    cdef int32_t[::1] schema_out, table_out, statement_out, gtid_out, before_out, after_out
    cdef uint8_t[::1] schema_valid, table_valid, statement_valid, gtid_valid, before_valid, after_valid
    cdef uint8_t[::1] before_data, after_data

    cdef void begin_group(self, int64_t position) noexcept nogil
    cpdef begin_batch(self)
    cpdef make_room(self)
    @cython.locals(i=int64_t)
    cpdef forget_names(self)
    cpdef reserve_plan(self, int64_t number)
    @cython.locals(schema=int64_t, schema_end=int64_t, table=int64_t, table_end=int64_t, number=int64_t)
    cdef int64_t note_names(self) noexcept nogil
    cdef int64_t note_shared(self) noexcept nogil
    cdef void found(self, int finding) noexcept nogil
    cdef bint put_finding(self) noexcept nogil
    cdef void put_numbers(self, int64_t n, int operation, int finding, int64_t finding_position) noexcept nogil
