cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.codes cimport *

@cython.locals(a=int64_t)
cdef int64_t told_length_at(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
cdef int64_t length_of_number(int first) noexcept nogil
cdef int64_t count_with(int64_t rest) noexcept nogil
@cython.locals(i=int64_t)
cdef void put_number(uint8_t* d, int64_t a, int64_t value, int64_t count) noexcept nogil
