cimport cython
from libc.stdint cimport int64_t, uint8_t

from protocol.columns.column_reader cimport PackedReader
from protocol.columns.event_facts cimport event_finding, is_transaction
from protocol.columns.transactions.transaction_counts cimport TransactionCounts

cdef class TransactionColumns(TransactionCounts):
    # where the stream stands
    cdef bint entered
    cdef bint in_group
    cdef bint stray

    cpdef begin_file(self, bytes post_lengths)
    @cython.locals(query=cython.bint)
    cpdef opened(self, bytes data)
    cdef int take_opened(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(
        r=int64_t, position=int64_t, t=cython.int, info=int64_t, boundary=cython.int, kind=cython.int, opens=cython.bint,
        at=int64_t, stop=int64_t, status=cython.int, finding=cython.int, time=int64_t
    )
    cdef int walk(self, const uint8_t* p, int64_t have, int64_t base, const int64_t* table, int64_t count) noexcept nogil
