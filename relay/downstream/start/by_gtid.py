"""Where a replica begins that asks by GTID, MySQL's COM_BINLOG_DUMP_GTID or MariaDB's `@slave_connect_state`.

All that takes time (a set of 16 MB, thousands of files, the start file's transactions) is done in the thread of
`GtidLookup`; the event loop gets a `GtidStart`.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from protocol.commands import BinlogDump
from protocol.errors import ErrorCode, PositionRefused
from protocol.gtid.dump_decision import StillAwaited
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.resultset import Value
from protocol.statements import SourceFacts
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.request.refusal import refusal
from relay.downstream.start.gtid_request import GtidRequest, GtidStart
from relay.downstream.start.mariadb_request import MariadbRequest
from relay.downstream.start.mysql_request import MysqlRequest

_RECHECK_S: Final = 0.05


def asks_by_gtid(request: BinlogDump | BinlogDumpGtid, facts: SourceFacts, user_variables: dict[str, Value]) -> bool:
    """Whether this request is answered here. A MariaDB replica of a MySQL source has no GTIDs to ask by."""
    return isinstance(request, BinlogDumpGtid) or (
        facts.is_mariadb and user_variables.get("slave_connect_state") is not None
    )


async def find_gtid_start(
    request: BinlogDump | BinlogDumpGtid,
    user_variables: dict[str, Value],
    facts: SourceFacts,
    gtids: GtidLookup,
    *,
    wait_s: float,
    next_move: Callable[[], asyncio.Event],
) -> GtidStart:
    """Where to begin. Waits up to `wait_s` for what the replica has and the archive may still get: that is for the source to
    say, which is asked once.

    Raises: PositionRefused; OSError and Malformed for an archive that cannot be read.
    """
    asked_for: GtidRequest
    if isinstance(request, BinlogDumpGtid):
        asked_for = MysqlRequest(request, facts, gtids)
    else:
        asked_for = MariadbRequest(user_variables, facts, gtids)
    loop = asyncio.get_running_loop()
    wait_s = 0.0 if request.ends_at_end else wait_s
    deadline = loop.time() + wait_s
    asked = False
    while True:
        moved = next_move()
        try:
            start = await gtids.ask(asked_for.start)
        except StillAwaited as awaited:
            if not asked:
                asked = True
                source = await gtids.ask_source()
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
    """ERR 1105, which makes a replica try again: the source may have it, the relay has not."""
    text = (
        f"What the replica has did not reach binlog-relay (waited {wait_s:g} s), it may try again. A source would say: "
    )
    return refusal(text + awaited.refused.message, ErrorCode.ER_UNKNOWN_ERROR)
