cimport cython
from libc.stdint cimport int64_t, uint8_t

@cython.locals(i=int64_t, c=cython.int)
cdef bint starts_with(const uint8_t* p, int64_t at, int64_t end, const char* word, int64_t count) noexcept nogil
@cython.locals(c=cython.int)
cdef bint changes_rows(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
