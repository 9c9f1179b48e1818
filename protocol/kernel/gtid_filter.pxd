cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from protocol.kernel.codes cimport *
from protocol.kernel.gtid_head cimport GtidHead, KeyTable
from protocol.kernel.native cimport load16, load32, load64, store32

@cython.final
cdef class GtidSkip:
    cdef readonly bint sending
    cdef readonly int64_t skipped
    cdef readonly int64_t waiting
    cdef readonly int64_t hole
    cdef readonly int64_t reached
    cdef readonly bint in_hole
    cdef readonly uint64_t hole_number
    cdef readonly bint finished
    cdef public bint refuse_anonymous
    cdef public bint refuse_gtids
    cdef readonly int refused
    cdef int64_t reaching
    cdef int64_t holing
    cdef readonly object problem
    cdef GtidHead head
    cdef KeyTable table
    cdef KeyTable domains
    cdef KeyTable limits
    cdef list kept
    cdef object spans
    cdef int64_t room
    cdef int64_t[::1] spans_view
    cdef uint64_t[::1] lasts_view
    cdef uint64_t[::1] stops_view
    cdef bint limited
    cdef bint before
    cdef bint strict
    cdef int64_t unmet
    cdef bint ending
    cdef int64_t event_left
    cdef bint passing
    cdef bint group_ends
    cdef int decided
    cdef public int numbered

    @cython.locals(numbers=bytes, slot=int64_t)
    cpdef hold(self, intervals)
    cdef grow(self)
    cpdef begin(self)
    @cython.locals(view="const unsigned char[::1]", end=int64_t)
    cpdef int64_t next_range(self, src, int64_t start, int64_t stop) except -1
    @cython.locals(
        r=int64_t, n=int64_t, length=int64_t, t=cython.int, role=cython.int, roles="const uint8_t*", tbm=cython.int,
        passing=cython.bint, begins=cython.bint
    )
    cdef int64_t walk(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    @cython.locals(
        slot=int64_t, numbers="const uint8_t*", number=uint64_t, stop=int64_t, at=int64_t, i=cython.int,
        low=int64_t, high=int64_t, middle=int64_t
    )
    cdef bint has_number(self) noexcept nogil
    @cython.locals(slot=int64_t, server=uint64_t, number=uint64_t, passing=cython.bint)
    cdef bint has_group(self) noexcept nogil
