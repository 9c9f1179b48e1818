"""The check whether a replica may start at an offset, and of what is around it."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import RelayError
from relay.archive.storage.boundary_index import BoundaryIndex, IndexRecord, index_path
from relay.archive.storage.files import FileLayer, StoredFile
from relay.archive.storage.scan import events_with_groups
from relay.binlog_file.event_places import event_around


class Verdict(Enum):
    """The kinds of offsets."""

    BOUNDARY = "boundary"
    INSIDE_TRANSACTION = "inside transaction"
    """An event's start, inside a group."""
    INSIDE_EVENT = "inside event"
    BEFORE_START = "before start"
    """An offset below 4, inside the magic."""
    PAST_END = "past end"
    """An offset after the end of a sealed file."""
    UNKNOWN_FILE = "unknown file"
    FUTURE = "future"
    """An offset after the archive's end in the newest file, or in the next file: the source may have it, the relay does not yet."""


@dataclass(frozen=True, slots=True)
class PositionCheck:
    """A verdict with the nearest valid offsets around it (same file) and the range of the enclosing group.

    `group` is (start, end); its end is None if the source's crash left the group without one. For INSIDE_EVENT it is given when the
    event belongs to a group. `before` and `after` are None if there are none.
    """

    verdict: Verdict
    before: int | None
    after: int | None
    group: tuple[int, int | None] | None


class IndexUnusable(RelayError):
    """NAME.idx is missing, or does not fit its file, and must be rebuilt."""


_NOTHING_BELOW: Final = PositionCheck(Verdict.BEFORE_START, None, FIRST_EVENT, None)


def check_offset(layer: FileLayer, path: Path, end: int, cut: bool, offset: int) -> PositionCheck:
    """Check `offset` in a file readable up to `end` (a boundary, or the end of a `cut` group). Blocking.

    It costs a binary search in NAME.idx and a scan of at most one index gap. Raises: IndexUnusable; OSError. Verdicts here: BOUNDARY,
    INSIDE_TRANSACTION, INSIDE_EVENT, BEFORE_START, PAST_END.
    """
    if offset < FIRST_EVENT:
        return _NOTHING_BELOW
    if offset > end:
        return PositionCheck(Verdict.PAST_END, end, None, None)
    if offset in (FIRST_EVENT, end):
        return PositionCheck(Verdict.BOUNDARY, offset, offset, None)
    try:
        idx_fd = layer.open_read(index_path(path))
    except FileNotFoundError as error:
        raise IndexUnusable(f"{path.name}: the boundary index is missing") from error
    try:
        with StoredFile.open(layer, path) as stored:
            return _Lookup(stored, BoundaryIndex(layer, idx_fd), end, cut).check(offset)
    except (ValueError, IndexError) as error:
        raise IndexUnusable(f"{path.name}: the boundary index does not fit the file: {error}") from error
    finally:
        layer.close(idx_fd)


class _Lookup:
    def __init__(self, stored: StoredFile, index: BoundaryIndex, end: int, cut: bool) -> None:
        self._stored = stored
        self._index = index
        self._end = end
        self._cut = cut

    def check(self, offset: int) -> PositionCheck:
        number = self._index.last_at_or_before(offset)
        if number < 0:
            raise ValueError(f"it has no record at or before {offset}")
        record = self._index.record(number)
        if not record.plausible or record.offset > offset:
            raise ValueError(f"the record for {record.offset} is damaged")
        if record.at_boundary:
            return self._check_from_boundary(number, record, offset)
        start, _ = event_around(self._stored, record.offset, offset, self._end)
        return self._inside(offset == start, (record.group_start, self._group_end(record.group_start, number)))

    def _check_from_boundary(self, number: int, record: IndexRecord, offset: int) -> PositionCheck:
        if record.offset == offset:
            return PositionCheck(Verdict.BOUNDARY, offset, offset, None)
        following = self._index.record(number + 1).offset if number + 1 < self._index.count else self._end
        gap_end = min(following, self._end)
        boundary = record.offset
        hit: tuple[int, int] | None = None
        group: int | None = None
        """The start of the group that contains the event at `offset`, if one does."""
        for place in events_with_groups(self._stored, record.offset, gap_end):
            if hit is None and place.start <= offset < place.end:
                hit = (place.start, place.end)
                if boundary == offset:
                    return PositionCheck(Verdict.BOUNDARY, offset, offset, None)
                group = boundary
            if not place.in_group_after:
                if hit is not None:
                    if group == hit[0] and place.end == hit[1]:
                        # An event that is a whole group, or none of one: no transaction to name.
                        return PositionCheck(Verdict.INSIDE_EVENT, boundary, place.end, None)
                    return self._inside(offset == hit[0], (boundary, place.end))
                boundary = place.end
        if hit is None:
            raise ValueError(f"no event at {offset}")
        return self._inside(offset == hit[0], (boundary, self._group_end(boundary, number + 1)))

    def _group_end(self, group_start: int, number: int) -> int | None:
        after = self._index.first_after_group(group_start, number)
        if after is None or after.offset >= self._end:
            return None if self._cut else self._end
        return after.offset

    def _inside(self, at_event: bool, group: tuple[int, int | None]) -> PositionCheck:
        verdict = Verdict.INSIDE_TRANSACTION if at_event else Verdict.INSIDE_EVENT
        # A group without an end is followed by the end of the file, from where a replica goes to the next one.
        after = group[1] if group[1] is not None else self._end
        return PositionCheck(verdict, group[0], after, group)
