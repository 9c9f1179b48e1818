cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from protocol.kernel.native cimport bytes_of, ints_of, longs_of, unset_bytes

@cython.final
cdef class ValueColumns:
    cdef readonly int64_t capacity, room, width
    cdef bint lacks_room
    cdef int64_t valid_size
    cdef readonly bytearray offset_bytes, valid_bytes, text_bytes
    cdef bytearray mark_bytes
    cdef int32_t* offsets
    cdef uint8_t* valid
    cdef uint8_t* data
    cdef int64_t* marks

    @cython.locals(i=int64_t)
    cpdef begin(self)
    @cython.locals(n=int64_t)
    cpdef make_buffers(self)
    cpdef make_room(self, int64_t width)
    cdef int64_t base(self, int64_t column) noexcept nogil
    cdef int64_t used(self, int64_t column) noexcept nogil
    cdef void note(self, int64_t column, int64_t end) noexcept nogil
    @cython.locals(i=int64_t, end=int64_t)
    cdef void close(self, int64_t row, int64_t width) noexcept nogil
    @cython.locals(row=int64_t)
    cdef void fill(self, int64_t column, int64_t rows) noexcept nogil
    @cython.locals(i=int64_t)
    cpdef finish(self, int64_t rows)
    cpdef int64_t size(self, int64_t column)
    cpdef int64_t offsets_at(self, int64_t column)
    cpdef int64_t valid_at(self, int64_t column)
    cpdef int64_t bytes_at(self, int64_t column)
