"""Finds the same place in the source's binlogs and in a view's: by NAME.map, and by making again what is behind its record."""

import contextlib
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from protocol.position import Position, binlog_number, is_binlog_name
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.storage.files import INDEX_NAME
from relay.binlog_file.file_bytes import DescriptorBytes
from relay.view.generations.view_generations import (
    MadeGeneration,
    directories_of,
    made_generations,
    named_generation,
    qualified,
)
from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.translation import BUFFER_BYTES, FileTranslation, ViewStopped
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_map import ViewMap
from relay.view.view_place import InsideTransaction, PlaceUnknown, ViewPlace
from relay.view.view_rules import rules_of

_EACH: Final = 0
"""Bytes between marks: one at each transaction."""


class _Held(NamedTuple):
    """A file of a view, in a generation of it."""

    of: MadeGeneration
    name: str

    @property
    def path(self) -> Path:
        return self.of.directory / self.name

    @property
    def source_path(self) -> Path:
        return self.of.source_directory / self.name


class ViewLookup:
    """See `PlaceFinder`. Reads the files themselves, beside a running relay too.

    Of the files of a name that several sources used, the one that is meant is named with its generation: g0002.NAME.
    """

    def __init__(
        self, archive: Path, view: Path, settings: ViewSettings, skips: Mapping[tuple[int, str], Mapping[int, int]]
    ) -> None:
        """archive, view: the source's directory and the view's. skips: see `skips_of`."""
        self._archive = archive
        self._view = view
        self._settings = settings
        self._skips = skips
        self._out = bytearray(BUFFER_BYTES)

    def of_source(self, position: Position) -> ViewPlace:
        """Raises: InsideTransaction; PlaceUnknown; OSError."""
        held = self._known(position.file, self._of_source_named)
        record = ViewMap.read(held.path).before_source(position.offset)
        if record is None:
            raise self._unknown(position, "the view's map does not reach there")
        before, made = self._walk(held, record, source=position.offset)
        if before.source == position.offset:
            return _place(held, before)
        after = next((one for one in made if one.source > position.offset), None)
        raise InsideTransaction(position, _place(held, before), _place(held, after) if after else None)

    def of_view(self, position: Position) -> ViewPlace:
        """Raises: InsideTransaction; PlaceUnknown; OSError."""
        held = self._known(position.file, self._of_view_named)
        record = ViewMap.read(held.path).before_view(position.offset)
        if record is None:
            raise self._unknown(position, "the view's map does not reach there")
        before, made = self._walk(held, record, view=position.offset)
        if before.view == position.offset:
            return _place(held, before)
        after = next((one for one in made if one.view > position.offset), None)
        raise InsideTransaction(position, _place(held, before), _place(held, after) if after else None)

    def of_gno(self, gno: int) -> ViewPlace:
        """The place behind the transaction with that number. Raises: PlaceUnknown; OSError."""
        files = self._files()
        index = bisect_right(files, gno + 1, key=_first_gno) - 1
        wanted = f"{self._settings.uuid}:{gno}"
        if index < 0 or gno < 0:
            raise PlaceUnknown(f"{wanted} is not in the view, {self._what_there_is()}")
        held = files[index]
        record = ViewMap.read(held.path).before_gno(gno + 1)
        if record is not None:
            before, _ = self._walk(held, record, gno=gno + 1)
            if before.next_gno == gno + 1:
                return _place(held, before)
        raise PlaceUnknown(f"{wanted} is not in the view, {self._what_there_is()}")

    def end(self) -> ViewPlace | None:
        """Up to where the view is made; None: nothing is. Raises: OSError."""
        files = self._files()
        if not files:
            return None
        held = files[-1]
        size = os.stat(held.path).st_size
        record = ViewMap.read(held.path).before_view(size)
        if record is None:
            return None
        before, _ = self._walk(held, record, view=size)
        return _place(held, before)

    # --- making it again ------------------------------------------------------------------------------------------------

    def _walk(
        self,
        held: _Held,
        record: ViewCheckpoint,
        *,
        source: int | None = None,
        view: int | None = None,
        gno: int | None = None,
    ) -> tuple[ViewCheckpoint, Iterator[ViewCheckpoint]]:
        """The last place that is not behind the one wanted, and those behind it."""
        steps = self._places(held, record)
        last = record
        for place in steps:
            behind = (
                (source is not None and place.source > source)
                or (view is not None and place.view > view)
                or (gno is not None and place.next_gno > gno)
            )
            if behind:
                return last, _with_first(place, steps)
            last = place
        return last, iter(())

    def _places(self, held: _Held, record: ViewCheckpoint) -> Iterator[ViewCheckpoint]:
        fd = os.open(held.source_path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            file = DescriptorBytes(fd)
            translation = FileTranslation(
                held.name,
                file.read_into,
                self._settings,
                rules_of(self._settings),
                record,
                self._skips.get((held.of.source_number, held.name), {}),
                own_gtids=held.of.number != FIRST,
                mark_gap=_EACH,
            )
            end = file.size
            while True:
                try:
                    made = translation.fill(self._out, 0, end, sealed=False)
                except ViewStopped:
                    return
                marks, translation.marks = translation.marks, []
                yield from (mark for mark in marks if mark.source > record.source)
                if not made:
                    yield translation.checkpoint()
                    return
        finally:
            os.close(fd)

    # --- what there is ----------------------------------------------------------------------------------------------------

    def _files(self) -> list[_Held]:
        """All of the view, oldest first."""
        return [
            _Held(of, name) for of in made_generations(self._archive, self._view) for name in _binlogs(of.directory)
        ]

    def _known(self, name: str, named: Callable[[str], list[tuple[int, _Held | None]]]) -> _Held:
        """The file of that name. `named`: those that may be meant, each with its generation and, if the view has it, the file.

        Raises: PlaceUnknown. A name becomes a path only where such a file was found.
        """
        found = named(name)
        if len(found) > 1:
            names = " and ".join(qualified(number, name) for number, _held in found)
            raise PlaceUnknown(f"{name} is the name of files of several sources: write which is meant, {names}")
        held = found[0][1] if found else None
        if held is None:
            raise PlaceUnknown(f"{name} is not in the view, {self._what_there_is()}")
        if not held.source_path.is_file():
            raise PlaceUnknown(f"{name} is in the view, and not in the archive any more, from which places are found")
        return held

    def _of_source_named(self, name: str) -> list[tuple[int, _Held | None]]:
        """By the generations of the source's archive, also what is not in the view yet."""
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

    def _unknown(self, position: Position, why: str) -> PlaceUnknown:
        return PlaceUnknown(f"{position}: {why}, {self._what_there_is()}")

    def _what_there_is(self) -> str:
        files = self._files()
        return f"which has {files[0].name} to {files[-1].name}" if files else "which has no file yet"


def _binlogs(directory: Path) -> list[str]:
    # Of 10,000 files with their indexes beside them, looking through the directory takes longer than all the rest.
    with contextlib.suppress(FileNotFoundError):
        listed = (directory / INDEX_NAME).read_text(encoding="utf-8", errors="replace").splitlines()
        return [line.removeprefix("./") for line in listed]
    return sorted(filter(is_binlog_name, os.listdir(directory)), key=binlog_number)


def _first_gno(held: _Held) -> int:
    found = ViewMap.read(held.path)
    return found.record(0).next_gno if len(found) else FIRST_GNO


def _place(held: _Held, at: ViewCheckpoint) -> ViewPlace:
    source, view = Position(held.name, at.source), Position(held.name, at.view)
    return ViewPlace(source, view, at.next_gno - 1, held.of.source_number, held.of.number)


def _with_first(first: ViewCheckpoint, rest: Iterator[ViewCheckpoint]) -> Iterator[ViewCheckpoint]:
    yield first
    yield from rest
