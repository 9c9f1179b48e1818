# cython: annotation_typing=False
"""CRC32 of byte ranges with the GIL released, of events that come in pieces, and the effect of changed flags on it."""

import cython

if not cython.compiled:
    from protocol.kernel.pure import Bytes, crc32_of, flags_effect, native_setup, native_use_clmul

native_setup()


def crc32(data: Bytes, start: int, stop: int, value: int = 0) -> int:
    """Return zlib's crc32 of data[start:stop], continued from `value`. Raises IndexError for a range outside `data`."""
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
    """Return the number to xor into an event's CRC32 when bits 10..13 of its flags change by `changed_bits` (a 4-bit xor mask).

    `after` is the number of checksummed bytes after the flags field.
    """
    return flags_effect(changed_bits, after)


def use_carry_less_multiplication(on: bool) -> bool:
    """Switch the fast path of this process off or on (for tests); return whether it is on now."""
    return bool(native_use_clmul(on))


class EventSum:
    """An event that comes in pieces, with its checksum if it has one. `left` bytes of it are still to come."""

    def __init__(self) -> None:
        self.left = 0
        self.trailer = 0
        self.crc = 0
        self.stored = 0

    def begin(self, length: int, trailer: int) -> None:
        """Expect its first byte next. `length` includes `trailer` bytes of checksum."""
        self.left = length
        self.trailer = trailer
        self.crc = 0
        self.stored = 0

    def take(self, p: Bytes, r: int, stop: int) -> int:
        """Take its bytes that are in p[r:stop]; return where they end."""
        n = stop - r
        if n > self.left - self.trailer:
            n = self.left - self.trailer
        if n > 0:
            if self.trailer:
                self.crc = crc32_of(p, r, r + n, self.crc)
            r += n
            self.left -= n
        return self.take_stored(p, r, stop)

    def take_stored(self, p: Bytes, r: int, stop: int) -> int:
        """Take bytes of its checksum alone, if that is next."""
        while r < stop and 0 < self.left <= self.trailer:
            self.stored = self.stored | (p[r] << (8 * (self.trailer - self.left)))
            r += 1
            self.left -= 1
        return r

    def is_right(self) -> bool:
        """Return whether the checksum of a complete event is right."""
        return self.trailer == 0 or self.crc == self.stored
