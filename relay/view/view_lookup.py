"""Finds the same place in the source's binlogs and in a view's: by NAME.map, and by making again what is behind its record."""

import contextlib
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from protocol.position import Position, binlog_number, is_binlog_name
from relay.archive.storage.files import INDEX_NAME
from relay.binlog_file.file_bytes import DescriptorBytes
from relay.view.rules.settings import ViewSettings
from relay.view.translation import BUFFER_BYTES, FileTranslation, ViewStopped
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_map import ViewMap
from relay.view.view_place import InsideTransaction, PlaceUnknown, ViewPlace
from relay.view.view_rules import rules_of

_EACH: Final = 0
"""Bytes between marks: one at each transaction."""


class ViewLookup:
    """See `PlaceFinder`. Reads the files themselves, beside a running relay too."""

    def __init__(
        self, mirror: Path, view: Path, settings: ViewSettings, skips: Mapping[str, Mapping[int, int]]
    ) -> None:
        """mirror: the directory with the source's files. skips: see `skips_of`."""
        self._mirror = mirror
        self._view = view
        self._settings = settings
        self._skips = skips
        self._out = bytearray(BUFFER_BYTES)

    def of_source(self, position: Position) -> ViewPlace:
        """Raises: InsideTransaction; PlaceUnknown; OSError."""
        name = self._known(position.file)
        record = ViewMap.read(self._view / name).before_source(position.offset)
        if record is None:
            raise self._unknown(position, "the view's map does not reach there")
        before, made = self._walk(name, record, source=position.offset)
        if before.source == position.offset:
            return self._place(name, before)
        after = next((one for one in made if one.source > position.offset), None)
        raise InsideTransaction(position, self._place(name, before), self._place(name, after) if after else None)

    def of_view(self, position: Position) -> ViewPlace:
        """Raises: InsideTransaction; PlaceUnknown; OSError."""
        name = self._known(position.file)
        record = ViewMap.read(self._view / name).before_view(position.offset)
        if record is None:
            raise self._unknown(position, "the view's map does not reach there")
        before, made = self._walk(name, record, view=position.offset)
        if before.view == position.offset:
            return self._place(name, before)
        after = next((one for one in made if one.view > position.offset), None)
        raise InsideTransaction(position, self._place(name, before), self._place(name, after) if after else None)

    def of_gno(self, gno: int) -> ViewPlace:
        """The place behind the transaction with that number. Raises: PlaceUnknown; OSError."""
        names = self._names()
        index = bisect_right(names, gno + 1, key=self._first_gno) - 1
        wanted = f"{self._settings.uuid}:{gno}"
        if index < 0 or gno < 0:
            raise PlaceUnknown(f"{wanted} is not in the view, {self._what_there_is()}")
        name = names[index]
        record = ViewMap.read(self._view / name).before_gno(gno + 1)
        if record is not None:
            before, _ = self._walk(name, record, gno=gno + 1)
            if before.next_gno == gno + 1:
                return self._place(name, before)
        raise PlaceUnknown(f"{wanted} is not in the view, {self._what_there_is()}")

    def end(self) -> ViewPlace | None:
        """Up to where the view is made; None: nothing is. Raises: OSError."""
        names = self._names()
        if not names:
            return None
        size = os.stat(self._view / names[-1]).st_size
        record = ViewMap.read(self._view / names[-1]).before_view(size)
        if record is None:
            return None
        before, _ = self._walk(names[-1], record, view=size)
        return self._place(names[-1], before)

    # --- making it again ------------------------------------------------------------------------------------------------

    def _walk(
        self,
        name: str,
        record: ViewCheckpoint,
        *,
        source: int | None = None,
        view: int | None = None,
        gno: int | None = None,
    ) -> tuple[ViewCheckpoint, Iterator[ViewCheckpoint]]:
        """The last place that is not behind the one wanted, and those behind it."""
        steps = self._places(name, record)
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

    def _places(self, name: str, record: ViewCheckpoint) -> Iterator[ViewCheckpoint]:
        fd = os.open(self._mirror / name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            file = DescriptorBytes(fd)
            translation = FileTranslation(
                name,
                file.read_into,
                self._settings,
                rules_of(self._settings),
                record,
                self._skips.get(name, {}),
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

    def _names(self) -> list[str]:
        # Of 10,000 files with their indexes beside them, looking through the directory takes longer than all the rest.
        with contextlib.suppress(FileNotFoundError):
            listed = (self._view / INDEX_NAME).read_text(encoding="utf-8", errors="replace").splitlines()
            return [line.removeprefix("./") for line in listed]
        return sorted(filter(is_binlog_name, os.listdir(self._view)), key=binlog_number)

    def _first_gno(self, name: str) -> int:
        found = ViewMap.read(self._view / name)
        return found.record(0).next_gno if len(found) else 1

    def _known(self, name: str) -> str:
        """The name, where the view has such a file: it never becomes a path before."""
        if not is_binlog_name(name) or not (self._view / name).is_file():
            raise PlaceUnknown(f"{name} is not in the view, {self._what_there_is()}")
        if not (self._mirror / name).is_file():
            raise PlaceUnknown(f"{name} is in the view, and not in the archive any more, from which places are found")
        return name

    def _unknown(self, position: Position, why: str) -> PlaceUnknown:
        return PlaceUnknown(f"{position}: {why}, {self._what_there_is()}")

    def _what_there_is(self) -> str:
        names = self._names()
        return f"which has {names[0]} to {names[-1]}" if names else "which has no file yet"

    def _place(self, name: str, at: ViewCheckpoint) -> ViewPlace:
        return ViewPlace(Position(name, at.source), Position(name, at.view), at.next_gno - 1)


def _with_first(first: ViewCheckpoint, rest: Iterator[ViewCheckpoint]) -> Iterator[ViewCheckpoint]:
    yield first
    yield from rest
