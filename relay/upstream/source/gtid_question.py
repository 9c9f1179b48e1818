"""What the source has, asked now: for a replica that has what the relay has not."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pymysql.err
import structlog

from protocol.position import is_later
from relay.config import DirectorySource, ServerSource
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.open_source import open_source
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.source.source_gtids import SourceGtids, read_source_gtids
from relay.upstream.source.source_status import SourceLink

log = structlog.get_logger()
Told = TypeVar("Told")


async def ask_source_gtids(settings: ServerSource | DirectorySource, link: SourceLink) -> SourceGtids | None:
    """By a connection of its own. None: no stream of the source runs that would bring what it has, or it does not answer.

    Waits as long as a connection to the source may take, twice.
    """
    return await _ask(settings, link, lambda connection: read_source_gtids(connection, connection.facts.flavour))


async def lacks_file(settings: ServerSource | DirectorySource, link: SourceLink, name: str) -> bool:
    """Whether the source has no binlog of that name, and none behind it, as far as names say. False: it has, or does not answer.

    Waits as `ask_source_gtids`.
    """
    if not isinstance(settings, ServerSource):
        return True  # what is not in a directory is nowhere
    end = await _ask(settings, link, lambda connection: connection.newest_position())
    return end is not None and not is_later(end.file, name, or_same=True)


async def _ask(
    settings: ServerSource | DirectorySource,
    link: SourceLink,
    read: Callable[[SourceConnection], Awaitable[Told | None]],
) -> Told | None:
    if not isinstance(settings, ServerSource) or link.attached_at is None or link.identity is None:
        return None
    try:
        async with asyncio.timeout(2 * settings.connect_timeout_s):
            connection = await open_source(settings)
            try:
                # Another server may have taken the address since.
                facts = connection.facts
                if (facts.server_uuid, facts.server_id) != (link.identity.server_uuid, link.identity.server_id):
                    return None
                return await read(connection)
            finally:
                connection.close()
    except (UpstreamError, pymysql.err.MySQLError, OSError, TimeoutError) as error:
        log.info("source_gtids_not_seen", why=str(error), note="a replica is ahead; it may ask again")
        return None
