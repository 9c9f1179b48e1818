cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from protocol.kernel.codes cimport *
from protocol.kernel.native cimport head_of, load64, bytes_of, text_of, store64

cpdef int64_t check(bytes data, int64_t at, int64_t count) except -2
@cython.locals(i=int64_t, last=uint64_t, start=uint64_t, end=uint64_t)
cdef int64_t first_fault(const uint8_t* p, int64_t at, int64_t stop) noexcept nogil

cpdef int64_t count(bytes a) except -1
@cython.locals(i=int64_t, numbers=int64_t)
cdef int64_t total(const uint8_t* p, int64_t n) noexcept nogil

cpdef bint contains(bytes a, uint64_t number) except -1
cpdef bint meets_run(bytes a, uint64_t first, uint64_t last) except -1
@cython.locals(low=int64_t, high=int64_t, middle=int64_t)
cdef bint holds_any(const uint8_t* p, int64_t n, uint64_t first, uint64_t last) noexcept nogil

@cython.locals(out=bytearray, n=int64_t)
cpdef bytes union(bytes a, bytes b)
@cython.locals(
    i=int64_t, j=int64_t, o=int64_t, first=uint64_t, last=uint64_t, sa=uint64_t, sb=uint64_t, start=uint64_t, stop=uint64_t,
    from_a=cython.bint, new=cython.bint
)
cdef int64_t join(const uint8_t* p, int64_t na, const uint8_t* q, int64_t nb, uint8_t* r) noexcept nogil

@cython.locals(out=bytearray, n=int64_t)
cpdef bytes difference(bytes a, bytes b)
@cython.locals(i=int64_t, j=int64_t, o=int64_t, start=uint64_t, stop=uint64_t)
cdef int64_t cut(const uint8_t* p, int64_t na, const uint8_t* q, int64_t nb, uint8_t* r) noexcept nogil

@cython.locals(out=bytearray, n=int64_t)
cpdef bytes intersection(bytes a, bytes b)
@cython.locals(i=int64_t, j=int64_t, o=int64_t, start=uint64_t, stop=uint64_t, other=uint64_t, from_a=cython.bint)
cdef int64_t meet(const uint8_t* p, int64_t na, const uint8_t* q, int64_t nb, uint8_t* r) noexcept nogil

cpdef bint is_subset(bytes a, bytes b) except -1
@cython.locals(i=int64_t, j=int64_t)
cdef bint covered(const uint8_t* p, int64_t na, const uint8_t* q, int64_t nb) noexcept nogil

@cython.locals(out=bytearray, n=int64_t)
cpdef bytes merge_runs(bytes runs)
@cython.locals(i=int64_t, o=int64_t, last=uint64_t, start=uint64_t, stop=uint64_t)
cdef int64_t close_up(const uint8_t* p, int64_t n, uint8_t* r) noexcept nogil
