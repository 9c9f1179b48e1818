"""Which transactions would wait for which in a view of a source's binlogs that is not made: counted file by file, in any processes.

What becomes of a group hangs on what was defined before it, also in earlier files. So a file is gone over twice, and neither time
has it to wait for those before it. First it is looked where the groups stand that may define something: those that the rules take
apart whatever they know. They alone are gone over in order, which is little; then it is known what holds where each file begins,
and the file is counted from there on, by the code that makes views.
"""

import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Final, NamedTuple, Protocol, TypeVar

from protocol.binlog.layout import FIRST_EVENT, MAGIC
from protocol.position import binlog_number
from relay.binlog_file.broken import Broken
from relay.binlog_file.event_reader import EventReader
from relay.binlog_file.file_bytes import DescriptorBytes
from relay.binlog_file.head import read_start
from relay.schema_history.schema_record import Line, parse_lines
from relay.view.dependencies.definitions_passed import definitions_in
from relay.view.dependencies.planned_tables import NEVER, PlannedTables, shortened, taken_lines
from relay.view.inspect.file_pass import FilePass, LookedAtFile, UnreadPart
from relay.view.rules.group import SourceGroup
from relay.view.rules.settings import ViewSettings
from relay.view.translate.passed_tables import CountedTable
from relay.view.translate.wait_counts import WaitCounts
from relay.view.view_checkpoint import ViewCheckpoint

_AT_ONCE: Final = 256
"""Files of one turn: what holds at the beginning of each is in memory meanwhile."""
_MOST_PARTS: Final = 20_000
"""Of one file; from the last on all of it is gone over."""

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class TaskRunner(Protocol):
    """Runs a function of one argument, perhaps in other processes."""

    def __call__(self, function: Callable[[_Task], _Result], tasks: Sequence[_Task], /) -> Sequence[_Result]:
        """The results, in the tasks' order. Function and tasks can be pickled if the files' `open` can be."""


