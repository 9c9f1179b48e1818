"""What stops the making of a view: whether time may cure it, and how people are told."""

import json
import time
import traceback
from pathlib import Path
from typing import Final

import structlog

from protocol.errors import RelayError
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveError
from relay.view.file_maker import ViewDiffers
from relay.view.rules.group import StopReason
from relay.view.rules.mariadb.statement.statement_stops import TABLE_UNKNOWN
from relay.view.translate.view_stopped import ViewStopped
from relay.view.view_disk import ViewDiskFailed
from relay.view.view_stop import STOPPED, ViewStop

log = structlog.get_logger()

AGAIN_S: Final = 10.0
"""What may go away by itself is tried again after so long."""
LONGEST_PAUSE_S: Final = 300.0
"""What nobody foresaw is tried again after AGAIN_S, then later and later, at most so long after."""


class MakingWaits(RelayError):
    """Nothing can be done until the archive has changed."""

    def __init__(self, file: str, offset: int, reason: StopReason) -> None:
        super().__init__(reason.text)
        self.stop = ViewStop(file, offset, offset, reason, time.time())


def check_writing(generation: Generation) -> None:
    """Raises: ArchiveWriteError where what was handed over could not be written."""
    if generation.state is GenerationState.FAILED and generation.failure is not None:
        raise generation.failure


def only_decided(error: Exception) -> bool:
    """Whether only somebody's decision lets the view go on: trying again would meet the same."""
    return isinstance(error, ViewStopped | ViewDiffers) and not lacks_table(error)


def lacks_table(error: Exception) -> bool:
    """Whether it is for want of a table's definition, which the source may still tell."""
    return isinstance(error, ViewStopped) and error.reason.name == TABLE_UNKNOWN


Foreseen = ViewStopped | ViewDiffers | MakingWaits | ViewDiskFailed | ArchiveError | OSError


def stop_by(error: Foreseen, view: str, made_to: Position | None) -> ViewStop:
    """What is shown of an error. view: its name; made_to: of the source, what was handed over."""
    now = time.time()
    file, offset = (made_to.file, made_to.offset) if made_to is not None else ("", 0)
    if isinstance(error, MakingWaits):
        return error.stop
    if isinstance(error, ViewStopped):
        return ViewStop(error.file, error.offset, error.group_stop, error.reason, now)
    if isinstance(error, ViewDiffers):
        advice = f'Run "binlog-relay view rebuild {view}" with the relay stopped. Its replicas go on where what they have is the same.'
        reason = StopReason("view_differs", f"{error}.", 0, advice)
        return ViewStop(error.file, error.source_offset, error.source_offset, reason, now)
    if isinstance(error, ArchiveDamaged):
        reason = StopReason("archive_damaged", error.what, 0, error.advice)
        return ViewStop(error.file or "", error.offset or 0, error.offset or 0, reason, now)
    if isinstance(error, ArchiveError):
        reason = StopReason("view_write_failed", error.what, 0, error.advice)
    elif isinstance(error, ViewDiskFailed):
        advice = f"{error.advice} It is tried again every 10 seconds.".lstrip()
        reason = StopReason("view_write_failed", error.what, 0, advice)
        if not error.is_written:
            reason = StopReason("view_unreadable", error.what, 0, advice)
    else:
        text = f"{error.filename or f'{file} of the archive'}: {error.strerror or error}"
        reason = StopReason("archive_unreadable", text, 0, "It is tried again every 10 seconds.")
    return ViewStop(file, offset, offset, reason, now)


def stop_by_fault(error: Exception, view: str, made_to: Position | None, group: tuple[int, int] | None) -> ViewStop:
    """The same of an exception that nobody foresaw. group: of the source's file, where the transaction that was looked at begins and
    ends; None: it was none."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f", at {Path(frames[-1].filename).name}:{frames[-1].lineno} ({frames[-1].name})" if frames else ""
    file, offset = (made_to.file, made_to.offset) if made_to is not None else ("", 0)
    start, stop = group or (offset, offset)
    advice = (
        "It is a fault of binlog-relay: please report it, with the line task_failed of the log. It is tried again by itself, at "
        f"most {LONGEST_PAUSE_S / 60:.0f} minutes later."
    )
    if stop > start:
        advice += f" binlog-relay view skip {view} leaves the transaction out."
    reason = StopReason("view_fault", f"{type(error).__name__}: {error}{where}", 0, advice)
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
        generation.note_once(STOPPED, stop.file, stop.offset, reason.told, details)
