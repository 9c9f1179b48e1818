cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from protocol.columns.column_batch cimport ColumnBatch, SharedTexts, TextColumn
from protocol.columns.codes.column_codes cimport *
from protocol.columns.column_reader cimport EventFacts
from protocol.columns.gtid_text cimport GtidText
from protocol.columns.rows.table_plans cimport ColumnPlans
from protocol.columns.rows.value_columns cimport ValueColumns
from protocol.columns.tables cimport TableMaps
from protocol.kernel.native cimport bytes_of, copy_bytes, ints_of

cdef class RowBatch(ColumnBatch):
    cdef TableMaps tables
    cdef ColumnPlans plans
    cdef bint makes_before, makes_after, makes_statement, makes_gtid, makes_values
    # the group
    cdef int64_t group_start
    cdef int64_t ordinal
    cdef int64_t server_id
    cdef GtidText gtid
    cdef int64_t gtid_number
    cdef bytearray statement_bytes
    cdef uint8_t* statement
    cdef int64_t statement_room
    cdef int64_t statement_size
    cdef bint has_statement
    cdef int64_t statement_number
    # the event
    cdef EventFacts event
    cdef int64_t plan
    cdef int named
    cdef int finding
    cdef int64_t finding_position
    # the room that the last walk did not find
    cdef bint lacks_images, lacks_values, lacks_statement
    cdef int64_t values_width
    cdef bint skips_row
    cdef bint is_whole, is_odd
    # the batch
    cdef TextColumn before, after
    cdef readonly ValueColumns before_values, after_values
    cdef SharedTexts schemas, table_names, shapes, statements, gtids
    cdef bytearray plan_bytes
    cdef int32_t* plan_names
    cdef int64_t plan_room
    cdef int64_t* transaction_out
    cdef int64_t* row_out
    cdef int64_t* position_out
    cdef int64_t* end_out
    cdef int64_t* time_out
    cdef int64_t* server_out
    cdef int64_t* finding_position_out
    cdef uint8_t* operation_out
    cdef uint8_t* finding_out
    cdef uint8_t* named_out
    cdef uint8_t* whole_out
    cdef uint8_t* odd_out

    cpdef begin_file(self)
    cdef void begin_group(self, int64_t position, int64_t server_id) noexcept nogil
    cpdef begin(self)
    cpdef make_room(self)
    cpdef make_value_room(self)
    @cython.locals(i=int64_t)
    cpdef forget_names(self)
    cpdef reserve_plan(self, int64_t number)
    @cython.final
    cdef bint note_statement(self, const uint8_t* p, int64_t at, int64_t count) noexcept nogil
    @cython.final
    cdef void end_statement(self) noexcept nogil
    @cython.final
    @cython.locals(names=int64_t, slot=int64_t, start=int64_t, number=int64_t)
    cdef bint add_names(self) noexcept nogil
    @cython.final
    cdef bint add_shared(self) noexcept nogil
    @cython.final
    cdef void found(self, int finding) noexcept nogil
    @cython.final
    cdef bint put_finding(self) noexcept nogil
    @cython.final
    @cython.locals(n=int64_t)
    cdef void put(self, int operation, int finding, int64_t finding_position) noexcept nogil
