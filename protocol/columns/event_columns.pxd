cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from protocol.columns.column_batch cimport ColumnBatch, TextColumn
from protocol.columns.codes.column_codes cimport *
from protocol.columns.column_reader cimport ColumnReader, EventFacts
from protocol.columns.tables cimport TableMaps, table_id, table_id_size
from protocol.kernel.codes cimport *

@cython.final
cdef class EventFilter:
    cdef int64_t time_from
    cdef int64_t time_to
    cdef int64_t position_from
    cdef int64_t position_to
    cdef bint only_findings
    cdef uint8_t types[256]

    cdef bint wants(self, EventFacts event, int finding) noexcept nogil

cdef class EventBatch(ColumnBatch):
    cdef bint has_position, has_end, has_end_log_pos, has_time, has_server_id, has_type, has_flags, has_boundary
    cdef bint has_stamped, has_inferred, has_crc, has_transaction, has_ordinal, has_schema, has_table, has_finding
    cdef bint has_place, has_names
    cdef TextColumn schema, table
    cdef int64_t* position_out
    cdef int64_t* end_out
    cdef int64_t* end_log_pos_out
    cdef int64_t* time_out
    cdef int64_t* server_id_out
    cdef int64_t* transaction_out
    cdef int64_t* ordinal_out
    cdef int32_t* flags_out
    cdef uint8_t* type_out
    cdef uint8_t* boundary_out
    cdef uint8_t* stamped_out
    cdef uint8_t* inferred_out
    cdef uint8_t* crc_out
    cdef uint8_t* finding_out
    cdef uint8_t* transaction_valid
    cdef uint8_t* ordinal_valid

    cpdef begin(self)
    @cython.final
    cdef bint is_full(self) noexcept nogil
    @cython.final
    @cython.locals(n=int64_t)
    cdef void put(self, EventFacts event, int finding) noexcept nogil
    @cython.final
    @cython.locals(n=int64_t)
    cdef void put_transaction(self, int64_t start, int64_t ordinal) noexcept nogil
    @cython.final
    cdef void put_names(self, TableMaps tables, int64_t slot) noexcept nogil
    @cython.final
    cdef void put_schema(self, const uint8_t* p, int64_t at, int64_t length) noexcept nogil

cdef class EventColumns(ColumnReader):
    cdef readonly EventBatch batch
    cdef EventFilter filter
    cdef bint filters_names
    cdef bint needs_names
    cdef bint in_use
    cdef int64_t ordinal
    # the schema that the event names
    cdef int64_t schema_at
    cdef int64_t schema_length

    cdef void begin_group(self, int64_t position, int64_t server_id) noexcept nogil
    @cython.locals(finding=cython.int, slot=int64_t)
    cdef int take_event(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    @cython.locals(size=int64_t, text=int64_t)
    cdef int64_t find_names(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    cdef bint wants_names(self, const uint8_t* p, int64_t slot) noexcept nogil
