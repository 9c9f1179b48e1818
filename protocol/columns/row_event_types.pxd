cdef bint inserts_rows(int t) noexcept nogil
cdef bint updates_rows(int t) noexcept nogil
cdef bint has_extra_data(int t) noexcept nogil
