cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from protocol.columns.column_codes cimport *
from protocol.columns.text.json_text cimport put_lossy
from protocol.kernel.native cimport bytes_of, copy_bytes, ints_of, longs_of, unset_bytes

@cython.final
cdef class TextColumn:
    cdef int64_t capacity
    cdef int64_t room
    cdef int64_t used
    cdef readonly bytearray offset_bytes, text_bytes, valid_bytes
    cdef int32_t* offsets
    cdef uint8_t* data
    cdef uint8_t* valid

    cpdef begin(self)
    cpdef grow(self, int64_t more)
    cdef bint fits(self, int64_t more) noexcept nogil
    cdef void put(self, int64_t row, const uint8_t* p, int64_t at, int64_t count) noexcept nogil
    cdef void close(self, int64_t row, int64_t used) noexcept nogil
    cdef void skip(self, int64_t row) noexcept nogil

@cython.final
cdef class SharedTexts:
    cdef int64_t capacity
    cdef int64_t text_count
    cdef int64_t room
    cdef readonly int64_t count
    cdef int64_t used
    cdef int64_t lacking
    cdef readonly bytearray number_bytes, valid_bytes, offset_bytes, text_bytes
    cdef int32_t* numbers
    cdef int32_t* offsets
    cdef uint8_t* data
    cdef uint8_t* valid

    cpdef begin(self)
    cpdef make_room(self)
    @cython.locals(end=int64_t)
    cdef int64_t add(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    cdef void put(self, int64_t row, int64_t number) noexcept nogil

cdef class ColumnBatch:
    cdef readonly int64_t capacity
    cdef readonly int64_t rows
    cdef readonly int64_t findings
    cdef readonly dict columns
    cdef dict texts
    cdef dict buffers
    cdef bytearray nothing

    cpdef begin(self)
    cdef int64_t* i64(self, str name)
    cdef int32_t* i32(self, str name)
    cdef uint8_t* u8(self, str name)
    cdef uint8_t* bits(self, str name)
    cdef TextColumn text(self, str name)
