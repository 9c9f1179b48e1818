"""The short payloads of a server: OK, ERR, EOF, authentication switch."""

import struct
from typing import Final

from protocol.errors import AnsweredError, sqlstate_of
from protocol.printable import printable
from protocol.wire import lenenc_bytes

STATUS_AUTOCOMMIT: Final = 0x0002
# MYSQL_ERRMSG_SIZE of clients is 512 bytes with the zero byte: longer messages are cut there in any case.
MAX_MESSAGE_BYTES: Final = 511


def ok_payload(status: int = STATUS_AUTOCOMMIT, *, warnings: int = 0, text: bytes = b"") -> bytes:
    """Return OK without affected rows: header u8 | affected rows lenenc | insert id lenenc | status u16 | warnings u16 | text.

    `text` is with its length, lenenc; omitted if it is empty.
    """
    return b"\x00\x00\x00" + struct.pack("<HH", status, warnings) + (lenenc_bytes(text) if text else b"")


def eof_payload(status: int = STATUS_AUTOCOMMIT) -> bytes:
    """Return the old EOF (5 bytes), which every client accepts: header u8 | warnings u16 | status u16."""
    return b"\xfe" + struct.pack("<HH", 0, status)


def err_payload(error: AnsweredError, *, with_sqlstate: bool = True) -> bytes:
    """Return ERR: header u8 | number u16 | '#' and SQLSTATE (5 bytes) | message to the end.

    `with_sqlstate=False` is for errors instead of a greeting: older clients would print the SQLSTATE as text there. Clients print a
    message as it is: the parts that others wrote are made printable.
    """
    state = b"#" + sqlstate_of(error.number).encode() if with_sqlstate else b""
    return b"\xff" + struct.pack("<H", error.number) + state + printable(error.what, MAX_MESSAGE_BYTES).encode()


def auth_switch_payload(plugin: str, challenge: bytes) -> bytes:
    """Return AuthSwitchRequest: header u8 | plugin name NUL | the plugin's challenge, with the end that it wants."""
    return b"\xfe" + plugin.encode() + b"\0" + challenge


def auth_more_payload(data: bytes) -> bytes:
    """Return AuthMoreData: header u8 | plugin's bytes."""
    return b"\x01" + data
