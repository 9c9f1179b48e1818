cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from protocol.columns.codes.column_codes cimport *
from protocol.columns.text.json_text cimport put_hex, put_unsigned
from protocol.kernel.codes cimport *
from protocol.kernel.gtid_head cimport GtidHead
from protocol.kernel.native cimport copy_bytes, load32

@cython.final
cdef class GtidText:
    cdef uint8_t text[GTID_TEXT_ROOM]
    cdef GtidHead head
    cdef int64_t length

    cdef void take(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(i=int64_t)
    cdef void put_uuid(self) noexcept nogil
    cdef void put_tag(self, int64_t count) noexcept nogil
    cdef void put_number(self, uint64_t number, int separator) noexcept nogil
    cdef void put_byte(self, int byte) noexcept nogil
