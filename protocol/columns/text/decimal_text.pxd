cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.columns.text.json_text cimport put_padded

cdef int64_t group_bytes(int64_t digits) noexcept nogil
cdef int64_t decimal_bytes(int64_t digits) noexcept nogil
@cython.locals(value=uint32_t, byte=uint32_t, i=int64_t)
cdef uint32_t read_group(const uint8_t* p, int64_t at, int64_t size, uint32_t mask, bint first) noexcept nogil
@cython.locals(
    whole=int64_t, mask=uint32_t, first=cython.bint, digits=int64_t, size=int64_t, group=uint32_t, started=cython.bint
)
cdef int64_t put_decimal(uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t precision, int64_t scale) noexcept nogil
@cython.locals(limit=uint32_t)
cdef uint32_t least_too_great(int64_t digits) noexcept nogil
