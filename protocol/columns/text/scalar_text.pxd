cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.columns.codes.column_codes cimport *
from protocol.columns.text.json_text cimport put_hex, put_padded, put_unsigned
from protocol.kernel.native cimport load24, load32, load64

cdef int64_t group_bytes(int64_t digits) noexcept nogil
cdef int64_t decimal_bytes(int64_t digits) noexcept nogil
@cython.locals(value=uint32_t, byte=uint32_t, i=int64_t)
cdef uint32_t read_group(const uint8_t* p, int64_t at, int64_t size, uint32_t mask, bint first) noexcept nogil
@cython.locals(
    whole=int64_t, mask=uint32_t, first=cython.bint, digits=int64_t, size=int64_t, group=uint32_t, started=cython.bint
)
cdef int64_t put_decimal(uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t precision, int64_t scale) noexcept nogil
@cython.locals(limit=uint32_t)
cdef uint32_t least_too_great(int64_t digits) noexcept nogil

cdef extern from "real_text.h" nogil:
    void set_power_of_ten(int k, uint64_t high, uint64_t low) noexcept
    int64_t put_real_64(uint8_t* out, int64_t at, uint64_t bits) noexcept
    int64_t put_real_32(uint8_t* out, int64_t at, uint32_t bits) noexcept

cdef int64_t put_double(uint8_t* out, int64_t at, const uint8_t* p, int64_t start) noexcept nogil
cdef int64_t put_float(uint8_t* out, int64_t at, const uint8_t* p, int64_t start) noexcept nogil

@cython.locals(value=uint64_t, i=int64_t)
cdef uint64_t load_big(const uint8_t* p, int64_t at, int64_t size) noexcept nogil
cdef int64_t put_ymd(uint8_t* out, int64_t at, uint64_t year, uint64_t month, uint64_t day) noexcept nogil
cdef int64_t put_hms(uint8_t* out, int64_t at, uint64_t hour, uint64_t minute, uint64_t second) noexcept nogil
@cython.locals(_i=int64_t)
cdef int64_t put_fraction(uint8_t* out, int64_t at, uint64_t fraction, int64_t digits) noexcept nogil
@cython.locals(value=uint32_t)
cdef int64_t put_date(uint8_t* out, int64_t at, const uint8_t* p, int64_t start) noexcept nogil
@cython.locals(value=int64_t)
cdef int64_t put_old_time(uint8_t* out, int64_t at, const uint8_t* p, int64_t start) noexcept nogil
@cython.locals(value=uint64_t, day=uint64_t, time=uint64_t)
cdef int64_t put_old_datetime(uint8_t* out, int64_t at, const uint8_t* p, int64_t start) noexcept nogil
@cython.locals(month=uint64_t)
cdef int64_t put_packed_datetime(uint8_t* out, int64_t at, uint64_t whole, uint64_t fraction, int64_t digits) noexcept nogil
cdef int64_t put_packed_date(uint8_t* out, int64_t at, uint64_t whole) noexcept nogil
cdef int64_t put_packed_time(uint8_t* out, int64_t at, bint negative, uint64_t whole, uint64_t fraction, int64_t digits) noexcept nogil
cdef uint64_t microseconds(uint64_t stored, int64_t size) noexcept nogil
@cython.locals(size=int64_t, high=uint64_t, whole=uint64_t)
cdef int64_t put_datetime(uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t digits) noexcept nogil
@cython.locals(size=int64_t, value=int64_t, half=int64_t, negative=cython.bint, fraction=uint64_t)
cdef int64_t put_time(uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t digits) noexcept nogil
@cython.locals(size=int64_t)
cdef int64_t put_timestamp(uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t digits) noexcept nogil
@cython.locals(
    days=int64_t, second=int64_t, era=int64_t, of_era=int64_t, year=int64_t, of_year=int64_t, shifted=int64_t, month=int64_t
)
cdef int64_t put_seconds(uint8_t* out, int64_t at, int64_t seconds, uint64_t fraction, int64_t digits) noexcept nogil

@cython.locals(swapped=cython.bint, i=int64_t, k=int64_t)
cdef int64_t put_uuid(uint8_t* out, int64_t at, const uint8_t* p) noexcept nogil
@cython.locals(i=int64_t)
cdef int64_t put_inet4(uint8_t* out, int64_t at, const uint8_t* p, int64_t start) noexcept nogil
@cython.locals(i=int64_t, gap=int64_t, length=int64_t, run=int64_t)
cdef int64_t put_inet6(uint8_t* out, int64_t at, const uint8_t* p) noexcept nogil
cdef uint32_t word_at(const uint8_t* p, int64_t i) noexcept nogil
@cython.locals(digit=uint32_t, shift=int64_t)
cdef int64_t put_word_hex(uint8_t* out, int64_t at, uint32_t word) noexcept nogil
