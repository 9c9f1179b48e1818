"""Capability bits of the handshake, and those of them that are offered."""

from enum import IntFlag
from typing import Final


class Capability(IntFlag):
    """Bits of the greeting and of the login. Source: MySQL 9.x `include/mysql_com.h`."""

    LONG_PASSWORD = 1 << 0
    FOUND_ROWS = 1 << 1
    LONG_FLAG = 1 << 2
    CONNECT_WITH_DB = 1 << 3
    NO_SCHEMA = 1 << 4
    COMPRESS = 1 << 5
    ODBC = 1 << 6
    LOCAL_FILES = 1 << 7
    IGNORE_SPACE = 1 << 8
    PROTOCOL_41 = 1 << 9
    INTERACTIVE = 1 << 10
    SSL = 1 << 11
    IGNORE_SIGPIPE = 1 << 12
    TRANSACTIONS = 1 << 13
    RESERVED = 1 << 14
    SECURE_CONNECTION = 1 << 15
    MULTI_STATEMENTS = 1 << 16
    MULTI_RESULTS = 1 << 17
    PS_MULTI_RESULTS = 1 << 18
    PLUGIN_AUTH = 1 << 19
    CONNECT_ATTRS = 1 << 20
    PLUGIN_AUTH_LENENC = 1 << 21
    CAN_HANDLE_EXPIRED_PASSWORDS = 1 << 22
    SESSION_TRACK = 1 << 23
    DEPRECATE_EOF = 1 << 24
    OPTIONAL_RESULTSET_METADATA = 1 << 25
    ZSTD_COMPRESSION = 1 << 26
    QUERY_ATTRIBUTES = 1 << 27


# LONG_PASSWORD must be set: without it a MariaDB client reads further, MariaDB-only bits from the greeting's filler. Not offered on
# purpose: DEPRECATE_EOF, QUERY_ATTRIBUTES, compression (none of them is implemented here), MULTI_STATEMENTS, LOCAL_FILES. SSL is
# added where there is a certificate.
OFFERED: Final = (
    Capability.LONG_PASSWORD
    | Capability.FOUND_ROWS
    | Capability.LONG_FLAG
    | Capability.CONNECT_WITH_DB
    | Capability.NO_SCHEMA
    | Capability.IGNORE_SPACE
    | Capability.PROTOCOL_41
    | Capability.INTERACTIVE
    | Capability.IGNORE_SIGPIPE
    | Capability.TRANSACTIONS
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.CONNECT_ATTRS
    | Capability.PLUGIN_AUTH_LENENC
)

# Every client since MySQL 4.1 has these; older logins have another layout and a password hash that is no secret any more.
REQUIRED: Final = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION
