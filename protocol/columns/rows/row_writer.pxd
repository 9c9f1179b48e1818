cimport cython
from libc.stdint cimport int64_t, uint8_t

from protocol.kernel.native cimport load16
from protocol.columns.rows.row_batch cimport RowBatch
from protocol.columns.row_event_types cimport inserts_rows, updates_rows
from protocol.columns.rows.row_values cimport RowValues

cdef class RowWriter(RowBatch):
    cdef RowValues values
    # filters
    cdef int64_t time_from, time_to
    cdef int operations
    # the event
    cdef int event_fault
    cdef bint fault_shown
    cdef bint rows_begun
    cdef int64_t row_at
    cdef int64_t before_present, after_present, before_end, after_end
    cdef int operation
    cdef bint partial

    @cython.locals(rows=int64_t, status=cython.int, flags=cython.int)
    cdef int take_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(mark=int64_t, wanted=cython.bint)
    cdef int begin_rows(self, const uint8_t* q, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(status=int64_t)
    cdef int put_rows(self, const uint8_t* q, const uint8_t* p, int64_t stop) noexcept nogil
    @cython.locals(at=int64_t, partial=int64_t, options=int64_t, n=int64_t, bitmap=int64_t, present=int64_t)
    cdef int64_t put_row(self, const uint8_t* q, const uint8_t* p, int64_t stop) noexcept nogil
    @cython.locals(end=int64_t)
    cdef int64_t put_before(self, const uint8_t* q, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
    @cython.locals(end=int64_t)
    cdef int64_t put_after(
        self, const uint8_t* q, const uint8_t* p, int64_t at, int64_t stop, int64_t bitmap, int64_t present, int64_t partial
    ) noexcept nogil
    cdef int64_t pass_image(
        self, const uint8_t* q, const uint8_t* p, int64_t at, int64_t stop, int64_t bitmap, int64_t present
    ) noexcept nogil
