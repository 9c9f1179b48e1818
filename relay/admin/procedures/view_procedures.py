"""CALL binlog_relay.view_list(), view_find() and view_skip(): information and decisions about the views of a relay."""

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from protocol.errors import ErrorCode, Malformed, StatementRefused
from protocol.position import Position
from protocol.resultset import AnswerColumn, Rows, Value
from protocol.statements.requests import FindViewPlace, SkipInView
from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveError
from relay.fairness.client_threads import in_turn
from relay.process.background import run_to_end
from relay.view.inspect.named_view import NamedView, named_view
from relay.view.rules.settings import ViewSettings
from relay.view.shown_view import ShownView
from relay.view.unopened_view import UnopenedView
from relay.view.view_place import InsideTransaction, PlaceUnknown


class RunningView(ShownView, Protocol):
    """A view that this relay builds."""

    @property
    def archive(self) -> Archive:
        """Its own archive."""

    async def skip(self, file: str, offset: int, by: str) -> None:
        """Leave out the transaction at which it has stopped. Raises: StatementRefused."""


ListedView = RunningView | UnopenedView


def list_views(views: Mapping[str, ListedView]) -> Rows:
    """Return a line for each view, also for one that is not open."""
    columns = (
        *(AnswerColumn.text(name, width) for name, width in (("View", 64), ("Gtids", 16), ("Uuid", 36), ("For", 16))),
        *(AnswerColumn.text(name, 64) for name in ("Files", "Bytes", "Made_up_to", "In_the_view", "Behind_bytes")),
        AnswerColumn.text("Dependencies", 1024),
        AnswerColumn.text("Not_kept", 1024),
        AnswerColumn.text("Stopped", 4096),
    )
    lines = (_unopened_line(view) if isinstance(view, UnopenedView) else _line(view) for view in views.values())
    return Rows(columns, tuple(lines))


def _unopened_line(view: UnopenedView) -> tuple[Value, ...]:
    settings, status = view.settings, view.status
    made = str(status.source) if status.source is not None else ""
    return (
        settings.name,
        settings.gtids,
        "",
        settings.target,
        "",
        "",
        made,
        "",
        "",
        "",
        "",
        status.stop.named_message,
    )


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
        status.waits.told() if status.waits is not None else "",
        status.left_out.told() if status.left_out is not None else "",
        status.stop.named_message if status.stop is not None else "",
    )


async def find_view_place(
    mirror: Archive, views: Mapping[str, ListedView], request: FindViewPlace, finding: asyncio.Lock
) -> Rows:
    """Return the place by all its names. finding: held meanwhile, also if the caller is cancelled. Raises: StatementRefused, also for
    a place that does not exist."""
    settings = _view(views, request.view).settings
    generations = [generation.directory for generation in mirror.all]

    async def found() -> Rows:
        try:
            return await in_turn(place_found, mirror.directory, generations, settings, request)
        finally:
            finding.release()

    await finding.acquire()
    return await run_to_end(found(), "finding a place of a view", expected=(StatementRefused,))


def place_found(archive: Path, generations: Sequence[Path], settings: ViewSettings, request: FindViewPlace) -> Rows:
    """Return the same by directories: the source's, and those of its generations. Blocking. Raises: StatementRefused."""
    try:
        view = named_view(archive, settings, generations)
        return _place_found(view, request)
    except (ArchiveError, OSError, sqlite3.Error) as error:
        raise _refused(f"The place cannot be looked up now: {error}") from error


def _place_found(view: NamedView, request: FindViewPlace) -> Rows:
    """Return the place. Raises: StatementRefused; ArchiveError; OSError; sqlite3.Error."""
    try:
        if request.by == "source":
            place = view.of_source(Position(request.text, request.offset))
        elif request.by == "view":
            place = view.of_view(Position(request.text, request.offset))
        else:
            place = view.behind_text(request.text)
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
    return Rows(
        (*(AnswerColumn.text(name, 128) for name in names), AnswerColumn.text("Executed_Gtid_Set", 1 << 20)),
        (row,),
    )


async def skip_in_view(views: Mapping[str, ListedView], request: SkipInView, *, by: str) -> Rows:
    """Leave out a transaction. Raises: StatementRefused if the view has not stopped there, or the ledger cannot be written."""
    skipping = _view(views, request.view).skip(request.file, request.offset, by)
    await run_to_end(skipping, "skipping a transaction in a view", expected=(StatementRefused,))
    text = (
        f"View {request.view} leaves out the transaction at {request.file}:{request.offset}; an empty one has its GTID. It is "
        "in the ledger"
    )
    return Rows((AnswerColumn.text("State", 1024),), ((text,),))


def not_opened(view: UnopenedView) -> StatementRefused:
    """Return the refusal for a request about a view that is not open."""
    return _refused(f"The view {view.settings.name} is not open: {view.status.stop.message}")


def _view(views: Mapping[str, ListedView], name: str) -> RunningView:
    view = views.get(name)
    if view is None:
        known = f"relay.toml has {', '.join(views)}" if views else "relay.toml had none when the relay was started"
        raise _refused(f"There is no view {name!r}: {known}")
    if isinstance(view, UnopenedView):
        raise not_opened(view)
    return view


def _refused(text: str) -> StatementRefused:
    return StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, text)
