cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.codes cimport *
from protocol.kernel.native cimport text_of
from protocol.views.plain_changes cimport is_identifier, skip_blanks

cdef enum:
    # 32-bit numbers of a statement; places in a half of the table, a power of 2, and how many are taken at most
    LANES = 4
    ROOM = 8192
    MOST_KNOWN = 2048
    # bytes of a statement that has a number: a longer one has no shape either
    LONGEST = 4096
    # a text of more bytes is no date and no number, whatever its escapes are; and one without escapes
    LONG_TEXT = 128
    SHORT_TEXT = 64
    MOST_DIGITS = 18
    # classes of texts
    CLASS_NONE = 0
    CLASS_OTHER = 1
    CLASS_WIDE = 2
    CLASS_NUMBER = 3
    CLASS_DATE = 4
    # what is added before a class: no byte of a statement that has a number
    MARK_TEXT = 1
    MARK_NUMBER = 2

@cython.final
cdef class KnownStatements:
    cdef uint32_t[::1] seeds_view
    cdef uint32_t[::1] lanes_view
    cdef uint32_t[::1] table_view
    cdef int64_t[::1] bounds_view
    cdef readonly int64_t count
    cdef int64_t young_count
    cdef int young
    cdef int64_t end

    cpdef void clear(self) noexcept nogil
    @cython.locals(i=int64_t)
    cdef void empty(self, int half) noexcept nogil
    cdef bint has(self, const uint8_t* p, int64_t head, int64_t text, int64_t end, int given) noexcept nogil
    @cython.locals(i=int64_t, at=int64_t)
    cdef void put(self) noexcept nogil
    cdef void note(self, const uint8_t* p, int64_t head, int64_t text, int64_t end, int given) noexcept nogil
    @cython.locals(count=int64_t, found=cython.bint)
    cpdef object number_of(self, bytes body, int64_t head, int64_t text, int given)
    @cython.locals(i=int64_t, at=int64_t, first=int64_t, same=cython.bint, empty=cython.bint)
    cdef int64_t place(self, int half) noexcept nogil
    cdef void add(self, int c) noexcept nogil
    @cython.locals(i=int64_t)
    cdef void add_all(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    @cython.locals(i=int64_t, at=int64_t, start=int64_t, c=cython.int, before=cython.int, kind=cython.int, is_word=cython.bint)
    cdef bint take(self, const uint8_t* p, int64_t head, int64_t text, int64_t end, int given) noexcept nogil
    @cython.locals(i=int64_t, number=int64_t, kind=cython.int)
    cdef int number_class(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    @cython.locals(i=int64_t, at=int64_t, count=int64_t, following=int64_t, mark=cython.int, c=cython.int, plain=cython.bint,
        wide=cython.bint, hexadecimal=cython.bint, other=cython.bint)
    cdef int text_class(self, const uint8_t* p, int64_t start, int64_t end, int before) noexcept nogil

cdef uint32_t mixed(uint32_t lane, int c, uint32_t factor) noexcept nogil
cdef bint is_x_or_b(int c) noexcept nogil
cdef bint is_sign(int c) noexcept nogil
cdef int two_digits(const uint8_t* p, int64_t at) noexcept nogil
@cython.locals(century=cython.int, month=cython.int, day=cython.int, hour=cython.int, minute=cython.int, second=cython.int)
cdef bint is_date(const uint8_t* p, int64_t at, int64_t count) noexcept nogil
