cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.columns.text.json_text cimport put_padded
from protocol.kernel.native cimport load24, load32, load64

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
@cython.locals(size=int64_t, whole=int64_t, fraction=uint64_t)
cdef int64_t put_datetime(uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t digits) noexcept nogil
@cython.locals(size=int64_t, value=int64_t, half=int64_t, negative=cython.bint, fraction=uint64_t)
cdef int64_t put_time(uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t digits) noexcept nogil
@cython.locals(size=int64_t)
cdef int64_t put_timestamp(uint8_t* out, int64_t at, const uint8_t* p, int64_t start, int64_t digits) noexcept nogil
@cython.locals(
    days=int64_t, second=int64_t, era=int64_t, of_era=int64_t, year=int64_t, of_year=int64_t, shifted=int64_t, month=int64_t
)
cdef int64_t put_seconds(uint8_t* out, int64_t at, int64_t seconds, uint64_t fraction, int64_t digits) noexcept nogil
