"""The start of a replica that asks by GTID: MySQL's COM_BINLOG_DUMP_GTID or MariaDB's `@slave_connect_state`.

Everything that takes time (a set of 16 MB, thousands of files, the start file's transactions) is done in the thread of `GtidLookup`;
the event loop gets the filter of the stream, which knows the file.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from protocol.errors import ErrorCode, PositionRefused
from protocol.gtid.dump_decision import StillAwaited
from protocol.gtid.dump_request import BinlogDumpGtid
from relay.downstream.gtid_filter.gtid_filter import GtidFilter
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.request.dump_request import DumpRequest
from relay.downstream.request.refusal import refusal
from relay.downstream.start.gtid_request import GtidRequest
from relay.downstream.start.mariadb_request import MariadbRequest
from relay.downstream.start.mysql_request import MysqlRequest

_RECHECK_S: Final = 0.05
LEAST_ASKED_S: Final = 2.0
"""The least time to wait for a source that is asked what a replica may have of it."""


def gtid_request(request: DumpRequest, gtids: GtidLookup) -> GtidRequest:
    """Return what the replica reported that it has. Raises: PositionRefused for what cannot be read, and if the source's GTID_MODE
    forbids it.
    """
    if isinstance(request.command, BinlogDumpGtid):
        return MysqlRequest(request.command, request.facts, gtids)
    return MariadbRequest(request.variables, request.facts, gtids)


async def find_gtid_start(
    requested: GtidRequest, gtids: GtidLookup, *, wait_s: float, next_move: Callable[[], asyncio.Event]
) -> GtidFilter:
    """Return where to begin. Wait up to `wait_s` for what the replica has and the archive may still get: the source, which is asked
    once, decides that.

    Raises: PositionRefused; OSError and Malformed for an archive that cannot be read.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    asked = False
    while True:
        moved = next_move()
        try:
            start = await gtids.ask(requested.start)
        except StillAwaited as awaited:
            if not asked:
                asked = True
                source = None
                with contextlib.suppress(TimeoutError):  # a source that does not answer adds nothing
                    source = await asyncio.wait_for(gtids.source.ask_gtids(), max(wait_s, LEAST_ASKED_S))
                if source is not None and source.lacks(awaited.awaited):
                    raise awaited.refused from None
            if loop.time() >= deadline:
                raise _not_here_yet(awaited, wait_s) from None
        else:
            if start is not None:
                return start
            if loop.time() >= deadline:
                text = f"binlog-relay has no binlog yet (waited {wait_s:g} s). The replica may try again"
                raise refusal(text, ErrorCode.ER_UNKNOWN_ERROR)
        left = deadline - loop.time()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(moved.wait(), max(left, 0.0))
        await asyncio.sleep(min(_RECHECK_S, max(left, 0.0)))


def _not_here_yet(awaited: StillAwaited, wait_s: float) -> PositionRefused:
    """Return ERR 1105, which makes a replica try again: the source may have it, the relay does not."""
    text = (
        f"What the replica has did not reach binlog-relay (waited {wait_s:g} s), it may try again. A source would say: "
    )
    return refusal(text + awaited.refused.what, ErrorCode.ER_UNKNOWN_ERROR)
