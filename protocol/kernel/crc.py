# cython: annotation_typing=False
"""CRC32 of byte ranges with the GIL released, and the effect that a change of flags has on it."""

import cython

if not cython.compiled:
    from protocol.kernel.pure import Bytes, crc32_of, flags_effect, native_setup, native_use_clmul

native_setup()


def crc32(data: Bytes, start: int, stop: int, value: int = 0) -> int:
    """zlib's crc32 of data[start:stop], continued from `value`. Raises IndexError for a range outside `data`."""
    if start < 0 or stop < start or stop > len(data):
        raise IndexError(f"range {start}:{stop} outside a buffer of {len(data)} bytes")
    if stop == start:
        return value
    if cython.compiled:
        p = cython.cast(cython.p_uchar, cython.address(data[0]))
        with cython.nogil:
            result = crc32_of(p, start, stop, value)
    else:
        result = crc32_of(data, start, stop, value)
    return result


def crc32_flags_effect(changed_bits: int, after: int) -> int:
    """What to xor into an event's CRC32 when bits 10..13 of its flags change by `changed_bits` (a 4-bit xor mask).

    `after`: the number of checksummed bytes behind the flags field.
    """
    return flags_effect(changed_bits, after)


def use_carry_less_multiplication(on: bool) -> bool:
    """Switches the fast path of this process off or on (for tests); returns whether it is on now."""
    return bool(native_use_clmul(on))
