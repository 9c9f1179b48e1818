"""The tables of performance_schema that show replication: the relay's link to its source, and a replica that applies nothing.

They are derived from the columns of SHOW SLAVE STATUS by their older names: both show the same.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from protocol.resultset import Value
from relay.table_queries.recorded_tables import Facts

Status = Mapping[str, Value]
_NO_TIME: Final = "0000-00-00 00:00:00.000000"
_STATES: Final = {"Yes": "ON", "No": "OFF", "Connecting": "CONNECTING"}


def _connection_configuration(status: Status) -> Iterator[Facts]:
    yield {
        "CHANNEL_NAME": "",
        "HOST": status["Master_Host"],
        "PORT": status["Master_Port"],
        "USER": status["Master_User"],
        "NETWORK_INTERFACE": "",
        "AUTO_POSITION": str(status["Auto_Position"]),
        "SSL_ALLOWED": str(status["Master_SSL_Allowed"]).upper(),
        "SSL_CA_FILE": status["Master_SSL_CA_File"],
        "SSL_CERTIFICATE": status["Master_SSL_Cert"],
        "SSL_CIPHER": status["Master_SSL_Cipher"],
        "SSL_KEY": status["Master_SSL_Key"],
        "SSL_VERIFY_SERVER_CERTIFICATE": str(status["Master_SSL_Verify_Server_Cert"]).upper(),
        "CONNECTION_RETRY_INTERVAL": status["Connect_Retry"],
        "CONNECTION_RETRY_COUNT": status["Master_Retry_Count"],
        "HEARTBEAT_INTERVAL": status["Slave_heartbeat_period"],
        "TLS_VERSION": status["Master_TLS_Version"],
        "PUBLIC_KEY_PATH": "",
        "GET_PUBLIC_KEY": "YES",
        "NETWORK_NAMESPACE": "",
        "COMPRESSION_ALGORITHM": "uncompressed",
        "ZSTD_COMPRESSION_LEVEL": 3,
        "SOURCE_CONNECTION_AUTO_FAILOVER": "0",
        "GTID_ONLY": "0",
    }


def _connection_status(status: Status) -> Iterator[Facts]:
    yield {
        "CHANNEL_NAME": "",
        "GROUP_NAME": "",
        "SOURCE_UUID": status["Master_UUID"],
        "SERVICE_STATE": _STATES.get(str(status["Slave_IO_Running"]), "OFF"),
        "COUNT_RECEIVED_HEARTBEATS": status["Slave_received_heartbeats"],
        "LAST_HEARTBEAT_TIMESTAMP": _NO_TIME,
        "RECEIVED_TRANSACTION_SET": status["Retrieved_Gtid_Set"],
        "LAST_ERROR_NUMBER": status["Last_IO_Errno"],
        "LAST_ERROR_MESSAGE": status["Last_IO_Error"],
        "LAST_ERROR_TIMESTAMP": _time(str(status["Last_IO_Error_Timestamp"])),
        **dict.fromkeys(_TIMES_OF_TRANSACTIONS, _NO_TIME),
    }


_TIMES_OF_TRANSACTIONS: Final = tuple(
    f"{which}_TRANSACTION_{what}"
    for which in ("LAST_QUEUED", "QUEUEING")
    for what in (
        "ORIGINAL_COMMIT_TIMESTAMP",
        "IMMEDIATE_COMMIT_TIMESTAMP",
        "START_QUEUE_TIMESTAMP",
        "END_QUEUE_TIMESTAMP",
    )
)


def _time(shown: str) -> str:
    """Return `250131 23:59:59` as a timestamp."""
    if len(shown) < len("250131 23:59:59"):
        return _NO_TIME
    return f"20{shown[:2]}-{shown[2:4]}-{shown[4:6]} {shown[7:]}.000000"


def _applier_configuration(status: Status) -> Iterator[Facts]:
    yield {
        "CHANNEL_NAME": "",
        "DESIRED_DELAY": 0,
        "REQUIRE_ROW_FORMAT": "NO",
        "REQUIRE_TABLE_PRIMARY_KEY_CHECK": "STREAM",
        "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_TYPE": "OFF",
    }


def _applier_status(status: Status) -> Iterator[Facts]:
    yield {
        "CHANNEL_NAME": "",
        "SERVICE_STATE": _STATES.get(str(status["Slave_SQL_Running"]), "OFF"),
        "COUNT_TRANSACTIONS_RETRIES": 0,
    }


REPLICATION: Final[dict[str, Callable[[Status], Iterator[Facts]]]] = {
    "replication_applier_configuration": _applier_configuration,
    "replication_applier_status": _applier_status,
    "replication_connection_configuration": _connection_configuration,
    "replication_connection_status": _connection_status,
}
"""Tables of performance_schema that have a row here. Others about replication, such as those of workers, are empty."""
