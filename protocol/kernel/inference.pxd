cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.codes cimport *
from protocol.kernel.native cimport load16, load32

@cython.final
cdef class Inference:
    cdef uint8_t kind[256]
    cdef uint8_t post_length[256]
    cdef uint8_t least[256]
    cdef uint32_t load_ids[64]
    cdef int load_count
    cdef public int state
    cdef public int opener
    cdef public bint recovering
    cdef public int from_state
    cdef public bint definition
    cdef int64_t status_length

    @cython.locals(i=cython.int)
    cpdef void reset(self)
    @cython.locals(i=int64_t)
    cdef void take_post_lengths(self, const uint8_t* p, int64_t at, int64_t count) noexcept nogil
    cdef bint in_group(self) noexcept nogil
    cdef bint ends_statement(self, const uint8_t* p, int64_t at, int t) noexcept nogil
    @cython.locals(t=cython.int, kind=cython.int, inside=cython.bint, opener=cython.int, statement=cython.int,
        text=int64_t)
    cdef int infer(self, const uint8_t* p, int64_t at, int64_t length) noexcept nogil
    @cython.locals(post=int64_t, body=int64_t, text=int64_t)
    cdef int64_t query_text(self, const uint8_t* p, int64_t at, int64_t end, int t) noexcept nogil
    @cython.locals(text=int64_t)
    cdef int statement_kind(self, const uint8_t* p, int64_t at, int64_t end) noexcept nogil
    @cython.locals(state=cython.int)
    cdef bint step(self, int boundary) noexcept nogil
    cdef uint32_t create_file_id(self, const uint8_t* p, int64_t at) noexcept nogil
    @cython.locals(i=cython.int)
    cdef void load_opened(self, uint32_t file_id) noexcept nogil
    @cython.locals(i=cython.int)
    cdef bint load_closed(self, uint32_t file_id) noexcept nogil

@cython.locals(i=int64_t, c=cython.int, begin=int64_t)
cdef bint has_prefix(const uint8_t* p, int64_t at, int64_t end, const char* word, int64_t count) noexcept nogil
@cython.locals(c=cython.int)
cdef bint is_temporary(const uint8_t* p, int64_t at, int64_t end) noexcept nogil

cdef int64_t first_word(const uint8_t* p, int64_t at, int64_t end, bint opens) noexcept nogil
cdef int64_t after_comment(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
cdef bint ends_there(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
@cython.locals(c=cython.int)
cdef int kind_of_text(const uint8_t* p, int64_t text, int64_t end) noexcept nogil
@cython.locals(start=int64_t, i=int64_t)
cdef bint defines(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
@cython.locals(c=cython.int)
cdef bint is_definition(const uint8_t* p, int64_t at, int64_t end) noexcept nogil
