cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.kernel.codes cimport *
from protocol.kernel.native cimport copy_bytes, load32, load64, bytes_of, text_of, store32, store64

@cython.final
cdef class TaggedFields:
    cdef readonly int64_t at
    cdef uint32_t found
    cdef uint64_t numbers[12]
    cdef uint8_t uuid[16]
    cdef int64_t tag_at

    @cython.locals(field=uint64_t, value=uint64_t, i=cython.int)
    cdef bint take(self, const uint8_t* p, int64_t body, int64_t end, uint64_t last) noexcept nogil
    @cython.locals(first=cython.uint, following=cython.int, value=uint64_t, i=int64_t)
    cdef uint64_t next_number(self, const uint8_t* p, int64_t end) noexcept nogil
    @cython.locals(whole=cython.bint, i=cython.int)
    cpdef tuple read(self, bytes body)
    @cython.locals(number=uint64_t)
    cpdef read_number(self, bytes data, int64_t at)

@cython.final
cdef class GtidHead:
    cdef uint8_t key[64]
    cdef uint64_t number
    cdef uint8_t role[256]
    cdef TaggedFields tagged

    @cython.locals(body=int64_t, k="uint8_t*", number=uint64_t, length=int64_t, i=int64_t, c=cython.int)
    cdef bint take(self, const uint8_t* p, int64_t at, int64_t n, int t) noexcept nogil
    @cython.locals(body=int64_t, number=uint64_t)
    cdef bint take_number(self, const uint8_t* p, int64_t at, int64_t n, int t) noexcept nogil

@cython.final
cdef class KeyTable:
    cdef readonly int64_t count
    cdef readonly int64_t capacity
    cdef int64_t last
    cdef uint64_t seed
    cdef object keys
    cdef object buckets
    cdef uint8_t[::1] keys_view
    cdef int64_t[::1] buckets_view

    cdef take_views(self)
    cdef bint is_full(self) noexcept nogil
    @cython.locals(at=uint64_t)
    cdef int64_t find(self, const uint8_t* k) noexcept nogil
    cdef int64_t add(self, const uint8_t* k) noexcept nogil
    @cython.locals(at=uint64_t)
    cdef void put(self, const uint8_t* k, int64_t number) noexcept nogil
    @cython.locals(i=cython.int, value=uint64_t)
    cdef uint64_t bucket_of(self, const uint8_t* k) noexcept nogil
    @cython.locals(at=int64_t, i=int64_t)
    cdef bint is_at(self, const uint8_t* k, int64_t number) noexcept nogil
    @cython.locals(i=int64_t)
    cdef grow(self)
    cpdef bytes key(self, int64_t number)
    @cython.locals(row=bytearray, number=int64_t, k="uint8_t*")
    cpdef int64_t add_bytes(self, bytes key) except -1
