"""SHOW SLAVE STATUS: the upstream side, in the columns of the server that is presented.

How a relay's facts fit a replica's columns:

- The IO thread is the connection to the source. Its position is the end of what was received.
- The SQL thread is what publishes whole transactions to replicas. It runs ("Yes") as long as the archive takes what comes;
  with a full disk or a failing one it is "No", with the archive's error. Nothing can stop it.
- To an account with a view, what publishes is the view: when it has stopped, that is the SQL thread's error.
- The relay log is the archive: its file and position are the published end, its space all archived bytes.
- All transactions of the archive were retrieved, and executed with those before its first file; the connection itself is
  by file and position.
- Seconds_Behind_Master is NULL without a stream, like a replica's.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protocol.errors import ErrorCode
from protocol.resultset import Rows, Value
from protocol.statements.session.gtid_variables import GtidVariables
from relay.admin.dialect import Dialect
from relay.admin.replica_status_columns import in_newer_words, status_columns
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.upstream.source.source_status import SourceStatus
from relay.view.stops.view_stop import ViewStop

_NO_GTIDS: Final = GtidVariables()
_DISABLED: Final = "disabled"
_VERIFYING: Final = ("verify_ca", "verify_identity")


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """The facts that the columns show. `archived_bytes`, `archived_events`: of all files. `failure`: why the archive takes nothing
    now. `config_path`: where the settings are. `view_stop`: of the view that is asked about."""

    status: SourceStatus
    archived_bytes: int
    archived_events: int
    failure: ArchiveWriteError | None
    seconds_behind: int | None
    config_path: Path | None
    gtids: GtidVariables = _NO_GTIDS
    view_stop: ViewStop | None = None

    @property
    def sql_error(self) -> tuple[int, str]:
        """The number and text of the reason why nothing more is published; 0: nothing is wrong."""
        if self.failure is not None:
            return ErrorCode.ER_SLAVE_RELAY_LOG_WRITE_FAILURE, str(self.failure)
        if self.view_stop is not None:
            return self.view_stop.reason.error or ErrorCode.ER_UNKNOWN_ERROR, self.view_stop.message
        return 0, ""


def replica_status(facts: ReplicaFacts, dialect: Dialect, *, all_channels: bool = False) -> Rows:
    """Return the one row. The columns have the names of the statement's words."""
    columns = status_columns(dialect, all_channels=all_channels)
    values = status_values(facts, dialect)
    names = tuple(in_newer_words(column) for column in columns) if dialect.says_source else columns
    return Rows(names, (tuple(values[column] for column in columns),))


