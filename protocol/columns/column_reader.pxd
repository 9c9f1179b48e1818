cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.columns.codes.column_codes cimport *
from protocol.columns.tables cimport TableMaps
from protocol.kernel.codes cimport *
from protocol.kernel.inference cimport Inference
from protocol.kernel.native cimport held_bytes, held_longs, let_go, load32, text_of

@cython.final
cdef class Held:
    cdef Py_buffer view[1]

@cython.final
cdef class EventFacts:
    cdef int64_t position, end
    cdef int64_t flags, info, time, server_id, log_pos
    cdef int type, kind, boundary, finding
    cdef bint opens

cdef class ColumnReader:
    cdef Inference inference
    cdef EventFacts event
    cdef TableMaps tables
    cdef uint8_t takes[256]
    cdef Held buffer, rows
    cdef bint in_groups
    # where it is in the table
    cdef int64_t next_row
    cdef bint entered
    cdef bint pending
    cdef bint lacks_tables
    # where the event is in its transaction or group
    cdef bint open
    cdef bint was_open
    cdef int64_t group_start
    cdef bint in_group
    # packed data inside the event
    cdef int opening
    cdef readonly int64_t open_start
    cdef readonly int64_t open_stop
    cdef readonly int64_t opened_at
    cdef bytes opened_bytes
    cdef const uint8_t* opened_data
    cdef int64_t opened_size

    @cython.locals(have=int64_t, p="const uint8_t*", rows="const int64_t*", status=cython.int)
    cpdef int take(self, buf, int64_t base, table, int64_t count) except -1
    cpdef opened(self, bytes data)
    cpdef not_opened(self)
    @cython.locals(p="const uint8_t*", status=cython.int)
    cpdef int opened_events(self, buf, int64_t start, int64_t stop) except -1
    cpdef payload_done(self)
    @cython.locals(
        r=int64_t, info=int64_t, boundary=cython.int, t=cython.int, kind=cython.int, opens=cython.bint, finding=cython.int, at=int64_t,
        stop=int64_t, status=cython.int
    )
    cdef int walk(self, const uint8_t* p, int64_t have, int64_t base, const int64_t* table, int64_t count) noexcept nogil
    @cython.locals(length=int64_t, status=cython.int)
    cdef int walk_opened(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    cdef int flush(self) noexcept nogil
    cdef bint enter(self, int64_t position, int64_t server_id, int64_t info, bint opens, int finding) noexcept nogil
    cdef void begin_group(self, int64_t position, int64_t server_id) noexcept nogil
    cdef int take_event(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    cdef void leave(self) noexcept nogil
    cpdef bint resolve(self, int status) except -1
    cpdef make_room(self)
    @cython.final
    @cython.locals(slot=int64_t)
    cdef int64_t learn_map(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
    @cython.final
    @cython.locals(boundary=cython.int)
    cdef bint place(self, int64_t position, int64_t info, bint opens) noexcept nogil

cdef class GroupReader(ColumnReader):
    cdef bint stray
    cdef bint groups_findings

    @cython.locals(status=cython.int)
    cpdef int finish(self) except -1
    @cython.locals(boundary=cython.int, inner=cython.bint)
    cdef bint enter(self, int64_t position, int64_t server_id, int64_t info, bint opens, int finding) noexcept nogil
    cdef void leave(self) noexcept nogil
    cdef void end_group(self, bint unfinished) noexcept nogil

@cython.locals(held=Held)
cpdef int64_t whole_events(buf, int64_t start, int64_t stop) except -1
@cython.locals(at=int64_t, length=int64_t)
cdef int64_t chain_end(const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
cdef bint is_question(int status) noexcept nogil
cdef int event_finding(int64_t info, int kind, int64_t flags) noexcept nogil
cdef bint is_transaction(int kind) noexcept nogil
