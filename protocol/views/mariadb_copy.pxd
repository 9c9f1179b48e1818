cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from protocol.kernel.codes cimport *
from protocol.kernel.inference cimport first_word, has_prefix
from protocol.kernel.native cimport copy_bytes, crc32_of, load16, load32, load64, native_setup, store32, store64
from protocol.views.packed_numbers cimport count_with, put_number

cdef enum:
    DOMAINS = 1024
    MAPS = 1024
    MAP_BYTES = 262144
    MAP_HEAD = 12

cdef enum:
    NEEDS_LOOK = 0xFFFFFFFF

@cython.final
cdef class MariadbCopy:
    cdef uint32_t domains[DOMAINS]
    cdef uint64_t following[DOMAINS]
    cdef uint8_t uuids[16384]
    cdef int32_t maps[MAPS]
    cdef uint8_t arena[MAP_BYTES]
    cdef int checksum
    cdef int out_checksum
    cdef uint32_t server_version
    cdef public int64_t position
    cdef public int64_t sequence
    cdef public uint64_t commit_id
    cdef public int64_t back
    cdef public int64_t source_base
    cdef public int64_t mark_at
    cdef readonly int64_t consumed
    cdef readonly int64_t produced
    cdef readonly int64_t wanted
    cdef readonly int64_t wanted_stop
    cdef int domain_count
    cdef int domain
    cdef uint64_t number
    cdef bint has_commit_id
    cdef bint may_replace
    cdef uint64_t group_commit_id
    cdef int64_t group_stop
    cdef int64_t group_size
    cdef uint64_t group_time
    cdef int64_t made_at
    cdef int64_t made_length
    cdef int map_count
    cdef int64_t arena_end

    cpdef void forget_domains(self)
    @cython.locals(text=bytes, i=cython.int)
    cpdef bint add_domain(self, uint32_t domain, bytes uuid, uint64_t following) except *
    cpdef uint64_t following_of(self, int index) except? 0
    @cython.locals(i=cython.int)
    cpdef void forget_maps(self)
    @cython.locals(text=bytes, result=bytes, length=int64_t, size=int64_t, at=int64_t, hashed=uint32_t, i=int64_t, slot=int64_t)
    cpdef bint add_map(self, bytes body, bytes made) except *
    @cython.locals(status=cython.int)
    cpdef int copy(self, const uint8_t[::1] src, int64_t start, int64_t stop, uint8_t[::1] dst, int64_t at) except -1
    @cython.locals(status=cython.int)
    cdef int copy_groups(self, const uint8_t* p, int64_t r, int64_t stop, uint8_t* d, int64_t o, int64_t room) noexcept nogil
    @cython.locals(trailer=cython.int, out_trailer=cython.int, at=int64_t, length=int64_t, end=int64_t, boundary=uint32_t, t=cython.int,
        made=int64_t)
    cdef int measure(self, const uint8_t* p, int64_t r, int64_t stop) noexcept nogil
    @cython.locals(flags=cython.int, behind=int64_t, domain=uint32_t, i=cython.int)
    cdef bint read_head(self, const uint8_t* p, int64_t a, int64_t end) noexcept nogil
    @cython.locals(size=int64_t, start=int64_t)
    cdef int64_t made_bytes(self, const uint8_t* p, int64_t at, int64_t end, int t, uint32_t boundary) noexcept nogil
    @cython.locals(columns=cython.int, width=cython.int, at=int64_t, i=cython.int)
    cdef bint is_whole_behind(self, const uint8_t* p, int64_t a, int64_t end) noexcept nogil
    @cython.locals(text=int64_t)
    cdef bint is_commit(self, const uint8_t* p, int64_t a, int64_t end) noexcept nogil
    @cython.locals(hashed=uint32_t, i=int64_t, slot=int64_t, entry=int64_t, made=uint32_t)
    cdef bint find_map(self, const uint8_t* p, int64_t start, int64_t end) noexcept nogil
    @cython.locals(trailer=cython.int, length=int64_t, server=uint32_t, at=int64_t)
    cdef int64_t write_group(self, const uint8_t* p, int64_t r, uint8_t* d, int64_t o) noexcept nogil
    @cython.locals(last=int64_t, size=int64_t, count=int64_t, a=int64_t, i=cython.int, committed=uint64_t)
    cdef int64_t put_gtid(self, uint8_t* d, int64_t o, uint32_t server) noexcept nogil
    @cython.locals(a=int64_t, i=cython.int)
    cdef int64_t put_begin(self, uint8_t* d, int64_t o, uint32_t timestamp, uint32_t server) noexcept nogil
    @cython.locals(t=cython.int, flags=uint32_t, body=int64_t, a=int64_t, i=cython.int)
    cdef int64_t put_event(self, const uint8_t* p, int64_t at, int64_t end, uint8_t* d, int64_t o, int marker) noexcept nogil
    @cython.locals(size=int64_t, kept=uint32_t)
    cdef int64_t close(self, uint8_t* d, int64_t o, int64_t a, uint32_t flags, int marker) noexcept nogil
