"""Whole transactions that a replica has are passed over, and nothing else, however the input is cut."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.kernel.codes import ANONYMOUS_GTID_EVENT, REFUSED_ANONYMOUS, REFUSED_GTID
from tests.support.gtid_stream import ALONE, END, IGNORE, INSIDE, START, event, gtid_event, mariadb_event
from tests.support.kernel_builds import KernelBuild, builds

U = [bytes(range(16)), b"\xff" * 16, b"\xff" * 16 + b"tag"]
ROTATE = event(4, b"\4\0\0\0\0\0\0\0mysql-bin.000002", ALONE)
CHECKPOINT = event(161, b"\1\0\0\0x", IGNORE)


def sent_by(skip: Any, data: bytes, pieces: Sequence[int] = (1 << 20,)) -> bytes:
    """What of `data`, fed in pieces of these sizes over and over, is to be sent: all of it is looked at."""
    sent, waiting = fed(skip, data, pieces, lambda: False)
    assert waiting == b""
    return sent


def sent_to_end(skip: Any, data: bytes, pieces: Sequence[int]) -> bytes:
    """As `sent_by`, of a stream that may end before `data` does."""
    return fed(skip, data, pieces, lambda: skip.finished)[0]


def sent_to_refusal(skip: Any, data: bytes) -> bytes:
    """As `sent_by`, up to where the stream is refused."""
    return fed(skip, data, (1 << 20,), lambda: bool(skip.refused))[0]


def fed(skip: Any, data: bytes, pieces: Sequence[int], ends: Callable[[], bool]) -> tuple[bytes, bytes]:
    """(what is to be sent, what was fed and not looked at), up to where the stream ends."""
    sent = b""
    waiting = b""
    at = turn = 0
    while at < len(data) and not ends():
        size = pieces[turn % len(pieces)]
        turn += 1
        waiting += data[at : at + size]
        at += size
        used = 0
        while (end := skip.next_range(waiting, used, len(waiting))) > used:
            if skip.sending:
                sent += waiting[used:end]
            used = end
        waiting = waiting[used:]
    return sent, waiting


def body(sizes: Sequence[int]) -> bytes:
    return b"".join(event(30, bytes(size), INSIDE) for size in sizes[:-1]) + event(16, bytes(sizes[-1]), END)


SIZES = st.lists(st.integers(0, 300), min_size=1, max_size=3)
STEPS = st.lists(
    st.tuples(st.sampled_from(U), st.integers(1, 12), SIZES)
    | st.sampled_from(["rotate", "anonymous", "statement", "transaction"]),
    max_size=14,
)
HELD = st.frozensets(st.tuples(st.sampled_from(U), st.integers(1, 12)))
PIECES = st.lists(st.integers(1, 500), min_size=1, max_size=5)


@settings(deadline=None)
@given(STEPS, HELD, PIECES)
def test_a_mysql_replica_is_sent_what_it_has_not(steps: list[Any], held: frozenset[Any], pieces: list[int]) -> None:
    builder = GtidSetBuilder()
    for key, gno in held:
        builder.add(key, gno)
    data = wanted = b""
    passed = 0
    numbered_and_held = False
    for step in steps:
        if step == "rotate":
            group, has = ROTATE, False
        elif step == "anonymous":
            group, has = event(34, bytes(25), 3 << 10) + body([5, 9]), False
            numbered_and_held = False
        elif step == "statement":
            group, has = event(2, b"DROP", ALONE), numbered_and_held
        elif step == "transaction":
            group, has = event(2, b"BEGIN", START) + body([5, 9]), numbered_and_held
        else:
            key, gno, sizes = step
            group, has = gtid_event(key, gno) + body(sizes), (key, gno) in held
            numbered_and_held = has
            passed += has
        data += group
        wanted += b"" if has else group
    for build in builds():
        skip = build.gtid_filter.GtidSkip(builder.snapshot().intervals_by_key())
        assert sent_by(skip, data, pieces) == wanted
        assert skip.skipped == passed


def test_a_stream_is_not_refused_for_what_belongs_to_a_transaction_with_a_number(build: KernelBuild) -> None:
    several_drops = gtid_event(U[0], 5) + event(2, b"DROP a", END) + event(2, b"DROP b", ALONE)
    skip = build.gtid_filter.GtidSkip()
    skip.refuse_anonymous = True
    data = several_drops + event(34, bytes(25), 3 << 10) + event(2, b"CREATE", ALONE)
    assert sent_to_refusal(skip, data) == several_drops
    assert skip.refused == REFUSED_ANONYMOUS


def reference(stream: list[Any], positions: dict[int, tuple[int, int]]) -> list[bool]:
    """For each group of (domain, server, number) whether it is sent, by the rule in words: up to the last one, nothing."""
    waiting = dict(positions)
    sent = []
    for domain, server, number in stream:
        last = waiting.get(domain)
        if last is None:
            sent.append(True)
        elif server != last[0] or number < last[1]:
            sent.append(False)
        else:
            del waiting[domain]
            sent.append(number > last[1])
    return sent


GROUPS = st.lists(st.tuples(st.sampled_from([0, 1, 2**32 - 1]), st.sampled_from([1, 2**32 - 1]), st.integers(1, 9)))
LASTS = st.dictionaries(
    st.sampled_from([0, 1, 2**32 - 1]), st.tuples(st.sampled_from([1, 2**32 - 1]), st.integers(1, 9))
)


@settings(deadline=None)
@given(GROUPS, LASTS, PIECES)
def test_a_mariadb_replica_is_sent_what_follows_its_last_group_of_each_domain(
    stream: list[tuple[int, int, int]], lasts: dict[int, tuple[int, int]], pieces: list[int]
) -> None:
    data = wanted = b""
    for group, sent in zip(stream, reference(stream, lasts), strict=True):
        raw = mariadb_event(*group) + body([7, 1]) + CHECKPOINT
        data += raw
        wanted += raw if sent else CHECKPOINT
    for build in builds():
        skip = build.gtid_filter.GtidSkip(None, [(domain, *last) for domain, last in lasts.items()])
        assert sent_by(skip, data, pieces) == wanted
        reached = [domain for domain, last in lasts.items() if any(
            g[0] == domain and g[1] == last[0] and g[2] >= last[1] for g in stream)]  # fmt: skip
        assert skip.waiting == len(lasts) - len(reached)


def held(text: str) -> Any:
    return GtidSet.from_text(text.replace("U", "00010203-0405-0607-0809-0a0b0c0d0e0f")).intervals_by_key()


def ranges(skip: Any, data: bytes) -> list[tuple[int, bool, int]]:
    """(end, sending, reached) of each range, of bytes that are all there."""
    told = []
    at = 0
    while (end := skip.next_range(data, at, len(data))) > at:
        told.append((end, skip.sending, skip.reached))
        at = end
    return told


def test_where_the_last_group_is_missing_the_range_ends_behind_the_head_of_the_later_one(build: KernelBuild) -> None:
    skip = build.gtid_filter.GtidSkip(None, [(7, 1, 1), (0, 1, 5)])
    group = mariadb_event(0, 1, 4) + body([1])
    head = len(mariadb_event(0, 1, 6))
    data = group + mariadb_event(0, 1, 6) + body([1])
    half = len(group)
    assert skip.next_range(data, 0, len(data)) == half
    assert (skip.next_range(data, half, len(data)), skip.sending) == (half + head, True)
    assert (skip.reached, skip.in_hole, skip.hole_number, skip.waiting) == (1, True, 6, 1)
    assert (skip.next_range(data, half + head, len(data)), skip.reached, skip.in_hole) == (len(data), -1, False)


def test_in_strict_mode_nothing_of_the_later_group_is_told(build: KernelBuild) -> None:
    skip = build.gtid_filter.GtidSkip(None, [(7, 1, 1), (0, 1, 5)], strict=True)
    before = CHECKPOINT + mariadb_event(1, 1, 1) + body([1])
    data = before + mariadb_event(0, 1, 6) + body([1])
    assert ranges(skip, data) == [(len(before), True, -1)]
    assert (skip.hole, skip.waiting) == (1, 1)


def until_reference(stream: list[Any], lasts: dict[int, tuple[int, int]], limits: dict[int, tuple[int, int]],
                    before: bool) -> list[bool]:  # fmt: skip
    """For each group up to the last one that is looked at, whether it is sent."""
    limits = dict(limits)
    told = []
    for (domain, server, number), sent in zip(stream, reference(stream, lasts), strict=True):
        limit = limits.get(domain)
        if limit is None:
            sent = False
        elif server == limit[0] and number >= limit[1]:
            del limits[domain]
            sent = sent and number == limit[1] and not before
        told.append(sent)
        if not limits:
            break
    return told


@settings(deadline=None)
@given(GROUPS, LASTS, LASTS.filter(bool), PIECES, st.booleans())
def test_a_mariadb_stream_ends_with_the_last_group_of_all_domains_that_have_an_end(
    stream: list[tuple[int, int, int]],
    lasts: dict[int, tuple[int, int]],
    limits: dict[int, tuple[int, int]],
    pieces: list[int],
    before: bool,
) -> None:
    told = until_reference(stream, lasts, limits, before)
    data = wanted = b""
    for number, group in enumerate(stream):
        raw = mariadb_event(*group) + body([7, 1])
        data += raw + CHECKPOINT
        if number < len(told):
            wanted += raw if told[number] else b""
            wanted += CHECKPOINT if number < len(told) - 1 else b""
    met = {domain for domain, (server, least) in limits.items() if any(
        group[0] == domain and group[1] == server and group[2] >= least for group in stream)}  # fmt: skip
    if met != set(limits) and stream:
        wanted += CHECKPOINT
    for build in builds():
        untils = [(domain, *last) for domain, last in limits.items()]
        skip = build.gtid_filter.GtidSkip(
            None, [(domain, *last) for domain, last in lasts.items()], until=untils, before=before
        )
        assert sent_to_end(skip, data, pieces) == wanted
        assert skip.finished == (met == set(limits))


def test_where_all_ends_are_reached_already_the_stream_ends_behind_the_files_list(build: KernelBuild) -> None:
    skip = build.gtid_filter.GtidSkip(None, [], until=[])
    head = event(15, bytes(80)) + event(164, bytes(17), IGNORE) + event(163, bytes(6), ALONE)
    assert ranges(skip, head + CHECKPOINT) == [(len(head), True, -1)]
    assert skip.finished


def test_a_walk_stops_before_a_transaction_without_a_gtid(build: KernelBuild) -> None:
    group = gtid_event(U[0], 1) + body([3])
    for anonymous in (
        event(34, bytes(25), 3 << 10) + body([3]),
        event(2, b"BEGIN", 3 << 10) + body([3]),
        event(2, b"CREATE", ALONE),
    ):
        first = group if anonymous[4] == ANONYMOUS_GTID_EVENT else ROTATE
        for has in ("U:1", "U:2"):
            skip = build.gtid_filter.GtidSkip(held(has))
            skip.refuse_anonymous = True
            found = ranges(skip, first + anonymous + ROTATE)
            assert [end for end, _sending, _reached in found] == [len(first)]
            assert skip.refused == REFUSED_ANONYMOUS


def test_a_walk_stops_before_a_transaction_with_a_gtid_also_one_that_the_replica_has(build: KernelBuild) -> None:
    head = event(15, bytes(80)) + event(35, bytes(8), ALONE) + event(34, bytes(25), 3 << 10) + body([3])
    for key in U:
        skip = build.gtid_filter.GtidSkip({})
        skip.refuse_gtids = True
        assert ranges(skip, head + gtid_event(key, 1) + body([3])) == [(len(head), True, -1)]
        assert skip.refused == REFUSED_GTID


def test_a_range_ends_where_the_last_group_of_a_domain_does(build: KernelBuild) -> None:
    groups = [
        mariadb_event(domain, 1, number) + body([3]) for domain, number in [(0, 4), (0, 5), (7, 1), (7, 2), (0, 6)]
    ]
    data = b"".join(groups)
    ends = [sum(map(len, groups[: number + 1])) for number in range(len(groups))]
    skip = build.gtid_filter.GtidSkip(None, [(7, 1, 2), (0, 1, 5)])
    told = []
    at = 0
    while at < len(data):
        at = skip.next_range(data, at, len(data))
        told.append((at, skip.sending, skip.reached))
    assert told == [(ends[1], False, 1), (ends[3], False, 0), (ends[4], True, -1)]


def test_a_transaction_that_was_cut_off_is_passed_over_up_to_what_follows_it(build: KernelBuild) -> None:
    cut = gtid_event(U[0], 1) + event(30, b"", INSIDE)
    for follows in (ROTATE, event(15, bytes(80)), gtid_event(U[0], 2) + body([3])):
        skip = build.gtid_filter.GtidSkip(held("U:1"))
        assert sent_by(skip, cut + follows) == follows


def test_without_markers_a_transaction_is_passed_over_up_to_the_next(build: KernelBuild) -> None:
    first = gtid_event(U[0], 1, 0) + event(30, b"") + event(16, b"")
    second = gtid_event(U[0], 2, 0) + event(30, b"") + event(16, b"")
    skip = build.gtid_filter.GtidSkip(held("U:1"))
    assert sent_by(skip, first + second + first + ROTATE) == second + ROTATE


def test_many_holes_are_found_in_any_order(build: KernelBuild) -> None:
    text = "U:" + ":".join(f"{number}-{number + 1}" for number in range(1, 3000, 3))
    skip = build.gtid_filter.GtidSkip(held(text))
    order = [1, 2, 3, 2999, 3000, 1500, 1501, 4, 5, 6, 7, 2, 2990, 3001, 9000, 1]
    for number in order:
        data = gtid_event(U[0], number) + body([2])
        assert (sent_by(skip, data) == b"") == (number % 3 != 0 and number < 3000), number


def test_more_may_be_held_later_of_other_sources_and_of_the_same(build: KernelBuild) -> None:
    skip = build.gtid_filter.GtidSkip(held("U:1-2"))
    many = {number.to_bytes(16, "big"): held("U:1")[U[0]] for number in range(1, 100)}
    skip.hold(many)
    skip.hold({(7).to_bytes(16, "big"): held("U:5")[U[0]]})
    passed = [(U[0], 2), ((99).to_bytes(16, "big"), 1), ((7).to_bytes(16, "big"), 5)]
    for key, number in [*passed, (U[0], 3), ((7).to_bytes(16, "big"), 1), ((100).to_bytes(16, "big"), 1)]:
        data = gtid_event(key, number) + body([2])
        assert (sent_by(skip, data) == b"") == ((key, number) in passed), (key, number)


def test_what_was_begun_is_forgotten_at_another_place(build: KernelBuild) -> None:
    skip = build.gtid_filter.GtidSkip(held("U:1"))
    assert sent_by(skip, gtid_event(U[0], 1)) == b""
    skip.begin()
    assert sent_by(skip, event(30, b"", INSIDE)) == event(30, b"", INSIDE)


@pytest.mark.parametrize("bad", [struct.pack("<IBIIIH", 7, 30, 1, 18, 0, 0), event(33, bytes(20)), gtid_event(U[0], 0)])
def test_bytes_that_are_no_event_are_an_error_where_they_stand(build: KernelBuild, bad: bytes) -> None:
    skip = build.gtid_filter.GtidSkip(held("U:1"))
    data = ROTATE + bad
    assert skip.next_range(data, 0, len(data)) == len(ROTATE)
    with pytest.raises(ValueError, match=f"no event at input offset {len(ROTATE)}"):
        skip.next_range(data, len(ROTATE), len(data))
    assert skip.problem is not None


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (3, 2), (0, 5)])
def test_a_range_outside_of_the_input_is_an_index_error(build: KernelBuild, start: int, stop: int) -> None:
    with pytest.raises(IndexError):
        build.gtid_filter.GtidSkip().next_range(bytes(4), start, stop)


def test_a_key_that_is_too_long_is_not_taken(build: KernelBuild) -> None:
    with pytest.raises(ValueError, match="49 bytes"):
        build.gtid_filter.GtidSkip({bytes(49): bytes(16)})
