cimport cython
from libc.stdint cimport int64_t, uint8_t

from protocol.columns.column_batch cimport TextColumn
from protocol.columns.codes.column_codes cimport *
from protocol.columns.rows.row_batch cimport RowBatch
from protocol.columns.rows.row_values cimport RowValues
from protocol.columns.rows.value_columns cimport ValueColumns
from protocol.columns.tables cimport ImageColumns, TableMaps, inserts_rows, updates_rows
from protocol.kernel.codes cimport *

@cython.final
cdef class RowWriter:
    cdef TableMaps tables
    cdef RowBatch batch
    cdef RowValues values
    # the event
    cdef bint finding_shown
    cdef bint begun
    cdef int64_t row_at
    cdef int operation
    cdef bint partial
    # the row
    cdef int64_t before_end, after_end, image_end

    cpdef begin_file(self)
    @cython.locals(rows=int64_t)
    cdef int64_t begin(self, const uint8_t* p, int64_t at, int64_t stop, int t, int64_t post) noexcept nogil
    cdef void begin_rows(self, int64_t row_at, bint wanted) noexcept nogil
    @cython.locals(status=cython.int)
    cdef int put_rows(self, const uint8_t* p, int64_t stop) noexcept nogil
    @cython.locals(count=int64_t, is_bare=cython.bint, end=int64_t)
    cdef int put_rest(self, const uint8_t* p, int64_t stop) noexcept nogil
    @cython.locals(n=int64_t, at=int64_t, partial=int64_t, finding=cython.int)
    cdef int64_t put_row(self, const uint8_t* p, int64_t stop) noexcept nogil
    cdef bint put_values(
        self, ValueColumns values, ImageColumns columns, const uint8_t* p, int64_t at, int64_t stop, int64_t partial
    ) noexcept nogil
    cdef int64_t put_image(
        self, TextColumn column, bint made, ImageColumns columns, const uint8_t* p, int64_t at, int64_t stop, int64_t partial
    ) noexcept nogil
    cdef void close_image(self, TextColumn column, bint made, int64_t end) noexcept nogil
