cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.codes cimport *
from protocol.kernel.crc cimport EventSum
from protocol.kernel.native cimport crc32_of, load16, load32, native_setup

@cython.final
cdef class EventCheck:
    cdef int checksum
    cdef readonly int64_t position
    cdef readonly int64_t sound_to
    cdef readonly int64_t whole_to
    cdef readonly int problem
    cdef EventSum event
    cdef bint ends

    cpdef void begin(self, int64_t offset, int checksum)
    cpdef int look(self, const uint8_t[::1] src, int64_t start, int64_t stop) except -1
    @cython.locals(base=int64_t, r=int64_t, length=int64_t, trailer=cython.int, boundary=uint32_t,
        goes_on=cython.bint)
    cdef void walk(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    cdef void finish_event(self, int64_t end) noexcept nogil
