"""The questions of the downstream side about the source that is followed. Each is asked when it is needed: the answers change."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from protocol.gtid.dump_decision import SourceHoldings
from protocol.statements.session.gtid_variables import GtidVariables


async def has_no_more(_name: str) -> bool:
    """Return True for a relay that follows no source: a position that is not in the archive is nowhere."""
    return True


async def nobody_to_ask() -> SourceHoldings | None:
    """Return None for a relay that follows no source."""
    return None


@dataclass(frozen=True, slots=True)
class SourceState:
    """The functions that answer these questions on the event loop.

    gtid_variables, settings: the source's variables for replicas. gtid_mode: its GTID_MODE as far as it is known; None: it has none,
    or no source is followed. trouble: why the source cannot be reached, without a stop at its end; None: nothing is wrong, or nothing
    was tried yet. ask_gtids: the GTIDs that the source itself has, requested after the call; None: no answer now. lacks_file: whether
    it has no binlog of that name and none after it; False also if it does not answer.
    """

    gtid_variables: Callable[[], GtidVariables] = GtidVariables
    settings: Callable[[], Mapping[str, str]] = dict
    gtid_mode: Callable[[], str | None] = lambda: None
    trouble: Callable[[], str | None] = lambda: None
    ask_gtids: Callable[[], Awaitable[SourceHoldings | None]] = nobody_to_ask
    lacks_file: Callable[[str], Awaitable[bool]] = has_no_more
