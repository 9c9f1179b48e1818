from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from protocol.kernel.native cimport load32, load64

cdef extern from "real_text.h" nogil:
    void set_power_of_ten(int k, uint64_t high, uint64_t low) noexcept
    int64_t put_real_64(uint8_t* out, int64_t at, uint64_t bits) noexcept
    int64_t put_real_32(uint8_t* out, int64_t at, uint32_t bits) noexcept

cdef int64_t put_double(uint8_t* out, int64_t at, const uint8_t* p, int64_t start) noexcept nogil
cdef int64_t put_float(uint8_t* out, int64_t at, const uint8_t* p, int64_t start) noexcept nogil
