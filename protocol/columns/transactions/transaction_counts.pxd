cimport cython
from libc.stdint cimport int64_t, uint8_t

from protocol.columns.gtid_text cimport signed
from protocol.kernel.native cimport load16, load64
from protocol.columns.row_event_types cimport inserts_rows, updates_rows
from protocol.columns.statement_words cimport changes_rows
from protocol.columns.transactions.transaction_batch cimport TransactionBatch

cdef class TransactionCounts(TransactionBatch):
    cdef bint counts_rows
    cdef int64_t open_position

    @cython.locals(kind=cython.int, body=int64_t, statement=cython.int, slot=int64_t)
    cdef int accumulate(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(post=int64_t)
    cdef int64_t text_at(self, const uint8_t* p, int64_t at) noexcept nogil
    cdef void take_statement(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
    @cython.locals(schema=int64_t, schema_length=int64_t, table=int64_t, table_length=int64_t, i=int64_t, k=int64_t)
    cdef void add_table(self, int64_t slot) noexcept nogil
    @cython.locals(i=int64_t)
    cdef bint same_names(self, int64_t a, int64_t b, int64_t length) noexcept nogil
    @cython.locals(rows=int64_t)
    cdef int take_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(update=cython.bint, count=int64_t)
    cdef void add_rows(self, const uint8_t* q, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    cdef void count_opened_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t, int64_t position) noexcept nogil
