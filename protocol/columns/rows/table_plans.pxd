cimport cython
from libc.stdint cimport int64_t, uint8_t

from protocol.columns.codes.column_codes cimport *
from protocol.columns.tables cimport TableMaps
from protocol.columns.text.charset_text cimport CharsetText
from protocol.kernel.native cimport bytes_of, longs_of

@cython.final
cdef class ColumnPlans:
    cdef readonly int64_t count
    cdef readonly int64_t column_count
    cdef int64_t text_count
    cdef int64_t arena_used
    cdef bytearray named_bytes, first_bytes, shape_bytes, column_bytes, text_bytes, arena_bytes
    cdef int64_t* first
    cdef int64_t* shapes
    cdef uint8_t* named
    cdef int64_t* columns
    cdef int64_t* texts
    cdef uint8_t* arena
    cdef list names
    cdef CharsetText charsets

@cython.final
cdef class RowTables:
    cdef TableMaps tables
    cdef ColumnPlans plans
    cdef readonly object asked
    cdef readonly bint malformed
    cdef bint asks
    cdef bint mariadb
    cdef int64_t slot
    cdef dict numbers
    cdef list columns
    cdef bytes widths
    cdef bytes key

    cpdef begin_file(self, bint mariadb)
    cpdef forget(self)
    cpdef bint are_too_many(self) except -1
    @cython.locals(raw=int64_t, widths=int64_t, schema=int64_t, table=int64_t)
    cpdef bint make_plan(self) except -1
    cpdef bint describe(self, bytes description, int named_by) except -1
    cpdef add_plan(self, described, int named_by)
