"""Event types, and formats of rows, that newer replicas refuse."""

from typing import Final

from protocol.binlog.event_type import EventType
from relay.audit.readiness.check import BOTH, MARIADB, MYSQL, Check, Effect
from relay.view.stops import server_differences

_ROWS_V1: Final = frozenset(range(EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1 + 1))
GTID_EVENTS: Final = frozenset((EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED))
TRANSACTION_EVENTS: Final = frozenset((EventType.QUERY, EventType.XID, EventType.TABLE_MAP))

# fmt: off
CHECKS: Final[dict[Check, frozenset[int]]] = {
    Check("rows_v0", Effect.STOPS, "Rows events of the first betas of MySQL 5.1", "MySQL 8.0 and later",
        "No newer server reads them. Replicate through a MySQL 5.1 to 5.7 in between.",
        "MySQL source, binlog_event.h", BOTH, "event_unsupported"): server_differences.OLD_ROWS.types,
    Check("rows_v1", Effect.STOPS, "Rows events of version 1", "MySQL 8.4 and later",
        "The applier stops with error 13121. MySQL 5.1 and 5.5 write them, 5.6 and later with log_bin_use_v1_row_events=ON. Give it "
        "a [[view]], or replicate through a MySQL 5.6 to 8.0 in between: both write version 2.",
        "MySQL 8.4 release notes; error 13121 of 9.7"): _ROWS_V1,
    Check("load_events", Effect.STOPS, "Load events of MySQL 4.x and 5.0.2", "MySQL 8.0 and later",
        "No newer server reads them. Replicate through a MySQL 5.0 to 5.7 in between.",
        "MySQL source, binlog_event.h", stop="event_unsupported"): server_differences.OLD_LOADS.types,
    Check("incident", Effect.STOPS, "Incidents", "every version",
        "The source noted here that it lost something: every replica stops with error 1590. Compare the data, then skip the event.",
        "MySQL manual, Incident events", BOTH, "source_incident"): server_differences.INCIDENTS.types,
    Check("anonymous_transactions", Effect.TO_KNOW, "Transactions without a GTID", "MySQL with gtid_mode=ON",
        "Error 1782 on a replica with gtid_mode=ON, unless its channel has ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS. A [[view]] gives "
        "them GTIDs, the same for all replicas.",
        "MySQL 8.0 manual, Restrictions on Replication with GTIDs"): frozenset((EventType.ANONYMOUS_GTID,)),
    Check("mariadb_events", Effect.TO_KNOW, "Events that only MariaDB has", "every MySQL",
        "A MySQL replica stops at them. A newer MariaDB is at home with them.",
        "MariaDB source, log_event.h", (MARIADB,), "event_unsupported"): server_differences.MARIADB_EVENTS.types,
}
"""This maps a check to the event types that it concerns."""

NO_GTIDS: Final = Check("no_gtids", Effect.TO_KNOW, "Files without any GTID event", "MySQL with gtid_mode=ON",
    "A replica needs gtid_mode=OFF or OFF_PERMISSIVE: with ON it stops with error 1782, whatever its channel assigns. A "
    "[[view]] gives them GTIDs.",
    "9.7 replica of 5.6", (MYSQL,))
# fmt: on
