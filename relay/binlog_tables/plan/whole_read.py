"""The plan of a read that has an end: the splits of files, or between two places."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from protocol.position import Position
from relay.binlog_tables.plan.wanted import Wanted

if TYPE_CHECKING:
    from relay.binlog_tables.plan.splits import Split

SPLIT_BYTES: Final = 128 << 20
ONCE: Final = "once"
EVERY: Final = "every"
EXECUTED: Final = "executed"
OVERLAPS: Final = (ONCE, EVERY, EXECUTED)
"""The treatment of transactions that a later source repeats: those that files contain are read once, all are read, or none that was
executed before."""
# These levels show the files as they are.
OF_FILES: Final = ("events", "findings")
# These columns are offsets: a split has only rows in which they are in its range.
_PLACES: Final = {
    "events": ("position", "end", "transaction"),
    "transactions": ("start", "end"),
    "rows": ("position", "end", "transaction"),
    "statements": ("position", "end", "transaction"),
    "table_maps": ("position", "end", "transaction"),
}


@dataclass(frozen=True, slots=True)
class WholeRead:
    """Paths, which are parts of one source's archive, and the part to read: all by default.

    [start, end) and [since, until) leave out what is outside. With `whole_files` a file is not cut. For `overlap` see OVERLAPS.
    """

    paths: tuple[str, ...]
    level: str
    split_bytes: int = SPLIT_BYTES
    whole_files: bool = False
    overlap: str = ONCE
    start: Position | None = None
    end: Position | None = None
    since: datetime | None = None
    until: datetime | None = None


def splits_of_read(read: WholeRead, wanted: Wanted) -> "list[Split]":
    """Return the splits, in order. Raises: NothingToRead, PositionGone, ReadRefused, OSError."""
    held = None if read.overlap == EVERY or read.level in OF_FILES else read.overlap == ONCE
    splits = _all_of(read, wanted, held) if read.start is None else _from(read, read.start, held)
    for column in _PLACES.get(read.level, ()):
        span = wanted.ranges.get(column)
        if span is not None:
            splits = [split for split in splits if split.findings or span.meets(split.start, split.stop)]
    return splits


def _from(read: WholeRead, start: Position, held: bool | None) -> "list[Split]":
    """Return the splits from a place on; what is written during planning may be included or not."""
    from relay.binlog_tables.plan.places import Places

    places = Places(read.paths)
    places.checked(start, "start")
    end = places.newest(start) if read.end is None else places.checked(read.end, "end")
    return places.between(start, end, read.split_bytes, held=held)


def _all_of(read: WholeRead, wanted: Wanted, held: bool | None) -> "list[Split]":
    # This import takes a tenth of a second, which a process that only names what to read, or reads it, need not spend.
    from relay.binlog_tables.plan.overlap import Overlap
    from relay.binlog_tables.plan.packed_store import store_of
    from relay.binlog_tables.plan.series_files import files_up_to, find_files
    from relay.binlog_tables.plan.splits import plan, written_between

    store = store_of(read.paths[0])
    files = find_files(store, *read.paths)
    if read.end is not None:
        files = files_up_to(store, read.paths[-1], files, read.end.file, read.end.offset)
    overlap = None if held is None else Overlap(store, files, held=held)
    if read.since is not None or read.until is not None:
        since_s = -math.inf if read.since is None else read.since.timestamp()
        until_s = math.inf if read.until is None else read.until.timestamp()
        files = written_between(store, files, since_s, until_s)
    span = wanted.ranges.get("sequence")
    if span is not None:
        files = [file for file in files if span.meets(*file.sequences)]
    return plan(store, files, read.split_bytes, wanted.wants_file, whole_files=read.whole_files, overlap=overlap)
