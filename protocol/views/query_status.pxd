cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.codes cimport *
from protocol.kernel.native cimport text_of

@cython.locals(code=cython.int, names=cython.int)
cdef int64_t place_of_explicit(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
@cython.locals(count=int64_t, place=int64_t)
cpdef int64_t explicit_place(bytes status) except -3
