"""The moves of [archive.tiers], and what it waits for: as metrics, and as JSON."""

from collections.abc import Iterator
from typing import Any, Final

from relay.archive.storage.storage_location import Tier
from relay.http.answers.frame_answers import frames
from relay.packed_reads.frame_counts import FrameFacts
from relay.tiers.tier_status import TierStatus

Samples = list[tuple[tuple[str, ...], float]]
_TO: Final = (Tier.COLD, Tier.OBJECT)
_COUNTED: Final = {
    "bucket_requests_total": "requests",
    "bucket_retries_total": "retries",
    "bucket_failures_total": "failures",
    "bucket_read_bytes_total": "bytes_read",
    "bucket_written_bytes_total": "bytes_written",
}


def tier_samples(status: TierStatus | None) -> Iterator[tuple[str, Samples]]:
    """Yield the samples by the names of their families. None: nothing moves, and there is no sample."""
    by_tier = {} if status is None else {"files": status.files, "bytes": status.plain_bytes}
    yield "tier_files", _by(by_tier.get("files", {}))
    yield "tier_bytes", _by(by_tier.get("bytes", {}))
    yield "tier_stored_bytes", _by({} if status is None else status.stored_bytes)
    yield "tier_moved_files_total", _by({} if status is None else {to: status.moved_files[to] for to in _TO})
    yield "tier_moved_bytes_total", _by({} if status is None else {to: status.moved_bytes[to] for to in _TO})
    yield "tier_waiting_files", [] if status is None else [((), float(status.waiting_files))]
    yield "tier_purged_files_in_bucket", [] if status is None else [((), float(status.gone_files))]
    yield "tier_failures_total", [] if status is None else [((), float(status.failures))]
    failing = status is not None and status.bucket is not None
    yield "bucket_failing", [((), float(bool(status.bucket_failing_since)))] if failing and status is not None else []
    for name, counted in _COUNTED.items():
        bucket = None if status is None else status.bucket
        yield name, [] if bucket is None else [((), float(getattr(bucket, counted)))]


def tiers(status: TierStatus | None, reads: FrameFacts | None = None) -> dict[str, Any]:
    """Return the answer for /api/v1/."""
    if status is None:
        status = TierStatus(state="off")
    return {
        "state": status.state,
        "last_pass_at": status.last_pass or None,
        "tiers": [
            {
                "tier": tier,
                "files": count,
                "bytes": status.plain_bytes.get(tier, 0),
                "stored_bytes": status.stored_bytes.get(tier, 0),
            }
            for tier, count in status.files.items()
        ],
        "moved": [
            {"tier": str(to), "files": status.moved_files[to], "bytes": status.moved_bytes[to]}
            for to in _TO
            if status.moved_files[to]
        ],
        "waiting_files": status.waiting_files,
        "purged_files_in_bucket": status.gone_files,
        "failures": status.failures,
        "failure": status.failure or None,
        "bucket_failing_since": status.bucket_failing_since or None,
        "read_cache": frames(reads),
    }


def _by(values: dict[Any, int]) -> Samples:
    return [((str(tier),), float(value)) for tier, value in values.items()]
