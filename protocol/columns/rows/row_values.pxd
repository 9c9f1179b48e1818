cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.columns.text.charset_text cimport CharsetText
from protocol.columns.rows.column_plans cimport ColumnPlans
from protocol.columns.text.decimal_text cimport put_decimal
from protocol.columns.text.json_binary cimport JsonBinary
from protocol.columns.text.json_text cimport put_base64, put_binary, put_signed, put_unsigned, put_word
from protocol.kernel.native cimport copy_bytes, load16, load24, load32, load64
from protocol.columns.text.native_types cimport put_inet4, put_inet6, put_uuid
from protocol.columns.text.real_text cimport put_double, put_float
from protocol.columns.text.temporal_text cimport (
    load_big, put_date, put_datetime, put_old_datetime, put_old_time, put_seconds, put_time, put_timestamp
)

@cython.locals(value=uint64_t)
cdef int64_t put_integer(uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t size, bint is_unsigned) noexcept nogil
@cython.locals(value=uint64_t, i=int64_t)
cdef uint64_t load_little(const uint8_t* p, int64_t at, int64_t size) noexcept nogil

cdef class RowValues:
    cdef CharsetText charsets
    cdef ColumnPlans plans
    cdef JsonBinary json
    cdef readonly bint malformed
    cdef readonly int64_t cursor
    cdef uint8_t[::1] padded

    @cython.locals(
        width=int64_t, columns=int64_t, nulls=int64_t, k=int64_t, i=int64_t, c=int64_t, status=int64_t, first=cython.bint,
        length=int64_t, bits=int64_t, json=int64_t, is_partial=cython.bint
    )
    cdef int64_t put_image(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* q, int64_t bitmap, int64_t row_width, const uint8_t* p,
        int64_t start, int64_t stop, int64_t plan, int64_t present, int64_t partial
    ) noexcept nogil
    cdef int64_t copy_text(self, uint8_t* out, int64_t at, int64_t text, int64_t length) noexcept nogil
    @cython.locals(kind=cython.int, size=int64_t, prefix=int64_t, start=int64_t, end=int64_t)
    cdef int64_t put_value(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t stop, int64_t c, bint partial
    ) noexcept nogil
    @cython.locals(begin=int64_t)
    cdef int64_t put_kind(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t end, int64_t c, int kind, bint partial
    ) noexcept nogil
    @cython.locals(begin=int64_t)
    cdef int64_t put_temporal(self, uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int kind, int64_t digits) noexcept nogil
    @cython.locals(number=uint64_t, text=int64_t)
    cdef int64_t put_enum(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t size, int64_t c
    ) noexcept nogil
    @cython.locals(number=uint64_t, text=int64_t, count=int64_t, i=int64_t, one=uint64_t, first=cython.bint)
    cdef int64_t put_set(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t size, int64_t c
    ) noexcept nogil
    @cython.locals(mode=cython.int, done=int64_t)
    cdef int64_t put_characters(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t end, int64_t c
    ) noexcept nogil
    cdef int64_t put_padded_binary(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t end, int64_t size
    ) noexcept nogil
    @cython.locals(i=int64_t)
    cdef void pad(self, const uint8_t* p, int64_t start, int64_t end, int64_t size) noexcept nogil
    cdef int64_t put_native(self, uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t end, int kind) noexcept nogil
    cdef int64_t put_geometry(self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t end) noexcept nogil
    @cython.locals(i=int64_t)
    cdef int64_t put_vector(self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t end) noexcept nogil
    @cython.locals(data=bytes, mode=cython.int, done=int64_t)
    cdef int64_t put_compressed(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t end, int64_t c
    ) noexcept with gil
