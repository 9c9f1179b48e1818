"""Errors of the protocol layer. Decoders do not judge the sender; the caller, who knows it, decides what follows."""

from enum import IntEnum
from typing import ClassVar, Final, Self


class ExitCode(IntEnum):
    """The exit code of a command. Source of 70: EX_SOFTWARE in sysexits.h; the others are this program's own."""

    FINE = 0
    FINDINGS = 1
    WRONG_USE = 2
    SOURCE_UNREACHABLE = 3
    ARCHIVE_DAMAGED = 4
    BUG = 70


class RelayError(Exception):
    """The root of all errors of `protocol` and `relay`. No field contains a secret.

    `what` is the finding. `advice` is the next step in whole sentences, may be empty. `file` is a name, or None, `offset` the bytes
    from the file's start, or None. `text` is the finding with its place. `str()` is the text and the advice.
    """

    exit_code: ExitCode = ExitCode.BUG
    """The exit code of a command that does not handle this error; BUG if no command should ever end with it."""
    full_stop: ClassVar[str] = ""
    """The end of `str()` if there is no advice: "." in classes whose `what` is always a clause."""
    shown: ClassVar[tuple[str, ...]] = ("what", "file", "offset", "advice")
    """The fields of a log line and of JSON."""

    def __init__(self, what: str = "", advice: str = "", *, file: str | None = None, offset: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice
        self.file = file
        self.offset = offset
        self.text = what
        if file is not None:
            self.text += f" ({file})" if offset is None else f" ({file}, offset {offset})"

    def __str__(self) -> str:
        if self.advice:
            return f"{self.text.removesuffix('.')}. {self.advice}"
        return f"{self.text}{self.full_stop}"

    def __reduce__(self) -> tuple[object, ...]:
        # Spark's executors and the compressing process send their errors to others: `__init__` takes other arguments than `args`.
        return _rebuilt, (type(self), self.args, self.__dict__)

    def fields(self) -> dict[str, object]:
        """Return the fields of `shown` that are not empty, for a log line or JSON."""
        return {name: value for name in self.shown if (value := getattr(self, name)) not in (None, "")}

    def without_trace(self) -> Self:
        """Return the same error without its traceback, which would keep all the objects of that moment."""
        self.__context__ = self.__cause__ = None
        return self.with_traceback(None)


def _rebuilt(kind: type[RelayError], args: tuple[object, ...], fields: dict[str, object]) -> RelayError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class ProtocolError(RelayError):
    """The base of the errors of decoding, and of those that a peer gets."""


class Malformed(ProtocolError):
    """The bytes are invalid."""


class Truncated(Malformed):
    """The bytes end before the announced length."""


class ErrorCode(IntEnum):
    """Numbers of errors by their names: CR_ for a client's own. Source: MySQL 9.7 and MariaDB 11.8, mysqld_error.h and errmsg.h."""

    ER_OUTOFMEMORY = 1037
    ER_OUT_OF_SORTMEMORY = 1038
    ER_CON_COUNT_ERROR = 1040
    ER_OUT_OF_RESOURCES = 1041
    ER_HANDSHAKE_ERROR = 1043
    ER_DBACCESS_DENIED_ERROR = 1044
    ER_ACCESS_DENIED_ERROR = 1045
    ER_NO_DB_ERROR = 1046
    ER_UNKNOWN_COM_ERROR = 1047
    ER_BAD_DB_ERROR = 1049
    ER_BAD_TABLE_ERROR = 1051
    ER_NON_UNIQ_ERROR = 1052
    ER_SERVER_SHUTDOWN = 1053
    ER_BAD_FIELD_ERROR = 1054
    ER_PARSE_ERROR = 1064
    ER_EMPTY_QUERY = 1065
    ER_WRONG_AUTO_KEY = 1075
    ER_NO_SUCH_THREAD = 1094
    ER_KILL_DENIED_ERROR = 1095
    ER_TOO_BIG_SELECT = 1104
    ER_UNKNOWN_ERROR = 1105
    ER_UNKNOWN_TABLE = 1109
    ER_TOO_BIG_ROWSIZE = 1118
    ER_UNKNOWN_CHARACTER_SET = 1115
    ER_CANT_OPEN_LIBRARY = 1126
    ER_HOST_IS_BLOCKED = 1129
    ER_HOST_NOT_PRIVILEGED = 1130
    ER_CANT_CREATE_THREAD = 1135
    ER_REGEXP_ERROR = 1139
    ER_NONEXISTING_GRANT = 1141
    ER_TABLEACCESS_DENIED_ERROR = 1142
    ER_NO_SUCH_TABLE = 1146
    ER_ABORTING_CONNECTION = 1152
    ER_NET_PACKET_TOO_LARGE = 1153
    ER_NET_PACKETS_OUT_OF_ORDER = 1156
    ER_NET_READ_INTERRUPTED = 1159
    ER_NET_WRITE_INTERRUPTED = 1161
    ER_TABLE_CANT_HANDLE_BLOB = 1163
    ER_WRONG_MRG_TABLE = 1168
    ER_CHECK_NOT_IMPLEMENTED = 1178
    ER_NEW_ABORTING_CONNECTION = 1184
    ER_UNKNOWN_SYSTEM_VARIABLE = 1193
    ER_SLAVE_MUST_STOP = 1198
    ER_TOO_MANY_USER_CONNECTIONS = 1203
    ER_LOCK_WAIT_TIMEOUT = 1205
    ER_WRONG_ARGUMENTS = 1210
    ER_LOCK_DEADLOCK = 1213
    ER_ERROR_WHEN_EXECUTING_COMMAND = 1220
    ER_USER_LIMIT_REACHED = 1226
    ER_SPECIFIC_ACCESS_DENIED_ERROR = 1227
    ER_GLOBAL_VARIABLE = 1229
    ER_WRONG_VALUE_FOR_VAR = 1231
    ER_WRONG_TYPE_FOR_VAR = 1232
    ER_NOT_SUPPORTED_YET = 1235
    ER_MASTER_FATAL_ERROR_READING_BINLOG = 1236
    ER_INCORRECT_GLOBAL_LOCAL_VAR = 1238
    ER_UNKNOWN_STMT_HANDLER = 1243
    ER_NOT_SUPPORTED_AUTH_MODE = 1251
    ER_COLLATION_CHARSET_MISMATCH = 1253
    ER_SLAVE_WAS_RUNNING = 1254
    ER_SLAVE_WAS_NOT_RUNNING = 1255
    ER_UNKNOWN_COLLATION = 1273
    ER_SERVER_IS_IN_SECURE_AUTH_MODE = 1275
    ER_UNKNOWN_STORAGE_ENGINE = 1286
    ER_UNSUPPORTED_PS = 1295
    ER_UNKNOWN_TIME_ZONE = 1298
    ER_WARN_ALLOWED_PACKET_OVERFLOWED = 1301
    ER_SP_DOES_NOT_EXIST = 1305
    ER_QUERY_INTERRUPTED = 1317
    ER_SP_WRONG_NO_OF_ARGS = 1318
    ER_ILLEGAL_VALUE_FOR_TYPE = 1367
    ER_UNKNOWN_TARGET_BINLOG = 1373
    ER_BINLOG_PURGE_FATAL_ERR = 1377
    ER_LOG_IN_USE = 1378
    ER_TOO_BIG_SCALE = 1425
    ER_TOO_BIG_PRECISION = 1426
    ER_NO_REFERENCED_ROW_2 = 1452
    ER_MAX_PREPARED_STMT_COUNT_REACHED = 1461
    ER_WRONG_VALUE = 1525
    ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT = 1582
    ER_WRONG_PARAMETERS_TO_STORED_FCT = 1584
    ER_SLAVE_INCIDENT = 1590
    ER_SLAVE_FATAL_ERROR = 1593
    ER_SLAVE_RELAY_LOG_READ_FAILURE = 1594
    ER_SLAVE_RELAY_LOG_WRITE_FAILURE = 1595
    ER_SLAVE_CORRUPT_EVENT = 1610
    WARN_NO_MASTER_INFO = 1617
    ER_FUNC_INEXISTENT_NAME_COLLISION = 1630
    ER_BINLOG_UNSAFE_SYSTEM_FUNCTION = 1674
    ER_SLAVE_CONVERSION_FAILED = 1677
    ER_ACCESS_DENIED_NO_PASSWORD_ERROR = 1698
    ER_MALFORMED_GTID_SET_SPECIFICATION = 1772
    ER_MALFORMED_GTID_SET_ENCODING = 1773
    ER_MALFORMED_GTID_SPECIFICATION = 1774
    ER_GTID_UNSAFE_NON_TRANSACTIONAL_TABLE = 1785
    ER_GTID_UNSAFE_CREATE_SELECT = 1786
    ER_GTID_UNSAFE_CREATE_DROP_TEMPORARY_TABLE_IN_TRANSACTION = 1787
    ER_INVALID_YEAR_COLUMN_LENGTH = 1818
    ER_MUST_CHANGE_PASSWORD = 1820
    ER_MALFORMED_PACKET = 1835
    ER_MUST_CHANGE_PASSWORD_LOGIN = 1862
    ER_WARN_PURGE_LOG_IN_USE = 1867
    ER_WARN_PURGE_LOG_IS_ACTIVE = 1868
    ER_CONNECTION_KILLED = 1927
    ER_INCORRECT_GTID_STATE = 1941
    ER_DUPLICATE_GTID_DOMAIN = 1943
    ER_GTID_POSITION_NOT_FOUND_IN_BINLOG = 1945
    ER_CANNOT_LOAD_SLAVE_GTID_STATE = 1946
    ER_MASTER_GTID_POS_CONFLICTS_WITH_BINLOG = 1947
    ER_GTID_POSITION_NOT_FOUND_IN_BINLOG2 = 1955
    ER_STATEMENT_TIMEOUT = 1969
    CR_CONN_HOST_ERROR = 2003
    CR_SERVER_GONE_ERROR = 2006
    CR_SERVER_LOST = 2013
    CR_SSL_CONNECTION_ERROR = 2026
    CR_AUTH_PLUGIN_CANNOT_LOAD = 2059
    CR_AUTH_PLUGIN_ERR = 2061
    ER_SLAVE_CHANNEL_IO_THREAD_MUST_STOP = 3021
    ER_QUERY_TIMEOUT = 3024
    ER_USER_LOCK_WRONG_NAME = 3057
    ER_USER_LOCK_DEADLOCK = 3058
    ER_SLAVE_CHANNEL_DOES_NOT_EXIST = 3074
    ER_SLAVE_CHANNEL_WAS_RUNNING = 3083
    ER_SLAVE_CHANNEL_WAS_NOT_RUNNING = 3084
    ER_ACCOUNT_HAS_BEEN_LOCKED = 3118
    ER_INVALID_JSON_TEXT = 3140
    ER_INVALID_JSON_TEXT_IN_PARAM = 3141
    ER_JSON_KEY_TOO_BIG = 3151
    ER_JSON_DOCUMENT_TOO_DEEP = 3157
    ER_SECURE_TRANSPORT_REQUIRED = 3159
    ER_SESSION_WAS_KILLED = 3169
    ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK = 3955
    ER_NOT_ALLOWED_WITH_START_TRANSACTION = 3979
    ER_CLIENT_INTERACTION_TIMEOUT = 4031
    ER_SLAVE_SAME_ID = 4052
    ER_ACCOUNT_HAS_BEEN_LOCKED_MARIADB = 4151
    ER_FK_NO_UNIQUE_INDEX_PARENT = 6125


_SQLSTATES: Final[dict[int, str]] = {
    ErrorCode.ER_CON_COUNT_ERROR: "08004",
    ErrorCode.ER_HANDSHAKE_ERROR: "08S01",
    ErrorCode.ER_ACCESS_DENIED_ERROR: "28000",
    ErrorCode.ER_NO_DB_ERROR: "3D000",
    ErrorCode.ER_UNKNOWN_COM_ERROR: "08S01",
    ErrorCode.ER_BAD_DB_ERROR: "42000",
    ErrorCode.ER_NON_UNIQ_ERROR: "23000",
    ErrorCode.ER_SERVER_SHUTDOWN: "08S01",
    ErrorCode.ER_BAD_FIELD_ERROR: "42S22",
    ErrorCode.ER_PARSE_ERROR: "42000",
    ErrorCode.ER_EMPTY_QUERY: "42000",
    ErrorCode.ER_TOO_BIG_SELECT: "42000",
    ErrorCode.ER_UNKNOWN_TABLE: "42S02",
    ErrorCode.ER_UNKNOWN_CHARACTER_SET: "42000",
    ErrorCode.ER_REGEXP_ERROR: "42000",
    ErrorCode.ER_NONEXISTING_GRANT: "42000",
    ErrorCode.ER_TABLEACCESS_DENIED_ERROR: "42000",
    ErrorCode.ER_NO_SUCH_TABLE: "42S02",
    ErrorCode.ER_LOCK_DEADLOCK: "40001",
    ErrorCode.ER_NET_PACKET_TOO_LARGE: "08S01",
    ErrorCode.ER_NET_PACKETS_OUT_OF_ORDER: "08S01",
    ErrorCode.ER_NET_READ_INTERRUPTED: "08S01",
    ErrorCode.ER_USER_LIMIT_REACHED: "42000",
    ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR: "42000",
    ErrorCode.ER_WRONG_VALUE_FOR_VAR: "42000",
    ErrorCode.ER_WRONG_TYPE_FOR_VAR: "42000",
    ErrorCode.ER_NOT_SUPPORTED_YET: "42000",
    ErrorCode.ER_NOT_SUPPORTED_AUTH_MODE: "08004",
    ErrorCode.ER_COLLATION_CHARSET_MISMATCH: "42000",
    ErrorCode.ER_SP_DOES_NOT_EXIST: "42000",
    ErrorCode.ER_QUERY_INTERRUPTED: "70100",
    ErrorCode.ER_ILLEGAL_VALUE_FOR_TYPE: "22007",
    ErrorCode.ER_SP_WRONG_NO_OF_ARGS: "42000",
    ErrorCode.ER_TOO_BIG_PRECISION: "42000",
    ErrorCode.ER_MAX_PREPARED_STMT_COUNT_REACHED: "42000",
    ErrorCode.ER_USER_LOCK_WRONG_NAME: "42000",
    ErrorCode.ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT: "42000",
}


def sqlstate_of(number: int) -> str:
    """Return the SQLSTATE that servers send with error `number`; HY000 if it has none of its own."""
    return _SQLSTATES.get(number, "HY000")


class AnsweredError(ProtocolError):
    """An error that the peer gets in an ERR packet. `number` is a server error number, `what` its text."""

    def __init__(self, number: int, what: str) -> None:
        super().__init__(what)
        self.number = number


class PeerError(AnsweredError):
    """The peer broke the rules: it gets ERR, and its connection is closed."""


class StatementRefused(AnsweredError):
    """A statement that is not answered: it gets ERR, and its connection is kept."""


class PositionRefused(AnsweredError):
    """A dump request that is not served: ERR 1236 stops a replica until a human acts, 1105 makes it retry."""
