cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.columns.codes.column_codes cimport *
from protocol.kernel.native cimport copy_ascii, copy_plain, magnitude

@cython.locals(size=int64_t, left=uint64_t, i=int64_t, quotient=uint64_t)
cdef int64_t put_unsigned(uint8_t* out, int64_t at, uint64_t value) noexcept nogil
cdef int64_t put_signed(uint8_t* out, int64_t at, int64_t value) noexcept nogil
@cython.locals(i=int64_t, rest=uint64_t)
cdef int64_t put_padded(uint8_t* out, int64_t at, uint64_t value, int64_t width) noexcept nogil
@cython.locals(i=int64_t)
cdef int64_t put_word(uint8_t* out, int64_t at, const char* word, int64_t count) noexcept nogil
cdef int64_t put_hex(uint8_t* out, int64_t at, uint32_t byte) noexcept nogil
@cython.locals(short=uint32_t)
cdef int64_t put_escape(uint8_t* out, int64_t at, uint32_t c) noexcept nogil
cdef int64_t put_code_point(uint8_t* out, int64_t at, uint32_t c) noexcept nogil
@cython.locals(c=uint32_t, d=uint32_t)
cdef int64_t sequence_length(const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
@cython.locals(i=int64_t, plain=int64_t, c=uint32_t, near=int64_t, n=int64_t)
cdef int64_t put_text(uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
cdef int64_t put_string(uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
@cython.locals(i=int64_t, plain=int64_t, near=int64_t, c=uint32_t, n=int64_t)
cdef int64_t put_lossy(uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
@cython.locals(i=int64_t, bits=uint32_t)
cdef int64_t put_base64(uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
cdef int64_t put_base64_digit(uint8_t* out, int64_t at, uint32_t value) noexcept nogil
cdef int64_t put_binary(uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
