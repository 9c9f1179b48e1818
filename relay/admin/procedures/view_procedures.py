"""CALL binlog_relay.view_list(), view_find() and view_skip(): what there is to know and to decide about the views of a relay."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from protocol.errors import ErrorCode, Malformed, StatementRefused
from protocol.gtid.mysql_gtid import MysqlGtid
from protocol.position import Position
from protocol.resultset import Column, Rows, Value
from protocol.statements.requests import FindViewPlace, SkipInView
from relay.archive.archive import Archive
from relay.view.inspect.named_view import named_view
from relay.view.rules.settings import ViewSettings
from relay.view.shown_view import ShownView, stop_text
from relay.view.view_place import InsideTransaction, PlaceUnknown


class RunningView(ShownView, Protocol):
    """A view that this relay makes."""

    @property
    def archive(self) -> Archive:
        """Its own."""

    def skip(self, file: str, offset: int, by: str) -> None:
        """Leaves out what it has stopped at. Raises: StatementRefused."""


def list_views(views: Mapping[str, RunningView]) -> Rows:
    """A line for each view."""
    columns = (
        *(Column.text(name, width) for name, width in (("View", 64), ("Gtids", 16), ("Uuid", 36), ("For", 16))),
        *(Column.text(name, 64) for name in ("Files", "Bytes", "Made_up_to", "In_the_view", "Behind_bytes")),
        Column.text("Stopped", 4096),
    )
    return Rows(columns, tuple(_line(view) for view in views.values()))


def _line(view: RunningView) -> tuple[Value, ...]:
    settings, status, generations = view.settings, view.status, view.archive.all
    end = generations[-1].end
    return (
        settings.name,
        settings.gtids,
        str(settings.uuid) if settings.gtids == "assign" else "",
        settings.target,
        str(sum(len(generation.files) for generation in generations)),
        str(sum(generation.held.total_bytes for generation in generations)),
        str(status.source) if status.source is not None else "",
        str(end) if end is not None else "",
        str(status.behind_bytes),
        f"{status.stop.reason.name}: {stop_text(status.stop)}" if status.stop is not None else "",
    )


async def find_view_place(mirror: Archive, views: Mapping[str, RunningView], request: FindViewPlace) -> Rows:
    """The place by all its names. Raises: StatementRefused, also for a place that is none."""
    settings = _view(views, request.view).settings
    generations = [generation.directory for generation in mirror.all]
    return await asyncio.to_thread(place_found, mirror.directory, generations, settings, request)


def place_found(archive: Path, generations: Sequence[Path], settings: ViewSettings, request: FindViewPlace) -> Rows:
    """The same, of directories: the source's, and those of its generations. Blocking. Raises: StatementRefused; OSError."""
    view = named_view(archive, settings, generations)
    try:
        if request.by == "source":
            place = view.of_source(Position(request.text, request.offset))
        elif request.by == "view":
            place = view.of_view(Position(request.text, request.offset))
        else:
            place = view.behind(MysqlGtid.from_text(request.text))
        executed = view.executed(place)
    except InsideTransaction as inside:
        raise _refused(view.inside_text(inside)) from None
    except PlaceUnknown as unknown:
        raise _refused(str(unknown)) from None
    except Malformed as error:
        raise StatementRefused(ErrorCode.ER_WRONG_ARGUMENTS, f"Incorrect arguments to view_find: {error}") from None
    names = ("Source_file", "Source_position", "View_file", "View_position", "Newest_assigned")
    row = (
        place.source.file,
        str(place.source.offset),
        place.view.file,
        str(place.view.offset),
        view.newest_gtid(place.gno),
        executed.line,
    )
    return Rows((*(Column.text(name, 128) for name in names), Column.text("Executed_Gtid_Set", 1 << 20)), (row,))


def skip_in_view(views: Mapping[str, RunningView], request: SkipInView, *, by: str) -> Rows:
    """Raises: StatementRefused where the view does not stand stopped there."""
    _view(views, request.view).skip(request.file, request.offset, by)
    text = (
        f"View {request.view} leaves out the transaction at {request.file}:{request.offset}; an empty one has its GTID. It is "
        "in the ledger"
    )
    return Rows((Column.text("State", 1024),), ((text,),))


def _view(views: Mapping[str, RunningView], name: str) -> RunningView:
    view = views.get(name)
    if view is None:
        known = f"there are {', '.join(views)}" if views else "there is none, or none is open yet"
        raise _refused(f"There is no view {name!r}: {known}")
    return view


def _refused(text: str) -> StatementRefused:
    return StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, text)
