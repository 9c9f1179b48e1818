"""The stops of building a view: which ones time may cure, and how people learn of them."""

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
"""The pause before a retry of an attempt whose failure may pass by itself."""
LONGEST_PAUSE_S: Final = 300.0
"""The longest pause after an unforeseen exception: the pauses begin with AGAIN_S and grow."""


class MakingWaits(ViewStopped):
    """Nothing can be built until the archive or relay.toml changes."""

    def __init__(self, file: str, offset: int, reason: StopReason) -> None:
        super().__init__(file, offset, offset, reason)


def check_writing(generation: Generation) -> None:
    """Check that what was handed over could be written. Raises: ArchiveWriteError."""
    if generation.state is GenerationState.FAILED and generation.failure is not None:
        raise generation.failure


_MAY_END: Final = frozenset(
    (
        UNKNOWN_DEFINITION,
        "replace_in_parent_table",
        "ignored_update",
        "upsert_ignored",
        "upsert_refused",
        "multi_table_delete",
    )
)
"""The stops that what the source reports of a table may end."""


def only_decided(error: Exception) -> bool:
    """Return whether only a decision lets the view continue: another attempt would end in the same stop."""
    return (
        isinstance(error, ViewStopped | ViewDiffers) and not isinstance(error, MakingWaits) and not lacks_table(error)
    )


def lacks_table(error: Exception) -> TypeGuard[ViewStopped]:
    """Return whether the view stopped for a table's definition, which the source may still report."""
    return isinstance(error, ViewStopped) and error.stop.reason.name in _MAY_END


def stop_by(
    error: ViewStopped | ViewDiffers | ViewDiskFailed | ArchiveError | OSError, view: str, made_to: Position | None
) -> ViewStop:
    """Return the stop that an error means. `view` is its name, `made_to` the source's position up to which the view was published."""
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
    """Return the stop that an unforeseen exception means. `group`: where the translated transaction begins and ends in the source's
    file; None: there was none."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f", at {Path(frames[-1].filename).name}:{frames[-1].lineno} ({frames[-1].name})" if frames else ""
    file, offset = (made_to.file, made_to.offset) if made_to is not None else ("", 0)
    start, stop = group or (offset, offset)
    reason = source_stops.internal_error(view, error, where, LONGEST_PAUSE_S, is_in_transaction=stop > start)
    return ViewStop(file, start, stop, reason, time.time())


def is_same(stop: ViewStop, before: ViewStop | None) -> bool:
    """Return whether it is the stop as before, which was reported."""
    return before is not None and (before.file, before.offset, before.reason) == (stop.file, stop.offset, stop.reason)


def tell_stop(stop: ViewStop, view: str, archive: Archive) -> None:
    """Report the stop in the log, and in the ledger of the view's archive."""
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
