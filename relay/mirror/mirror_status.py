"""The lag of the bucket, compared with the archive, for people and monitors."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """url: of the bucket, without secrets. state: starting, following, behind (an attempt failed), refused (it does not copy any
    more).

    lag_bytes: published in the archive and not in the bucket; lag_s: the age of the oldest such bytes, 0: there are none. files,
    parts: that were copied since the start; failures: attempts that failed. trouble: the sentence of the last one, or about what is
    left out, empty: none. left_out_files: binlogs that are not copied because they are not what was archived. lost_files: that were
    purged before they were copied, since the start. manifest: the number of the bucket's manifest; 0: it is not known yet.
    """

    url: str
    state: str
    lag_bytes: int
    lag_s: float
    files: int
    parts: int
    failures: int
    bytes_written: int
    trouble: str
    left_out_files: int
    lost_files: int
    manifest: int = 0
