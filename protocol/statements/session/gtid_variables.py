"""What the source's GTID variables say at one moment."""

from dataclasses import dataclass
from typing import Final

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList

_NO_TRANSACTIONS: Final = GtidSet()
_NO_STATE: Final = GtidList()


@dataclass(frozen=True, slots=True)
class GtidVariables:
    """GTIDs as replicas and monitors ask for them.

    `mode`: MySQL's GTID_MODE, the source's. `executed`: all that the archive has and what was before it; `purged`: the
    latter. `binlog_state`: MariaDB's, at the archive's end. `domain_id`, `strict_mode`: MariaDB's, the source's. `is_settled`:
    whether the mode is known; a directory of binlogs has told nothing of it yet.
    """

    mode: str = "OFF"
    executed: GtidSet = _NO_TRANSACTIONS
    purged: GtidSet = _NO_TRANSACTIONS
    binlog_state: GtidList = _NO_STATE
    domain_id: int = 0
    strict_mode: bool = False
    is_settled: bool = True
