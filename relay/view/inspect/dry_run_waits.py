"""Counts which transactions would wait for which in a view of a source's binlogs that is not built: file by file, in any processes.

The translation of a group depends on earlier definitions, also in earlier files. So a file is read twice, and neither time must wait
for the files before it. The first pass finds the groups that may define something: those that the rules translate whatever they know.
Only these are then read in order, which is little; after that, the state at the beginning of each file is known, and the file is
counted from there on, by the code that builds views.
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
"""The files of one turn: the state at the beginning of each is in memory meanwhile."""
_MOST_PARTS: Final = 20_000
"""The most parts of one file; from the last one on all of the file is read."""

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class TaskRunner(Protocol):
    """Runs a function of one argument, perhaps in other processes."""

    def __call__(self, function: Callable[[_Task], _Result], tasks: Sequence[_Task], /) -> Sequence[_Result]:
        """Return the results, in the tasks' order. Function and tasks can be pickled if the files' `open` can be."""


def run_here(function: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> Sequence[_Result]:
    """Run one task after the other, in this process."""
    return [function(task) for task in tasks]


@dataclass(slots=True)
class WaitsAhead:
    """The result: `waits` counts all wanted files, `unread` lists what was not looked at in them."""

    waits: WaitCounts = field(default_factory=WaitCounts)
    unread: list[UnreadPart] = field(default_factory=list)


class _BegunFile(NamedTuple):
    """A file and the state at its beginning; `begin` is the rules' part of it."""

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
    """Count these files of one source, oldest first, as a view with `settings` that begins with them; groups that would stop it are
    left out. The names have numbers, which ascend.

    `recorded` are the relay's records of the source's tables. `is_wanted` decides whether a file is counted, or only learned from.
    Blocking: every byte is read twice. Memory: some megabytes, and what is known of tables.
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
    """Return the file with an empty state."""
    return _BegunFile(file, ViewCheckpoint.of_view(None), file is not files[-1])


# --- the places of groups that may define something -----------------------------------------------------------------------


class _TakenApart:
    """PassedTables that note which groups the rules translate; `parts` is a list of from, to, from, to …"""

    counted: tuple[CountedTable, ...] = ()

    def __init__(self) -> None:
        self.parts = array("q")

    def move_to(self, _place: tuple[int, int]) -> int:
        """Return that the tables are the same everywhere."""
        return NEVER

    def plan(self, _table_map: bytes, _id_size: int) -> "array[int]":
        """Raise: no rows are looked at."""
        raise NotImplementedError  # PassedTables has it for copies that count keys; a pass that only looks ahead asks for no plan

    def pass_group(self, group: SourceGroup) -> bool:
        """Note the group."""
        parts = self.parts
        if parts and (parts[-1] == group.start or len(parts) >= 2 * _MOST_PARTS):
            parts[-1] = group.stop
        else:
            parts.extend((group.start, group.stop))
        return False


def _outline(settings: ViewSettings, task: _BegunFile) -> "array[int]":
    """Return the parts of a file in which something may be defined."""
    tables = _TakenApart()
    FilePass(settings, task.begin).go_over(replace(task.file, tables=tables), sealed=task.sealed)
    return tables.parts


# --- the definitions in them -------------------------------------------------------------------------------------------------


class _Learning:
    """Goes over outlines of files, in order. `rules` is the pass; its `begin` is the next file's state. `tables` are the source's."""

    def __init__(self, first: LookedAtFile, settings: ViewSettings, recorded: Sequence[Line]) -> None:
        self.settings = replace(settings, dependencies="serial")
        self.rules = FilePass(self.settings)
        self._rules = self.rules.begin.rules
        place = (binlog_number(first.name), FIRST_EVENT)
        self._lines = list(parse_lines("".join(taken_lines(list(recorded), first.name, place)).encode()))
        self.tables = PlannedTables(self._lines)

    def begin_turn(self, file: LookedAtFile) -> list[str]:
        """Return the lines that say what is known from the beginning of this file on; later ones are `tables.unsaved`."""
        self._lines += parse_lines("".join(self.tables.unsaved).encode())
        self.tables = PlannedTables(self._lines)
        place = (binlog_number(file.name), 0)
        if self.tables.is_long_before(place):
            self._lines = list(parse_lines("".join(shortened(self._lines, file.name, place)).encode()))
            self.tables = PlannedTables(self._lines)
        return [one.text for one in self._lines]

    def learn(self, file: LookedAtFile, parts: "array[int]") -> None:
        """Learn what these parts of a file define."""
        try:
            with _only(file, parts) as (outline, offsets):
                known = _Defined(self.tables, binlog_number(file.name), offsets)
                self.rules.go_over(replace(outline, tables=known), sealed=True)
        except (OSError, EOFError, Broken):
            pass  # it is reported when the file is counted
        begin = self.rules.begin.next_file()
        if begin.rules == self._rules:
            begin = begin._replace(rules=self._rules)  # the same object for all files between which nothing was defined
        self._rules, self.rules.begin = begin.rules, begin


class _Outline(DescriptorBytes):
    """A file with parts of another one."""

    def close(self) -> None:
        """Do nothing: the creator closes it."""


@contextmanager
def _only(file: LookedAtFile, parts: "array[int]") -> Iterator[tuple[LookedAtFile, list[tuple[int, int]]]]:
    """Yield a copy with the file's format description and these parts, with marks, and each part's offset in the copy and in the file.

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
    """PassedTables that pass definitions to `tables`. `offsets` are the beginnings of the parts in the copied file and in the source's,
    whose number is `number`."""

    counted: tuple[CountedTable, ...] = ()

    def __init__(self, tables: PlannedTables, number: int, offsets: Sequence[tuple[int, int]]) -> None:
        self._tables = tables
        self._number = number
        self._offsets = offsets

    def move_to(self, _place: tuple[int, int]) -> int:
        """Return that the tables are the same everywhere."""
        return NEVER

    def plan(self, _table_map: bytes, _id_size: int) -> "array[int]":
        """Raise: no rows are looked at."""
        raise NotImplementedError  # PassedTables has it for copies that count keys; a pass that only looks ahead asks for no plan

    def pass_group(self, group: SourceGroup) -> bool:
        """Implement `PassedTables.pass_group`."""
        for offset, definition in definitions_in(group):
            here, there = self._offsets[bisect_right(self._offsets, offset, key=lambda one: one[0]) - 1]
            self._tables.define(group.file, (self._number, offset - here + there), definition)
        return False


# --- counting ----------------------------------------------------------------------------------------------------------------


def _count(settings: ViewSettings, known: bytes, task: _BegunFile) -> tuple[WaitCounts, UnreadPart | None]:
    """Count one file. `known` contains the lines about tables."""
    counting = FilePass(settings, task.begin)
    tables = PlannedTables(_parsed(known))
    unread = counting.go_over(replace(task.file, tables=tables), sealed=task.sealed)
    return counting.waits, unread


@lru_cache(maxsize=1)
def _parsed(known: bytes) -> Sequence[Line]:
    """Return the parsed lines: they are the same for all files of a turn that one process counts."""
    return tuple(parse_lines(known))
