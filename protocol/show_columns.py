"""Columns of SHOW statements that are no text, whatever their values: also without rows, and where they are NULL.

Source: column definitions of MySQL 5.6.24 and 9.7.4, MariaDB 10.11.18 and 11.8.6.
"""

from typing import Final

from protocol.result_columns import AnswerColumn, ColumnFlag, ColumnType

_LONG: Final = (
    "Auto_Position", "Connect_Retry", "Executed_log_entries", "Get_Source_public_key", "Get_master_public_key",
    "Last_Errno", "Last_IO_Errno", "Last_SQL_Errno", "Master_Port", "Master_Server_Id", "Master_id", "Port",
    "Retried_transactions", "SQL_Delay", "Server_Id", "Server_id", "Skip_Counter", "Slave_received_heartbeats",
    "Source_Id", "Source_Port", "Source_Server_Id",
)  # fmt: skip
_LONGLONG: Final = (
    "End_log_pos", "Exec_Master_Log_Pos", "Exec_Source_Log_Pos", "File_size", "Master_Retry_Count",
    "Max_relay_log_size", "Pos", "Position", "Read_Master_Log_Pos", "Read_Source_Log_Pos", "Relay_Log_Pos",
    "Relay_Log_Space", "Slave_DDL_Groups", "Slave_Non_Transactional_Groups", "Slave_Transactional_Groups",
    "Source_Retry_Count", "Until_Log_Pos",
)  # fmt: skip
_THREE_DECIMALS: Final = ("Progress", "Slave_heartbeat_period")
_TIMES: Final = ("Master_last_event_time", "Slave_last_event_time")
_NOT_NULL: Final = ColumnFlag.NOT_NULL | ColumnFlag.BINARY

NO_TEXT: Final[dict[str, AnswerColumn]] = {
    column.name: column
    for column in (
        *(AnswerColumn.number(name, 10, big=False) for name in _LONG),
        *(AnswerColumn.number(name, 20) for name in _LONGLONG),
        AnswerColumn.number("Id", 21, signed=True),
        AnswerColumn.number("Time", 7, big=False, signed=True),
        AnswerColumn.number("SQL_Remaining_Delay", 8, nullable=True, big=False),
        AnswerColumn.number("Master_Slave_time_diff", 10, nullable=True, big=False),
        AnswerColumn.number("Seconds_Behind_Master", 20, nullable=True),
        AnswerColumn.number("Seconds_Behind_Source", 20, nullable=True),
        *(AnswerColumn(name, ColumnType.DOUBLE, 10, _NOT_NULL, 3, is_text=False) for name in _THREE_DECIMALS),
        *(AnswerColumn(name, ColumnType.DATETIME, 19, ColumnFlag.BINARY, 0, is_text=False) for name in _TIMES),
    )
}


def older_column(name: str) -> str:
    """Return the name of a column of SHOW REPLICA STATUS as MySQL 5.6 and MariaDB have it."""
    return name.replace("Source", "Master").replace("Replica_", "Slave_")
