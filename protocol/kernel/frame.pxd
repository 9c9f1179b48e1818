cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.codes cimport *
from protocol.kernel.edges cimport Edges
from protocol.kernel.native cimport copy_bytes, crc32_of, flags_effect, load16, load32, native_setup, store32

@cython.locals(boundary=uint32_t)
cdef bint ends_transaction(int t, uint32_t flags) noexcept nogil

@cython.final
cdef class Framer:
    cdef readonly int mode
    cdef Edges edges
    cdef readonly int prefix_length
    cdef uint8_t prefix_bytes[8]
    cdef public int sequence
    cdef int checksum
    cdef int64_t event_left
    cdef int64_t packet_left
    cdef bint more_packets
    cdef uint32_t effect
    cdef readonly int64_t consumed
    cdef readonly int64_t events
    cdef int problem
    cdef bint asks
    cdef int left_out
    cdef bint leaving_out
    cdef bint asked
    cdef readonly int64_t asked_end
    cdef readonly int64_t asked_events

    cpdef void begin_file(self, int checksum)
    cpdef read_format(self, const uint8_t[::1] event)
    @cython.locals(n=int64_t)
    cpdef int64_t frame(self, const uint8_t[::1] src, int64_t start, int64_t stop, uint8_t[::1] dst) except -1
    @cython.locals(
        r=int64_t, length=int64_t, payload=int64_t, n=int64_t, t=cython.int, crc=cython.int, flags=uint32_t,
        bits=uint32_t, checksum=cython.int, mode=cython.int, prefix=cython.int, left_out=cython.int, at=int64_t, stored=uint32_t, hold=int64_t
    )
    cdef int64_t walk(self, const uint8_t* p, int64_t start, int64_t stop, uint8_t* q, int64_t o) noexcept nogil
    @cython.locals(newest=int64_t, size=int64_t, r=int64_t, length=int64_t, o=int64_t)
    cdef int64_t walk_asking(self, const uint8_t* p, int64_t start, int64_t stop, uint8_t* q) noexcept nogil
    @cython.locals(i=cython.int)
    cdef int64_t put_head(self, uint8_t* q, int64_t o, int64_t size, bint with_prefix) noexcept nogil
    cdef void finish_event(self, int64_t r) noexcept nogil
