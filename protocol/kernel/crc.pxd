cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.native cimport crc32_of, flags_effect, native_setup, native_use_clmul

@cython.locals(p=cython.p_uchar, result=uint32_t, from_=int64_t, to=int64_t, seed=uint32_t)
cpdef crc32(const uint8_t[::1] data, int64_t start, int64_t stop, uint32_t value=*)

@cython.final
cdef class EventSum:
    cdef int64_t left
    cdef int trailer
    cdef uint32_t crc
    cdef uint32_t stored

    cdef void begin(self, int64_t length, int trailer) noexcept nogil
    @cython.locals(n=int64_t)
    cdef int64_t take(self, const uint8_t* p, int64_t r, int64_t stop) noexcept nogil
    cdef int64_t take_stored(self, const uint8_t* p, int64_t r, int64_t stop) noexcept nogil
    cdef bint is_right(self) noexcept nogil
