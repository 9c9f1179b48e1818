cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.columns.column_codes cimport *
from protocol.columns.text.scalar_text cimport decimal_bytes
from protocol.kernel.codes cimport *
from protocol.kernel.native cimport bytes_of, copy_bytes, load16, load24, load32, load64, longs_of, text_of

cdef bint inserts_rows(int t) noexcept nogil
cdef bint updates_rows(int t) noexcept nogil
cdef bint is_packed(int t) noexcept nogil
cdef bint has_extra_data(int t) noexcept nogil
cdef int64_t table_id_size(int64_t post) noexcept nogil
@cython.locals(low=int64_t, high=int64_t)
cdef int64_t table_id(const uint8_t* p, int64_t at, int64_t size) noexcept nogil
@cython.locals(i=int64_t)
cdef bint same_bytes(const uint8_t* p, int64_t at, const uint8_t* q, int64_t start, int64_t count) noexcept nogil
cdef bytes packed_names(names)

@cython.final
cdef class ImageColumns:
    cdef const uint8_t* bits
    cdef int64_t at, width, present

    @cython.locals(i=int64_t)
    cdef void take(self, const uint8_t* bits, int64_t at, int64_t width) noexcept nogil

@cython.final
cdef class TableMaps:
    cdef bytearray slot_bytes, arena_bytes
    cdef int64_t* slots
    cdef uint8_t* arena
    cdef int64_t slot_count
    cdef int64_t arena_size
    cdef int64_t id_size
    cdef readonly int64_t used
    cdef int64_t arena_used
    cdef readonly int64_t seen
    # the filter
    cdef bint filters_schemas
    cdef bint filters_tables
    cdef bytes schema_names, table_names
    cdef const uint8_t* wanted_schemas
    cdef const uint8_t* wanted_tables
    cdef int64_t schemas_size
    cdef int64_t tables_size
    cdef int64_t cursor
    # of the rows event that is read
    cdef int64_t row_slot
    cdef ImageColumns before
    cdef ImageColumns after
    cdef int64_t partial_at

    cpdef begin_file(self, int64_t post)
    cpdef make_room(self)
    @cython.locals(i=int64_t)
    cdef void forget(self) noexcept nogil
    @cython.locals(i=int64_t, k=int64_t, at=int64_t)
    cpdef grow(self)
    cdef bint schema_wanted(self, const uint8_t* p, int64_t at, int64_t length) noexcept nogil
    cdef bint table_wanted(self, const uint8_t* p, int64_t at, int64_t length) noexcept nogil
    @cython.locals(i=int64_t)
    cdef bint among(self, const uint8_t* names, int64_t size, const uint8_t* p, int64_t at, int64_t length) noexcept nogil
    @cython.locals(mask=int64_t, i=int64_t)
    cdef int64_t free_slot(self, int64_t number) noexcept nogil
    @cython.locals(i=int64_t)
    cdef int64_t find(self, int64_t number) noexcept nogil
    cdef void between_groups(self) noexcept nogil
    @cython.locals(first=cython.int, value=uint64_t)
    cdef int64_t read_packed(self, const uint8_t* p, int64_t end) noexcept nogil
    @cython.locals(number=int64_t, slot=int64_t, length=int64_t, status=int64_t)
    cdef int64_t take_map(self, const uint8_t* p, int64_t body, int64_t end) noexcept nogil
    @cython.locals(
        length=int64_t, schema_length=int64_t, schema=int64_t, table_length=int64_t, table=int64_t, columns=int64_t,
        types=int64_t, metadata_length=int64_t, metadata=int64_t, raw=int64_t, widths=int64_t, json=int64_t
    )
    cdef int64_t read_map(self, const uint8_t* p, int64_t body, int64_t end, int64_t number, int64_t slot) noexcept nogil
    @cython.locals(json=int64_t, m=int64_t, i=int64_t, k=int64_t, t=cython.int, code=cython.int, size=int64_t, kind=cython.int, w=int64_t)
    cdef int64_t take_widths(
        self, const uint8_t* p, int64_t types, int64_t columns, int64_t metadata, int64_t stop, int64_t widths
    ) noexcept nogil
    @cython.locals(
        body=int64_t, second=cython.bint, fixed=int64_t, extra=int64_t, width=int64_t, first=int64_t, size=int64_t
    )
    cdef int64_t begin_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t, int64_t post) noexcept nogil
    cdef void stand_in(self, const uint8_t* p) noexcept nogil
    @cython.locals(count=int64_t, start=int64_t)
    cdef int64_t count_rows(self, const uint8_t* p, int64_t at, int64_t end, bint update, bint partial) noexcept nogil
    @cython.locals(options=int64_t)
    cdef int64_t pass_options(self, const uint8_t* p, int64_t at, int64_t end) noexcept nogil
    @cython.locals(
        widths=int64_t, bits="const uint8_t*", bitmap=int64_t, nulls=int64_t, k=int64_t, i=int64_t, w=int64_t, code=cython.int,
        size=int64_t
    )
    cdef int64_t image_end(self, ImageColumns columns, const uint8_t* p, int64_t at, int64_t end) noexcept nogil
