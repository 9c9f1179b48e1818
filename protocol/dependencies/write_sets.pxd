cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from protocol.columns.codes.column_codes cimport *
from protocol.columns.tables cimport ImageColumns, TableMaps, inserts_rows, is_packed, same_bytes, table_id, updates_rows
from protocol.dependencies.write_set_codes cimport *
from protocol.kernel.codes cimport *
from protocol.kernel.native cimport load16, load24, load32, load64, longs_of, signed64

cdef uint64_t mixed(uint64_t number, uint64_t value) noexcept nogil
@cython.locals(value=uint64_t, shift=cython.int)
cdef uint64_t mixed_bytes(uint64_t number, const uint8_t* p, int64_t at, int64_t end) noexcept nogil
cdef check_plan(plan, int64_t columns)

@cython.final
cdef class WriteSets:
    cdef TableMaps maps
    cdef int64_t plan_room, plans_used
    cdef bytearray plan_bytes, value_bytes, write_bytes, read_bytes, old_bytes, history_bytes
    cdef int64_t* plans
    cdef int64_t* values
    cdef int64_t* writes
    cdef int64_t* reads
    cdef int64_t* old_values
    cdef int64_t* history
    cdef int64_t most_keys, slots, held, write_count, read_count
    cdef int64_t group_number
    cdef bint before_named
    cdef uint64_t key_number
    cdef bint key_untold
    cdef readonly int64_t known
    cdef readonly int64_t floor
    cdef readonly int64_t wanted
    cdef readonly int serial
    cdef readonly int coarse
    cdef readonly int64_t told_table

    cpdef begin_file(self, int64_t map_post)
    @cython.locals(i=int64_t)
    cdef void forget_keys(self) noexcept nogil
    cpdef void forget_plans(self)
    @cython.locals(slot=int64_t, columns=int64_t, i=int64_t, count=int64_t)
    cpdef add_plan(self, plan)
    @cython.locals(kept=bytes)
    cdef grow_plans(self)
    cpdef make_room(self)
    @cython.locals(at=int64_t)
    cpdef bytes wanted_map(self)
    cpdef void begin_group(self) noexcept nogil
    cpdef void make_serial(self, int why) noexcept nogil
    @cython.locals(last=int64_t, at=int64_t, i=int64_t)
    cpdef int64_t finish_group(self, int64_t sequence) noexcept nogil
    cpdef void begin_anew(self, int64_t sequence) noexcept nogil
    @cython.locals(mask=int64_t, i=int64_t)
    cdef int64_t find(self, int64_t number) noexcept nogil
    @cython.locals(at=int64_t)
    cdef int64_t place_of(self, int64_t number) noexcept nogil
    @cython.locals(value=int64_t)
    cdef void add_write(self, uint64_t number) noexcept nogil
    @cython.locals(value=int64_t)
    cdef void add_read(self, uint64_t number) noexcept nogil
    cpdef int take(self, const unsigned char[::1] src, int64_t start, int64_t stop, int64_t post) except -1
    @cython.locals(t=cython.int)
    cdef int take_event(self, const uint8_t* p, int64_t at, int64_t end, int64_t post) noexcept nogil
    @cython.locals(slot=int64_t)
    cdef int take_map(self, const uint8_t* p, int64_t at, int64_t end) noexcept nogil
    @cython.locals(id_size=int64_t, slot=int64_t, group=int64_t, raw=int64_t, behind=int64_t)
    cdef bint knows_map(self, const uint8_t* p, int64_t body, int64_t end) noexcept nogil
    @cython.locals(r=int64_t, slot=int64_t, plan=int64_t, updates=cython.bint, inserts=cython.bint, start=int64_t,
        coarse_table=int64_t)
    cdef void take_rows(self, const uint8_t* p, int64_t at, int64_t end, int t, int64_t post) noexcept nogil
    @cython.locals(
        widths=int64_t, bits="const uint8_t*", bitmap=int64_t, nulls=int64_t, k=int64_t, i=int64_t, w=int64_t, code=cython.int,
        size=int64_t
    )
    cdef int64_t walk_image(self, ImageColumns columns, const uint8_t* p, int64_t at, int64_t end) noexcept nogil
    @cython.locals(
        keys=int64_t, at=int64_t, named=cython.bint, flags=int64_t, parts=int64_t, state=cython.int, number=uint64_t,
        skipped=cython.bint
    )
    cdef void take_keys(self, const uint8_t* p, int64_t plan, ImageColumns columns, int role) noexcept nogil
    @cython.locals(values="int64_t*")
    cdef void keep_image(self) noexcept nogil
    @cython.locals(part=int64_t, c=int64_t, old=int64_t, new=int64_t, size=int64_t, rewritten=cython.bint)
    cdef bint rewrites_key(self, const uint8_t* p, int64_t at) noexcept nogil
    @cython.locals(part=int64_t, c=int64_t)
    cdef bint changes_key(self, ImageColumns columns, int64_t at) noexcept nogil
    @cython.locals(
        number=uint64_t, parts=int64_t, part=int64_t, unknown=cython.bint, absent=cython.bint, never=cython.bint, c=int64_t, start=int64_t, end=int64_t, form=int64_t,
        prefix=int64_t
    )
    cdef int key_state(self, const uint8_t* p, int64_t at) noexcept nogil
    @cython.locals(i=int64_t, c=cython.int)
    cdef bint take_text(self, const uint8_t* p, int64_t start, int64_t end, uint64_t number, int64_t form, int64_t prefix) noexcept nogil
    @cython.locals(negative=cython.bint, i=int64_t)
    cdef uint64_t number_of_zeros(
        self, const uint8_t* p, int64_t start, int64_t end, uint64_t number, int64_t form
    ) noexcept nogil
