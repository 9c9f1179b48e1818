cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.codes cimport *
from protocol.kernel.inference cimport Inference
from protocol.kernel.native cimport load16, load32

@cython.final
cdef class StreamFormat:
    cdef int checksum
    cdef bint has_checksum_field
    cdef readonly int binlog_version
    cdef bint loose_positions
    cdef readonly uint32_t created
    cdef readonly uint32_t server_id
    cdef int64_t expected
    cdef int64_t got

    cdef int take(self, const uint8_t* p, int64_t at, int64_t length, Inference inference) noexcept nogil
    @cython.locals(body=int64_t, count=int64_t, i=int64_t, version=uint32_t, aware=cython.bint, a=cython.int, b=cython.int,
        c=cython.int, field=cython.int, mariadb=cython.bint, k=int64_t)
    cdef int take_version_4(self, const uint8_t* p, int64_t at, int64_t length, Inference inference) noexcept nogil
    cdef int take_start_v3(self, const uint8_t* p, int64_t at, int64_t length, Inference inference) noexcept nogil
