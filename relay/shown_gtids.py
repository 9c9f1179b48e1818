"""The GTID variables as replicas and monitors see them: what the archive has, and what the source says of its mode."""

from collections.abc import Callable
from typing import Final

from protocol.gtid.dump_decision import SourceHoldings
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from protocol.statements.session.gtid_variables import GtidVariables
from relay.archive.archive import Archive
from relay.upstream.control import SourceControl
from relay.upstream.source.source_gtids import SourceGtids

_NO_TRANSACTIONS: Final = GtidSet()
_NO_STATE: Final = GtidList()


async def source_holdings(control: SourceControl) -> SourceHoldings | None:
    """What the source itself has, asked now; None: it cannot be told."""
    gtids = await control.ask_gtids()
    if gtids is None or (gtids.mode is None and gtids.binlog_state is None):
        return None
    return SourceHoldings(gtids.executed if gtids.binlog_state is None else gtids.binlog_state)


class ShownGtids:
    """Called for each answer, on the event loop."""

    def __init__(self, archive: Archive, source: Callable[[], SourceGtids | None]) -> None:
        self._archive = archive
        self._source = source

    def __call__(self) -> GtidVariables:
        """As it is now."""
        source = self._source() or SourceGtids()
        executed, purged = self._archive.executed, self._archive.purged
        return GtidVariables(
            # Nobody can be asked for the mode of a directory: its binlogs have GTIDs or they have none.
            mode=source.mode or ("ON" if executed and isinstance(executed, GtidSet) else "OFF"),
            executed=executed if isinstance(executed, GtidSet) else _NO_TRANSACTIONS,
            purged=purged if isinstance(purged, GtidSet) else _NO_TRANSACTIONS,
            binlog_state=executed if isinstance(executed, GtidList) else _NO_STATE,
            domain_id=source.domain_id,
            strict_mode=source.strict_mode,
        )
