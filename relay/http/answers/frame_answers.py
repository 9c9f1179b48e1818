"""The reading of packed binlogs as metrics and JSON: what is kept in memory, what was fetched for it, and whether the bucket
answers."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from relay.packed_reads.frame_counts import ERROR_KINDS, FROM_BUCKET, FROM_DISK, FrameFacts

Samples = list[tuple[tuple[str, ...], float]]
_NUMBERS: Final = {
    "read_cache_limit_bytes": "limit_bytes",
    "read_cache_bytes": "used_bytes",
    "read_cache_hits_total": "hits",
    "read_cache_shared_total": "shared",
    "read_cache_misses_total": "misses",
    "read_cache_evictions_total": "evictions",
    "read_cache_fetches_in_progress": "in_progress",
    "read_cache_waiting": "waiting",
}
_BY_PLACE: Final = {"read_cache_fetches_total": "fetches", "read_cache_fetched_bytes_total": "fetched_bytes"}
_OF_BUCKET: Final = {"bucket_away_times_total": "times_away", "bucket_requests_spared_total": "told_at_once"}


def frame_samples(facts: FrameFacts | None) -> Iterator[tuple[str, Samples]]:
    """Yield the samples by the names of their families. None: relay.toml packs nothing, and there is no sample."""
    for name, field in _NUMBERS.items():
        yield name, [] if facts is None else [((), float(getattr(facts, field)))]
    for name, field in _BY_PLACE.items():
        yield name, [] if facts is None else _by(getattr(facts, field), (FROM_BUCKET, FROM_DISK))
    yield "read_cache_errors_total", [] if facts is None else _by(facts.errors, ERROR_KINDS)
    bucket = facts if facts is not None and facts.has_bucket else None
    yield "bucket_away", [] if bucket is None else [((), float(bool(bucket.bucket_away_since)))]
    for name, field in _OF_BUCKET.items():
        yield name, [] if bucket is None else [((), float(getattr(bucket, field)))]


def frames(facts: FrameFacts | None) -> dict[str, Any] | None:
    """Return the answer for /api/v1/tiers. None: relay.toml packs nothing."""
    if facts is None:
        return None
    return {
        **{field: getattr(facts, field) for field in _NUMBERS.values()},
        "fetched": [
            {"source": place, "fetches": facts.fetches.get(place, 0), "bytes": facts.fetched_bytes.get(place, 0)}
            for place in (FROM_BUCKET, FROM_DISK)
        ],
        "errors": [{"kind": kind, "count": facts.errors.get(kind, 0)} for kind in ERROR_KINDS],
        "bucket_away_since": facts.bucket_away_since or None,
    }


def _by(values: Mapping[str, int], keys: tuple[str, ...]) -> Samples:
    return [((key,), float(values.get(key, 0))) for key in keys]
