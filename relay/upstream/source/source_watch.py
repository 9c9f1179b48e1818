"""The watch that keeps the known variables of the source current while a stream runs.

MySQL begins a new binlog with every change of its GTID_MODE (5.6 changes it with a restart, which ends the stream). So a short look by
a separate connection, whenever the stream moves to a new file, sees every change, and no second connection stays open. Variables that
change without a trace in the binlog (SET GLOBAL gtid_purged or binlog_format; MariaDB's gtid_domain_id and gtid_strict_mode) are
checked every half minute.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

import pymysql.err
import structlog

from relay.process.background import begin_task, tell_fault
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.source.source_gtids import SourceGtids, look_again
from relay.upstream.source.source_settings import read_source_settings
from relay.upstream.source.source_status import SourceLink

log = structlog.get_logger()

# Files of a source with which the relay catches up come by the hundred: one look covers all of a second.
_PAUSE_S: Final = 1.0
_LOOK_EVERY_S: Final = 30.0


class SourceWatch:
    """One stream's looks at the source. Call `file_begins` for each file and `close` with the stream. For the event loop's thread.

    `open_connection` makes a connection. `on_changed` is awaited when something has changed. A look that fails by a fault of ours is
    reported once, until one has succeeded, and the next one comes all the same.
    """

    def __init__(
        self,
        open_connection: Callable[[], Awaitable[SourceConnection]],
        link: SourceLink,
        on_changed: Callable[[], Awaitable[None]],
    ) -> None:
        self._open = open_connection
        self._link = link
        self._on_changed = on_changed
        self._due = asyncio.Event()
        self._fault_reported = False
        self._task = begin_task(self._run(), "looking at the source's variables")

    def file_begins(self) -> None:
        """Note that the stream is at the beginning of a file."""
        self._due.set()

    def close(self) -> None:
        """Stop looking."""
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), _LOOK_EVERY_S)
            self._due.clear()
            try:
                await self._look()
                self._fault_reported = False
            except (UpstreamError, pymysql.err.MySQLError) as error:
                # The stream reports what is wrong with the source; there are other occasions.
                log.info("source_variables_not_seen", why=str(error), note="looked for again soon")
            except Exception as fault:
                if not self._fault_reported:
                    tell_fault(
                        "source_watch_failed", fault, stale="GTID_MODE, gtid_purged and such, until a look succeeds"
                    )
                self._fault_reported = True
            await asyncio.sleep(_PAUSE_S)

    async def _look(self) -> None:
        known = self._link.gtids or SourceGtids()
        connection = await self._open()
        try:
            seen = await look_again(connection, known)
            settings = await read_source_settings(connection, self._link.settings)
        finally:
            connection.close()
        if (seen, settings) == (known, self._link.settings):
            return
        self._link.gtids, self._link.settings = seen, settings
        if seen.mode != known.mode:
            log.info("source_gtid_mode", gtid_mode=seen.mode)
        await self._on_changed()
