cimport cython
from libc.stdint cimport int64_t, uint8_t

from protocol.kernel.codes cimport *

@cython.final
cdef class StreamNotes:
    cdef int64_t violation_rows[384]
    cdef int violation_count
    cdef uint8_t seen_unknown[256]
    cdef int64_t unknown_rows[512]
    cdef int unknown_count
    cdef int64_t definition_rows[64]
    cdef int definition_count

    @cython.locals(i=cython.int)
    cdef void add_violation(
        self, int64_t position, int from_type, int to_type, int event_type, int previous_type, int64_t previous_position
    ) noexcept nogil
    cdef void add_unknown(self, int event_type, int64_t position) noexcept nogil
    cdef void add_definition(self, int64_t position) noexcept nogil
