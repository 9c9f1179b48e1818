"""The texts that the hexadecimal and bit literals of a statement are: servers store those that are no text differently."""

import re
from enum import IntEnum
from typing import Final

_LITERALS: Final = re.compile(r"\b0x([0-9a-f]+)|\bx'([0-9a-f]*)'|\b0b([01]+)|\bb'([01]*)'", re.IGNORECASE | re.ASCII)
_OF_THREE_BYTES: Final = 0xFFFF


class HexText(IntEnum):
    """What the bytes of a literal are. A larger one is text in fewer character sets."""

    ASCII = 0
    UTF8_OF_THREE_BYTES = 1
    """Letters that MySQL's utf8 has."""
    UTF8 = 2
    BYTES = 3
    """They are no UTF-8."""


_HELD: Final = {
    "utf8": HexText.UTF8_OF_THREE_BYTES,
    "utf8mb3": HexText.UTF8_OF_THREE_BYTES,
    "utf8mb4": HexText.UTF8,
    "latin1": HexText.BYTES,
}
"""What all servers store alike in columns of these character sets; of other sets nothing is known but ASCII."""


def widest_of(statement: str) -> HexText:
    """Return the largest kind of all literals in a statement. What has the form of one inside of a string counts as well."""
    return max((_kind_of(_bytes_of(*found)) for found in _LITERALS.findall(statement)), default=HexText.ASCII)


def is_text_in(kind: HexText, charset: str) -> bool:
    """Return whether literals of this kind, stored in a column of a character set, are the same texts on all servers."""
    return kind <= _HELD.get(charset, HexText.ASCII)


def _bytes_of(prefixed: str, quoted: str, prefixed_bits: str, quoted_bits: str) -> bytes:
    digits = prefixed or quoted
    if digits:
        return bytes.fromhex("0" * (len(digits) % 2) + digits)
    bits = prefixed_bits or quoted_bits
    return int(bits, 2).to_bytes((len(bits) + 7) // 8) if bits else b""


def _kind_of(given: bytes) -> HexText:
    if given.isascii():
        return HexText.ASCII
    try:
        text = given.decode("utf-8")
    except UnicodeDecodeError:
        return HexText.BYTES
    return HexText.UTF8 if max(map(ord, text)) > _OF_THREE_BYTES else HexText.UTF8_OF_THREE_BYTES
