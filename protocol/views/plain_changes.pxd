cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.codes cimport *
from protocol.kernel.inference cimport first_word, has_prefix

@cython.locals(c=cython.int, n=cython.int)
cdef bint is_change(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
@cython.locals(stop=int64_t)
cdef bint names_mysql(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
cdef int64_t skip_blanks(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
cdef bint is_identifier(int c) noexcept nogil
cdef int64_t behind_word(const uint8_t* p, int64_t at, int64_t end, const char* word, int64_t count) noexcept nogil
@cython.locals(first=cython.int, stop=int64_t)
cdef bint has_word(const uint8_t* p, int64_t at, int64_t end, const char* word, int64_t count) noexcept nogil
cdef int removal_of(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
@cython.locals(start=int64_t, inserts=cython.bint, updates=cython.bint, following=int64_t, number=uint32_t, parts=cython.int,
    quoted=cython.bint, c=cython.int)
cdef int64_t simple_target(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
