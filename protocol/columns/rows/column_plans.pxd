cimport cython
from libc.stdint cimport int64_t, uint8_t

cdef class ColumnPlans:
    cdef readonly int64_t count
    cdef readonly int64_t column_count
    cdef int64_t text_count
    cdef int64_t arena_used
    cdef int64_t[::1] plans
    cdef int64_t[::1] columns
    cdef int64_t[::1] texts
    cdef uint8_t[::1] arena
    cdef object charsets

    cdef int64_t width(self, int64_t plan) noexcept nogil
    cdef int64_t first(self, int64_t plan) noexcept nogil