def run_here(function: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> Sequence[_Result]:
    """One task after the other, in this process."""
    return [function(task) for task in tasks]


@dataclass(slots=True)
class WaitsAhead:
    """waits: of all files that were wanted. unread: what of them was not looked at."""

    waits: WaitCounts = field(default_factory=WaitCounts)
    unread: list[UnreadPart] = field(default_factory=list)


class _BegunFile(NamedTuple):
    """A file and what is known where it begins; begin: the rules' part of it."""

    file: LookedAtFile
    begin: ViewCheckpoint
    sealed: bool


def find_waits(
    files: Sequence[LookedAtFile],
    settings: ViewSettings,
    recorded: Sequence[Line],
    *,
    is_wanted: Callable[[LookedAtFile], bool] = lambda file: True,
    run: TaskRunner = run_here,
) -> WaitsAhead:
    """Of these files of one source, oldest first, as a view with `settings` that begins with them has it; what would stop it is left
    out. The names have numbers, which go up.

    recorded: what the relay recorded of the source's tables. is_wanted: whether a file is counted, or only learned from. Blocking:
    every byte is read twice. Memory: some megabytes, and what is known of tables.
    """
    found = WaitsAhead()
    if not files:
        return found
    learning = _Learning(files[0], settings, recorded)
    for first in range(0, len(files), _AT_ONCE):
        some = files[first : first + _AT_ONCE]
        outlines = run(partial(_outline, learning.settings), [_begun(file, files) for file in some])
        known = learning.begin_turn(some[0])
        begun = []
        for file, parts in zip(some, outlines, strict=True):
            begun.append(_BegunFile(file, learning.rules.begin, file is not files[-1]))
            learning.learn(file, parts)
        tasks = [one for one in begun if is_wanted(one.file)]
        if not tasks:
            continue
        known += learning.tables.unsaved
        for waits, unread in run(partial(_count, settings, "".join(known).encode()), tasks):
            found.waits.add(waits)
            found.unread += [unread] if unread is not None else []
    return found


def _begun(file: LookedAtFile, files: Sequence[LookedAtFile]) -> _BegunFile:
    """Where nothing is known."""
    return _BegunFile(file, ViewCheckpoint.of_view(None), file is not files[-1])


# --- where the groups stand that may define something ---------------------------------------------------------------------


class _TakenApart:
    """PassedTables that note which groups the rules take apart: parts: from, to, from, to …"""

    counted: tuple[CountedTable, ...] = ()

    def __init__(self) -> None:
        self.parts = array("q")

    def move_to(self, _place: tuple[int, int]) -> int:
        """All is the same everywhere."""
        return NEVER

    def plan(self, _table_map: bytes, _id_size: int) -> "array[int]":
        """Nobody looks at rows."""
        raise NotImplementedError  # PassedTables has it for copies that count keys; a pass that only looks ahead asks for no plan

    def pass_group(self, group: SourceGroup) -> bool:
        """Notes the group."""
        parts = self.parts
        if parts and (parts[-1] == group.start or len(parts) >= 2 * _MOST_PARTS):
            parts[-1] = group.stop
        else:
            parts.extend((group.start, group.stop))
        return False


def _outline(settings: ViewSettings, task: _BegunFile) -> "array[int]":
    """The parts of a file in which something may be defined."""
    tables = _TakenApart()
    FilePass(settings, task.begin).go_over(replace(task.file, tables=tables), sealed=task.sealed)
    return tables.parts


# --- what they define --------------------------------------------------------------------------------------------------------


class _Learning:
    """Goes over the outlines of files, in their order. rules: the pass; `begin` is where the next file begins. tables: the source's."""

    def __init__(self, first: LookedAtFile, settings: ViewSettings, recorded: Sequence[Line]) -> None:
        self.settings = replace(settings, dependencies="serial")
        self.rules = FilePass(self.settings)
        self._rules = self.rules.begin.rules
        place = (binlog_number(first.name), FIRST_EVENT)
        self._lines = list(parse_lines("".join(taken_lines(list(recorded), first.name, place)).encode()))
        self.tables = PlannedTables(self._lines)

    def begin_turn(self, file: LookedAtFile) -> list[str]:
        """The lines that tell what is known from the beginning of this file on; those behind are `tables.unsaved`."""
        self._lines += parse_lines("".join(self.tables.unsaved).encode())
        self.tables = PlannedTables(self._lines)
        place = (binlog_number(file.name), 0)
        if self.tables.is_long_before(place):
            self._lines = list(parse_lines("".join(shortened(self._lines, file.name, place)).encode()))
            self.tables = PlannedTables(self._lines)
        return [one.text for one in self._lines]

    def learn(self, file: LookedAtFile, parts: "array[int]") -> None:
        """What these parts of a file define."""
        try:
            with _only(file, parts) as (outline, offsets):
                known = _Defined(self.tables, binlog_number(file.name), offsets)
                self.rules.go_over(replace(outline, tables=known), sealed=True)
        except (OSError, EOFError, Broken):
            pass  # it is told of when the file is counted
        begin = self.rules.begin.next_file()
        if begin.rules == self._rules:
            begin = begin._replace(rules=self._rules)  # the same object for all files between which nothing was defined
        self._rules, self.rules.begin = begin.rules, begin


class _Outline(DescriptorBytes):
    """A file with parts of another."""

    def close(self) -> None:
        """Whoever made it closes it."""


@contextmanager
def _only(file: LookedAtFile, parts: "array[int]") -> Iterator[tuple[LookedAtFile, list[tuple[int, int]]]]:
    """A file with the format description of another and these parts of it, with marks; where each begins in it, and in the other.

    Raises: OSError; EOFError; Broken.
    """
    opened = file.open()
    try:
        head = FIRST_EVENT + len(read_start(opened).event)
        reader = EventReader(opened, stamp=True)
        offsets = []
        with tempfile.TemporaryFile(prefix="binlog-relay-") as copy:
            copy.write(MAGIC)
            for start, stop in ((FIRST_EVENT, head), *zip(parts[::2], parts[1::2], strict=True)):
                offsets.append((copy.tell(), start))
                for run in reader.runs(start, stop):
                    copy.write(memoryview(run.buffer)[run.start : run.consumed])
            copy.flush()
            size = copy.tell()
            yield replace(file, end=size, open=lambda: _Outline(copy.fileno()), skips={}), offsets
    finally:
        opened.close()


class _Defined:
    """PassedTables that tell `tables` what is defined. offsets: where the parts begin in the file that is gone over, and in the
    source's, whose number is `number`."""

    counted: tuple[CountedTable, ...] = ()

    def __init__(self, tables: PlannedTables, number: int, offsets: Sequence[tuple[int, int]]) -> None:
        self._tables = tables
        self._number = number
        self._offsets = offsets

    def move_to(self, _place: tuple[int, int]) -> int:
        """All is the same everywhere."""
        return NEVER

    def plan(self, _table_map: bytes, _id_size: int) -> "array[int]":
        """Nobody looks at rows."""
        raise NotImplementedError  # PassedTables has it for copies that count keys; a pass that only looks ahead asks for no plan

    def pass_group(self, group: SourceGroup) -> bool:
        """See `PassedTables`."""
        for offset, definition in definitions_in(group):
            here, there = self._offsets[bisect_right(self._offsets, offset, key=lambda one: one[0]) - 1]
            self._tables.define(group.file, (self._number, offset - here + there), definition)
        return False


# --- counting ----------------------------------------------------------------------------------------------------------------


def _count(settings: ViewSettings, known: bytes, task: _BegunFile) -> tuple[WaitCounts, UnreadPart | None]:
    """Of one file. known: the lines that tell of tables."""
    counting = FilePass(settings, task.begin)
    tables = PlannedTables(_parsed(known))
    unread = counting.go_over(replace(task.file, tables=tables), sealed=task.sealed)
    return counting.waits, unread


@lru_cache(maxsize=1)
def _parsed(known: bytes) -> Sequence[Line]:
    """The same for all files of a turn that one process counts."""
    return tuple(parse_lines(known))
