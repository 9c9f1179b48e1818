cimport cython
from libc.stdint cimport int64_t, uint8_t

from protocol.columns.codes.column_codes cimport *
from protocol.kernel.inference cimport first_word
from protocol.kernel.native cimport bytes_of, text_of

@cython.locals(i=int64_t, c=cython.int)
cdef bint starts_with(const uint8_t* p, int64_t at, int64_t end, const char* word, int64_t count) noexcept nogil
cdef bint changes_rows(const uint8_t* p, int64_t at, int64_t end) noexcept nogil

cdef bint is_word(int c) noexcept nogil
@cython.locals(c=cython.int)
cdef int64_t string_end(const uint8_t* p, int64_t at, int64_t stop, int quote, bint plain_backslash) noexcept nogil
cdef int64_t comment_end(const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
@cython.locals(i=cython.int, no_month=cython.bint, no_day=cython.bint)
cdef int zero_date(const uint8_t* p, int64_t at, int64_t stop) noexcept nogil

@cython.final
cdef class StatementDigest:
    cdef int64_t groups[DIGEST_DEPTH]

    @cython.locals(out=bytearray, end=int64_t)
    cpdef bytes of(self, bytes text, bint ansi_quotes=*, bint plain_backslash=*)
    @cython.locals(
        begin=int64_t, depth=int64_t, blank=cython.bint, c=cython.int, following=cython.int, version=cython.bint, last=cython.int,
        end=int64_t, zero=cython.int
    )
    cdef int64_t write(
        self, const uint8_t* p, int64_t at, int64_t stop, uint8_t* out, int64_t to, bint ansi_quotes, bint plain_backslash
    ) noexcept nogil
    cdef bint is_version(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
    cdef bint is_introducer(self, int c) noexcept nogil
    @cython.locals(n=int64_t, c=cython.int)
    cdef bint is_value(self, const uint8_t* p, int64_t at, int64_t end, int64_t stop) noexcept nogil
    @cython.locals(a=cython.int, b=cython.int, c=cython.int, d=cython.int)
    cdef bint spells(self, const uint8_t* p, int64_t at, int64_t end) noexcept nogil
    @cython.locals(c=cython.int, hexadecimal=cython.bint)
    cdef int64_t number_end(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
    @cython.locals(i=cython.int)
    cdef int64_t put_date(self, uint8_t* out, int64_t to, int zero) noexcept nogil
    @cython.locals(k=int64_t, i=cython.int)
    cdef int64_t put_value(self, uint8_t* out, int64_t begin, int64_t to) noexcept nogil
    @cython.locals(size=int64_t, before=int64_t, i=int64_t)
    cdef int64_t without_repetition(self, uint8_t* out, int64_t begin, int64_t opened, int64_t to) noexcept nogil
