"""What is ahead of one view in the archive: all stops that it will come to, from where it is made."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import Position, binlog_number
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.gaps.accepted_gap import GapUnreadable, gap_before
from relay.archive.inspect.listing import read_ledgers
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer, StoredFile
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.stops_ahead import LookedAtFile, StopAhead, StopsFound, find_stops
from relay.view.inspect.view_listing import files_of
from relay.view.rules.group import StopReason
from relay.view.source_breaks import file_gone, gap_in_archive, source_changed
from relay.view.view import skips_of
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_map import ViewMap


class ViewOutlook(NamedTuple):
    """begin, end: what was looked at, in the source's binlogs; None: the archive has nothing there. size_bytes: of that."""

    begin: Position | None
    end: Position | None
    size_bytes: int
    found: StopsFound


def view_outlook(view: NamedView) -> ViewOutlook:
    """Up to the archive's end, or where no view can go on. Blocking: reads all of that once. Works beside a running relay.

    Raises: CatalogUnreadable; PlaceUnknown; OSError; sqlite3.Error.
    """
    place, checkpoint = _begin(view)
    directories = [directory for _number, directory in begun_generations(view.archive)]
    for number, directory in enumerate(directories):
        held = files_of(directory)
        names = [file.name for file in held]
        if not names or (place is not None and place.file not in names):
            continue
        first = names.index(place.file) if place is not None else 0
        following = directories[number + 1] if number + 1 < len(directories) else None
        files, ends_for = _up_to_break(held[first:], following)
        begin = Position(names[first], checkpoint.source if checkpoint is not None else FIRST_EVENT)
        return _looked_at(view, directory, files, checkpoint, begin, ends_for)
    found = StopsFound()
    if place is not None:
        found.add(StopAhead(place.file, place.offset, place.offset, 0, file_gone(place.file)))
    return ViewOutlook(None, None, 0, found)


def _begin(view: NamedView) -> tuple[Position | None, ViewCheckpoint | None]:
    """Where the view goes on, and what is known there; None: with the archive's beginning, and nothing."""
    made = view.places.end() if view.is_made else None
    if made is not None:
        checkpoint = ViewMap.read(view.directory / made.view.file).before_view(made.view.offset)
        if checkpoint is not None:
            return made.source, checkpoint
    start = view.settings.start
    return (start.position if start is not None else None), None


def _up_to_break(
    files: list[ArchivedFile], following: Path | None
) -> tuple[list[tuple[ArchivedFile, int]], StopReason | None]:
    """The files up to where the source is followed no further, each with its end, and why that is; None: it is followed."""
    ends = [(file, file.end) for file in files]
    if following is None:
        return ends, None
    try:
        gap = gap_before(following)
    except GapUnreadable:
        return ends, gap_in_archive(files[-1].name)
    if gap is None:
        return ends, source_changed(files[-1].name)
    kept = [one for one in ends if one[0].number <= binlog_number(gap.fork.file)]
    ends = [(file, min(end, gap.fork.offset) if file.name == gap.fork.file else end) for file, end in kept or ends[:1]]
    return ends, gap_in_archive(ends[-1][0].name)


def _looked_at(
    view: NamedView,
    directory: Path,
    files: list[tuple[ArchivedFile, int]],
    checkpoint: ViewCheckpoint | None,
    begin: Position,
    ends_for: StopReason | None,
) -> ViewOutlook:
    skips: Mapping[str, Mapping[int, int]] = skips_of([row for _number, row in read_ledgers(view.archive)], view.name)
    layer = FileLayer()
    sources = [
        LookedAtFile(file.name, end, partial(StoredFile.open, layer, directory / file.name), skips.get(file.name, {}))
        for file, end in files
    ]
    found = find_stops(sources, view.settings, begin=checkpoint)
    last, end = files[-1]
    if ends_for is not None:
        found.add(StopAhead(last.name, end, end, 0, ends_for))
    size = sum(end - FIRST_EVENT for _file, end in files) - (begin.offset - FIRST_EVENT)
    return ViewOutlook(begin, Position(last.name, end), size, found)
