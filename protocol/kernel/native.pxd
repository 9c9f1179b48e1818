# The leaf operations of native.h; protocol/kernel/pure.py has the same for the uncompiled build.
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "Python.h":
    bytearray PyByteArray_FromStringAndSize(const char* text, Py_ssize_t count)
    void* PyByteArray_AS_STRING(object buffer)
    void* PyBytes_AS_STRING(object data)

cdef inline bytearray unset_bytes(Py_ssize_t count):
    return PyByteArray_FromStringAndSize(NULL, count)

cdef inline int64_t signed64(uint64_t value) noexcept nogil:
    return <int64_t>value

cdef inline uint64_t magnitude(int64_t value) noexcept nogil:
    return 0 - <uint64_t>value if value < 0 else <uint64_t>value

# The place of an object's bytes: valid as long as the object is held and not resized.
cdef inline uint8_t* bytes_of(bytearray buffer):
    return <uint8_t*>PyByteArray_AS_STRING(buffer)

cdef inline uint16_t* shorts_of(bytearray buffer):
    return <uint16_t*>PyByteArray_AS_STRING(buffer)

cdef inline int32_t* ints_of(bytearray buffer):
    return <int32_t*>PyByteArray_AS_STRING(buffer)

cdef inline int64_t* longs_of(bytearray buffer):
    return <int64_t*>PyByteArray_AS_STRING(buffer)

cdef inline const uint8_t* text_of(bytes data):
    return <const uint8_t*>PyBytes_AS_STRING(data)

cdef inline bytes head_of(bytearray buffer, Py_ssize_t count):
    return (<char*>PyByteArray_AS_STRING(buffer))[:count]

# The bytes and numbers of any buffer, which cannot be resized until it is released.
cdef inline const uint8_t* held_bytes(object buffer, Py_buffer* view) except? NULL:
    PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE)
    return <const uint8_t*>view.buf

cdef inline const int64_t* held_longs(object buffer, Py_buffer* view) except? NULL:
    PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE)
    return <const int64_t*>view.buf

cdef inline int let_go(Py_buffer* view) except -1:
    PyBuffer_Release(view)
    return 0

cdef extern from "native.h" nogil:
    uint32_t load16(const uint8_t* p, int64_t at) noexcept
    uint32_t load24(const uint8_t* p, int64_t at) noexcept
    uint32_t load32(const uint8_t* p, int64_t at) noexcept
    uint64_t load64(const uint8_t* p, int64_t at) noexcept
    void store32(uint8_t* p, int64_t at, uint32_t value) noexcept
    void store64(uint8_t* p, int64_t at, uint64_t value) noexcept
    void move_bytes(uint8_t* p, int64_t to, int64_t from_, int64_t count) noexcept
    void copy_bytes(uint8_t* to_p, int64_t to, const uint8_t* from_p, int64_t from_, int64_t count) noexcept
    int64_t copy_plain(uint8_t* out, int64_t at, int64_t room, const uint8_t* p, int64_t i, int64_t stop) noexcept
    int64_t copy_ascii(uint8_t* out, int64_t at, const uint8_t* p, int64_t i, int64_t stop) noexcept
    uint32_t crc32_of(const uint8_t* p, int64_t start, int64_t stop, uint32_t value) noexcept
    uint32_t flags_effect(uint32_t changed_bits, int64_t after) noexcept
    void native_setup() noexcept
    int native_use_clmul(int on) noexcept
