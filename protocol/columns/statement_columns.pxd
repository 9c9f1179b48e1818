cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.columns.column_batch cimport ColumnBatch, TextColumn
from protocol.columns.codes.column_codes cimport *
from protocol.columns.column_reader cimport ColumnReader, EventFacts
from protocol.columns.digest cimport StatementDigest, changes_rows
from protocol.columns.tables cimport TableMaps
from protocol.kernel.codes cimport *
from protocol.kernel.native cimport load16, load32

cdef class StatementBatch(ColumnBatch):
    cdef bint has_status, has_statement, has_digest, has_map
    cdef TextColumn schema, table, status, statement, digest_text, map
    cdef int64_t lacks_bytes
    cdef int64_t* position_out
    cdef int64_t* end_out
    cdef int64_t* transaction_out
    cdef int64_t* time_out
    cdef int64_t* server_id_out
    cdef int64_t* thread_out
    cdef int64_t* error_out
    cdef int64_t* mode_out
    cdef uint8_t* transaction_valid
    cdef uint8_t* thread_valid
    cdef uint8_t* error_valid
    cdef uint8_t* mode_valid
    cdef uint8_t* type_out
    cdef uint8_t* seeds_out
    cdef uint8_t* finding_out

    cpdef begin(self)
    @cython.final
    cdef bint is_full(self) noexcept nogil
    @cython.final
    cdef bint has_room(self, int64_t count) noexcept nogil
    cpdef make_room(self)
    @cython.final
    @cython.locals(n=int64_t)
    cdef void put_event(self, EventFacts event, int t, int seeds) noexcept nogil
    @cython.final
    @cython.locals(n=int64_t)
    cdef void put_transaction(self, int64_t start) noexcept nogil
    @cython.final
    @cython.locals(n=int64_t)
    cdef void put_head(self, int64_t thread, int64_t error, int64_t mode) noexcept nogil
    @cython.final
    cdef void put_status(self, const uint8_t* p, int64_t at, int64_t count) noexcept nogil
    @cython.final
    cdef void skip_text(self) noexcept nogil
    @cython.final
    cdef void put_table(self, TableMaps tables, int64_t slot) noexcept nogil
    @cython.final
    cdef void put_map(self, const uint8_t* p, int64_t at, int64_t count) noexcept nogil
    @cython.final
    cdef void skip_status(self) noexcept nogil
    @cython.final
    cdef void skip_map(self) noexcept nogil
    @cython.final
    cdef void put_finding(self, int finding) noexcept nogil

cdef class StatementColumns(ColumnReader):
    cdef readonly StatementBatch batch
    cdef bint maps
    cdef StatementDigest digest
    # the filter
    cdef int64_t time_from, time_to
    # the place in the stream
    cdef int seeds

    cpdef make_room(self)
    cdef void begin_group(self, int64_t position, int64_t server_id) noexcept nogil
    @cython.locals(kind=cython.int, text=int64_t)
    cdef int take_event(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    cdef bint is_wanted(self) noexcept nogil
    @cython.final
    @cython.locals(kind=cython.int)
    cdef void note_seed(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    cdef void begin_row(self, int t) noexcept nogil
    @cython.final
    cdef void end_row(self, int finding) noexcept nogil
    @cython.final
    @cython.locals(
        text=int64_t, size=int64_t, body=int64_t, mode=int64_t, schema_length=int64_t, schema=int64_t, status=int64_t
    )
    cdef int put_statement(self, const uint8_t* p, int64_t at, int64_t stop, int t, int finding) noexcept nogil
    @cython.final
    @cython.locals(row=int64_t, used=int64_t)
    cdef void put_text(self, const uint8_t* p, int64_t at, int64_t size, int64_t mode) noexcept nogil
    @cython.final
    @cython.locals(known=int64_t, slot=int64_t, flags=int64_t)
    cdef int take_map(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil

@cython.locals(low=int64_t, high=int64_t)
cdef int64_t sql_mode(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
