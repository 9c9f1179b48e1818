"""`binlog-relay positions`: the offsets of a binlog from which a replica may start, and why another one is not valid."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from protocol.binlog.boundary import BoundaryType
from protocol.binlog.event_type import event_type_name
from protocol.binlog.layout import MAGIC
from protocol.kernel.codes import INFO_BAD_CHECKSUM, INFO_BOUNDARY, INFO_OPEN
from relay.binlog_file.binlog_scan import BinlogScan, Chunk
from relay.binlog_file.broken import Broken
from relay.commands.binlogs.named_scan import scan_of

_OPENING: Final = (BoundaryType.SELF_CONTAINED, BoundaryType.START)

Progress = Callable[[int], None]


class Standing(Enum):
    """The kinds of places of an offset."""

    VALID = "valid"
    BEFORE_START = "before_start"
    INSIDE_EVENT = "inside_event"
    INSIDE_TRANSACTION = "inside_transaction"
    PAST_END = "past_end"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class PositionReport:
    """The facts about an offset. Ranges are [start, stop) in bytes; a stop of None is not in the file yet.

    before, after: the nearest valid positions. event: the event that the offset is inside of, with its name. group: the transaction
    around the offset.
    """

    file: str
    offset: int
    standing: Standing
    end: int
    before: int | None = None
    after: int | None = None
    event: tuple[int, int, str] | None = None
    group: tuple[int, int | None] | None = None
    broken: Broken | None = None

    @property
    def readable(self) -> bool:
        """True if the file continues, or ends properly, at the offset: nothing can start where it breaks off."""
        return self.broken is None or self.offset < self.broken.offset

    def __str__(self) -> str:
        place = f"{self.file}:{self.offset}"
        if self.standing is Standing.VALID:
            end = ", the end of the file" if self.offset == self.end else ""
            if self.broken is not None and not self.readable:
                end = (
                    f", but the file cannot be read from there on ({self.broken.name}: {self.broken.text.rstrip('.')})"
                )
            return f"{place} is a valid position{end}. {self._nearest()}"
        return f"{place} is not a valid position: {self._why()}. {self._nearest()}"

    def _why(self) -> str:
        if self.standing is Standing.BEFORE_START:
            return "the first event of a binlog is at 4"
        if self.standing is Standing.PAST_END:
            return f"the file ends at {self.end}"
        if self.standing is Standing.UNREADABLE and self.broken is not None:
            return f"the file cannot be read from {self.broken.offset} on ({self.broken.name})"
        parts = []
        if self.event is not None:
            parts.append(f"it is inside the event {self.event[2]} at {self.event[0]}-{self.event[1]}")
        if self.group is not None:
            stop = "an end that is not in this file" if self.group[1] is None else str(self.group[1])
            parts.append(f"{'in' if parts else 'it is inside'} the transaction from {self.group[0]} to {stop}")
        return ", ".join(parts) or "the transaction around it has no start in this file"

    def _nearest(self) -> str:
        before = "none before" if self.before is None else f"{self.before} before"
        after = "none after" if self.after is None else f"{self.after} after"
        return f"Nearest valid positions: {before}, {after}."


@dataclass(frozen=True, slots=True)
class PositionSummary:
    """All valid positions of a file. `open_group`: start of a transaction that the file does not finish.

    `wrong_checksums`: the number of events with one, the first of them at `first_wrong_checksum`.
    """

    file: str
    first: int | None
    last: int | None
    count: int
    end: int
    open_group: int | None
    broken: Broken | None
    wrong_checksums: int = 0
    first_wrong_checksum: int | None = None

    def __str__(self) -> str:
        if self.count == 0:
            text = f"{self.file}: no valid position"
        else:
            text = f"{self.file}: {self.count} valid positions, first {self.first}, last {self.last}, end {self.end}"
        if self.open_group is not None:
            text += f". The transaction that starts at {self.open_group} is not finished"
        if self.broken is not None:
            text += f". {self.broken.name} at {self.broken.offset}: {self.broken.text.rstrip('.')}"
        if self.wrong_checksums:
            events = "1 event has" if self.wrong_checksums == 1 else f"{self.wrong_checksums} events have"
            text += f". {events} a wrong checksum, the first at {self.first_wrong_checksum}"
        return text + "."


def report_position(path: Path, offset: int, on_progress: Progress | None = None) -> PositionReport:
    """Judge `offset` by reading the file up to the next valid position. Raises: Unreadable for what is no binlog."""
    with scan_of(path) as scan:
        return _PositionSearch(scan, offset).run(on_progress)


def valid_positions(
    scan: BinlogScan, on_progress: Progress | None = None, on_wrong_checksum: Callable[[int], None] | None = None
) -> Iterator[int]:
    """Yield every valid position of a file in order, its end included if nothing is open there.

    `on_wrong_checksum` gets the offset of each event that has one.
    """
    open_behind = False
    for chunk in scan.chunks(on_progress):
        offsets, _, _, _, _, _, _, infos = chunk.columns()
        for offset, info in zip(offsets, infos, strict=True):
            if _is_valid(info, open_behind):
                yield offset
            open_behind = bool(info & INFO_OPEN)
            if info & INFO_BAD_CHECKSUM and on_wrong_checksum is not None:
                on_wrong_checksum(offset)
    if on_wrong_checksum is not None:
        for offset in scan.late_damage:
            on_wrong_checksum(offset)
    if not open_behind and scan.stop > len(MAGIC) and not scan.ingest.in_event:
        yield scan.stop


def summarise_positions(
    path: Path, each: Callable[[int], None] | None = None, on_progress: Progress | None = None
) -> PositionSummary:
    """Count the valid positions of a file and pass each to `each`. Raises: Unreadable for what is no binlog."""
    first = last = None
    count = wrong_checksums = 0
    first_wrong: int | None = None

    def note_wrong(offset: int) -> None:
        nonlocal wrong_checksums, first_wrong
        wrong_checksums += 1
        first_wrong = offset if first_wrong is None else min(first_wrong, offset)

    with scan_of(path) as scan:
        for position in valid_positions(scan, on_progress, note_wrong):
            first = position if first is None else first
            last = position
            count += 1
            if each is not None:
                each(position)
        open_group = scan.ingest.group_start if scan.ingest.in_group else None
        return PositionSummary(
            path.name, first, last, count, scan.stop, open_group, scan.broken, wrong_checksums, first_wrong
        )


def _is_valid(info: int, open_behind: bool) -> bool:
    """Return whether an event's start is a place to start from; `open_behind`: the event before it left a transaction open."""
    boundary = info & INFO_BOUNDARY
    return boundary in _OPENING or (boundary == BoundaryType.IGNORE and not open_behind)


