"""What monitors are told of the read cache: as it is described, and counted as readers come to frames."""

from pathlib import Path

import pytest

from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveUnavailable
from relay.http.answers.frame_answers import frame_samples
from relay.http.answers.metric_families import FAMILIES
from relay.http.answers.openapi import document
from relay.http.answers.tier_answers import tiers
from relay.object_store.object_errors import BucketAway, StoreUnreachable
from relay.packed_reads.frame_counts import FrameFacts
from relay.packed_reads.shared_frames import SharedFrames
from tests.support.described_json import differences
from tests.unit.downstream.test_shared_frames import FRAME, Counted, opened, plain, source  # noqa: F401 - fixtures

READS = {one.name: one.labels for one in FAMILIES if one.part == "Reading packed binlogs"}


def told(facts: FrameFacts | None) -> dict[str, dict[tuple[str, ...], float]]:
    return {name: dict(samples) for name, samples in frame_samples(facts)}


def facts(**changed: object) -> FrameFacts:
    given: dict[str, object] = {
        "limit_bytes": 100,
        "used_bytes": 50,
        "in_progress": 1,
        "waiting": 0,
        "hits": 5,
        "shared": 2,
        "misses": 3,
        "evictions": 1,
        "fetches": {"bucket": 3},
        "fetched_bytes": {"bucket": 700},
        "errors": {"damaged": 1},
        **changed,
    }
    return FrameFacts(**given)  # type: ignore[arg-type]


def test_each_metric_of_the_page_is_told_with_its_labels() -> None:
    samples = told(facts(has_bucket=True, bucket_away_since=1.7e9, times_away=2, told_at_once=40))
    assert samples.keys() == READS.keys()
    for name, values in samples.items():
        assert values and all(len(labels) == len(READS[name]) for labels in values), name
    assert samples["bucket_away"] == {(): 1.0} and samples["bucket_requests_spared_total"] == {(): 40.0}
    assert samples["read_cache_fetched_bytes_total"] == {("bucket",): 700.0, ("disk",): 0.0}


def test_a_relay_without_tiers_and_one_without_a_bucket_tell_nothing_of_them() -> None:
    assert not any(told(None).values())
    without = told(facts())
    assert not without["bucket_away"] and without["read_cache_bytes"] == {(): 50.0}


@pytest.mark.parametrize("given", [None, facts(), facts(has_bucket=True, bucket_away_since=1.7e9)])
def test_the_answer_is_as_it_is_described(given: FrameFacts | None) -> None:
    described = document("1")
    answer = tiers(None, given)
    assert differences(answer, described["components"]["schemas"]["Tiers"], described) == []


def test_hits_misses_shared_downloads_evictions_and_errors_are_counted_as_readers_come(source: Counted) -> None:  # noqa: F811
    shared = SharedFrames(6 * FRAME)
    first, second = opened(source), opened(source)
    table = shared.opened(first).result(10)
    shared.opened(second).result(10)
    source.open.clear()
    coming = shared.coming(first, 3, reads_on=False)
    also = shared.coming(second, 3, reads_on=False)
    assert (shared.facts().in_progress, shared.facts().shared) == (1, 1)
    source.open.set()
    coming.result(10)
    also.result(10)
    for _ in range(4):
        assert shared.at_hand(first, 3) is not None  # it came for this reader: nothing new
    third = opened(source)
    shared.opened(third).result(10)
    assert shared.at_hand(third, 3) is not None
    now = shared.facts()
    assert (now.hits, now.misses, now.shared) == (1, 1, 1)
    assert (now.fetches, now.fetched_bytes) == ({"bucket": 1}, {"bucket": table[3].stored_size})
    for index in range(10, 20):
        shared.coming(first, index, reads_on=False).result(10)
    now = shared.facts()
    assert now.evictions > 0 and now.misses == 11 and now.used_bytes <= 6 * FRAME
    for error, kind, raised in (
        (BucketAway("gone", url="s3://b/k"), "bucket_away", ArchiveUnavailable),
        (StoreUnreachable("503", url="s3://b/k"), "unavailable", ArchiveUnavailable),
        (OSError(5, "Input/output error"), "other", OSError),
    ):
        source.error = error
        with pytest.raises(raised):
            shared.coming(first, 40, reads_on=False).result(10)
        assert shared.facts().errors[kind] == 1
    source.error = None
    data = bytearray(source.read(0, source.size))
    data[table[50].stored_start + 5] ^= 1
    source._data = bytes(data)
    with pytest.raises(ArchiveDamaged):
        shared.coming(first, 50, reads_on=False).result(10)
    assert shared.facts().errors["damaged"] == 1
    shared.close()


def test_who_waits_for_a_frame_when_the_relay_ends_is_told_so(source: Counted, tmp_path: Path) -> None:  # noqa: F811
    shared = SharedFrames(3 * FRAME)
    file = opened(source)
    shared.opened(file).result(10)
    source.open.clear()
    waiting = [shared.coming(file, index, reads_on=True) for index in range(8)]
    shared.close()
    for future in waiting:
        with pytest.raises(ArchiveUnavailable, match="the relay is stopping"):
            future.result(5)
    with pytest.raises(ArchiveUnavailable, match="the relay is stopping"):
        shared.coming(file, 30, reads_on=True).result(5)
    source.open.set()
