"""Queries for the source's current state: for a replica that has what is missing from the relay."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import pymysql.err
import structlog

from protocol.position import Position, is_later
from relay.config import DirectorySource, ServerSource
from relay.process.background import begin_task
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.open_source import open_source
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.source.source_gtids import SourceGtids, read_source_gtids
from relay.upstream.source.source_status import SourceLink

log = structlog.get_logger()
Told = TypeVar("Told")


_BETWEEN_S: Final = 1.0
"""The time from the end of one query to the beginning of the next: each is a login at the source."""


class SourceQuestions:
    """The queries for the source's current state, shared by all callers: one connection at a time, however many ask.

    `settings` returns the source's at each query.
    """

    def __init__(self, settings: Callable[[], ServerSource | DirectorySource], link: SourceLink) -> None:
        self._settings = settings
        self._link = link
        self._gtids = _SharedAnswer(self._ask_gtids)
        self._newest = _SharedAnswer(self._ask_newest)

    async def gtids(self) -> SourceGtids | None:
        """Return the source's GTIDs; None if no stream of the source runs that would bring what it has, or if it does not answer.

        Waits as long as two connections to the source may take, twice each.
        """
        return await self._gtids.asked_now()

    async def lacks_file(self, name: str) -> bool:
        """Return whether the source has no binlog of that name, and none after it, by their names; False if it has, or does not answer.

        Waits as long as `gtids`.
        """
        if not isinstance(self._settings(), ServerSource):
            return True  # What is not in a directory is nowhere
        end = await self._newest.asked_now()
        return end is not None and not is_later(end.file, name, or_same=True)

    async def _ask_gtids(self) -> SourceGtids | None:
        return await _ask(
            self._settings(), self._link, lambda connection: read_source_gtids(connection, connection.facts.flavour)
        )

    async def _ask_newest(self) -> Position | None:
        return await _ask(self._settings(), self._link, lambda connection: connection.newest_position())


class _SharedAnswer(Generic[Told]):
    """A question that is asked once at a time: callers during it share the answer to the next one, which is as new as it must be."""

    def __init__(self, ask: Callable[[], Awaitable[Told | None]]) -> None:
        self._ask = ask
        self._running: asyncio.Task[Told | None] | None = None
        self._next: asyncio.Task[Told | None] | None = None
        self._ended_at = float("-inf")

    async def asked_now(self) -> Told | None:
        if self._next is None:
            self._next = begin_task(self._ask_after(self._running), "asking the source what it has")
        return await asyncio.shield(self._next)

    async def _ask_after(self, running: asyncio.Task[Told | None] | None) -> Told | None:
        if running is not None:
            await asyncio.wait({running})
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(max(0.0, self._ended_at + _BETWEEN_S - clock()))
        self._running, self._next = self._next, None
        try:
            return await self._ask()
        finally:
            self._ended_at, self._running = clock(), None


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
