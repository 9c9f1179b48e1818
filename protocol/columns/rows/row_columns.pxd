cimport cython
from libc.stdint cimport int64_t, uint8_t

from protocol.columns.codes.column_codes cimport *
from protocol.columns.column_reader cimport ColumnReader, GroupReader
from protocol.columns.rows.row_batch cimport RowBatch
from protocol.columns.rows.row_values cimport RowValues
from protocol.columns.rows.row_writer cimport RowWriter
from protocol.columns.rows.table_plans cimport RowTables
from protocol.columns.tables cimport is_packed
from protocol.kernel.codes cimport *

cdef class RowColumns(GroupReader):
    cdef readonly RowBatch batch
    cdef RowWriter writer
    cdef RowTables plans
    cdef readonly int64_t asked_position
    # the filter
    cdef int64_t time_from, time_to
    cdef bint keeps_inserts, keeps_updates, keeps_deletes

    cpdef int take(self, buf, int64_t base, table, int64_t count) except -1
    cpdef int opened_events(self, buf, int64_t start, int64_t stop) except -1
    @cython.final
    cdef int raised(self, int status) except -1
    @cython.locals(known=cython.bint)
    cpdef bint resolve(self, int status) except -1
    cpdef make_room(self)
    cpdef not_opened(self)
    cdef int flush(self) noexcept nogil
    cdef void leave(self) noexcept nogil
    cdef void begin_group(self, int64_t position, int64_t server_id) noexcept nogil
    cdef void end_group(self, bint unfinished) noexcept nogil
    @cython.locals(kind=cython.int)
    cdef int take_event(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    cdef void found(self, int finding) noexcept nogil
    @cython.final
    @cython.locals(status=cython.int)
    cdef int take_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    @cython.locals(rows=int64_t)
    cdef bint begin_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    cdef bint wants(self, int operation) noexcept nogil
    @cython.final
    @cython.locals(slot=int64_t)
    cdef int take_map(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
    @cython.final
    cdef int take_statement(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
