"""The leaf operations of `native.h`, uncompiled, which the kernel uses without a C compiler."""

import zlib
from array import array
from typing import Final

_POLYNOMIAL: Final = 0xEDB88320
Bytes = bytes | bytearray | memoryview
Writable = bytearray | memoryview
Numbers = memoryview


def load16(p: Bytes, at: int) -> int:
    """Return the u16 at `at`, little endian."""
    return p[at] | p[at + 1] << 8


def load24(p: Bytes, at: int) -> int:
    """Return the u24 at `at`, little endian."""
    return p[at] | p[at + 1] << 8 | p[at + 2] << 16


def load32(p: Bytes, at: int) -> int:
    """Return the u32 at `at`, little endian."""
    return int.from_bytes(p[at : at + 4], "little")


def load64(p: Bytes, at: int) -> int:
    """Return the u64 at `at`, little endian."""
    return int.from_bytes(p[at : at + 8], "little")


def signed64(value: int) -> int:
    """Return the same 64 bits as a signed number."""
    return value - (1 << 64) if value >= 1 << 63 else value


def magnitude(value: int) -> int:
    """Return a signed number of 64 bits without its sign."""
    return abs(value)


def store32(p: Writable, at: int, value: int) -> None:
    """Put a u32 at `at`, little endian."""
    p[at : at + 4] = value.to_bytes(4, "little")


def store64(p: Writable, at: int, value: int) -> None:
    """Put a u64 at `at`, little endian."""
    p[at : at + 8] = value.to_bytes(8, "little")


def copy_plain(out: Writable, at: int, room: int, p: Bytes, i: int, stop: int) -> int:
    """Return how many bytes of p[i:stop], possibly none, were copied to out[at:room] because JSON needs no escape for them."""
    return 0


def copy_ascii(out: Writable, at: int, p: Bytes, i: int, stop: int) -> int:
    """Return how many bytes of p[i:stop], possibly none, were copied to out[at:] because they are ASCII."""
    return 0


def move_bytes(p: Writable, to: int, from_: int, count: int) -> None:
    """Move `count` bytes within one buffer; the ranges may overlap."""
    p[to : to + count] = bytes(p[from_ : from_ + count])


def copy_bytes(to_p: Writable, to: int, from_p: Bytes, from_: int, count: int) -> None:
    """Copy `count` bytes between two buffers."""
    to_p[to : to + count] = from_p[from_ : from_ + count]


def unset_bytes(count: int) -> bytearray:
    """Return a buffer of `count` bytes with undefined values: only written bytes may be read."""
    return bytearray(count)


def bytes_of(buffer: bytearray) -> memoryview:
    """Return the buffer's bytes."""
    return memoryview(buffer)


def shorts_of(buffer: bytearray) -> Numbers:
    """Return the buffer as u16s."""
    return memoryview(buffer).cast("H")


def ints_of(buffer: bytearray) -> Numbers:
    """Return the buffer as i32s."""
    return memoryview(buffer).cast("i")


def longs_of(buffer: bytearray) -> Numbers:
    """Return the buffer as i64s."""
    return memoryview(buffer).cast("q")


def text_of(data: bytes) -> bytes:
    """Return the bytes themselves."""
    return data


def head_of(buffer: bytearray, count: int) -> bytes:
    """Return the first `count` bytes."""
    return bytes(buffer[:count])


def held_bytes(buffer: Bytes, view: object) -> memoryview:
    """Return the bytes of any buffer."""
    return memoryview(buffer).cast("B")


def held_longs(buffer: "array[int]", view: object) -> Numbers:
    """Return the i64s of an array."""
    return memoryview(buffer)


def let_go(view: object) -> None:
    """Release a buffer, which is not read any more."""


def crc32_of(p: Bytes, start: int, stop: int, value: int) -> int:
    """Return zlib's crc32 of p[start:stop], continued from `value`."""
    return zlib.crc32(p[start:stop], value)


def _multiply(a: int, b: int) -> int:
    """Return a * b modulo the CRC's polynomial, bits reflected."""
    result = 0
    bit = 1 << 31
    while bit:
        if a & bit:
            result ^= b
        b = (b >> 1) ^ (_POLYNOMIAL if b & 1 else 0)
        bit >>= 1
    return result


def _one_byte(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
    return value


def flags_effect(changed_bits: int, after: int) -> int:
    """Return the number to xor into an event's CRC32 when bits 10..13 of its flags change; `after`: bytes between flags and CRC.

    CRC32 is linear, so the effect is the CRC of the changed byte alone, extended over the bytes after it.
    """
    effect = _one_byte((changed_bits & 15) << 2)
    power = 1 << 23
    while after:
        if after & 1:
            effect = _multiply(power, effect)
        power = _multiply(power, power)
        after >>= 1
    return effect


def native_setup() -> None:
    """Do nothing: without the compiled part there is nothing to set up."""


def native_use_clmul(on: bool) -> int:
    """Return 1 if CRCs use carry-less multiplication from now on; without the compiled part they never do."""
    return 0
