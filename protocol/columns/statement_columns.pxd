cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.columns.column_reader cimport ColumnReader, PackedReader
from protocol.columns.digest cimport StatementDigest
from protocol.columns.event_facts cimport is_transaction
from protocol.kernel.native cimport load16, load32
from protocol.columns.statement_words cimport changes_rows
from protocol.columns.text_column cimport TextColumn

cdef class StatementColumns(PackedReader):
    cdef bint maps
    cdef StatementDigest digest
    cdef TextColumn schema, table, status, text, digest_text, map
    cdef bint has_status, has_text, has_digest, has_map
    # filters
    cdef int64_t time_from, time_to
    # where the stream stands
    cdef bint open
    cdef bint was_open
    cdef int64_t group_start
    cdef int seeds
    cdef int64_t position, position_end, server_id
    cdef bint bad_checksum
    cdef bint lacks_tables
    cdef int64_t lacks_bytes
    # the statement
    cdef int64_t status_at, status_length, schema_at, schema_length
    # the batch
    cdef int64_t[::1] position_out, end_out, transaction_out, time_out, server_id_out, thread_out, error_out, mode_out
    cdef uint8_t[::1] transaction_valid, thread_valid, error_valid, mode_valid, type_out, seeds_out, finding_out

    cpdef begin_file(self, bytes post_lengths)
    @cython.locals(more=int64_t)
    cpdef make_room(self)
    cdef int take_opened(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(
        r=int64_t, position=int64_t, t=cython.int, info=int64_t, boundary=cython.int, kind=cython.int, at=int64_t, stop=int64_t,
        status=cython.int
    )
    cdef int walk(self, const uint8_t* p, int64_t have, int64_t base, const int64_t* table, int64_t count) noexcept nogil
    @cython.locals(kind=cython.int, text=int64_t)
    cdef int accumulate(self, const uint8_t* p, int64_t at, int64_t stop, int t, int64_t timestamp) noexcept nogil
    @cython.locals(time=int64_t)
    cdef bint is_wanted(self, int64_t timestamp) noexcept nogil
    @cython.locals(body=int64_t, post=int64_t, fixed=int64_t)
    cdef int64_t text_at(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    cdef bint has_room(self, int64_t count) noexcept nogil
    cdef bint is_full(self) noexcept nogil
    @cython.locals(n=int64_t)
    cdef void begin_row(self, int64_t timestamp, int t, int finding) noexcept nogil
    @cython.locals(text=int64_t, size=int64_t, n=int64_t, body=int64_t, mode=int64_t)
    cdef int put_row(self, const uint8_t* p, int64_t at, int64_t stop, int t, int64_t timestamp, int finding) noexcept nogil
    @cython.locals(at=int64_t, end=int64_t, low=int64_t, high=int64_t)
    cdef int64_t sql_mode(self, const uint8_t* p) noexcept nogil
    @cython.locals(used=int64_t)
    cdef void put_text(self, int64_t n, const uint8_t* p, int64_t at, int64_t size, int64_t mode) noexcept nogil
    @cython.locals(
        id_size=cython.int, known=int64_t, slot=int64_t, n=int64_t, raw=int64_t, schema=int64_t, name=int64_t
    )
    cdef int take_map(self, const uint8_t* p, int64_t at, int64_t stop, int64_t timestamp) noexcept nogil
