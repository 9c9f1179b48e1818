cimport cython
from libc.stdint cimport int64_t, uint8_t

from protocol.columns.codes.column_codes cimport *
from protocol.columns.column_reader cimport GroupReader, PackedReader
from protocol.columns.digest cimport changes_rows
from protocol.columns.tables cimport inserts_rows, is_packed, updates_rows
from protocol.columns.transactions.transaction_batch cimport Transaction, TransactionBatch
from protocol.kernel.codes cimport *
from protocol.kernel.inference cimport kind_of_text
from protocol.kernel.native cimport load64, signed64

cdef class TransactionColumns(GroupReader):
    cdef readonly TransactionBatch batch
    cdef Transaction transaction
    cdef bint pending
    cdef bint counts_rows
    # the filter
    cdef int64_t first_from, first_to, last_from, last_to
    cdef bint only_findings

    cpdef make_room(self)
    @cython.locals(query=cython.bint)
    cpdef opened(self, bytes data)
    @cython.locals(finding=cython.int)
    cpdef not_opened(self)
    cdef void begin_group(self) noexcept nogil
    cdef void leave(self) noexcept nogil
    cdef void end_group(self, bint unfinished) noexcept nogil
    @cython.final
    cdef bint is_wanted(self) noexcept nogil
    cdef int flush(self) noexcept nogil
    @cython.locals(kind=cython.int, slot=int64_t)
    cdef int take_event(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    cdef void found(self, int finding) noexcept nogil
    @cython.final
    @cython.locals(text=int64_t, statement=cython.int)
    cdef void take_query(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    cdef void count_statement(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
    @cython.final
    @cython.locals(rows=int64_t)
    cdef int take_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.final
    @cython.locals(count=int64_t, update=cython.bint)
    cdef void count_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
