cimport cython
from libc.stdint cimport int64_t

from protocol.columns.rows.column_plans cimport ColumnPlans
from protocol.columns.tables cimport TableMaps

cdef class RowTables:
    cdef TableMaps tables
    cdef ColumnPlans plans
    cdef readonly object asked
    cdef readonly bint malformed
    cdef bint asks
    cdef bint mariadb
    cdef int64_t id_size
    cdef int64_t slot
    cdef dict numbers
    cdef object columns
    cdef bytes widths
    cdef bytes key

    cpdef begin_file(self, int64_t id_size, bint mariadb)
    cpdef forget(self)
    cpdef bint are_too_many(self) except -1
    @cython.locals(raw=int64_t, widths=int64_t, schema=int64_t, table=int64_t)
    cpdef bint make_plan(self) except -1
    cpdef bint describe(self, bytes description) except -1
    cpdef add_plan(self, described)
