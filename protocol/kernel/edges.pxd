cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.codes cimport *
from protocol.kernel.inference cimport Inference
from protocol.kernel.native cimport load16

cdef class Edges:
    cdef Inference inference
    cdef bint in_statement

    cpdef void begin(self)
    cdef void take_format(self, const uint8_t* p, int64_t at, int64_t length) noexcept nogil
    @cython.locals(
        t=cython.int, kind=cython.int, tbm=cython.int, start=cython.int, end=cython.int, statement=cython.int,
        starts=cython.bint, ends=cython.bint, rolled_back=cython.bint, flags=uint32_t
    )
    cdef int bits(self, const uint8_t* p, int64_t at, int64_t available) noexcept nogil
