"""Parts of a group that belong together, in little memory for any number: those that are left out, those that may be in one transaction
of the view, and the events of that."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from relay.view.rules.group import Copy, GroupEvent, New
from relay.view.rules.group_parts import GroupPart, PartKind
from relay.view.stops import transaction_stops

MOST_RANGES: Final = 100_000
MOST_TRANSACTIONS: Final = 100_000
"""The most transactions that one group becomes: they take some 50 MB of memory."""
MOST_BYTES: Final = 96 << 20
"""The most bytes in memory for a group in translation."""
_OF_A_COPY, _OF_AN_EVENT = 150, 250
"""The bytes in memory of a copy, and of an event without its body."""
_CHANGES: Final = (PartKind.STATEMENT, PartKind.ROWS)


class PartRanges:
    """Places [start, stop) of a group, each added after those before it, or over them."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, place: int) -> bool:
        at = bisect_right(self._starts, place) - 1
        return at >= 0 and place < self._stops[at]

    def add(self, start: int, stop: int) -> None:
        """Add [start, stop), merged with those in it or that end where it begins. Raises: Untranslatable where there are too many."""
        while self._starts and self._starts[-1] >= start:
            self._starts.pop()
            self._stops.pop()
        if self._stops and self._stops[-1] >= start:
            self._stops[-1] = stop
            return
        if len(self._starts) >= MOST_RANGES:
            raise transaction_stops.too_large(
                f"more than {MOST_RANGES} stretches of it were rolled back or are left out"
            )
        self._starts.append(start)
        self._stops.append(stop)


@dataclass(slots=True)
class _Stretch:
    """The parts up to a statement that commits. `splits`: some are alone because of their tables; savepoints are removed then."""

    splits: bool = False


@dataclass(slots=True)
class SubTransaction:
    """Adjacent parts, in [start, stop) of the file. `last` is the last event, `last_change` that of the last change. `is_statement`:
    its last part is one. `commits`: that commits by itself."""

    start: int
    stop: int
    last: GroupEvent
    last_change: GroupEvent
    is_statement: bool
    stretch: _Stretch
    commits: bool = False
    parts: int = 0
    changes: int = 0

    @property
    def size(self) -> int:
        """The number of its parts that are kept."""
        return self.changes if self.stretch.splits else self.parts

    @property
    def ends_with(self) -> GroupEvent:
        """The last event that is kept."""
        return self.last_change if self.stretch.splits else self.last

    def takes(self, part: GroupPart) -> bool:
        """Return whether a part of [start, stop) is kept. Savepoints of a split stretch are not: what was undone is already removed,
        and after a table without transactions they are refused (1837)."""
        return part.kind in _CHANGES or not self.stretch.splits


class PartRuns:
    """Runs of parts as they are collected. `parts` counts those of all runs."""

    def __init__(self) -> None:
        self.all: list[SubTransaction] = []
        self.parts = 0
        self._stretch = _Stretch()
        self._open = False

    def add(self, part: GroupPart) -> None:
        """Add a part that may be with those before it. Raises: Untranslatable."""
        if not self._open:
            self._begin(part)
            self._open = True
        run = self.all[-1]
        run.stop, run.last = part.stop, part.event
        run.parts += 1
        self.parts += 1
        if part.kind in _CHANGES:
            run.changes += 1
            run.last_change = part.event
            run.is_statement = part.query is not None

    def add_alone(self, part: GroupPart, *, commits: bool = False) -> None:
        """Add a part that is alone: it commits by itself, or must be separated from the others. Raises: Untranslatable."""
        self._open = False
        self.add(part)
        self._open = False
        if commits:
            self.all[-1].commits = True
            self._stretch = _Stretch()
        else:
            self._stretch.splits = True

    def _begin(self, part: GroupPart) -> None:
        if len(self.all) >= MOST_TRANSACTIONS:
            raise transaction_stops.too_large(f"it would become more than {MOST_TRANSACTIONS} transactions")
        self.all.append(
            SubTransaction(part.start, part.stop, part.event, part.event, part.query is not None, self._stretch)
        )


class Pieces:
    """The content of a transaction of the view; adjacent copies are merged. `held` counts the bytes in memory, those of others too."""

    def __init__(self, held: int = 0) -> None:
        self.all: list[Copy | New] = []
        self.held = held

    def extend(self, pieces: Iterable[Copy | New]) -> None:
        """Add the following pieces. Raises: Untranslatable."""
        for piece in pieces:
            self.add(piece)

    def copy(self, start: int, stop: int) -> None:
        """Add what the source has at [start, stop), which may be empty. Raises: Untranslatable."""
        if start < stop:
            self.add(Copy(start, stop))

    def add(self, piece: Copy | New) -> None:
        """Add the next piece. Raises: Untranslatable."""
        if isinstance(piece, New):
            self.held += _OF_AN_EVENT + len(piece.body)
        else:
            last = self.all[-1] if self.all else None
            if isinstance(last, Copy) and last.stop == piece.start:
                self.all[-1] = Copy(last.start, piece.stop)
                return
            self.held += _OF_A_COPY
        if self.held > MOST_BYTES:
            raise transaction_stops.too_large(f"more than {MOST_BYTES >> 20} MiB of it would have to be written again")
        self.all.append(piece)
