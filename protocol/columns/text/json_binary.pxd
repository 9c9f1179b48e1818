cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.columns.codes.column_codes cimport *
from protocol.columns.text.json_text cimport put_base64, put_signed, put_string, put_unsigned, put_word
from protocol.columns.text.scalar_text cimport (
    decimal_bytes, put_decimal, put_double, put_packed_date, put_packed_datetime, put_packed_time
)
from protocol.kernel.codes cimport *
from protocol.kernel.native cimport load16, load32, load64, magnitude, signed64

cdef class JsonBinary:
    cdef int64_t budget
    cdef int64_t cursor

    cdef int64_t put_column(self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    @cython.locals(t=cython.int, width=int64_t, key=int64_t, length=int64_t)
    cdef bint is_ambiguous(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    cdef int64_t put_document(self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    @cython.locals(length=int64_t, number=int64_t)
    cdef int64_t put_value(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop, int t, int depth
    ) noexcept nogil
    @cython.locals(
        large=cython.bint, is_object=cython.bint, width=int64_t, count=int64_t, size=int64_t, head=int64_t, entry=int64_t,
        key=int64_t, length=int64_t, i=int64_t, kind=cython.int, there=int64_t
    )
    cdef int64_t put_container(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop, int t, int depth
    ) noexcept nogil
    cdef int64_t put_literal(self, uint8_t* out, int64_t at, int value) noexcept nogil
    @cython.locals(size=int64_t, part=int64_t, i=int64_t)
    cdef int64_t read_size(self, const uint8_t* p, int64_t stop) noexcept nogil
    @cython.locals(t=cython.int, size=int64_t, data=int64_t)
    cdef int64_t put_opaque(self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    @cython.locals(value=int64_t, packed=uint64_t)
    cdef int64_t put_temporal(self, uint8_t* out, int64_t at, const uint8_t* p, int64_t data, int t) noexcept nogil
    @cython.locals(operation=cython.int, size=int64_t, first=cython.bint)
    cdef int64_t put_diffs(self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    @cython.locals(first=cython.int, length=int64_t)
    cdef int64_t read_packed(self, const uint8_t* p, int64_t stop) noexcept nogil
