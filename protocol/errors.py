"""Errors of the protocol layer. Decoders blame nobody; whoever knows whose bytes these are decides what follows."""

from enum import IntEnum
from typing import Final


class ProtocolError(Exception):
    """Base of all errors raised in `protocol`."""


class Malformed(ProtocolError):
    """Bytes that cannot be what they should be."""


class Truncated(Malformed):
    """Bytes that end before what they announce."""


class ErrorCode(IntEnum):
    """Server error numbers used here, in the servers' spelling. Source: MySQL 5.7 and MariaDB 10.11 references."""

    ER_CON_COUNT_ERROR = 1040
    ER_HANDSHAKE_ERROR = 1043
    ER_ACCESS_DENIED_ERROR = 1045
    ER_UNKNOWN_COM_ERROR = 1047
    ER_SERVER_SHUTDOWN = 1053
    ER_PARSE_ERROR = 1064
    ER_NO_SUCH_THREAD = 1094
    ER_UNKNOWN_ERROR = 1105
    ER_NET_PACKET_TOO_LARGE = 1153
    ER_NET_PACKETS_OUT_OF_ORDER = 1156
    ER_NET_READ_INTERRUPTED = 1159
    ER_UNKNOWN_SYSTEM_VARIABLE = 1193
    ER_SPECIFIC_ACCESS_DENIED_ERROR = 1227
    ER_NOT_SUPPORTED_YET = 1235
    ER_MASTER_FATAL_ERROR_READING_BINLOG = 1236
    ER_SP_DOES_NOT_EXIST = 1305
    ER_QUERY_INTERRUPTED = 1317
    ER_MALFORMED_PACKET = 1835


_SQLSTATES: Final[dict[int, str]] = {
    ErrorCode.ER_CON_COUNT_ERROR: "08004",
    ErrorCode.ER_HANDSHAKE_ERROR: "08S01",
    ErrorCode.ER_ACCESS_DENIED_ERROR: "28000",
    ErrorCode.ER_UNKNOWN_COM_ERROR: "08S01",
    ErrorCode.ER_SERVER_SHUTDOWN: "08S01",
    ErrorCode.ER_PARSE_ERROR: "42000",
    ErrorCode.ER_NET_PACKET_TOO_LARGE: "08S01",
    ErrorCode.ER_NET_PACKETS_OUT_OF_ORDER: "08S01",
    ErrorCode.ER_NET_READ_INTERRUPTED: "08S01",
    ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR: "42000",
    ErrorCode.ER_NOT_SUPPORTED_YET: "42000",
    ErrorCode.ER_SP_DOES_NOT_EXIST: "42000",
    ErrorCode.ER_QUERY_INTERRUPTED: "70100",
}


def sqlstate_of(number: int) -> str:
    """The SQLSTATE that servers send with error `number`; HY000 where they have none of its own."""
    return _SQLSTATES.get(number, "HY000")


class AnsweredError(ProtocolError):
    """An error that the peer is told about in an ERR packet. `number`: a server error number; `message`: its text."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number
        self.message = message

    @property
    def sqlstate(self) -> str:
        """Five characters, as servers send them with this number."""
        return sqlstate_of(self.number)


class PeerError(AnsweredError):
    """The peer broke the rules: it gets ERR, and its connection is closed."""


class StatementRefused(AnsweredError):
    """A statement that is not answered: it gets ERR, and its connection is kept."""


class PositionRefused(AnsweredError):
    """A dump request that is not served: ERR 1236 stops a replica until a human acts, 1105 makes it try again."""
