cimport cython
from libc.stdint cimport int64_t, uint8_t

from protocol.columns.column_reader cimport PackedReader
from protocol.columns.event_facts cimport event_finding, is_transaction
from protocol.kernel.native cimport copy_bytes, load32
from protocol.columns.rows.row_tables cimport RowTables
from protocol.columns.rows.row_writer cimport RowWriter

cdef class RowColumns(RowWriter):
    cdef readonly int64_t asked_position
    cdef RowTables plans
    # where the stream stands
    cdef bint entered
    cdef bint in_group
    cdef bint stray

    cpdef begin_file(self, bytes post_lengths)
    cpdef int take(self, buf, int64_t base, table, int64_t count) except -1
    cpdef int opened_events(self, buf, int64_t start, int64_t stop) except -1
    cdef int raised(self, int status) except -1
    @cython.locals(known=cython.bint)
    cpdef bint resolve(self, int status) except -1
    @cython.locals(
        r=int64_t, position=int64_t, t=cython.int, info=int64_t, boundary=cython.int, kind=cython.int, opens=cython.bint,
        at=int64_t, stop=int64_t, status=cython.int
    )
    cdef int walk(self, const uint8_t* p, int64_t have, int64_t base, const int64_t* table, int64_t count) noexcept nogil
    @cython.locals(length=int64_t, at=int64_t, status=cython.int)
    cdef int walk_opened(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    cdef int take_event(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(slot=int64_t)
    cdef int take_map(self, const uint8_t* p, int64_t body, int64_t stop) noexcept nogil
    cdef int take_statement(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
