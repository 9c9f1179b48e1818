"""The place in the source's binlogs where a stream begins, or the reason why it cannot."""

import structlog

from protocol.errors import Malformed
from protocol.position import Position, binlog_number
from relay.config import ServerSource, StartPosition
from relay.upstream.source.connection import OFFSET_LIMIT, SourceConnection
from relay.upstream.source.source_errors import ACCEPT_GAP, FailureKind, UpstreamError

log = structlog.get_logger()


async def agree_on_start(
    connection: SourceConnection, place: Position | None, settings: ServerSource, *, ask: bool = True
) -> tuple[Position | None, str]:
    """Return (where the stream goes on in the archive or None for a new file, file name for the dump command).

    `place` is the archive's end. With `ask` it is compared with the source's list of binlogs; otherwise the source's answer to the dump
    command decides. Raises: UpstreamError, POSITION_GONE and IDENTITY for a source that cannot go on from there.
    """
    if place is None:
        return None, await _first_file(connection, settings, ask)
    binlogs = await connection.binlogs() if ask else None
    if binlogs is None:
        return _addressable(place), place.file
    sizes = dict(binlogs)
    names = [name for name, _ in binlogs]
    if place.file not in sizes:
        oldest, newest = (names[0], names[-1]) if names else ("none", "none")
        purged = names and _number(names[0]) > _number(place.file)
        raise UpstreamError(
            FailureKind.POSITION_GONE if purged else FailureKind.IDENTITY,
            f"the source no longer has {place.file}, where the archive ends at {place.offset}; it has {oldest} to {newest}",
            f"Files between were purged: copy them from a backup into the archive, and the source's {oldest} too, "
            f"and run `archive rebuild`. {ACCEPT_GAP}"
            if purged
            else "The source was reset (RESET MASTER), restored, or is another one: then give it a source.name of its own. "
            f"{ACCEPT_GAP}",
            name="position_purged" if purged else "source_was_reset",
        )
    size = sizes[place.file]
    if size < place.offset:
        raise UpstreamError(
            FailureKind.POSITION_GONE,
            f"the source came back shorter: its {place.file} ends at {size}, the archive holds it up to {place.offset}",
            f"The source lost its last {place.offset - size} bytes (a crash without sync_binlog=1), or was reset. Replicas of "
            f"this relay have what it lost. Decide which side is right before anything else; the archive is untouched. {ACCEPT_GAP}",
            name="source_lost_its_tail",
        )
    at = names.index(place.file)
    if size == place.offset and place.offset >= OFFSET_LIMIT and at + 1 < len(names):
        # A file that ends beyond 4 GiB cannot be requested at its end; it is complete, so the next one follows.
        return None, names[at + 1]
    return _addressable(place), place.file


def beyond_the_command(place: Position | None) -> bool:
    """Return whether only the list of binlogs can tell how a stream goes on from there."""
    return place is not None and place.offset >= OFFSET_LIMIT


def _addressable(place: Position) -> Position:
    if place.offset >= OFFSET_LIMIT:
        raise UpstreamError(
            FailureKind.POSITION_GONE,
            f"{place} lies beyond 4 GiB, where a source cannot be asked to start by file and position",
            f"Run FLUSH BINARY LOGS on the source, stop the relay, copy the source's finished {place.file} over the archived "
            "one, run `binlog-relay archive rebuild` and start the relay: it goes on with the next file.",
            name="position_beyond_4gib",
        )
    return place


async def _first_file(connection: SourceConnection, settings: ServerSource, ask: bool) -> str:
    start = settings.start
    if isinstance(start, StartPosition):
        binlogs = await connection.binlogs() if ask else None
        if binlogs and start.file not in dict(binlogs):
            raise UpstreamError(
                FailureKind.SETUP,
                f"the source has no {start.file}, which source.start names; it has {binlogs[0][0]} to {binlogs[-1][0]}",
                'Name one of these in source.start, or write start = "earliest".',
                name="start_not_found",
            )
        if start.position != 4:
            log.info("start_at_file_begin", file=start.file, asked=start.position, note="an archived file is whole")
        return start.file
    if start == "latest":
        return await connection.newest_binlog()
    binlogs = await connection.binlogs() if ask else None
    # Without a name the source begins with its oldest.
    return binlogs[0][0] if binlogs else ""


def _number(name: str) -> int:
    try:
        return binlog_number(name)
    except Malformed:
        return -1
