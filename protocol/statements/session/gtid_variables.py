"""The source's GTID variables at one moment."""

from dataclasses import dataclass
from typing import Final

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList

_NO_TRANSACTIONS: Final = GtidSet()
_NO_STATE: Final = GtidList()


@dataclass(frozen=True, slots=True)
class GtidVariables:
    """GTIDs for the questions of replicas and monitors.

    `mode` is the source's GTID_MODE (MySQL). `executed` contains all of the archive and what was before it; `purged` is the latter.
    `binlog_state` is MariaDB's at the archive's end. `domain_id` and `strict_mode` are those of a MariaDB source. `is_settled`: the
    mode is known; a directory of binlogs may not have shown it yet.
    """

    mode: str = "OFF"
    executed: GtidSet = _NO_TRANSACTIONS
    purged: GtidSet = _NO_TRANSACTIONS
    binlog_state: GtidList = _NO_STATE
    domain_id: int = 0
    strict_mode: bool = False
    is_settled: bool = True
