cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.columns.column_batch cimport TextColumn
from protocol.columns.codes.column_codes cimport *
from protocol.columns.rows.table_plans cimport ColumnPlans
from protocol.columns.rows.value_columns cimport ValueColumns
from protocol.columns.tables cimport ImageColumns
from protocol.columns.text.charset_text cimport CharsetText
from protocol.columns.text.json_binary cimport JsonBinary
from protocol.columns.text.json_text cimport put_base64, put_binary, put_signed, put_unsigned, put_word
from protocol.columns.text.scalar_text cimport (
    load_big, put_date, put_datetime, put_decimal, put_double, put_float, put_inet4, put_inet6, put_old_datetime, put_old_time,
    put_seconds, put_time, put_timestamp, put_uuid
)
from protocol.kernel.codes cimport *
from protocol.kernel.native cimport bytes_of, copy_bytes, load16, load24, load32, load64, signed64, text_of

@cython.locals(value=int64_t)
cdef int64_t put_integer(uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t size, bint is_unsigned) noexcept nogil
@cython.locals(value=uint64_t, i=int64_t)
cdef uint64_t load_little(const uint8_t* p, int64_t at, int64_t size) noexcept nogil

@cython.final
cdef class RowValues:
    cdef CharsetText charsets
    cdef ColumnPlans plans
    cdef JsonBinary json
    cdef int64_t plan
    cdef readonly bint malformed
    cdef readonly bint uncertain
    cdef readonly bint odd
    cdef readonly int64_t cursor
    cdef bytearray padded_bytes
    cdef uint8_t* padded

    cdef bint enter_image(self, ImageColumns columns, int64_t start, int64_t stop) noexcept nogil
    @cython.locals(
        out="uint8_t*", at=int64_t, room=int64_t, bits="const uint8_t*", bitmap=int64_t, c=int64_t, nulls=int64_t, k=int64_t, i=int64_t,
        length=int64_t, json=int64_t, is_partial=cython.bint
    )
    cdef int64_t put_image(
        self, TextColumn column, ImageColumns columns, const uint8_t* p, int64_t start, int64_t stop, int64_t partial
    ) noexcept nogil
    @cython.locals(
        bits="const uint8_t*", bitmap=int64_t, c=int64_t, nulls=int64_t, k=int64_t, i=int64_t, json=int64_t, is_partial=cython.bint,
        base=int64_t, at=int64_t
    )
    cdef int64_t put_values(
        self, ValueColumns values, ImageColumns columns, const uint8_t* p, int64_t start, int64_t stop, int64_t partial
    ) noexcept nogil
    @cython.locals(form=cython.int, done=int64_t, before=uint8_t)
    cdef int64_t put_alone(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t stop, int64_t c, bint partial
    ) noexcept nogil
    @cython.locals(start=int64_t, size=int64_t, padded=int64_t, i=int64_t)
    cdef int64_t put_bytes(self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t stop, int64_t c) noexcept nogil
    @cython.locals(prefix=int64_t, start=int64_t, size=int64_t)
    cdef int64_t value_start(self, const uint8_t* p, int64_t stop, int64_t c) noexcept nogil
    @cython.locals(kind=cython.int, size=int64_t, start=int64_t, end=int64_t, done=int64_t)
    cdef int64_t put_value(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t stop, int64_t c, bint partial
    ) noexcept nogil
    @cython.locals(kind=cython.int)
    cdef int64_t put_kind(
        self, uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t start, int64_t end, int64_t c
    ) noexcept nogil
    cdef int64_t put_quoted_decimal(self, uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t c) noexcept nogil
    @cython.locals(length=int64_t)
    cdef int64_t copy_text(self, uint8_t* out, int64_t at, int64_t text) noexcept nogil
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
