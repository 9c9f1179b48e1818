from libc.stdint cimport int32_t, int64_t, uint8_t

from protocol.kernel.native cimport copy_bytes

cdef class TextColumn:
    cdef int64_t capacity
    cdef int64_t room
    cdef int64_t used
    cdef readonly bytearray offsets_buffer, data_buffer, valid_buffer
    cdef int32_t[::1] offsets
    cdef uint8_t[::1] data, valid

    cpdef begin(self)
    cpdef grow(self, int64_t more)
    cdef bint fits(self, int64_t more) noexcept nogil
    cdef void put(self, int64_t row, const uint8_t* p, int64_t at, int64_t count) noexcept nogil
    cdef void close(self, int64_t row, int64_t used) noexcept nogil
    cdef void skip(self, int64_t row) noexcept nogil
