"""The columns of SHOW SLAVE STATUS, by flavour and version, in the servers' order.

Recorded from MySQL 5.6.24, 9.7.4, MariaDB 10.11 and 11.8; a test compares these with the servers. The versions between are
from their documentation.
"""

from typing import Final

from relay.admin.dialect import Dialect


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_SHARED: Final = _names(
    """
    Slave_IO_State Master_Host Master_User Master_Port Connect_Retry Master_Log_File Read_Master_Log_Pos
    Relay_Log_File Relay_Log_Pos Relay_Master_Log_File Slave_IO_Running Slave_SQL_Running
    Replicate_Do_DB Replicate_Ignore_DB Replicate_Do_Table Replicate_Ignore_Table
    Replicate_Wild_Do_Table Replicate_Wild_Ignore_Table
    Last_Errno Last_Error Skip_Counter Exec_Master_Log_Pos Relay_Log_Space
    Until_Condition Until_Log_File Until_Log_Pos
    Master_SSL_Allowed Master_SSL_CA_File Master_SSL_CA_Path Master_SSL_Cert Master_SSL_Cipher Master_SSL_Key
    Seconds_Behind_Master Master_SSL_Verify_Server_Cert
    Last_IO_Errno Last_IO_Error Last_SQL_Errno Last_SQL_Error Replicate_Ignore_Server_Ids Master_Server_Id
    """
)
_SINCE_56: Final = _names(
    """
    Master_UUID Master_Info_File SQL_Delay SQL_Remaining_Delay Slave_SQL_Running_State Master_Retry_Count
    Master_Bind Last_IO_Error_Timestamp Last_SQL_Error_Timestamp Master_SSL_Crl Master_SSL_Crlpath
    Retrieved_Gtid_Set Executed_Gtid_Set Auto_Position
    """
)

# (first version, columns that it adds at the end)
_MYSQL: Final[tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]] = (
    ((5, 6, 5), _SINCE_56),
    ((5, 7, 6), ("Replicate_Rewrite_DB", "Channel_Name")),
    ((5, 7, 10), ("Master_TLS_Version",)),
    ((8, 0, 4), ("Master_public_key_path", "Get_master_public_key")),
    ((8, 0, 22), ("Network_Namespace",)),
)
_MARIADB: Final[tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]] = (
    ((10, 0, 2), ("Master_SSL_Crl", "Master_SSL_Crlpath", "Using_Gtid", "Gtid_IO_Pos")),
    ((10, 1, 3), ("Replicate_Do_Domain_Ids", "Replicate_Ignore_Domain_Ids", "Parallel_Mode")),
    ((10, 2, 3), ("SQL_Delay", "SQL_Remaining_Delay", "Slave_SQL_Running_State")),
    ((10, 3, 7), ("Slave_DDL_Groups", "Slave_Non_Transactional_Groups", "Slave_Transactional_Groups")),
    ((10, 11), ("Replicate_Rewrite_DB",)),
)

_ALL_BEFORE: Final = ("Connection_name", "Slave_SQL_State")
_ALL_AFTER: Final = (
    "Retried_transactions",
    "Max_relay_log_size",
    "Executed_log_entries",
    "Slave_received_heartbeats",
    "Slave_heartbeat_period",
    "Gtid_Slave_Pos",
)
_ALL_AFTER_SINCE_116: Final = ("Master_last_event_time", "Slave_last_event_time", "Master_Slave_time_diff")

_IRREGULAR: Final = {
    "Get_master_public_key": "Get_Source_public_key",
    "Master_public_key_path": "Source_public_key_path",
}


def status_columns(dialect: Dialect, *, all_channels: bool = False) -> tuple[str, ...]:
    """Return the columns by their older names, which are also the keys of the values."""
    columns = _SHARED
    for since, added in _MARIADB if dialect.is_mariadb else _MYSQL:
        if dialect.version >= since:
            columns += added
    if not all_channels:
        return columns
    newest = _ALL_AFTER_SINCE_116 if dialect.version >= (11, 6) else ()
    return (*_ALL_BEFORE, *columns, *_ALL_AFTER, *newest)


def in_newer_words(column: str) -> str:
    """Return the column's name in SHOW REPLICA STATUS of MySQL."""
    return _IRREGULAR.get(column) or column.replace("Master_", "Source_").replace("Slave_", "Replica_").replace(
        "_Master", "_Source"
    )
