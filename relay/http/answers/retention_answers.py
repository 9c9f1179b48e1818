"""The actions of [retention], and the obstacles to its limits: as metrics, and as JSON."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from relay.retention.decision import HeldBack, Limit
from relay.retention.retention_status import RetentionStatus
from relay.retention.retention_texts import advice, who_text

Samples = list[tuple[tuple[str, ...], float]]
_MIRROR: Final = "mirror"


def retention_samples(status: RetentionStatus, views: Iterable[str]) -> Iterator[tuple[str, Samples]]:
    """Yield the samples by the names of their families. views: those of relay.toml, whose counters begin at zero."""
    yield "retention_on", [((), float(status.is_on))]
    yield "retention_last_pass_timestamp_seconds", [((), status.last_pass)] if status.last_pass else []
    none = {(name, limit.value): 0 for name in ("", *views) for limit in Limit}
    yield "retention_removed_files_total", _by_archive((none | status.removed_files).items())
    yield "retention_removed_bytes_total", _by_archive((none | status.removed_bytes).items())
    yield "retention_held_back_bytes", _by_archive(_held_back_bytes(status.held_back).items())
    yield "retention_missing_bytes", [((), float(status.missing_bytes))]
    yield "retention_failures_total", [((), float(status.failures))]
    states = {
        "connected": status.known_replicas - status.away_replicas,
        "away": status.away_replicas - status.forgotten_replicas,
        "forgotten": status.forgotten_replicas,
    }
    yield "retention_replicas", [((state,), float(count)) for state, count in states.items()]


def retention(status: RetentionStatus) -> dict[str, Any]:
    """Return the answer for /api/v1/. archive: null is the mirror, else a view's name."""
    return {
        "is_on": status.is_on,
        "limits": dict(status.limits),
        "last_pass_at": status.last_pass or None,
        "removed": [
            {"archive": name or None, "limit": limit, "files": files, "bytes": status.removed_bytes[name, limit]}
            for (name, limit), files in status.removed_files.items()
        ],
        "held_back": [_held_back(one) for one in status.held_back],
        "missing_bytes": status.missing_bytes,
        "failures": status.failures,
        "failure": status.failure or None,
        "known_replicas": status.known_replicas,
        "away_replicas": status.away_replicas,
        "forgotten_replicas": status.forgotten_replicas,
        "left_behind": status.left_behind,
        "clock_ahead_s": status.clock_ahead_s,
    }


def _held_back(one: HeldBack) -> dict[str, Any]:
    return {
        "archive": one.archive or None,
        "limit": one.limit.value,
        "kept_by": one.hold.kind.value,
        "who": who_text(one),
        "file": one.file,
        "files": one.files,
        "bytes": one.size_bytes,
        "missing_bytes": one.missing_bytes,
        "advice": advice(one),
    }


def _held_back_bytes(held_back: Iterable[HeldBack]) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    for one in held_back:
        key = (one.archive, one.limit.value, one.hold.kind.value)
        found[key] = max(found.get(key, 0), one.size_bytes)
    return found


def _by_archive(values: Iterable[tuple[tuple[str, ...], int]]) -> Samples:
    """Return the samples with a name for the mirror. For a view that has that name the larger value is shown: labels must not come
    twice."""
    named: dict[tuple[str, ...], float] = {}
    for (archive, *labels), value in values:
        key = (archive or _MIRROR, *labels)
        named[key] = max(named.get(key, 0.0), float(value))
    return list(named.items())
