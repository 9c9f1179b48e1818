cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from protocol.kernel.native cimport crc32_of, flags_effect, native_setup, native_use_clmul

@cython.locals(p=cython.p_uchar, result=uint32_t, from_=int64_t, to=int64_t, seed=uint32_t)
cpdef crc32(const uint8_t[::1] data, int64_t start, int64_t stop, uint32_t value=*)
