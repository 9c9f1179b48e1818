"""Greeting and login: the first two packets of a connection."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from protocol.capabilities import REQUIRED, Capability
from protocol.errors import Malformed
from protocol.packets import STATUS_AUTOCOMMIT
from protocol.wire import Cursor, lenenc_bytes

PROTOCOL_VERSION: Final = 10
_CHARSET_UTF8: Final = 33
_SSL_REQUEST_BYTES: Final = 32
_MAX_ATTRIBUTES: Final = 64


def greeting_version(version: str) -> str:
    """Return the version in the greeting of a source of this version.

    MariaDB 10 and older put `5.5.5-` before it, because old replicas refuse two-digit majors; MariaDB 11 does not.
    """
    if "mariadb" in version.lower() and version.startswith("10."):
        return "5.5.5-" + version
    return version


def plain_version(version: str) -> str:
    """Return `version` without the `5.5.5-` that MariaDB's greeting carries."""
    return version.removeprefix("5.5.5-") if "mariadb" in version.lower() else version


def greeting_payload(
    version: str, connection_id: int, plugin: str, challenge: bytes, capabilities: Capability
) -> bytes:
    """Return the payload of Handshake v10.

    Layout: protocol u8 | version NUL | connection id u32 | challenge[:8] | 0 | capabilities low u16 | charset u8 | status u16 |
    capabilities high u16 | challenge length u8 | 10 zero bytes | challenge[8:] 0 | plugin NUL
    Source: MySQL 9.x `sql/auth/sql_authentication.cc (send_server_handshake_packet)`.
    """
    return (
        bytes((PROTOCOL_VERSION,))
        + version.encode()
        + b"\0"
        + struct.pack("<I", connection_id & 0xFFFFFFFF)
        + challenge[:8]
        + b"\0"
        + struct.pack(
            "<HBHHB",
            capabilities & 0xFFFF,
            _CHARSET_UTF8,
            STATUS_AUTOCOMMIT,
            capabilities >> 16,
            len(challenge) + 1,
        )
        + bytes(10)
        + challenge[8:]
        + b"\0"
        + plugin.encode()
        + b"\0"
    )


def login_payload(
    user: bytes, plugin: str, auth: bytes, offered: int, head: bytes, attributes: Mapping[str, str]
) -> bytes:
    """Return a client's answer to a greeting. `head` is `login_head`'s; `offered` are the server's capabilities.

    Layout: head 32 bytes | user NUL | auth lenenc or short | [plugin NUL] | [attributes: total lenenc, then pairs of lenenc strings]
    The fields are those of the offered capabilities.
    """
    payload = head + user + b"\0"
    payload += lenenc_bytes(auth) if offered & Capability.PLUGIN_AUTH_LENENC else bytes((len(auth),)) + auth
    if offered & Capability.PLUGIN_AUTH:
        payload += plugin.encode() + b"\0"
    if offered & Capability.CONNECT_ATTRS:
        pairs = (lenenc_bytes(one.encode()) for pair in attributes.items() for one in pair)
        payload += lenenc_bytes(b"".join(pairs))
    return payload


def login_head(capabilities: int, max_packet_bytes: int, charset: int) -> bytes:
    """Return the first 32 bytes of a client's login packet; alone, and with the SSL bit, they ask for TLS."""
    return struct.pack("<IIB23x", capabilities, max_packet_bytes, charset)


@dataclass(frozen=True, slots=True)
class Login:
    """The client's answer to the greeting. `capabilities` are those of both sides, `auth` the plugin's bytes."""

    user: str
    auth: bytes = field(repr=False)
    plugin: str
    database: str
    capabilities: Capability
    charset: int
    max_packet_bytes: int
    attributes: dict[str, str]


def asks_for_tls(payload: bytes) -> bool:
    """Return whether this is SSLRequest: the login packet's first 32 bytes alone, with the SSL bit; TLS begins after it."""
    if len(payload) != _SSL_REQUEST_BYTES:
        return False
    return bool(Capability(int.from_bytes(payload[:4], "little")) & Capability.SSL)


def decode_login(payload: bytes, offered: Capability) -> Login:
    """Decode the login packet. Bits that were not offered are ignored, even if the client set them.

    Layout: capabilities u32 | max packet u32 | charset u8 | 23 filler | user NUL | auth lenenc or short | [database NUL] | [plugin
    NUL] | [attributes: total lenenc, then pairs of lenenc strings]
    Raises: Truncated, Malformed (old protocol, TLS that was not offered, an attribute with a wrong length, text that is not UTF-8).
    Source: MySQL 9.x `sql/auth/sql_authentication.cc (parse_client_handshake_packet)`.
    """
    cursor = Cursor(payload)
    asked = Capability(cursor.uint(4) & 0xFFFFFFFF)
    capabilities = asked & offered
    if capabilities & REQUIRED != REQUIRED:
        raise Malformed("a client of before MySQL 4.1 cannot log in here")
    max_packet_bytes = cursor.uint(4)
    charset = cursor.uint(1)
    cursor.skip(23)
    if asked & Capability.SSL and len(payload) == _SSL_REQUEST_BYTES:
        raise Malformed("the client asked for TLS, which was not offered or is there already")
    user = _text(cursor.nul_bytes(), "user")
    lenenc = capabilities & Capability.PLUGIN_AUTH_LENENC
    auth = cursor.lenenc_bytes() if lenenc else cursor.short_bytes()
    database = _text(_final_text(cursor), "database") if capabilities & Capability.CONNECT_WITH_DB else ""
    plugin = _text(_final_text(cursor), "plugin name") if capabilities & Capability.PLUGIN_AUTH else ""
    attributes: dict[str, str] = {}
    if capabilities & Capability.CONNECT_ATTRS and cursor.remaining:
        attributes = _decode_attributes(cursor.lenenc_bytes())
    return Login(user, auth, plugin, database, capabilities, charset, max_packet_bytes, attributes)


def _final_text(cursor: Cursor) -> bytes:
    """Return a NUL-ended string that old clients omit, or send without its zero byte, at the end of the packet."""
    rest = cursor.remaining
    if rest == 0:
        return b""
    start = cursor.offset
    try:
        return cursor.nul_bytes()
    except Malformed:
        cursor.offset = start
        return cursor.rest()


def _decode_attributes(data: bytes) -> dict[str, str]:
    """Decode pairs of length-encoded strings that fill `data` exactly: a wrong length raises Truncated or Malformed."""
    cursor = Cursor(data)
    attributes: dict[str, str] = {}
    while cursor.remaining:
        name = cursor.lenenc_bytes().decode("utf-8", "replace")
        attributes[name] = cursor.lenenc_bytes().decode("utf-8", "replace")
        if len(attributes) > _MAX_ATTRIBUTES:
            raise Malformed(f"more than {_MAX_ATTRIBUTES} connection attributes")
    return attributes


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"{what} is not UTF-8") from error
