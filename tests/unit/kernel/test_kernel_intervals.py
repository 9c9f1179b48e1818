"""Sets of numbers as bytes: each operation against plain sets, and what is refused as no canonical set."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernel_builds import KernelBuild, builds

NUMBERS = st.frozensets(st.integers(1, 40))
LAST = 2**63 - 2


def packed(*runs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("<QQ", start, stop) for start, stop in runs)


def canonical(numbers: frozenset[int] | set[int]) -> bytes:
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number:
            runs[-1] = (runs[-1][0], number + 1)
        else:
            runs.append((number, number + 1))
    return packed(*runs)


@given(NUMBERS, NUMBERS)
def test_each_operation_gives_the_canonical_bytes_of_what_plain_sets_give(a: frozenset[int], b: frozenset[int]) -> None:
    for build in builds():
        kernel = build.intervals
        p, q = canonical(a), canonical(b)
        assert kernel.union(p, q) == canonical(a | b)
        assert kernel.difference(p, q) == canonical(a - b)
        assert kernel.intersection(p, q) == canonical(a & b)
        assert kernel.is_subset(p, q) == (a <= b)
        assert kernel.is_subset(p, kernel.union(p, q))
        assert kernel.count(p) == len(a)
        assert [number for number in range(1, 42) if kernel.contains(p, number)] == sorted(a)
        if q:
            first, last = min(b), max(b)
            assert kernel.meets_run(p, first, last) == any(first <= number <= last for number in a)


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 6))))
def test_runs_in_ascending_order_are_merged_into_a_canonical_set(runs: list[tuple[int, int]]) -> None:
    runs.sort()
    numbers = {number for start, size in runs for number in range(start, start + size)}
    for build in builds():
        merged = build.intervals.merge_runs(packed(*((start, start + size) for start, size in runs)))
        assert merged == canonical(numbers)


def test_the_greatest_number_takes_part(build: KernelBuild) -> None:
    kernel = build.intervals
    all_of_them, last = packed((1, LAST + 1)), packed((LAST, LAST + 1))
    assert kernel.check(all_of_them, 0, 1) == -1
    assert kernel.count(all_of_them) == LAST
    assert kernel.difference(all_of_them, last) == packed((1, LAST))
    assert kernel.union(packed((1, LAST)), last) == all_of_them
    assert kernel.intersection(all_of_them, last) == last
    assert kernel.contains(last, LAST)
    assert not kernel.contains(packed((1, LAST)), LAST)


@pytest.mark.parametrize(
    "runs",
    [
        [(0, 5)],
        [(5, 5)],
        [(6, 5)],
        [(1, LAST + 2)],
        [(1, 2**64 - 1)],
        [(2**63, 2**63 + 1)],
        [(2**64 - 5, 2**64 - 1)],
        [(1, 5), (5, 7)],
        [(1, 5), (4, 7)],
        [(8, 9), (1, 2)],
        [(1, 5), (1, 5)],
    ],
)
def test_the_first_interval_that_makes_a_set_not_canonical_is_found(
    build: KernelBuild, runs: list[tuple[int, int]]
) -> None:
    assert build.intervals.check(packed(*runs), 0, len(runs)) == len(runs) - 1
    assert build.intervals.check(packed(*runs, (100, 101)), 0, len(runs) + 1) == len(runs) - 1


def test_intervals_are_checked_where_they_stand(build: KernelBuild) -> None:
    data = b"xyz" + packed((1, 3), (4, 5)) + b"z"
    assert build.intervals.check(data, 3, 2) == -1


@pytest.mark.parametrize(("at", "count"), [(0, 2), (1, 1), (-1, 1), (0, -1), (17, 0), (0, 2**60), (16, 1)])
def test_intervals_outside_of_the_data_are_an_index_error(build: KernelBuild, at: int, count: int) -> None:
    with pytest.raises(IndexError):
        build.intervals.check(packed((1, 2)), at, count)
