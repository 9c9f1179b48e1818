cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.inference cimport Inference
from protocol.kernel.native cimport load32
from protocol.columns.tables cimport TableMaps

cdef class ColumnReader:
    cdef readonly int64_t capacity
    cdef readonly int64_t rows
    cdef readonly int64_t findings
    cdef readonly int64_t timestamp
    cdef int64_t next_row
    cdef dict buffers
    cdef Inference inference
    cdef TableMaps tables

    @cython.locals(i=cython.int)
    cpdef begin_stream(self, bytes post_lengths)
    cpdef new_buffers(self, columns)
    @cython.locals(view=cython.uchar[::1], rows=int64_t[::1], status=cython.int)
    cpdef int take(self, buf, int64_t base, table, int64_t count) except -1
    cdef int walk(self, const uint8_t* p, int64_t have, int64_t base, const int64_t* table, int64_t count) noexcept nogil
    cpdef bint resolve(self, int status) except -1
    cpdef make_room(self)

cdef class PackedReader(ColumnReader):
    cdef readonly int64_t open_start
    cdef readonly int64_t open_stop
    cdef readonly int64_t opened_at
    cdef int opening
    cdef const uint8_t[::1] opened_data
    cdef int64_t opened_size

    cpdef opened(self, bytes data)
    cpdef payload_done(self)
    @cython.locals(view=cython.uchar[::1], status=cython.int)
    cpdef int opened_events(self, buf, int64_t start, int64_t stop) except -1
    @cython.locals(length=int64_t, status=cython.int)
    cdef int walk_opened(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    cdef int take_opened(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
