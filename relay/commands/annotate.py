"""Adds each event's boundary to the output of stock mysqlbinlog, as comment lines.

Output of mysqlbinlog is SQL that people pipe into a server, so a line may only be added where a comment is one: behind a
`# at N` line that really is mysqlbinlog's. It is when N is the offset of an event behind the last one seen, and the next
line is that event's header comment with its end_log_pos. A statement's text may hold such lines too; one would have to
foretell the binlog's own offsets to be taken for them.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from protocol.binlog.boundary import BoundaryType, Violation
from protocol.binlog.event_type import event_type_name
from relay.commands.binlog_scan import INFO_BOUNDARY, INFO_VIOLATION, BinlogScan, Broken

_AT: Final = re.compile(r"# at (\d{1,20})\n?")
_HEADER: Final = re.compile(r"#\d{6} [ \d]\d:\d\d:\d\d server id \d+  end_log_pos (\d+)\b")


class Boundaries:
    """Offset, end and boundary of every event of a binlog; 17 bytes an event. Raises: Unreadable."""

    def __init__(self, path: Path) -> None:
        self.offsets = array("Q")
        self.log_positions = array("Q")
        self.kinds = array("B")
        self.warnings: dict[int, str] = {}
        self.broken: Broken | None = None
        with BinlogScan(path) as scan:
            state, previous = BoundaryType.NOT_DEFINED, "the beginning"
            for chunk in scan.chunks():
                offsets, _, types, _, _, _, log_positions, infos = chunk.columns()
                self.offsets.extend(offsets)
                self.log_positions.extend(log_positions)
                self.kinds.extend([info & INFO_BOUNDARY for info in infos])
                for offset, kind, info in zip(offsets, types, infos, strict=True):
                    boundary = BoundaryType(info & INFO_BOUNDARY)
                    if info & INFO_VIOLATION:
                        text = Violation(state, boundary)
                        self.warnings[offset] = f"{text} {event_type_name(kind)} at {offset} after {previous}"
                    if boundary not in (BoundaryType.IGNORE, BoundaryType.NOT_DEFINED):
                        state, previous = boundary, f"{event_type_name(kind)} at {offset}"
            self.broken = scan.broken

    def find(self, offset: int, start: int) -> int:
        """The number of the event at `offset`, looked for from event `start` on; -1: there is none."""
        place = bisect_left(self.offsets, offset, start)
        return place if place < len(self.offsets) and self.offsets[place] == offset else -1

    def holds(self, offset: int, log_position: int) -> bool:
        """There is an event at `offset`, with this end_log_pos."""
        place = self.find(offset, 0)
        return place >= 0 and self.log_positions[place] == log_position


@dataclass(slots=True)
class Tally:
    """How many events mysqlbinlog printed, and how many of those are not in the binlog it is compared with."""

    printed: int = 0
    foreign: int = 0


def annotated(lines: Iterable[str], boundaries: Boundaries, tally: Tally | None = None) -> Iterator[str]:
    """The lines with a comment line behind each `# at N` line of mysqlbinlog's. What it saw is counted in `tally`.

    An `# at N` with a header comment counts as printed; it is foreign when N is no event's offset, or another end_log_pos
    follows. Text within a statement that looks like both lines cannot be told from a foreign event and counts as one.
    """
    tally = Tally() if tally is None else tally
    following = 0
    first: re.Match[str] | None = None
    at: re.Match[str] | None = None
    for line in lines:
        if at is not None:
            header = _HEADER.match(line)
            if header is not None:
                offset, end = int(at[1]), int(header[1])
                place = boundaries.find(offset, following)
                known = place >= 0 and boundaries.log_positions[place] == end
                # A server that mysqlbinlog reads from makes up a Rotate and a Format_description, with end_log_pos 0.
                if known or end:
                    tally.printed += 1
                # Header comments of a statement's row events may be held back until its last event: first come their
                # `# at` lines, one behind the other, then the headers in the same order.
                held_back = not known and first is not None and boundaries.holds(int(first[1]), end)
                if known:
                    if offset in boundaries.warnings:
                        yield f"# WARNING: {boundaries.warnings[offset]}\n"
                    yield f"# boundary: {BoundaryType(boundaries.kinds[place]).label}\n"
                    following = place + 1
                elif end and not held_back:
                    tally.foreign += 1
        at = _AT.fullmatch(line)
        first = None if at is None else first or at
        yield line


def annotate(path: Path, source: TextIO, target: TextIO) -> tuple[int, Tally, Broken | None]:
    """Copies `source` to `target` with the boundaries of `path`.

    Returns the violations, what mysqlbinlog printed, and where the file breaks off. Raises: Unreadable.
    """
    boundaries, tally = Boundaries(path), Tally()
    target.writelines(annotated(source, boundaries, tally))
    return len(boundaries.warnings), tally, boundaries.broken
