cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from protocol.columns.text.json_text cimport put_lossy
from protocol.kernel.native cimport unset_bytes

cdef class BatchTexts:
    cdef int64_t count_room
    cdef int64_t data_room
    cdef readonly int64_t count
    cdef int64_t used
    cdef bint lacks
    cdef int64_t lacking
    cdef readonly object offsets_buffer
    cdef readonly object data_buffer
    cdef int32_t[::1] offsets
    cdef uint8_t[::1] data

    cpdef begin_batch(self)
    cpdef make_room(self)
    @cython.locals(end=int64_t)
    cdef int64_t add(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
