"""Places between two transactions in the binlogs of a path, and the splits between two of them.

The binlog between two places never changes, so a reader that goes from place to place reads each transaction once, whenever it
continues.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import RelayError
from protocol.position import Position
from relay.binlog_tables.plan.overlap import Overlap
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.read_finding import FILES_MISSING, Finding, ReadRefused
from relay.binlog_tables.plan.sequence import sequence_at
from relay.binlog_tables.plan.series_files import SeriesFile, find_files, order_of
from relay.binlog_tables.plan.splits import SourceChain, Split, end_of, is_boundary, plan_file
from relay.binlog_tables.plan.store import Store

_LEAST_PART: Final = 64 << 10


class PositionGone(RelayError):
    """The error that a reader's position is in a file that no longer exists. `str()` says where it could go on."""


def parsed_position(text: str) -> Position | None:
    """Return the position of FILE:POSITION, as this package writes it; None if it is none."""
    name, _, position = text.rpartition(":")
    if not name or not position.isdecimal() or int(position) < FIRST_EVENT:
        return None
    return Position(name, int(position))


class Places:
    """The places in the binlogs at `paths`, parts of one source's archive, as they are at each call."""

    def __init__(self, paths: Sequence[str], ending: Position | None = None, *, skips_lost: bool = False) -> None:
        """With `ending`, nothing after it exists. With `skips_lost`, missing files are a finding, and what follows them is read."""
        self._paths = tuple(paths)
        self._ending = ending
        self._skips_lost = skips_lost

    @property
    def store(self) -> Store:
        """The store that contains them."""
        return store_of(self._paths[0])

    def files(self) -> list[SeriesFile]:
        """Return the binlogs. Raises: NothingToRead; OSError."""
        files = find_files(self.store, *self._paths)
        # A server or a relay may be writing the newest: its last transaction counts only once it is whole.
        return [*files[:-1], replace(files[-1], growing=not files[-1].damaged)]

    def oldest(self) -> Position:
        """Return the first existing place."""
        return Position(self.files()[0].name, FIRST_EVENT)

    def ends_at(self, place: Position) -> "Places":
        """Return the same without everything after `place`, or after an earlier ending."""
        return Places(self._paths, place, skips_lost=self._skips_lost)

    def newest(self, start: Position | None = None) -> Position:
        """Return the end of the last whole transaction, never before `start`: what follows that was returned already. Raises:
        OSError."""
        files = self.files()
        begin = None if start is None else self._there(files, start)[0]
        return self._newest(self._before_ending(files), begin)

    def reached(self, start: Position, most_bytes: int) -> Position:
        """Return the last place within `most_bytes` after `start`, but at least one transaction later if there is one. Raises:
        PositionGone; OSError."""
        every = self.files()
        start, _lost = self._there(every, start)
        self.index(every, start)
        files = self._before_ending(every)
        store, left = self.store, most_bytes
        first = next((number for number, file in enumerate(files) if file.name == start.file), len(files))
        for number, file in enumerate(files[first:]):
            begin = start.offset if number == 0 else FIRST_EVENT
            end = max(end_of(store, file, begin), begin)
            if end - begin > left:
                parts = plan_file(store, file, max(left // 4, _LEAST_PART), start=begin, stop=end)
                within = [part.stop for part in parts if part.stop - begin <= left]
                # A transaction that is larger than the limit is included whole; what came before it is enough for now
                stop = within[-1] if within else (begin if number else parts[0].stop)
                return Position(file.name, stop)
            left -= end - begin
        return self._newest(files, start)

    def check_is_there(self, start: Position) -> None:
        """Raise PositionGone if what follows `start` can no longer be read."""
        files = self.files()
        self.index(files, self._there(files, start)[0])

    def checked(self, place: Position, name: str) -> Position:
        """Return `place`, which is the caller's option `name`. Raises: PositionGone, ReadRefused."""
        files = self.files()
        file = files[self.index(files, place)]
        if not is_boundary(self.store, file, place.offset):
            raise ReadRefused(
                f"{name} {place} is not between two transactions; `binlog-relay positions {file.path} {place.offset}` names the "
                "nearest that are"
            )
        return place

    def sequence(self, place: Position) -> int | None:
        """Return the sequence of a transaction that begins there. Raises: PositionGone; ReadRefused."""
        files = self.files()
        file = files[self.index(files, place)]
        return sequence_at(file.name, file.sequence_base, place.offset)

    def between(
        self, start: Position, end: Position, split_bytes: int, *, held: bool | None, tells_gaps: bool = False
    ) -> list[Split]:
        """Return the splits of [start, end). `held` says what of a later source's files is left out, see Overlap (None: nothing). With
        `tells_gaps` missing numbers of files are a finding.

        Raises: PositionGone; OSError.
        """
        store = self.store
        files = self.files()
        start, lost = self._there(files, start)
        end, _lost = self._there(files, end)
        first, last = self.index(files, start), self.index(files, end)
        splits: list[Split] = []
        if lost is not None:
            name = files[first].name
            splits.append(Split(files[first].path, name, FIRST_EVENT, FIRST_EVENT, findings=(lost,)))
        sources = SourceChain()
        overlap = None if held is None else Overlap(store, files, held=held)
        if first > 0 and start.offset == FIRST_EVENT:
            sources.look_at(store, files[first - 1])
        for number in range(first, last + 1):
            begin = start.offset if number == first else FIRST_EVENT
            stop = end.offset if number == last else None
            if tells_gaps and number > first:
                splits += _gap(files[number - 1], files[number])
            if stop is None or begin < stop:
                file = replace(files[number], growing=False)
                splits += plan_file(store, file, split_bytes, start=begin, stop=stop, sources=sources, overlap=overlap)
        return splits

    def index(self, files: Sequence[SeriesFile], place: Position) -> int:
        """Return the index of the file that contains a place. Raises: PositionGone."""
        for number, file in enumerate(files):
            if file.name == place.file:
                return number
        raise PositionGone(
            f"{place.file}, where the query stands at {place.offset}, is not in {', '.join(self._paths)} any more. The first "
            f"position there is {files[0].name}:{FIRST_EVENT}; a query from there needs a new checkpoint directory."
        )

    def _there(self, files: Sequence[SeriesFile], place: Position) -> tuple[Position, Finding | None]:
        """Return `place`, or with `skips_lost` the first existing one after it, and the finding about that."""
        if not self._skips_lost or any(file.name == place.file for file in files):
            return place, None
        wanted = order_of(place.file)
        behind = next((file for file in files if order_of(file.name) > wanted), None)
        if behind is None:
            return place, None
        text = f"{place.file} from {place.offset} on is not there any more, nor what came behind it up to this file."
        return Position(behind.name, FIRST_EVENT), Finding(behind.name, FIRST_EVENT, FIRST_EVENT, 0, "files_gone", text)

    def _before_ending(self, files: list[SeriesFile]) -> list[SeriesFile]:
        """Return the part of the files before the ending; an empty list if there is none."""
        ending = self._ending
        if ending is None:
            return files
        at = next((number for number, file in enumerate(files) if file.name == ending.file), None)
        if at is not None:
            last = files[at]
            stop = ending.offset if last.end is None else min(last.end, ending.offset)
            # With `growing`, an ending inside a transaction counts as its start
            return [*files[:at], replace(last, end=stop, growing=True)]
        return [file for file in files if order_of(file.name) < order_of(ending.file)]

    def _newest(self, files: list[SeriesFile], start: Position | None) -> Position:
        if not files or (start is not None and all(file.name != start.file for file in files)):
            # It ends after the start, or everything that was before it is missing
            return start if start is not None else self.oldest()
        last = files[-1]
        begin = start.offset if start is not None and start.file == last.name else FIRST_EVENT
        return Position(last.name, max(end_of(self.store, last, begin), begin))


def _gap(before: SeriesFile, file: SeriesFile) -> list[Split]:
    """Return a split that reports the missing files between two; none if there are none."""
    count = file.number - before.number - 1
    if before.series != file.series or count < 1:
        return []
    base = file.series.rpartition("/")[2]
    first, last = (f"{base}.{number:06}" for number in (before.number + 1, file.number - 1))
    text = f"{first if count == 1 else f'{first} to {last}'} {'is' if count == 1 else 'are'} not there, and {before.name} is."
    finding = Finding(file.name, FIRST_EVENT, FIRST_EVENT, 0, FILES_MISSING, text)
    return [Split(file.path, file.name, FIRST_EVENT, FIRST_EVENT, findings=(finding,))]
