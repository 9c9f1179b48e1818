"""The GTID variables as replicas and monitors see them: the archive's contents, and the mode that the source reports."""

from collections.abc import Callable
from typing import Final

from protocol.gtid.dump_decision import SourceHoldings
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from protocol.statements.session.gtid_variables import GtidVariables
from relay.archive.archive import Archive
from relay.archive.storage.gtid_facts import GtidValue
from relay.upstream.control import SourceControl
from relay.upstream.source.source_gtids import SourceGtids
from relay.view.rules.settings import GtidPolicy

_NO_TRANSACTIONS: Final = GtidSet()
_NO_STATE: Final = GtidList()


async def source_holdings(control: SourceControl) -> SourceHoldings | None:
    """Return what the source itself has, requested now; None: it is unknown."""
    gtids = await control.ask_gtids()
    if gtids is None or (gtids.mode is None and gtids.binlog_state is None):
        return None
    return SourceHoldings(gtids.executed if gtids.binlog_state is None else gtids.binlog_state)


class ShownGtids:
    """Called for each answer, on the event loop."""

    def __init__(
        self,
        archive: Archive,
        source: Callable[[], SourceGtids | None],
        *,
        mirror: Archive | None = None,
        is_reading_on: Callable[[], bool] = lambda: False,
    ) -> None:
        """mirror: the archive that this one is built from; None: it is the mirror. is_reading_on: as in `SourceControl`."""
        self._archive = archive
        self._source = source
        self._mirror = mirror or archive
        self._is_reading_on = is_reading_on

    def __call__(self) -> GtidVariables:
        """Return the present variables."""
        source = self._source() or SourceGtids()
        executed, purged = self._archive.executed, self._archive.purged
        return GtidVariables(
            mode=self._mode(source, executed),
            is_settled=self._is_settled(source),
            executed=executed if isinstance(executed, GtidSet) else _NO_TRANSACTIONS,
            purged=purged if isinstance(purged, GtidSet) else _NO_TRANSACTIONS,
            binlog_state=executed if isinstance(executed, GtidList) else _NO_STATE,
            domain_id=source.domain_id,
            strict_mode=source.strict_mode,
        )

    def _is_settled(self, source: SourceGtids) -> bool:
        # A replica that gets OFF and wants GTIDs stops for good (1593).
        return source.mode is not None or bool(self._mirror.executed) or not self._is_reading_on()

    def _mode(self, source: SourceGtids, executed: GtidValue | None) -> str:
        # A directory has no mode: its binlogs have GTIDs or they have none.
        read = self._mirror.executed
        return source.mode or ("ON" if read and isinstance(read, GtidSet) else "OFF")


class ShownViewGtids(ShownGtids):
    """The same for a view: its own GTIDs, and the mode in which a source writes such binlogs."""

    def __init__(
        self,
        archive: Archive,
        source: Callable[[], SourceGtids | None],
        policy: GtidPolicy,
        *,
        mirror: Archive | None = None,
        is_reading_on: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(archive, source, mirror=mirror, is_reading_on=is_reading_on)
        self._policy = policy

    def _is_settled(self, source: SourceGtids) -> bool:
        return self._policy != "keep" or super()._is_settled(source)

    def _mode(self, source: SourceGtids, executed: GtidValue | None) -> str:
        if self._policy == "assign":
            return "ON"
        if self._policy == "anonymous":
            # With OFF a replica takes anonymous transactions whatever its own mode is but ON, and with ON where it gives them
            # GTIDs itself; but transactions of the source's that have one would end the stream.
            return "OFF_PERMISSIVE" if executed else "OFF"
        return super()._mode(source, executed)
