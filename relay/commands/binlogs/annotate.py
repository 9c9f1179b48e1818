"""Adds each event's boundary to the output of stock mysqlbinlog, as comment lines.

Output of mysqlbinlog is SQL that people pipe into a server, so a line may only be added where a comment is one: after a `# at N` line
that really is mysqlbinlog's. It is when N is the offset of an event after the last one seen, and the next line is that event's header
comment with its end_log_pos. A statement's text may contain such lines too; they would have to predict the binlog's own offsets to be
taken for them.
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
from protocol.kernel.codes import INFO_BOUNDARY, INFO_VIOLATION
from relay.binlog_file.broken import Broken
from relay.commands.binlogs.named_scan import scan_of

_AT: Final = re.compile(r"# at (\d{1,20})\n?")
_HEADER: Final = re.compile(r"#\d{6} [ \d]\d:\d\d:\d\d server id \d+  end_log_pos (\d+)\b")


class Boundaries:
    """The offset, end and boundary of every event of a binlog; 17 bytes an event. Raises: Unreadable."""

    def __init__(self, path: Path) -> None:
        self.offsets = array("Q")
        self.log_positions = array("Q")
        self.kinds = array("B")
        self.warnings: dict[int, str] = {}
        self.broken: Broken | None = None
        with scan_of(path) as scan:
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
        """Return the number of the event at `offset`, looked for from event `start` on; -1: there is none."""
        place = bisect_left(self.offsets, offset, start)
        return place if place < len(self.offsets) and self.offsets[place] == offset else -1


@dataclass(slots=True)
class Tally:
    """The number of events that mysqlbinlog printed, and of those that are not in the binlog it is compared with."""

    printed: int = 0
    foreign: int = 0


def annotated(lines: Iterable[str], boundaries: Boundaries, tally: Tally | None = None) -> Iterator[str]:
    """Yield the lines with a comment line after each `# at N` line of mysqlbinlog's. `tally` counts the events.

    An `# at N` with a header comment counts as printed; it is foreign when N is no event's offset, or another end_log_pos follows.
    Text within a statement that looks like both lines cannot be distinguished from a foreign event and counts as one.
    """
    tally = Tally() if tally is None else tally
    following = 0
    # Headers of a statement's row events may be held back until its last one: first come their `# at` lines, one after the other,
    # then the headers in the same order.
    held: list[tuple[str, int]] = []
    for line in lines:
        at = _AT.fullmatch(line)
        if at is not None:
            held.append((line, int(at[1])))
            continue
        if held:
            header = _HEADER.match(line)
            places = _places(boundaries, [offset for _, offset in held], following, header)
            for number, (at_line, _) in enumerate(held):
                yield at_line
                if places:
                    place = places[number]
                    offset = boundaries.offsets[place]
                    if offset in boundaries.warnings:
                        yield f"# WARNING: {boundaries.warnings[offset]}\n"
                    yield f"# boundary: {BoundaryType(boundaries.kinds[place]).label}\n"
                    following = place + 1
            # A server that mysqlbinlog reads from generates a Rotate and a Format_description, with end_log_pos 0.
            if header is not None and (places or int(header[1])):
                tally.printed += len(held)
                tally.foreign += 0 if places else len(held)
            held.clear()
        yield line
    for at_line, _ in held:
        yield at_line


def _places(boundaries: Boundaries, offsets: list[int], start: int, header: re.Match[str] | None) -> list[int]:
    """Return the numbers of the events at these offsets; none unless all are there in order and `header` is the first one's."""
    places: list[int] = []
    for offset in offsets:
        place = boundaries.find(offset, start)
        if place < 0:
            return []
        places.append(place)
        start = place + 1
    if header is None or int(header[1]) != boundaries.log_positions[places[0]]:
        return []
    return places


def annotate(path: Path, source: TextIO, target: TextIO) -> tuple[int, Tally, Broken | None]:
    """Copy `source` to `target` with the boundaries of `path`.

    Return the violations, what mysqlbinlog printed, and where the file breaks off. Raises: Unreadable.
    """
    boundaries, tally = Boundaries(path), Tally()
    target.writelines(annotated(source, boundaries, tally))
    return len(boundaries.warnings), tally, boundaries.broken
