"""Events before they are sent: bytes that were changed, lengths that cannot be, ends of transactions, whatever the cuts."""

import random

import pytest

from tests.support.event_stream import EventStream, walk
from tests.support.kernel_builds import KernelBuild

BAD_CRC, BAD_LENGTH = 16, 17


def marked(build: KernelBuild, *, checksum: bool = True) -> bytes:
    stream = EventStream(checksum=checksum)
    for number in range(3):
        stream.query("BEGIN").query(f"INSERT INTO t VALUES ({number}, '{'x' * 700 * number}')").add(16, bytes(8))
    stream.query("CREATE TABLE u (a INT)")
    return bytes(walk(build, stream.data, packets=False).produced)


def starts(data: bytes) -> list[int]:
    """Where events begin, and the end."""
    found = [0]
    while found[-1] < len(data):
        found.append(found[-1] + int.from_bytes(data[found[-1] + 9 : found[-1] + 13], "little"))
    return found


def ends_of_transactions(data: bytes) -> list[int]:
    places = starts(data)
    marks = [data[at + 18] >> 2 & 7 for at in places[:-1]]
    return [end for mark, end in zip(marks, places[1:], strict=True) if mark in (2, 5)]


def looked_at(
    build: KernelBuild, data: bytes, cuts: list[int], *, checksum: int = 1, offset: int = 4
) -> tuple[int, ...]:
    """problem, sound_to, whole_to after `data`, fed in pieces that end at `cuts`."""
    check = build.event_check.EventCheck()
    check.begin(offset, checksum)
    for cut in [*cuts, len(data)]:
        check.look(data, check.position - offset, cut)
    return check.problem, check.sound_to - offset, check.whole_to - offset


def some_cuts(data: bytes, seed: int) -> list[int]:
    return sorted(random.Random(seed).sample(range(len(data)), 12))


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_as_it_was_archived_is_sound_whatever_the_cuts(build: KernelBuild, seed: int, checksum: bool) -> None:
    data = marked(build, checksum=checksum)
    found = looked_at(build, data, some_cuts(data, seed), checksum=int(checksum))
    assert found == (0, len(data), ends_of_transactions(data)[-1])


@pytest.mark.parametrize("seed", range(40))
def test_any_changed_byte_is_found_at_its_event(build: KernelBuild, seed: int) -> None:
    data = bytearray(marked(build))
    at = random.Random(seed).randrange(len(data))
    data[at] ^= random.Random(-seed).randrange(1, 256)
    begins = max(start for start in starts(marked(build)) if start <= at)
    problem, sound_to, whole_to = looked_at(build, bytes(data), some_cuts(data, seed))
    longer = problem == 0  # its length says that it goes on behind the end
    assert (problem in (BAD_CRC, BAD_LENGTH) or longer) and sound_to == begins
    assert whole_to == max([0, *(end for end in ends_of_transactions(marked(build)) if end <= begins)])


@pytest.mark.parametrize("length", [0, 18, 22, (1 << 30) + 1])
def test_a_length_that_cannot_be_is_a_problem(build: KernelBuild, length: int) -> None:
    data = bytearray(marked(build))
    data[9:13] = length.to_bytes(4, "little")
    assert looked_at(build, bytes(data), [])[0] == BAD_LENGTH


def test_a_transaction_is_whole_only_with_its_last_byte(build: KernelBuild) -> None:
    data = marked(build)
    first = ends_of_transactions(data)[0]
    assert looked_at(build, data[: first - 1], [])[2] == 0
    assert looked_at(build, data[:first], [])[2] == first


def test_a_range_outside_the_buffer_is_refused(build: KernelBuild) -> None:
    with pytest.raises(IndexError):
        build.event_check.EventCheck().look(b"abc", 2, 4)
