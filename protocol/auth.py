"""Authentication of a replica: one `Authenticator` per plugin, accounts as they are stored.

The machine makes one authenticator per login attempt. It neither knows nor says whether the user exists: an unknown
user is checked against a digest nobody has the password of.
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, Protocol

SCRAMBLE_BYTES: Final = 20
NATIVE_PLUGIN: Final = "mysql_native_password"

Markers = Literal["tbm", "edges", "strip"]


@dataclass(frozen=True, slots=True)
class Account:
    """Who may log in.

    `native_hash`: SHA1(SHA1(password)), 20 bytes, never shown; b"" for an account with an empty password.
    `markers`: the boundary markers it is sent.
    """

    user: str
    native_hash: bytes = field(repr=False)
    markers: Markers = "tbm"

    def __post_init__(self) -> None:
        if len(self.native_hash) not in (0, SCRAMBLE_BYTES):
            raise ValueError(f"account {self.user!r}: a mysql_native_password hash has {SCRAMBLE_BYTES} bytes")


class AuthResult(Enum):
    """What a plugin says after the client's bytes."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    CONTINUE = "continue"


class Authenticator(Protocol):
    """One login attempt by one plugin."""

    plugin: str

    def challenge(self) -> bytes:
        """The plugin's bytes for the greeting or the switch request, without the final zero byte."""

    def respond(self, data: bytes) -> tuple[AuthResult, bytes]:
        """Takes the client's bytes; with CONTINUE, the second part is sent to the client as AuthMoreData."""


def native_hash(password: str) -> bytes:
    """SHA1(SHA1(password)): what a mysql_native_password account stores, 20 bytes."""
    return hashlib.sha1(hashlib.sha1(password.encode(), usedforsecurity=False).digest(), usedforsecurity=False).digest()


def native_token(password: str, scramble: bytes) -> bytes:
    """What a client answers: SHA1(password) XOR SHA1(scramble + SHA1(SHA1(password)))."""
    first = hashlib.sha1(password.encode(), usedforsecurity=False).digest()
    second = hashlib.sha1(scramble + native_hash(password), usedforsecurity=False).digest()
    return bytes(a ^ b for a, b in zip(first, second, strict=True))


def native_matches(token: bytes, scramble: bytes, stored_hash: bytes) -> bool:
    """Whether `token` answers `scramble` for the account. An empty token (no password) never does."""
    if len(token) != SCRAMBLE_BYTES:
        return False
    mask = hashlib.sha1(scramble + stored_hash, usedforsecurity=False).digest()
    first = bytes(a ^ b for a, b in zip(token, mask, strict=True))
    return hmac.compare_digest(hashlib.sha1(first, usedforsecurity=False).digest(), stored_hash)


class NativePassword:
    """mysql_native_password. `account` None: an unknown user, refused after the same work."""

    plugin = NATIVE_PLUGIN

    def __init__(self, account: Account | None, scramble: bytes) -> None:
        self._stored_hash = account.native_hash if account else bytes(SCRAMBLE_BYTES)
        self._known = account is not None
        self._scramble = scramble

    def challenge(self) -> bytes:
        """The 20-byte scramble; the machine's random source makes it without zero bytes."""
        return self._scramble

    def respond(self, data: bytes) -> tuple[AuthResult, bytes]:
        """Checks the 20-byte token."""
        matches = native_matches(data, self._scramble, self._stored_hash) if self._stored_hash else not data
        return (AuthResult.ACCEPTED if matches and self._known else AuthResult.REFUSED), b""


def printable_scramble(random_bytes: bytes) -> bytes:
    """A challenge from 20 random bytes: zero bytes end strings on the wire and `$` means something to old clients."""
    return bytes(byte % 93 + 33 if byte % 93 + 33 != 0x24 else 0x7E for byte in random_bytes)