class _PositionSearch:
    """One pass that stops at the first valid position after the offset."""

    def __init__(self, scan: BinlogScan, offset: int) -> None:
        self._scan = scan
        self._offset = offset
        self._open_behind = False
        self._before: int | None = None
        self._after: int | None = None
        self._event: tuple[int, int, str] | None = None
        self._valid = False
        self._group_stop: int | None = None
        self._in_group = False

    def run(self, on_progress: Progress | None) -> PositionReport:
        for chunk in self._scan.chunks(on_progress):
            if self._scan.ingest.position < self._offset:
                self._pass_over(chunk)
            elif self._look(chunk):
                break
        else:
            self._finish()
        return self._report()

    def _pass_over(self, chunk: Chunk) -> None:
        """Look from the chunk's end: only the newest valid position before the offset matters."""
        table = chunk.table
        for row in range(chunk.rows - 1, -1, -1):
            open_behind = bool(table[row * 8 - 1] & INFO_OPEN) if row else self._open_behind
            if _is_valid(table[row * 8 + 7], open_behind):
                self._before = table[row * 8]
                break
        self._open_behind = bool(table[chunk.rows * 8 - 1] & INFO_OPEN)

    def _look(self, chunk: Chunk) -> bool:
        """Return True when the first valid position after the offset was found."""
        offsets, lengths, types, _, _, _, _, infos = chunk.columns()
        for at, length, kind, info in zip(offsets, lengths, types, infos, strict=True):
            valid = _is_valid(info, self._open_behind)
            if at > self._offset and valid:
                self._after = at
                return True
            if at == self._offset:
                self._valid = valid
                self._in_group = self._open_behind and not valid
            elif at < self._offset:
                if valid:
                    self._before = at
                if self._offset < at + length:
                    self._event = (at, at + length, event_type_name(kind))
                    self._in_group = bool(info & INFO_OPEN) or (self._open_behind and not valid)
            self._open_behind = bool(info & INFO_OPEN)
            if self._in_group and self._group_stop is None and not self._open_behind:
                self._group_stop = at + length
        return False

    def _finish(self) -> None:
        """Handle the end of the file: it is a valid position if nothing is open there."""
        scan = self._scan
        if self._open_behind or scan.ingest.in_event:
            return
        if scan.stop == self._offset:
            self._valid = True
        elif scan.stop > self._offset:
            self._after = scan.stop
        elif self._before is not None or scan.stop > len(MAGIC):
            self._before = scan.stop

    def _report(self) -> PositionReport:
        scan, offset = self._scan, self._offset
        broken = scan.broken
        end = scan.stop if scan.stop else scan.size
        group = None
        if self._in_group and self._before is not None:
            # Nothing inside a transaction is a valid position, so the newest one before is its start.
            group = (self._before, self._group_stop)
        if offset < len(MAGIC):
            standing = Standing.BEFORE_START
        elif self._valid:
            standing = Standing.VALID
        elif self._event is not None:
            standing = Standing.INSIDE_EVENT
        elif broken is not None and broken.offset <= offset < scan.size:
            standing = Standing.UNREADABLE
        elif scan.stop and offset > scan.stop:
            standing = Standing.PAST_END
        else:
            standing = Standing.INSIDE_TRANSACTION
            if scan.stop == offset and scan.ingest.in_group:
                group = (scan.ingest.group_start, None)
        return PositionReport(
            scan.path.name, offset, standing, end, self._before, self._after, self._event, group, broken
        )
