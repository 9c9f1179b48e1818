"""The decision of the retention over arbitrary archives: nothing that is held goes, and what goes had a reason."""

from hypothesis import given
from hypothesis import strategies as st

from relay.config.retention_section import RetentionSection
from relay.retention.decision import ArchiveFacts, HeldFile, Hold, HolderKind, Limit, RetentionFacts, decide
from relay.retention.retention_limits import RetentionLimits

LIMITS = RetentionLimits(RetentionSection(keep_at_least="1h"), None, None, None, 0.0, 604800.0)


@st.composite
def archives(draw: st.DrawFn, name: str) -> ArchiveFacts:
    count = draw(st.integers(0, 12))
    times = sorted(draw(st.lists(st.integers(0, 100), min_size=count, max_size=count)))
    sizes = draw(st.lists(st.integers(1, 50), min_size=count, max_size=count))
    split = draw(st.integers(0, count))
    files = [
        HeldFile(1 if number < split else 2, number + 1, f"mysql-bin.{number + 1:06d}", size, float(time))
        for number, (time, size) in enumerate(zip(times, sizes, strict=True))
    ]
    places = st.sampled_from([file.place for file in files] + [(0, 0), (9, 9)])
    kinds = st.sampled_from([HolderKind.READER, HolderKind.REPLICA, HolderKind.VIEW])
    holds = draw(st.lists(st.builds(Hold, kinds, st.just("somebody"), places), max_size=3))
    allowance = draw(st.none() | st.floats(0, 300))
    return ArchiveFacts(name, files, holds, allowance)


@st.composite
def facts(draw: st.DrawFn) -> RetentionFacts:
    parts = [draw(archives("")), *([draw(archives("gtid"))] if draw(st.booleans()) else [])]
    return RetentionFacts(parts, float(draw(st.integers(0, 120))), draw(st.none() | st.integers(0, 400)))


limits = st.builds(
    RetentionLimits,
    st.just(LIMITS.section),
    st.none() | st.integers(0, 100).map(float),
    st.none() | st.integers(0, 400),
    st.none() | st.integers(0, 500),
    st.integers(0, 50).map(float),
    st.just(604800.0),
)


@given(facts(), limits)
def test_only_the_oldest_go_never_the_newest_nor_what_is_held_and_each_for_its_reason(
    facts: RetentionFacts, limits: RetentionLimits
) -> None:
    decision = decide(facts, limits)
    for archive in facts.archives:
        gone = [one for one in decision.removals if one.archive == archive.name]
        assert [one.file for one in gone] == list(archive.files[: len(gone)])
        assert not archive.files or len(gone) < len(archive.files)
        for one in gone:
            assert all(one.file.place < hold.place for hold in archive.holds)
            newest = next((file.time for file in archive.files[archive.files.index(one.file) :] if file.time), 0.0)
            is_young = not newest or newest > facts.now - limits.keep_at_least_s
            assert one.limit is Limit.KEEP_FOR or not limits.keep_at_least_s or not is_young
            if one.limit is Limit.KEEP_FOR:
                assert limits.keep_for_s is not None and 0 < newest < facts.now - limits.keep_for_s
        if limits.keep_bytes is not None and gone and gone[-1].limit is Limit.KEEP_BYTES:
            left = sum(file.size_bytes for file in archive.files[len(gone) - 1 :])
            assert left > limits.keep_bytes, "one file less would have done"


@given(facts(), limits)
def test_a_limit_is_met_or_it_is_said_who_keeps_it_from_that(facts: RetentionFacts, limits: RetentionLimits) -> None:
    decision = decide(facts, limits)
    told = {(one.archive, one.limit) for one in decision.held_back}
    for archive in facts.archives:
        left = list(archive.files[sum(one.archive == archive.name for one in decision.removals) :])
        if limits.keep_bytes is not None and sum(file.size_bytes for file in left) > limits.keep_bytes:
            assert (archive.name, Limit.KEEP_BYTES) in told
        if limits.keep_for_s is not None and archive.age_allowance is None:
            aged = [file for file in left if 0 < file.time < facts.now - limits.keep_for_s]
            assert not aged or left[0] is not aged[0] or (archive.name, Limit.KEEP_FOR) in told
    if limits.min_free_bytes is not None and facts.free_bytes is not None:
        freed = sum(one.file.size_bytes for one in decision.removals)
        is_short = facts.free_bytes + freed < limits.min_free_bytes
        told_short = {one.missing_bytes for one in decision.held_back if one.limit is Limit.MIN_FREE}
        missing = limits.min_free_bytes - facts.free_bytes - freed
        has_files = any(archive.files for archive in facts.archives)
        assert told_short == ({missing} if is_short and has_files else set())
        last = [one for one in decision.removals if one.limit is Limit.MIN_FREE]
        if last:
            assert facts.free_bytes + freed - max(one.file.size_bytes for one in last) < limits.min_free_bytes


@given(facts(), limits)
def test_decided_again_of_what_is_left_nothing_more_goes(facts: RetentionFacts, limits: RetentionLimits) -> None:
    whole = [ArchiveFacts(one.name, one.files, one.holds) for one in facts.archives]
    decision = decide(RetentionFacts(whole, facts.now, facts.free_bytes), limits)
    gone = {(one.archive, one.file.place) for one in decision.removals}
    left = [
        ArchiveFacts(one.name, [file for file in one.files if (one.name, file.place) not in gone], one.holds)
        for one in whole
    ]
    freed = sum(one.file.size_bytes for one in decision.removals)
    free = None if facts.free_bytes is None else facts.free_bytes + freed
    assert decide(RetentionFacts(left, facts.now, free), limits).removals == ()


def test_files_without_a_time_are_as_old_as_the_next_one_that_has_one() -> None:
    files = [
        HeldFile(1, number, f"mysql-bin.{number:06d}", 1, time) for number, time in enumerate([0.0, 0.0, 5.0, 9.0], 1)
    ]
    aged = RetentionLimits(LIMITS.section, 3.0, None, None, 0.0, 604800.0)
    decision = decide(RetentionFacts([ArchiveFacts("", files)], 9.0), aged)
    assert [(one.file.number, one.limit) for one in decision.removals] == [
        (number, Limit.KEEP_FOR) for number in (1, 2, 3)
    ]
    nothing_known = [HeldFile(1, number, f"mysql-bin.{number:06d}", 1, 0.0) for number in (1, 2)]
    assert decide(RetentionFacts([ArchiveFacts("", nothing_known)], 9.0), aged).removals == ()
