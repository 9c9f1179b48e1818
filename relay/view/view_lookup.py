"""Finds the same place in the source's binlogs and in a view's: by NAME.map, and by rebuilding what follows its record."""

import contextlib
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import Position, binlog_number, is_binlog_name
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.files import INDEX_NAME, StoredFile
from relay.disk.file_calls import read_file
from relay.packed_reads.archive_layer import layer_of
from relay.schema_history.initial_snapshot import InitialSnapshot
from relay.view.file_beginning import FileBeginning, SourceBinlog, ViewedFile, beginning_of, begun_checkpoint
from relay.view.generations.view_generations import (
    MadeGeneration,
    directories_of,
    made_generations,
    named_generation,
    qualified,
)
from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.translation import BUFFER_BYTES, FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_map import ViewMap
from relay.view.view_place import InsideTransaction, PlaceUnknown, ViewPlace
from relay.view.view_rules import rules_of

_EACH: Final = 0
"""The bytes between marks: each transaction gets one."""


class _Held(NamedTuple):
    """A file of a view, in one of its generations."""

    of: MadeGeneration
    name: str

    @property
    def path(self) -> Path:
        return self.of.directory / self.name

    @property
    def source_path(self) -> Path:
        return self.of.source_directory / self.name


class ViewLookup:
    """A `PlaceFinder` that reads the files themselves, beside a running relay too.

    Among files of a name that several sources used, the one that is meant is named with its generation: g0002.NAME.
    """

    def __init__(
        self, archive: Path, view: Path, settings: ViewSettings, skips: Mapping[tuple[int, str], Mapping[int, int]]
    ) -> None:
        """Take `archive` and `view`, the directories of the source and of the view, and the `skips` of `skips_of`."""
        self._archive = archive
        self._view = view
        self._settings = settings
        self._skips = skips
        self._out = bytearray(BUFFER_BYTES)

    def of_source(self, position: Position) -> ViewPlace:
        """Return the place of the source's `position`. Raises: InsideTransaction; PlaceUnknown; OSError."""
        held = self._known(position.file, self._of_source_named)
        _check_offset(position)
        record = ViewMap.read(held.path).before_source(position.offset) or self._beginning(held)
        if record is None:
            raise self._unknown(position, "the view's map does not reach there")
        if record.source > position.offset:
            raise self._unknown(position, f"the view begins with {held.name}:{record.source}")
        before, made = self._walk(held, record, source=position.offset)
        if before.source == position.offset:
            return _place(held, before)
        after = next((one for one in made if one.source > position.offset), None)
        raise InsideTransaction(position, _place(held, before), _place(held, after) if after else None)

    def of_view(self, position: Position) -> ViewPlace:
        """Return the place of the view's `position`. Raises: InsideTransaction; PlaceUnknown; OSError."""
        held = self._known(position.file, self._of_view_named)
        _check_offset(position)
        record = ViewMap.read(held.path).before_view(position.offset) or self._beginning(held)
        if record is None or record.view > position.offset:
            raise self._unknown(position, "the view's map does not reach there")
        before, made = self._walk(held, record, view=position.offset)
        if before.view == position.offset:
            return _place(held, before)
        after = next((one for one in made if one.view > position.offset), None)
        raise InsideTransaction(position, _place(held, before), _place(held, after) if after else None)

    def of_gno(self, gno: int) -> ViewPlace:
        """Return the place after the transaction with that number. Raises: PlaceUnknown; OSError."""
        files = self._files()
        if not files or gno < FIRST_GNO:
            raise self._no_such_number(gno)
        # Transactions with GTIDs of their own may follow it, in this file and the next; they take no number.
        held = files[max(bisect_left(files, gno + 1, key=self._first_gno) - 1, 0)]
        before = ViewMap.read(held.path).before_gno(gno) or self._beginning(held)
        if before is None or before.next_gno > gno + 1:
            raise self._no_such_number(gno)
        for place in self._places(held, before):
            if place.next_gno == gno + 1:
                return _place(held, place)
            if place.next_gno > gno:
                raise self._one_of_several(gno, _place(held, before), _place(held, place))
            before = place
        raise self._no_such_number(gno)

    def end(self) -> ViewPlace | None:
        """Return the place up to which the view is built; None: nothing is. Raises: OSError."""
        files = self._files()
        if not files:
            return None
        held = files[-1]
        size = os.stat(held.path).st_size
        record = ViewMap.read(held.path).before_view(size) or self._beginning(held)
        if record is None:
            return None
        before, _ = self._walk(held, record, view=size)
        return _place(held, before)

    # --- the content of maps that were lost ------------------------------------------------------------------------------

    def _beginning(self, held: _Held) -> ViewCheckpoint | None:
        """Return the beginning of a file without a map, found by those before it; None: they are purged, or were never built."""
        same = [one for one in self._files() if one.of.number == held.of.number]
        same = same[: 1 + next((number for number, one in enumerate(same) if one.name == held.name), -1)]
        if not same:
            return None
        known = begun_checkpoint(held.of.directory, same[0].name)
        before = InitialSnapshot(held.source_path.parent)
        files = [
            ViewedFile(one.path, partial(_opened, one.source_path), True, self._skipped(one), before) for one in same
        ]
        return beginning_of(FileBeginning(files, self._settings, known, own_gtids=held.of.number != FIRST))

    def _first_gno(self, held: _Held) -> int:
        begin = ViewMap.read(held.path).beginning() or self._beginning(held)
        return begin.next_gno if begin is not None else FIRST_GNO

    def _skipped(self, held: _Held) -> Mapping[int, int]:
        return self._skips.get((held.of.source_number, held.name), {})

    # --- rebuilding -----------------------------------------------------------------------------------------------------

    def _walk(
        self,
        held: _Held,
        record: ViewCheckpoint,
        *,
        source: int | None = None,
        view: int | None = None,
    ) -> tuple[ViewCheckpoint, Iterator[ViewCheckpoint]]:
        """Return the last place that is not after the wanted one, and the places after it."""
        steps = self._places(held, record)
        last = record
        for place in steps:
            behind = (source is not None and place.source > source) or (view is not None and place.view > view)
            if behind:
                return last, _with_first(place, steps)
            last = place
        return last, iter(())

    def _places(self, held: _Held, record: ViewCheckpoint) -> Iterator[ViewCheckpoint]:
        file = StoredFile.open(layer_of(held.source_path.parent), held.source_path)
        try:
            translation = FileTranslation(
                held.name,
                file.read_into,
                self._settings,
                rules_of(self._settings, InitialSnapshot(held.source_path.parent)),
                record,
                self._skipped(held),
                own_gtids=held.of.number != FIRST,
                mark_gap=_EACH,
            )
            end = file.size
            while True:
                try:
                    made = translation.fill(self._out, 0, end, sealed=False)
                except (OSError, ArchiveError):
                    raise
                except Exception:
                    return  # the view stops there, for whatever reason: it contains nothing after that
                marks, translation.marks = translation.marks, []
                yield from (mark for mark in marks if mark.place > record.place)
                if not made:
                    yield translation.checkpoint()
                    return
        finally:
            file.close()

    # --- the existing files -----------------------------------------------------------------------------------------------

    def _files(self) -> list[_Held]:
        """Return all files of the view, oldest first."""
        return [
            _Held(of, name) for of in made_generations(self._archive, self._view) for name in _binlogs(of.directory)
        ]

    def _known(self, name: str, named: Callable[[str], list[tuple[int, _Held | None]]]) -> _Held:
        """Return the file of that name. `named` returns the candidates, each with its generation and, if the view has it, the file.

        Raises: PlaceUnknown. A name becomes a path only where such a file was found.
        """
        found = named(name)
        if len(found) > 1:
            names = " and ".join(qualified(number, name) for number, _held in found)
            raise PlaceUnknown(f"{name} is the name of files of several sources: write which is meant, {names}.")
        held = found[0][1] if found else None
        if held is None:
            raise PlaceUnknown(f"{name} is not in the view, {self._what_there_is()}")
        if not held.source_path.is_file():
            raise PlaceUnknown(f"{name} is in the view, and not in the archive any more, from which places are found.")
        return held

    def _of_source_named(self, name: str) -> list[tuple[int, _Held | None]]:
        """Return the candidates by the generations of the source's archive, including files that are not in the view yet."""
        held = {file.of.source_number: file for file in self._files_named(name)}
        numbers = set(held)
        if is_binlog_name(name):
            numbers |= {number for number, path in directories_of(self._archive) if (path / name).is_file()}
        if numbers:
            return [(number, held.get(number)) for number in sorted(numbers)]
        generation, plain = named_generation(name) or (0, "")
        return [
            (file.of.source_number, file) for file in self._files_named(plain) if file.of.source_number == generation
        ]

    def _of_view_named(self, name: str) -> list[tuple[int, _Held | None]]:
        held = self._files_named(name)
        if not held:
            generation, plain = named_generation(name) or (0, "")
            held = [file for file in self._files_named(plain) if file.of.number == generation]
        return [(file.of.number, file) for file in held]

    def _files_named(self, name: str) -> list[_Held]:
        if not is_binlog_name(name):
            return []
        made = (_Held(of, name) for of in made_generations(self._archive, self._view))
        return [held for held in made if held.path.is_file()]

    def _no_such_number(self, gno: int) -> PlaceUnknown:
        """Return the error for a GTID that the view did not assign, or whose file was purged."""
        files, end, uuid = self._files(), self.end(), self._settings.uuid
        given = "none yet"
        if end is not None and end.gno >= (first := self._first_gno(files[0])):
            given = f"{uuid}:{first} to {end.gno}"
        return PlaceUnknown(f"{uuid}:{gno} is not in the view. Its files have of the GTIDs that it assigns: {given}.")

    def _one_of_several(self, gno: int, before: ViewPlace, after: ViewPlace) -> PlaceUnknown:
        """Return the error for one of several transactions that one of the source became, where this is not the last of them."""
        uuid = self._settings.uuid
        return PlaceUnknown(
            f"{uuid}:{gno} is of {uuid}:{before.gno + 1}-{after.gno}, which are one transaction of the source: no place of its "
            f"binlogs is behind a part of it. {before.source_text} is before all of them, {after.source_text} behind. A replica "
            f"that has some has to execute the others first."
        )

    def _unknown(self, position: Position, why: str) -> PlaceUnknown:
        return PlaceUnknown(f"{position}: {why}, {self._what_there_is()}")

    def _what_there_is(self) -> str:
        files = self._files()
        return f"which has {files[0].name} to {files[-1].name}." if files else "which has no file yet."


def _check_offset(position: Position) -> None:
    if position.offset < FIRST_EVENT:
        raise PlaceUnknown(f"{position} is no place: positions in a binlog begin at {FIRST_EVENT}.")


def _binlogs(directory: Path) -> list[str]:
    # With 10,000 files and their indexes beside them, listing the directory takes longer than everything else.
    with contextlib.suppress(FileNotFoundError):
        listed = read_file(directory / INDEX_NAME).decode(errors="replace").splitlines()
        return [line.removeprefix("./") for line in listed]
    return sorted(filter(is_binlog_name, os.listdir(directory)), key=binlog_number)


def _opened(path: Path) -> SourceBinlog | None:
    try:
        return StoredFile.open(layer_of(path.parent), path)
    except FileNotFoundError:
        return None


def _place(held: _Held, at: ViewCheckpoint) -> ViewPlace:
    source, view = Position(held.name, at.source), Position(held.name, at.view)
    return ViewPlace(source, view, at.next_gno - 1, held.of.source_number, held.of.number)


def _with_first(first: ViewCheckpoint, rest: Iterator[ViewCheckpoint]) -> Iterator[ViewCheckpoint]:
    yield first
    yield from rest
