cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.kernel.codes cimport *
from protocol.kernel.gtid_head cimport GtidHead, KeyTable
from protocol.kernel.native cimport load16, load32

cdef enum:
    # further statuses of a walk
    SCAN_FOREIGN = 6
    SCAN_LATE_HEAD = 7
    SCAN_LONG_HEAD = 8
    # whose GTID events a file may have
    FAMILY_ANY = 0
    FAMILY_MYSQL = 1
    FAMILY_MARIADB = 2
    # a list of what was executed before a file, bytes
    LONGEST_GTID_HEAD = 67108864
    # in the place of the number of a source
    SOURCE_NONE = -1
    SOURCE_OF_LAST = -2

@cython.final
cdef class GtidScanner:
    cdef readonly int64_t gap_bytes
    cdef readonly int64_t position
    cdef readonly int64_t transactions
    cdef readonly int64_t anonymous
    cdef readonly object problem
    cdef readonly int captured_type
    cdef readonly object captured
    cdef readonly int64_t capture_left
    cdef int status
    cdef int family
    cdef public bint head_expected
    cdef public bint numbered
    cdef int64_t consumed
    cdef readonly int64_t skip_left
    # the transaction that is open
    cdef readonly bint in_group
    cdef bint group_marked
    cdef bint group_ends
    cdef int64_t group_source
    cdef int64_t group_number
    # sources
    cdef GtidHead head
    cdef int head_type
    cdef KeyTable table
    cdef object runs
    cdef object active
    cdef object rows
    cdef int64_t[::1] runs_view
    cdef int64_t[::1] active_view
    cdef int64_t[::1] rows_view
    # the stretch that is open
    cdef int64_t row_capacity
    cdef int64_t row_count
    cdef int64_t active_count
    cdef int64_t stretch
    cdef int64_t stretch_start
    cdef int64_t stretch_anonymous
    cdef int64_t stretch_timestamp

    cpdef begin(self, int64_t position)
    cdef take_views(self)
    @cython.locals(view="const unsigned char[::1]", at=int64_t, n=int64_t)
    cpdef int64_t feed(self, buf, int64_t start, int64_t stop) except -1
    @cython.locals(
        r=int64_t, base=int64_t, n=int64_t, length=int64_t, t=cython.int, role=cython.int, roles="const uint8_t*",
        tbm=cython.int, flags=uint32_t, status=cython.int, expected=cython.bint
    )
    cdef int walk(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    cdef bint is_foreign(self, int t) noexcept nogil
    cdef void begin_group(self, int64_t position, int64_t timestamp) noexcept nogil
    cdef void begin_without_gtid(self, int64_t position, int64_t timestamp) noexcept nogil
    @cython.locals(slot=int64_t, at=int64_t, number=int64_t)
    cdef void end_group(self) noexcept nogil
    @cython.locals(at=int64_t, o=int64_t)
    cdef void put_run(self, int64_t slot) noexcept nogil
    @cython.locals(i=int64_t, o=int64_t)
    cdef void put_stretch(self, int64_t position) noexcept nogil
    cdef void close_stretch(self, int64_t position) noexcept nogil
    cdef grow_rows(self)
    @cython.locals(count=int64_t)
    cpdef open_rows(self)
    cpdef finish(self)
    @cython.locals(source=int64_t)
    cdef bint take_gtid(self, const uint8_t* p, int64_t at, int64_t n, int t) noexcept nogil
    cdef grow_sources(self)
    cpdef take_rows(self)
    cpdef bytes source_key(self, int64_t source)
