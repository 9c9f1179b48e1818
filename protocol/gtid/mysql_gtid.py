"""One transaction of MySQL, and the source that numbers it."""

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Final
from uuid import UUID

from protocol.errors import Malformed
from protocol.kernel import codes

MAX_GNO: Final = codes.MAX_GNO
"""The greatest transaction number: MySQL 5.6.24 and 9.7.4 both refuse 2**63 - 1."""
MAX_TAG_CHARACTERS: Final = 32
_UUID: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|\{[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\}",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_SHOWN_CHARACTERS: Final = 60


@total_ordering
@dataclass(frozen=True, slots=True)
class Tsid:
    """The source that numbers a transaction: a server's uuid and, since MySQL 8.3, a tag ("" for none). MySQL's word for the pair.

    Tsids are ordered as servers print them: by uuid, without a tag first.
    """

    uuid: UUID
    tag: str = ""

    @property
    def key(self) -> bytes:
        """The 16 bytes of the uuid and the tag's characters; such keys sort as Tsids do."""
        return self.uuid.bytes + self.tag.encode()

    @classmethod
    def from_key(cls, key: bytes) -> "Tsid":
        """Decode `key`. Raises: Malformed for fewer than 16 bytes or an invalid tag."""
        if len(key) < 16:
            raise Malformed(f"{len(key)} bytes are no uuid")
        return cls(UUID(bytes=key[:16]), parse_tag(key[16:].decode("latin-1")) if len(key) > 16 else "")

    def __lt__(self, other: "Tsid") -> bool:
        return self.key < other.key

    def __str__(self) -> str:
        return f"{self.uuid}:{self.tag}" if self.tag else str(self.uuid)


@total_ordering
@dataclass(frozen=True, slots=True)
class MysqlGtid:
    """One transaction. `gno` is 1 to MAX_GNO."""

    tsid: Tsid
    gno: int

    @classmethod
    def from_text(cls, text: str) -> "MysqlGtid":
        """Parse `uuid:number` or `uuid:tag:number`, in any case, with spaces around the parts.

        Raises: Malformed.
        """
        parts = [part.strip() for part in text.split(":")]
        if not 2 <= len(parts) <= 3:
            raise Malformed(f"{shown(text)} is not one transaction, such as uuid:23 or uuid:tag:23")
        return cls(Tsid(parse_uuid(parts[0]), parse_tag(parts[1]) if len(parts) == 3 else ""), parse_gno(parts[-1]))

    def __lt__(self, other: "MysqlGtid") -> bool:
        return (self.tsid.key, self.gno) < (other.tsid.key, other.gno)

    def __str__(self) -> str:
        return f"{self.tsid}:{self.gno}"


def parse_uuid(text: str) -> UUID:
    """Parse a uuid as servers accept it: with its hyphens, also in braces, or 32 digits. Raises: Malformed."""
    if _UUID.fullmatch(text) is None:
        raise Malformed(f"{shown(text)} is not a server's uuid")
    return UUID(text)


def parse_tag(text: str) -> str:
    """Return a tag in lower case, in which servers keep it. Raises: Malformed."""
    tag = text.lower()
    if _TAG.fullmatch(tag) is None:
        raise Malformed(
            f"{shown(text)} is not a tag: a letter or _, then letters, digits and _, at most {MAX_TAG_CHARACTERS}"
        )
    return tag


def parse_gno(text: str) -> int:
    """Parse a transaction number. Raises: Malformed for anything but digits, 0, and more than MAX_GNO."""
    if not text.isascii() or not text.isdigit():
        raise Malformed(f"{shown(text)} is not a transaction number")
    digits = text.lstrip("0")
    # This is checked before int(), whose time grows with the square of the digits.
    if not digits or len(digits) > 19 or int(digits) > MAX_GNO:
        raise Malformed(f"transaction number {shown(text)} is not within 1 and {MAX_GNO}")
    return int(digits)


def shown(text: str) -> str:
    """Return `text` for an error message: quoted, and cut where it is long."""
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "...")
