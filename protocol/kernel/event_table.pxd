cimport cython
from libc.stdint cimport int64_t, uint32_t

from protocol.kernel.codes cimport *

@cython.final
cdef class EventTable:
    cdef int64_t[::1] view
    cdef int64_t size
    cdef public int64_t rows

    @cython.locals(row=int64_t)
    cdef void add(
        self, int64_t position, int64_t length, int event_type, uint32_t flags, uint32_t timestamp, uint32_t server_id,
        uint32_t end_log_pos, int64_t info
    ) noexcept nogil
    cdef bint note(self, int64_t bits) noexcept nogil
