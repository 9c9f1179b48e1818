from libc.stdint cimport int64_t

cdef int event_finding(int64_t info, int kind, int64_t flags) noexcept nogil
cdef bint is_transaction(int kind) noexcept nogil
