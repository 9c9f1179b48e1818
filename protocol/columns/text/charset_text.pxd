cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from protocol.columns.codes.column_codes cimport *
from protocol.columns.text.json_text cimport put_code_point, put_string
from protocol.kernel.native cimport copy_plain, shorts_of

cdef class CharsetText:
    cdef dict modes
    cdef list codecs
    cdef object failure
    cdef bytearray table_bytes
    cdef const uint16_t* tables
    cdef uint64_t ascii_tables

    cpdef int mode_of(self, charset)
    cdef int64_t put(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop, int mode
    ) noexcept nogil
    @cython.locals(i=int64_t, plain=int64_t, near=int64_t, number=int64_t, is_ascii=bint, c=uint32_t)
    cdef int64_t put_single_byte(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop, int64_t table
    ) noexcept nogil
    @cython.locals(i=int64_t, c=uint32_t, low=uint32_t, width=int64_t)
    cdef int64_t put_wide(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop, int mode
    ) noexcept nogil
    @cython.locals(data=bytes)
    cdef int64_t put_by_codec(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop, int codec
    ) noexcept with gil

cdef uint32_t wide_unit(const uint8_t* p, int64_t at, int mode) noexcept nogil
