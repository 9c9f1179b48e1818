cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from protocol.kernel.native cimport load32, load64

cdef int64_t signed(uint64_t value) noexcept nogil

cdef class GtidText:
    cdef uint8_t text[160]
    cdef int64_t length
    cdef int64_t cursor

    cdef void take(self, const uint8_t* p, int64_t body, int64_t stop, int t, int64_t at) noexcept nogil
    @cython.locals(
        tag_at=int64_t, tag_length=int64_t, gno=int64_t, has_uuid=cython.bint, field=int64_t, number=int64_t, i=cython.int
    )
    cdef void take_tagged(self, const uint8_t* p, int64_t body, int64_t stop) noexcept nogil
    @cython.locals(first=cython.int, following=cython.int, value=int64_t, byte=int64_t, i=cython.int)
    cdef int64_t read_variable(self, const uint8_t* p, int64_t stop) noexcept nogil
    cdef void put_byte(self, int64_t byte) noexcept nogil
    @cython.locals(i=cython.int, digit=int64_t)
    cdef void put_hex(self, int64_t byte) noexcept nogil
    @cython.locals(i=cython.int)
    cdef void put_uuid_digits(self, const uint8_t* p, int64_t at) noexcept nogil
    @cython.locals(power=uint64_t, left=uint64_t, digit=uint64_t)
    cdef void put_number(self, uint64_t number) noexcept nogil
