"""CRC32 of byte ranges with the GIL released, and the effect that a change of flags has on it."""

import cython

if not cython.compiled:
    from protocol.kernel.pure import crc32_of, flags_effect, native_setup

native_setup()


def crc32(data, start, stop, value=0):
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


def crc32_flags_effect(changed_bits, after):
    """What to xor into an event's CRC32 when bits 10..13 of its flags change by `changed_bits` (a 4-bit xor mask).

    `after`: the number of checksummed bytes behind the flags field.
    """
    return flags_effect(changed_bits, after)


def use_carry_less_multiplication(on):
    """Switches the fast path of this process off or on (for tests); returns whether it is on now."""
    if cython.compiled:
        return bool(native_use_clmul(on))
    else:
        return False
