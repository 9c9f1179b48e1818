"""CRC32 of the kernel: zlib's, whatever the length, the alignment, and the way it is computed."""

import random
import zlib
from collections.abc import Iterator

import pytest

from tests.support.kernel_builds import KernelBuild, imported_kernel, is_extension, uncompiled_kernel

DATA = random.Random(1).randbytes(5000)


@pytest.fixture(params=["carry-less", "tables"])
def way(request: pytest.FixtureRequest, build: KernelBuild) -> Iterator[KernelBuild]:
    """A build, with the fast path of the compiled one on or off."""
    if request.param == "tables":
        build.crc.use_carry_less_multiplication(False)
    elif is_extension(build.crc) and not build.crc.use_carry_less_multiplication(True):
        pytest.skip("this processor has no carry-less multiplication")
    yield build
    build.crc.use_carry_less_multiplication(True)


def test_every_length_up_to_300_is_right(way: KernelBuild) -> None:
    wrong = [n for n in range(301) if way.crc.crc32(DATA, 0, n) != zlib.crc32(DATA[:n])]
    assert wrong == []


def test_every_alignment_is_right(way: KernelBuild) -> None:
    wrong = [
        (start, n)
        for start in range(33)
        for n in (0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 127, 128, 129, 143, 144, 191, 192, 255, 256, 1023)
        if way.crc.crc32(DATA, start, start + n) != zlib.crc32(DATA[start : start + n])
    ]
    assert wrong == []


@pytest.mark.parametrize("size", [4999, 65537, (1 << 20) + 13, (1 << 24) + 1])
def test_large_ranges_are_right(way: KernelBuild, size: int) -> None:
    data = (DATA * (size // len(DATA) + 1))[:size]
    assert way.crc.crc32(data, 3, size) == zlib.crc32(data[3:])


@pytest.mark.parametrize("value", [0, 1, 0x80000000, 0xFFFFFFFF, 0xDEADBEEF])
def test_it_continues_from_an_earlier_value(way: KernelBuild, value: int) -> None:
    wrong = [n for n in range(200) if way.crc.crc32(DATA, 5, 5 + n, value) != zlib.crc32(DATA[5 : 5 + n], value)]
    assert wrong == []


def test_it_can_be_computed_in_pieces(way: KernelBuild) -> None:
    value = 0
    for at in range(0, 5000, 37):
        value = way.crc.crc32(DATA, at, min(at + 37, 5000), value)
    assert value == zlib.crc32(DATA)


@pytest.mark.parametrize("bounds", [(-1, 3), (3, 2), (0, 11), (11, 11)])
def test_a_range_outside_the_data_is_refused(build: KernelBuild, bounds: tuple[int, int]) -> None:
    with pytest.raises(IndexError):
        build.crc.crc32(b"0123456789", *bounds)


@pytest.mark.parametrize("bits", range(16))
def test_the_effect_of_changed_flags_is_the_difference_of_the_checksums(build: KernelBuild, bits: int) -> None:
    def checksum(after: int, changed: int) -> int:
        event = bytearray(DATA[:19] + DATA[100 : 100 + after])
        event[18] ^= changed << 2
        return zlib.crc32(event)

    lengths = [*range(40), 1004, 1022, 1023, 1024, 1025, 1026, 2047, 4096, 4800]
    wrong = [n for n in lengths if build.crc.crc32_flags_effect(bits, n) != checksum(n, 0) ^ checksum(n, bits)]
    assert wrong == []


@pytest.mark.parametrize("after", [2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 2**33 + 12345, 2**40])
def test_the_effect_over_huge_lengths_does_not_wrap(after: int) -> None:
    if not is_extension(imported_kernel().crc):
        pytest.skip("the kernel is not compiled here")
    for bits in (1, 5, 15):
        assert imported_kernel().crc.crc32_flags_effect(bits, after) == uncompiled_kernel().crc.crc32_flags_effect(
            bits, after
        )


@pytest.mark.parametrize("after", [0, 7, 1023, 2**31 - 1, 2**32 - 1])
def test_the_effect_over_one_byte_more_is_the_effect_moved_on_by_a_byte(build: KernelBuild, after: int) -> None:
    moved = build.crc.crc32_flags_effect(9, after)
    for _ in range(8):
        moved = (moved >> 1) ^ (0xEDB88320 if moved & 1 else 0)
    assert build.crc.crc32_flags_effect(9, after + 1) == moved
