"""The check of a server's first bytes, before anything is known of it: can they begin a MySQL greeting?"""

from typing import Final

from protocol.framing import HEADER_BYTES

_VERSION: Final = 10
_ERR: Final = 0xFF
_LONGEST: Final = 4096
"""Greetings have a hundred bytes, the errors that come in their place a few hundred."""
_OTHER_KINDS: Final = {
    9: "it greets with version 9 of the protocol, as servers before MySQL 3.21 did",
    # A frame has four bytes of length and its kind: a notice comes first.
    11: "it greets as MySQL's X Protocol does, which has a port of its own (mysqlx_port)",
}


def why_no_greeting(first: bytes) -> str | None:
    """Return why these cannot be the first bytes of a MySQL server; None: as far as they go, they can.

    Layout: size u24 | packet number u8, 0 | 10 and the greeting, or 0xFF and an error.
    Source: MySQL 9.x source docs, "Protocol::HandshakeV10".
    """
    if len(first) < HEADER_BYTES:
        return None
    size = int.from_bytes(first[:3], "little")
    if first[3]:
        return f"its first packet has the number {first[3]}, not 0"
    if not 0 < size <= _LONGEST:
        return f"its first packet would have {size} bytes"
    if len(first) == HEADER_BYTES or first[4] in (_VERSION, _ERR):
        return None
    return _OTHER_KINDS.get(first[4], f"its first packet begins with 0x{first[4]:02x}, a greeting with 0x0a")
