"""What stops the making of a view: whether time may cure it, and how people are told."""

import json
import time
import traceback
from pathlib import Path
from typing import Final, TypeGuard

import structlog

from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveError
from relay.view.file_maker import ViewDiffers
from relay.view.stops import source_stops
from relay.view.stops.statement_stops import UNKNOWN_DEFINITION
from relay.view.stops.stop_reason import StopReason
from relay.view.stops.view_stop import STOPPED, ViewStop, ViewStopped
from relay.view.view_disk import ViewDiskFailed

log = structlog.get_logger()

AGAIN_S: Final = 10.0
"""What may go away by itself is tried again after so long."""
LONGEST_PAUSE_S: Final = 300.0
"""What nobody foresaw is tried again after AGAIN_S, then later and later, at most so long after."""


class MakingWaits(ViewStopped):
    """Nothing can be made until the archive changes, or somebody changes relay.toml."""

    def __init__(self, file: str, offset: int, reason: StopReason) -> None:
        super().__init__(file, offset, offset, reason)


def check_writing(generation: Generation) -> None:
    """Raises: ArchiveWriteError where what was handed over could not be written."""
    if generation.state is GenerationState.FAILED and generation.failure is not None:
        raise generation.failure


def only_decided(error: Exception) -> bool:
    """Whether only somebody's decision lets the view continue: another attempt would end in the same stop."""
    return (
        isinstance(error, ViewStopped | ViewDiffers) and not isinstance(error, MakingWaits) and not lacks_table(error)
    )


def lacks_table(error: Exception) -> TypeGuard[ViewStopped]:
    """Whether the view stopped for a table's definition, which the source may still report."""
    return isinstance(error, ViewStopped) and error.stop.reason.name == UNKNOWN_DEFINITION


def stop_by(
    error: ViewStopped | ViewDiffers | ViewDiskFailed | ArchiveError | OSError, view: str, made_to: Position | None
) -> ViewStop:
    """Return the stop that an error means. view: its name; made_to: of the source, up to where the view was published."""
    now = time.time()
    place = made_to if made_to is not None else Position("", 0)
    if isinstance(error, ViewStopped):
        return error.stop._replace(time=now)
    if isinstance(error, ViewDiffers):
        place, reason = Position(error.file, error.source_offset), source_stops.view_differs(view, str(error))
    elif isinstance(error, ArchiveDamaged):
        place = Position(error.file or "", error.offset or 0)
        reason = source_stops.archive_damaged(error.what, error.advice)
    elif isinstance(error, ArchiveError):
        reason = source_stops.write_failed(error.what, error.advice)
    elif isinstance(error, ViewDiskFailed):
        failed = source_stops.write_failed if error.is_written else source_stops.view_unreadable
        reason = failed(error.what, source_stops.retried(error.advice))
    else:
        what = error.filename or f"{place.file} of the archive"
        reason = source_stops.archive_unreadable(f"{what}: {error.strerror or error}")
    return ViewStop(place.file, place.offset, place.offset, reason, now)


def stop_by_fault(error: Exception, view: str, made_to: Position | None, group: tuple[int, int] | None) -> ViewStop:
    """Return the stop that an unforeseen exception means. group: in the source's file, where the transaction that was translated
    begins and ends; None: there was none."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f", at {Path(frames[-1].filename).name}:{frames[-1].lineno} ({frames[-1].name})" if frames else ""
    file, offset = (made_to.file, made_to.offset) if made_to is not None else ("", 0)
    start, stop = group or (offset, offset)
    reason = source_stops.internal_error(view, error, where, LONGEST_PAUSE_S, is_in_transaction=stop > start)
    return ViewStop(file, start, stop, reason, time.time())


def is_same(stop: ViewStop, before: ViewStop | None) -> bool:
    """Whether it stands as before, and people were told."""
    return before is not None and (before.file, before.offset, before.reason) == (stop.file, stop.offset, stop.reason)


def tell_stop(stop: ViewStop, view: str, archive: Archive) -> None:
    """In the log, and in the ledger of the view's archive."""
    reason = stop.reason
    log.error(
        "view_stopped",
        view=view,
        file=stop.file,
        offset=stop.offset,
        reason=reason.name,
        what=reason.text,
        replica_error=reason.error or None,
        advice=reason.advice or None,
    )
    generation = archive.current
    if generation.state is GenerationState.OPEN:
        facts = {"reason": reason.name, "replica_error": reason.error, "group_stop": stop.group_stop}
        details = json.dumps({**facts, "generation": stop.generation})
        generation.note_once(STOPPED, stop.file, stop.offset, reason.message, details)
