cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.dependencies.group_waits cimport GroupWaits
from protocol.dependencies.write_set_codes cimport SERIAL_LARGE, SERIAL_OTHER, SET_PLAN, SET_TAKEN
from protocol.kernel.codes cimport *
from protocol.kernel.crc cimport EventSum
from protocol.kernel.inference cimport Inference, first_word, kind_of_text
from protocol.kernel.native cimport copy_bytes, crc32_of, load16, load32, load64, native_setup, signed64, store32, store64
from protocol.views.known_statements cimport KnownStatements
from protocol.views.packed_numbers cimport count_with, length_of_number, put_number, told_length_at
from protocol.views.plain_changes cimport has_word, is_change, names_mysql, removal_of, simple_target
from protocol.views.query_status cimport place_of_explicit

@cython.final
cdef class ViewCopy:
    cdef uint8_t uuid[16]
    cdef uint8_t look[256]
    cdef int policy
    cdef int layout
    cdef int explicit
    cdef public bint wants_statements
    cdef public bint wants_removals
    cdef bint watches
    cdef uint8_t watched[VIEW_WATCHED]
    cdef bint watches_removals
    cdef uint8_t removals[VIEW_WATCHED]
    cdef int64_t statements
    cdef bint watched_there
    cdef int64_t mapped
    cdef KnownStatements known
    cdef int given
    cdef Inference inference
    cdef int checksum
    cdef int out_checksum
    cdef bint new_rows
    cdef uint32_t server_version
    cdef public int64_t position
    cdef public int64_t next_gno
    cdef public int64_t sequence
    cdef readonly GroupWaits waits
    cdef bint has_waits
    cdef bint takes_rows
    cdef public int64_t plans_until
    cdef int64_t part
    cdef public bint wants_gtids
    cdef int statement
    cdef public bint renumbers
    cdef public bint uuid_used
    cdef public bint gtids_named
    cdef public int64_t source_base
    cdef readonly int64_t consumed
    cdef readonly int64_t produced
    cdef readonly int64_t group_stop
    cdef readonly int64_t bad_at
    cdef readonly int64_t group_size
    cdef readonly bint group_look
    cdef readonly bint group_damaged
    cdef readonly bint group_collides
    cdef readonly int group_head
    cdef readonly uint32_t group_time
    cdef readonly uint32_t group_server
    cdef int64_t extra
    cdef int64_t insert_at
    cdef int64_t text_at
    cdef int64_t insert_left
    cdef int insert_type
    cdef EventSum event
    cdef uint32_t out_crc
    cdef bint scan_first
    cdef bint scan_ends
    cdef bint scan_alien
    cdef int64_t scan_size
    cdef int64_t[::1] marks
    cdef readonly int64_t mark_count
    cdef int64_t mark_room
    cdef int64_t mark_gap
    cdef int64_t mark_last

    @cython.locals(i=cython.int, view=bytes)
    cpdef void begin_file(self, bytes post_lengths, int checksum, int out_checksum, uint32_t server_version)
    cpdef set_waits(self, GroupWaits waits)
    @cython.locals(value=int64_t)
    cpdef int64_t clock(self) noexcept nogil
    cpdef void set_clock(self, int64_t clock)
    @cython.locals(i=cython.int)
    cpdef void watch(self, bytes table) except *
    @cython.locals(i=cython.int)
    cpdef void watch_removals(self, bytes table) except *
    @cython.locals(status=cython.int)
    cpdef int copy(self, const uint8_t[::1] src, int64_t start, int64_t stop, uint8_t[::1] dst, int64_t at) except -1
    @cython.locals(status=cython.int)
    cdef int copy_groups(self, const uint8_t* p, int64_t r, int64_t stop, uint8_t* d, int64_t o, int64_t room) noexcept nogil
    @cython.locals(row=int64_t)
    cdef bint add_mark(self, int64_t source) noexcept nogil
    @cython.locals(is_anew=cython.bint)
    cpdef bint begin_part(self, int64_t source) noexcept nogil
    @cython.locals(status=cython.int)
    cpdef int take_group(self, const uint8_t[::1] src, int64_t start, int64_t stop) except -1
    @cython.locals(kind=cython.int, is_edge=cython.bint, wanted=cython.int)
    cdef int take_rows(self, const uint8_t* p, int64_t at, int64_t end, int t) noexcept nogil
    @cython.locals(trailer=cython.int, at=int64_t, first=cython.bint, length=int64_t, boundary=uint32_t, t=cython.int)
    cdef int measure(self, const uint8_t* p, int64_t r, int64_t stop) noexcept nogil
    @cython.locals(i=cython.int)
    cdef bint is_of_uuid(self, const uint8_t* p, int64_t at) noexcept nogil
    @cython.locals(kind=cython.int, length=int64_t)
    cdef void begin_group(self, const uint8_t* p, int64_t at, int t) noexcept nogil
    @cython.locals(start=int64_t, name=int64_t, stop=int64_t, i=int64_t, c=cython.int, number=uint32_t, table=uint32_t)
    cdef bint is_wanted_map(self, const uint8_t* p, int64_t at, int64_t available) noexcept nogil
    @cython.locals(trailer=cython.int, target=int64_t)
    cdef bint is_wanted(self, const uint8_t* p, int64_t at, int64_t text, int64_t end, bint known) noexcept nogil
    cpdef know_statements(self, KnownStatements known)
    cpdef note_statements(self, const uint8_t[::1] src, int64_t start, int64_t stop)
    @cython.locals(trailer=cython.int, length=int64_t, end=int64_t, text=int64_t, t=cython.int, kind=cython.int, first=cython.bint)
    cdef void note_group(self, const uint8_t* p, int64_t r, int64_t stop) noexcept nogil
    cdef int all_given(self) noexcept nogil
    cdef bint may_be_known(self, const uint8_t* p, int64_t at) noexcept nogil
    cdef void take_given(self, const uint8_t* p, int64_t at, int64_t end, int t) noexcept nogil
    @cython.locals(trailer=cython.int)
    cdef bint is_known(self, const uint8_t* p, int64_t at, int64_t text, int64_t end) noexcept nogil
    @cython.locals(trailer=cython.int, target=int64_t, removal=cython.int)
    cdef bint is_wanted_removal(self, const uint8_t* p, int64_t at, int64_t text, int64_t end) noexcept nogil
    @cython.locals(kind=cython.int, text=int64_t, statement=cython.int)
    cdef int grow(self, const uint8_t* p, int64_t at, int64_t available, int t) noexcept nogil
    @cython.locals(count=int64_t, place=int64_t)
    cdef void grow_status(self, const uint8_t* p, int64_t at, int64_t end) noexcept nogil
    @cython.locals(kind=cython.int, text=int64_t, lead=int64_t, statement=cython.int, a=int64_t, schema=cython.int,
        known=cython.bint)
    cdef void judge(self, const uint8_t* p, int64_t at, int64_t available, int t) noexcept nogil
    @cython.locals(trailer=cython.int, stop=int64_t, at=int64_t, marker=cython.int, length=int64_t, t=cython.int,
        head=int64_t, done=int64_t, rest=int64_t)
    cdef int64_t write_group(self, const uint8_t* p, int64_t r, uint8_t* d, int64_t o) noexcept nogil
    cdef int out_trailer(self) noexcept nogil
    @cython.locals(stop=int64_t, length=int64_t, told=int64_t, behind=int64_t, whole=int64_t, count=int64_t, size=int64_t,
        body=int64_t, i=cython.int)
    cdef int64_t write_source_gtid(self, const uint8_t* p, int64_t r, uint8_t* d, int64_t o) noexcept nogil
    @cython.locals(a=int64_t, told=cython.bint, last=int64_t, number=int64_t)
    cdef void follow_clock(self, uint8_t* d, int64_t o, int64_t length) noexcept nogil
    cpdef void pass_number(self) noexcept nogil
    @cython.locals(count=int64_t, variables=uint32_t)
    cdef int64_t write_head(self, const uint8_t* p, int64_t at, int64_t available, int64_t length, int t, uint8_t* d,
        int64_t o, int marker) noexcept nogil
    cdef bint is_old_rows(self, int t) noexcept nogil
    cdef int64_t insert(self, uint8_t* d, int64_t o, int t) noexcept nogil
    @cython.locals(flags=uint32_t)
    cdef void place(self, uint8_t* d, int64_t o, int64_t size, int marker) noexcept nogil
    @cython.locals(trailer=cython.int, size=int64_t, count=int64_t, a=int64_t, i=cython.int, committed=uint64_t, last=int64_t)
    cdef int64_t put_gtid(self, uint8_t* d, int64_t o, int64_t rest, uint64_t timestamp, uint32_t server_id) noexcept nogil
    @cython.locals(end=int64_t)
    cpdef int64_t gtid(self, uint8_t[::1] dst, int64_t at, int64_t rest, uint64_t timestamp, uint32_t server_id) except -1
    cpdef void scan_begin(self)
    @cython.locals(status=cython.int)
    cpdef int scan(self, const uint8_t[::1] src, int64_t start, int64_t stop, bint by_markers) except -1
    @cython.locals(trailer=cython.int, status=cython.int, length=int64_t, boundary=uint32_t, available=int64_t, t=cython.int)
    cdef int scan_on(self, const uint8_t* p, int64_t r, int64_t stop, bint by_markers) noexcept nogil
    @cython.locals(trailer=cython.int, length=int64_t, available=int64_t)
    cdef int64_t begun_at(self, const uint8_t* p, int64_t r, int64_t stop) noexcept nogil
    @cython.locals(status=cython.int)
    cpdef int emit(self, const uint8_t[::1] src, int64_t start, int64_t stop, uint8_t[::1] dst, int64_t at, bint begins,
        int64_t end) except -1
    @cython.locals(trailer=cython.int, status=cython.int, length=int64_t, available=int64_t, t=cython.int, marker=cython.int,
        count=int64_t, n=int64_t)
    cdef int emit_on(self, const uint8_t* p, int64_t r, int64_t stop, uint8_t* d, int64_t o, int64_t room, bint begins,
        int64_t end) noexcept nogil

cdef bint is_group(int kind) noexcept nogil
