"""The outlook of one view in the archive: all stops that it will come to, from where it is built up to."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import Position, binlog_number
from relay.archive.catalog.generation_directories import FIRST, begun_generations, generation_path
from relay.archive.gaps.accepted_gap import GapUnreadable, gap_before
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import StoredFile
from relay.archive_inspection.listing import read_ledgers
from relay.packed_reads.archive_layer import layer_of
from relay.schema_history.initial_snapshot import InitialSnapshot
from relay.view.dependencies.planned_tables import PlannedTables
from relay.view.dependencies.tables_file import read_tables, tables_now
from relay.view.inspect.dry_run_stops import StopsFound, find_stops
from relay.view.inspect.file_pass import LookedAtFile, up_to_fork
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.view_listing import files_of
from relay.view.stops import source_stops
from relay.view.stops.stop_reason import StopReason
from relay.view.stops.view_stop import ViewStop
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_map import ViewMap
from relay.view.view_skips import skips_of

Progress = Callable[[int], AbstractContextManager[Callable[[int], None] | None]]
"""Called with the number of bytes to look at; gives the callable for numbers of bytes that are done, or None."""


class ViewOutlook(NamedTuple):
    """The search, from `begin` to `end` in the source's binlogs, `size_bytes` in all; None: the archive has nothing there."""

    begin: Position | None
    end: Position | None
    size_bytes: int
    found: StopsFound


def view_outlook(view: NamedView, progress: Progress = lambda _total: nullcontext()) -> ViewOutlook:
    """Look at the archive up to its end, or to where no view can continue. Blocking: reads it once. Works beside a running relay.

    Raises: CatalogUnreadable; PlaceUnknown; OSError; sqlite3.Error.
    """
    begun = _begin(view)
    held = [_HeldGeneration(number, path, files_of(path)) for number, path in begun_generations(view.archive)]
    held = [one for one in held if one.files]
    for number, generation in enumerate(held):
        names = [file.name for file in generation.files]
        first = 0
        if begun.place is not None:
            if begun.place.file not in names or begun.source_generation not in (None, generation.number):
                continue
            first = names.index(begun.place.file)
        held = [generation._replace(files=generation.files[first:]), *held[number + 1 :]]
        file = held[0].files[0]
        if begun.place is not None and begun.place.offset > file.end:
            reason = source_stops.start_not_archived(view.name, begun.place, f"the file ends at {file.end}")
            found = StopsFound()
            found.add(ViewStop(begun.place.file, begun.place.offset, begun.place.offset, reason))
            return ViewOutlook(None, None, 0, found)
        return _looked_at(view, held, begun, progress)
    found = StopsFound()
    if begun.place is not None:
        place = begun.place
        found.add(ViewStop(place.file, place.offset, place.offset, _not_there(view, place)))
    return ViewOutlook(None, None, 0, found)


def _not_there(view: NamedView, place: Position) -> StopReason:
    """Return why the file with which the view continues, or must begin, is not looked at."""
    if view.is_made or not (files := files_of(view.archive)) or files[0].number > binlog_number(place.file):
        return source_stops.file_missing(place.file)
    return source_stops.start_file_missing(view.name, place, files[0].name)


class _HeldGeneration(NamedTuple):
    """A generation of the source's archive, with its files."""

    number: int
    directory: Path
    files: list[ArchivedFile]


class _Begun(NamedTuple):
    """The place where the view continues, and the state there; None: the archive's beginning, and no state. `source_generation` is that
    of the archive that the place is in; None: not known. `sources` is how many came before in the view."""

    place: Position | None
    checkpoint: ViewCheckpoint | None
    source_generation: int | None = None
    sources: int = 0


def _begin(view: NamedView) -> _Begun:
    made = view.places.end() if view.is_made else None
    if made is not None:
        path = generation_path(view.directory, made.generation) / made.view.file
        checkpoint = ViewMap.read(path).before_view(made.view.offset)
        if checkpoint is not None:
            return _Begun(made.source, checkpoint, made.source_generation, made.generation - FIRST)
    start = view.settings.start
    return _Begun(None, None) if start is None else _Begun(start.position, ViewCheckpoint.of_view(start))


def _up_to_break(
    files: list[ArchivedFile], following: Path | None, *, by_gtid: bool
) -> tuple[list[tuple[ArchivedFile, int]], StopReason | None]:
    """Return the files up to where the source is not followed any further, each with its end, and why; None: the view may continue."""
    ends = [(file, file.end) for file in files]
    if following is None:
        return ends, None
    try:
        gap = gap_before(following)
    except GapUnreadable:
        return ends, source_stops.gap_in_archive(files[-1].name)
    if gap is None:
        return ends, None if by_gtid else source_stops.without_gtids(files[-1].name)
    ends = [(file, end) for file, _name, end in up_to_fork([(file, file.name, end) for file, end in ends], gap.fork)]
    return ends, source_stops.gap_in_archive(ends[-1][0].name)


def _tables(view: NamedView, generation: _HeldGeneration, begun: _Begun) -> PlannedTables | None:
    """Return what is known of the source's tables by the existing view, or by one that would be begun now."""
    if view.settings.dependencies == "serial":
        return None
    if begun.checkpoint is not None and view.is_made:
        return read_tables(generation_path(view.directory, begun.sources + FIRST), view.name)
    name = begun.place.file if begun.place is not None else generation.files[0].name
    place = begun.place.offset if begun.place is not None else FIRST_EVENT
    return tables_now(generation.directory, name, (binlog_number(name), place))


def _looked_at(view: NamedView, held: list[_HeldGeneration], begun: _Begun, progress: Progress) -> ViewOutlook:
    """Look at the archive's generations from where the view continues, up to the first after which it cannot."""
    skips = skips_of([row for _number, row in read_ledgers(view.archive)], view.name)
    layer = layer_of(view.archive)
    sources: list[LookedAtFile] = []
    ends_for: StopReason | None = None
    for number, generation in enumerate(held):
        following = held[number + 1].directory if number + 1 < len(held) else None
        tables = _tables(view, generation, begun if not number else _Begun(None, None))
        before = InitialSnapshot(generation.directory)
        files, ends_for = _up_to_break(generation.files, following, by_gtid=view.settings.gtids != "anonymous")
        sources += [
            LookedAtFile(
                file.name,
                end,
                partial(StoredFile.open, layer, generation.directory / file.name),
                skips.get((generation.number, file.name), {}),
                sources=begun.sources + number,
                tables=tables,
                before=before,
            )
            for file, end in files
        ]
        if ends_for is not None:
            break
    begin = Position(sources[0].name, begun.checkpoint.source if begun.checkpoint is not None else FIRST_EVENT)
    size = sum(one.end - FIRST_EVENT for one in sources) - (begin.offset - FIRST_EVENT)
    with progress(size) as on_looked:
        found = find_stops(sources, view.settings, begin=begun.checkpoint, on_looked=on_looked)
    last = sources[-1]
    if ends_for is not None:
        found.add(ViewStop(last.name, last.end, last.end, ends_for))
    return ViewOutlook(begin, Position(last.name, last.end), size, found)
