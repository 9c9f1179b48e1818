cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from protocol.kernel.native cimport copy_bytes, load16, load24, load32, load64
from protocol.columns.row_event_types cimport has_extra_data, updates_rows

@cython.locals(i=int64_t)
cdef bint same_bytes(const uint8_t* p, int64_t at, const uint8_t* q, int64_t start, int64_t count) noexcept nogil

cdef class TableMaps:
    cdef int64_t[::1] slots
    cdef uint8_t[::1] arena
    cdef int64_t slot_size
    cdef int64_t arena_size
    cdef readonly int64_t used
    cdef int64_t arena_used
    cdef readonly int64_t seen
    cdef bint filters_schemas
    cdef bint filters_tables
    cdef const uint8_t[::1] wanted_schemas
    cdef const uint8_t[::1] wanted_tables
    cdef int64_t schemas_size
    cdef int64_t tables_size
    cdef int64_t cursor
    # of the rows event that is read
    cdef int64_t row_slot
    cdef int64_t row_width
    cdef int64_t before_at
    cdef int64_t after_at

    cpdef make_room(self)
    cpdef reset(self)
    @cython.locals(i=int64_t)
    cdef void forget(self) noexcept nogil
    @cython.locals(slots=int64_t[::1], arena=uint8_t[::1], used=int64_t, arena_used=int64_t, old_size=int64_t, i=int64_t, k=int64_t, at=int64_t)
    cpdef grow(self)
    cdef bint schema_wanted(self, const uint8_t* p, int64_t at, int64_t length) noexcept nogil
    cdef bint table_wanted(self, const uint8_t* p, int64_t at, int64_t length) noexcept nogil
    @cython.locals(i=int64_t)
    cdef bint among(self, const uint8_t* names, int64_t size, const uint8_t* p, int64_t at, int64_t length) noexcept nogil
    @cython.locals(mask=int64_t, i=int64_t)
    cdef int64_t free_slot(self, int64_t table_id) noexcept nogil
    @cython.locals(i=int64_t)
    cdef int64_t find(self, int64_t table_id) noexcept nogil
    cdef void between_groups(self) noexcept nogil
    @cython.locals(first=cython.int, value=uint64_t)
    cdef int64_t read_packed(self, const uint8_t* p, int64_t end) noexcept nogil
    @cython.locals(table_id=int64_t, high=int64_t, slot=int64_t, length=int64_t, status=int64_t)
    cdef int64_t take_map(self, const uint8_t* p, int64_t body, int64_t end, int id_size) noexcept nogil
    @cython.locals(
        length=int64_t, schema_length=int64_t, schema=int64_t, table_length=int64_t, table=int64_t, columns=int64_t,
        types=int64_t, metadata_length=int64_t, metadata=int64_t, raw=int64_t, widths=int64_t, json=int64_t
    )
    cdef int64_t read_map(
        self, const uint8_t* p, int64_t body, int64_t end, int id_size, int64_t table_id, int64_t slot
    ) noexcept nogil
    cdef bint same_as_arena(self, const uint8_t* p, int64_t at, int64_t start, int64_t count) noexcept nogil
    cdef void copy_to_arena(self, int64_t to, const uint8_t* p, int64_t at, int64_t count) noexcept nogil
    cdef void copy_from_arena(self, uint8_t* q, int64_t to, int64_t at, int64_t count) noexcept nogil
    @cython.locals(json=int64_t, m=int64_t, i=int64_t, k=int64_t, t=cython.int, code=cython.int, size=int64_t, kind=cython.int, w=int64_t)
    cdef int64_t take_widths(
        self, const uint8_t* p, int64_t types, int64_t columns, int64_t metadata, int64_t stop, int64_t widths
    ) noexcept nogil
    @cython.locals(rest=int64_t)
    cdef int64_t decimal_size(self, int64_t digits) noexcept nogil
    @cython.locals(
        body=int64_t, second=cython.bint, table_id=int64_t, fixed=int64_t, high=int64_t, extra=int64_t
    )
    cdef int64_t begin_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t, int64_t post) noexcept nogil
    @cython.locals(size=int64_t)
    cdef int64_t rows_at(self, const uint8_t* p, int64_t at, int64_t end, bint update) noexcept nogil
    @cython.locals(before=int64_t, after=int64_t, widths=int64_t, count=int64_t, start=int64_t, options=int64_t)
    cdef int64_t count_rows(
        self, const uint8_t* q, const uint8_t* p, int64_t at, int64_t end, int64_t slot, bint update, bint partial
    ) noexcept nogil
    @cython.locals(count=int64_t, i=int64_t)
    cdef int64_t present(self, const uint8_t* q, int64_t bitmap) noexcept nogil
    @cython.locals(nulls=int64_t, k=int64_t, i=int64_t, w=int64_t, code=cython.int, size=int64_t)
    cdef int64_t image_end(
        self, const uint8_t* q, int64_t bitmap, const uint8_t* p, int64_t at, int64_t end, int64_t widths, int64_t present
    ) noexcept nogil