def status_values(facts: ReplicaFacts, dialect: Dialect) -> dict[str, Value]:
    """Return all columns that any server has, by their older names."""
    status = facts.status
    gtids = facts.gtids
    sql_errno, sql_error = facts.sql_error
    sql_state = "" if sql_errno else _read_all(dialect)
    tls = status.ssl_mode != _DISABLED
    return {
        "Connection_name": "",
        "Slave_SQL_State": sql_state,
        "Slave_IO_State": status.state_in(dialect.source_word),
        "Master_Host": status.host,
        "Master_User": status.user,
        "Master_Port": status.port,
        "Connect_Retry": round(status.connect_retry_s),
        "Master_Log_File": status.received_file or "",
        "Read_Master_Log_Pos": status.received_offset or 0,
        "Relay_Log_File": status.archived_file or "",
        "Relay_Log_Pos": status.archived_offset or 0,
        "Relay_Master_Log_File": status.archived_file or "",
        "Slave_IO_Running": status.io_running,
        "Slave_SQL_Running": "No" if sql_errno else "Yes",
        "Replicate_Do_DB": "",
        "Replicate_Ignore_DB": "",
        "Replicate_Do_Table": "",
        "Replicate_Ignore_Table": "",
        "Replicate_Wild_Do_Table": "",
        "Replicate_Wild_Ignore_Table": "",
        "Last_Errno": sql_errno,
        "Last_Error": sql_error,
        "Skip_Counter": 0,
        "Exec_Master_Log_Pos": status.archived_offset or 0,
        "Relay_Log_Space": facts.archived_bytes,
        "Until_Condition": "None",
        "Until_Log_File": "",
        "Until_Log_Pos": 0,
        "Master_SSL_Allowed": "Yes" if tls else "No",
        "Master_SSL_CA_File": status.ssl_ca,
        "Master_SSL_CA_Path": "",
        "Master_SSL_Cert": status.ssl_cert,
        "Master_SSL_Cipher": status.cipher or "",
        "Master_SSL_Key": status.ssl_key,
        "Seconds_Behind_Master": facts.seconds_behind,
        "Master_SSL_Verify_Server_Cert": "Yes" if status.ssl_mode in _VERIFYING else "No",
        "Last_IO_Errno": status.last_error_number,
        "Last_IO_Error": status.last_error_text,
        "Last_SQL_Errno": sql_errno,
        "Last_SQL_Error": sql_error,
        "Replicate_Ignore_Server_Ids": "",
        "Master_Server_Id": status.server_id or 0,
        "Master_UUID": status.server_uuid or "",
        "Master_Info_File": str(facts.config_path or ""),
        "SQL_Delay": 0,
        "SQL_Remaining_Delay": None,
        "Slave_SQL_Running_State": sql_state,
        "Master_Retry_Count": 0,  # without end
        "Master_Bind": "",
        "Last_IO_Error_Timestamp": _error_time(status.last_error_at if status.last_error_number else None),
        "Last_SQL_Error_Timestamp": "",
        "Master_SSL_Crl": "",
        "Master_SSL_Crlpath": "",
        "Retrieved_Gtid_Set": str(gtids.executed - gtids.purged),
        "Executed_Gtid_Set": str(gtids.executed),
        "Auto_Position": 0,
        "Replicate_Rewrite_DB": "",
        "Channel_Name": "",
        "Master_TLS_Version": status.tls_version or "",
        "Master_public_key_path": status.public_key,
        "Get_master_public_key": 0,
        "Network_Namespace": "",
        "Using_Gtid": "No",
        "Gtid_IO_Pos": str(gtids.binlog_state.position),
        "Replicate_Do_Domain_Ids": "",
        "Replicate_Ignore_Domain_Ids": "",
        "Parallel_Mode": "none",
        "Slave_DDL_Groups": 0,
        "Slave_Non_Transactional_Groups": 0,
        "Slave_Transactional_Groups": 0,
        "Retried_transactions": 0,
        "Max_relay_log_size": 0,
        "Executed_log_entries": facts.archived_events,
        "Slave_received_heartbeats": status.received_heartbeats,
        "Slave_heartbeat_period": f"{status.heartbeat_period_s:.3f}",
        "Gtid_Slave_Pos": str(gtids.binlog_state.position),
        "Master_last_event_time": _event_time(status.last_event_timestamp),
        "Slave_last_event_time": _event_time(status.last_event_timestamp),
        "Master_Slave_time_diff": 0 if status.last_event_timestamp else None,
    }


def _read_all(dialect: Dialect) -> str:
    """Return the state of an SQL thread that has nothing left to do."""
    if dialect.is_mysql() and not dialect.is_mysql(5, 7):
        return "Slave has read all relay log; waiting for the slave I/O thread to update it"
    return f"{dialect.replica_word.capitalize()} has read all relay log; waiting for more updates"


def _event_time(timestamp: int) -> str | None:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(timestamp)) if timestamp else None


def _error_time(at: float | None) -> str:
    """Return the time as MySQL writes it: `250131 23:59:59`; UTC, like the relay's NOW()."""
    return time.strftime("%y%m%d %H:%M:%S", time.gmtime(at)) if at is not None else ""
