cimport cython
from libc.stdint cimport int64_t

from protocol.dependencies.write_set_codes cimport *
from protocol.dependencies.write_sets cimport WriteSets
from protocol.kernel.native cimport longs_of

@cython.final
cdef class GroupWaits:
    cdef readonly WriteSets sets
    cdef bint has_sets
    cdef bytearray count_bytes
    cdef int64_t* counts
    cdef int64_t source_number
    cdef int64_t source_floor
    cdef readonly int64_t groups
    cdef readonly int64_t beside
    cdef readonly int64_t batches
    cdef int64_t batch_first
    cdef int floor_why
    cdef int64_t floor_table

    cpdef begin_file(self, int64_t map_post)
    cpdef void begin_anew(self, int64_t sequence) noexcept nogil
    cpdef bint is_anew(self, int64_t sequence) noexcept nogil
    cpdef void begin_serial(self, int why) noexcept nogil
    @cython.locals(found=int64_t, wanted=int64_t)
    cpdef int64_t wait_of(self, int64_t sequence, bint told, int64_t last, int64_t number) noexcept nogil
    @cython.locals(table=int64_t, why=cython.int)
    cdef void count(self, int64_t sequence, int64_t found) noexcept nogil
    @cython.locals(at=int64_t)
    cpdef take_counts(self)
