"""The lag of the bucket, compared with the archive, for people and monitors."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """The state of the copy in the bucket."""

    url: str
    """The bucket's URL, without secrets."""
    state: str
    """The state: starting, following, behind (an attempt failed), refused (it no longer copies)."""
    lag_bytes: int
    """The bytes that are published in the archive and not in the bucket."""
    lag_s: float
    """The age of the oldest such bytes; 0 if there are none."""
    files: int
    parts: int
    """The number of parts that were copied since the start."""
    failures: int
    """The attempts that failed."""
    bytes_written: int
    trouble: str
    """The sentence of the last failure, or about what is left out; empty if there is none."""
    left_out_files: int
    """The binlogs that are not copied because they are not what was archived."""
    lost_files: int
    """The binlogs that were purged before they were copied, since the start."""
    manifest: int = 0
    """The number of the bucket's manifest; 0 if it is not known yet."""
