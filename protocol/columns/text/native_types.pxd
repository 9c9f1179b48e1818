cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.columns.text.json_text cimport put_hex, put_unsigned

@cython.locals(swapped=cython.bint, i=int64_t, k=int64_t)
cdef int64_t put_uuid(uint8_t* out, int64_t at, const uint8_t* p) noexcept nogil
@cython.locals(i=int64_t)
cdef int64_t put_inet4(uint8_t* out, int64_t at, const uint8_t* p, int64_t start) noexcept nogil
@cython.locals(i=int64_t, gap=int64_t, length=int64_t, run=int64_t)
cdef int64_t put_inet6(uint8_t* out, int64_t at, const uint8_t* p) noexcept nogil
cdef uint32_t word_at(const uint8_t* p, int64_t i) noexcept nogil
@cython.locals(digit=uint32_t, shift=int64_t)
cdef int64_t put_word_hex(uint8_t* out, int64_t at, uint32_t word) noexcept nogil
