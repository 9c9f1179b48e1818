"""The retry loop: one attempt at a source after the other, until one ends in a way that a retry cannot cure."""

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from relay.archive.generation import Generation
from relay.archive.storage.archive_errors import ArchiveError
from relay.upstream.source.reconnect import Reconnect
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_status import SourceLink

log = structlog.get_logger()

_LOOK_FOR_ROOM_S: Final = 2.0


async def keep_trying(
    archived: Callable[[], Generation], attempt: Callable[[], Awaitable[None]], link: SourceLink
) -> UpstreamError:
    """Call `attempt`, which ends only by an error, repeatedly. Return the error that ended it for good.

    `archived()` returns the generation that is being written. A transaction that did not fit on the disk is not requested again before
    there is more room than it has needed so far. Each end is logged with the archive's end and the time of the next attempt, which
    `link.hurry` brings forward; the last one, unless it is a mistake in the set-up, is also a row in the ledger.
    """
    reconnect = Reconnect()
    while True:
        link.connecting()
        try:
            await attempt()
        except UpstreamError as error:
            ended = error
        except ArchiveError as error:
            ended = UpstreamError(FailureKind.ARCHIVE, error.text, error.advice, name="archive_failed")
        generation = archived()
        place = generation.end
        pause = reconnect.pause_after(ended.kind, place)
        link.lost(ended, final=pause is None)
        facts = {"trouble": ended.name, **ended.fields(), "archive_end": str(place) if place is not None else None}
        if pause is None:
            log.error("source_given_up", **facts, retry_in_s=None)
            if ended.kind is not FailureKind.SETUP:
                file, offset = (place.file, place.offset) if place is not None else ("", -1)
                generation.append_ledger(ended.name, file, offset, ended.what)
            return ended
        log.warning("source_lost", **facts, retry_in_s=round(pause, 3))
        if await _pause(generation, link, pause):
            reconnect = Reconnect()


async def _pause(generation: Generation, link: SourceLink, pause_s: float) -> bool:
    """Wait for the next attempt. Return True if it was requested now, whatever the reason of the wait."""
    while True:
        if await link.pause(pause_s):
            return True
        if await generation.may_have_room():
            return False
        pause_s = _LOOK_FOR_ROOM_S
