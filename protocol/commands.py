"""The commands that a replica or a tool sends after its login."""

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final

from protocol.errors import Malformed
from protocol.wire import Cursor

_MAX_FILE_NAME_BYTES: Final = 512


class Command(IntEnum):
    """The first byte of a command. Source: MySQL 9.x `include/my_command.h`; those not listed get ERR 1047."""

    COM_QUIT = 0x01
    COM_INIT_DB = 0x02
    COM_QUERY = 0x03
    COM_FIELD_LIST = 0x04
    COM_REFRESH = 0x07
    COM_SHUTDOWN = 0x08
    COM_STATISTICS = 0x09
    COM_PROCESS_INFO = 0x0A
    COM_PROCESS_KILL = 0x0C
    COM_DEBUG = 0x0D
    COM_PING = 0x0E
    COM_BINLOG_DUMP = 0x12
    COM_REGISTER_SLAVE = 0x15
    COM_STMT_PREPARE = 0x16
    COM_STMT_EXECUTE = 0x17
    COM_STMT_SEND_LONG_DATA = 0x18
    COM_STMT_CLOSE = 0x19
    COM_STMT_RESET = 0x1A
    COM_SET_OPTION = 0x1B
    COM_STMT_FETCH = 0x1C
    COM_BINLOG_DUMP_GTID = 0x1E
    COM_RESET_CONNECTION = 0x1F


class DumpFlag(IntFlag):
    """Flags of a dump request. 0x2 has two meanings: MySQL 8.0.26+ asks for heartbeats v2, MariaDB for annotations.

    Source: docs/PROTOCOL.md#dump-requests.
    """

    NON_BLOCK = 0x0001
    HEARTBEAT_V2_OR_ANNOTATE = 0x0002
    SKIP_TAGGED_GTIDS = 0x0004


@dataclass(frozen=True, slots=True)
class RegisterSlave:
    """A replica's data about itself (`report_*` options). `host` and `user` are normally empty."""

    server_id: int
    host: str
    user: str
    port: int


@dataclass(frozen=True, slots=True)
class BinlogDump:
    """A dump request by file and position. An empty `file` is the first one."""

    file: str
    offset: int
    flags: DumpFlag
    server_id: int

    @property
    def ends_at_end(self) -> bool:
        """True if the client wants EOF at the end of the stream instead of waiting. Server id 0 means the same."""
        return bool(self.flags & DumpFlag.NON_BLOCK) or self.server_id == 0


def decode_register_slave(body: bytes) -> RegisterSlave:
    """Decode COM_REGISTER_SLAVE without its command byte.

    Layout: server_id u32 | host short | user short | password short | port u16 | rank u32 | master id u32
    Raises: Truncated.
    """
    cursor = Cursor(body)
    server_id = cursor.uint(4)
    host = cursor.short_bytes().decode("utf-8", "replace")
    user = cursor.short_bytes().decode("utf-8", "replace")
    cursor.short_bytes()  # the replica's password for itself, which is not needed
    port = cursor.uint(2)
    cursor.skip(8)
    return RegisterSlave(server_id, host, user, port)


def decode_binlog_dump(body: bytes) -> BinlogDump:
    """Decode COM_BINLOG_DUMP without its command byte.

    Layout: position u32 | flags u16 | server_id u32 | file name to the end of the packet, or to a zero byte: servers read it
    as a C string, and python-mysql-replication sends nothing but zero bytes for the oldest file.
    Raises: Truncated; Malformed if the name is longer than 512 bytes or not UTF-8.
    """
    cursor = Cursor(body)
    offset = cursor.uint(4)
    flags = DumpFlag(cursor.uint(2))
    server_id = cursor.uint(4)
    name = cursor.rest()
    if len(name) > _MAX_FILE_NAME_BYTES:
        raise Malformed(f"binlog file name of {len(name)} bytes, at most {_MAX_FILE_NAME_BYTES} are taken")
    try:
        return BinlogDump(name.partition(b"\0")[0].decode(), offset, flags, server_id)
    except UnicodeDecodeError as error:
        raise Malformed("binlog file name is not UTF-8") from error
