"""What the downstream side asks about the source that is followed. Each is asked when it is needed: it changes meanwhile."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from protocol.gtid.dump_decision import SourceHoldings
from protocol.statements.session.gtid_variables import GtidVariables


async def has_no_more(_name: str) -> bool:
    """Where no source is followed: what is not in the archive is nowhere."""
    return True


async def nobody_to_ask() -> SourceHoldings | None:
    """Where no source is followed."""
    return None


@dataclass(frozen=True, slots=True)
class SourceState:
    """Functions for the event loop.

    gtid_variables, settings: the source's variables as replicas are shown them. gtid_mode: its GTID_MODE as far as it is
    known; None: it has none, or there is nobody to ask. trouble: why the source cannot be reached, without a stop at its end;
    None: nothing is wrong, or nothing was tried yet. ask_gtids: what the source itself has, asked after the call; None: it
    does not say now. lacks_file: whether it has no binlog of that name and none behind it; False also where it does not say.
    """

    gtid_variables: Callable[[], GtidVariables] = GtidVariables
    settings: Callable[[], Mapping[str, str]] = dict
    gtid_mode: Callable[[], str | None] = lambda: None
    trouble: Callable[[], str | None] = lambda: None
    ask_gtids: Callable[[], Awaitable[SourceHoldings | None]] = nobody_to_ask
    lacks_file: Callable[[str], Awaitable[bool]] = has_no_more
