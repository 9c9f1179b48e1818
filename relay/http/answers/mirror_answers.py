"""The lag of the bucket, compared with the archive: as metrics, and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from relay.mirror.mirror_status import MirrorStatus

Samples = list[tuple[tuple[str, ...], float]]
_NAMES: Final = {
    "mirror_lag_bytes": "lag_bytes",
    "mirror_lag_seconds": "lag_s",
    "mirror_copied_files_total": "files",
    "mirror_copied_parts_total": "parts",
    "mirror_left_out_files": "left_out_files",
    "mirror_lost_files_total": "lost_files",
    "mirror_failures_total": "failures",
    "mirror_written_bytes_total": "bytes_written",
}


def mirror_samples(status: MirrorStatus | None) -> Iterator[tuple[str, Samples]]:
    """Yield the samples by the names of their families. None: nothing is copied, and there is no sample."""
    yield "mirror_up", [] if status is None else [((), float(status.state == "following"))]
    for name, field in _NAMES.items():
        yield name, [] if status is None else [((), float(getattr(status, field)))]


def mirror(status: MirrorStatus | None) -> dict[str, Any]:
    """Return the answer for /api/v1/."""
    if status is None:
        status = MirrorStatus("", "off", 0, 0.0, 0, 0, 0, 0, "", 0, 0)
    return {**asdict(status), "trouble": status.trouble or None}
