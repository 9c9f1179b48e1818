"""The protocol that all authentication plugins implement."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, Protocol

SCRAMBLE_BYTES: Final = 20
NATIVE: Final = "mysql_native_password"
CACHING_SHA2: Final = "caching_sha2_password"
ED25519: Final = "client_ed25519"

Plugin = Literal["mysql_native_password", "caching_sha2_password", "client_ed25519"]


class AuthResult(Enum):
    """A plugin's verdict after the client's bytes."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class Step:
    """A plugin's answer. `data` is sent first, as AuthMoreData; with CONTINUE the client's next packet is awaited."""

    result: AuthResult
    data: bytes = b""


ACCEPTED: Final = Step(AuthResult.ACCEPTED)
REFUSED: Final = Step(AuthResult.REFUSED)

# It takes milliseconds, so it is called in a thread; it touches nothing that the event loop uses meanwhile.
Work = Callable[[], Step]


@dataclass(frozen=True, slots=True)
class Channel:
    """The protection of the connection. `tls` is the version, such as TLSv1.3, empty without TLS; `cipher` is its name. With
    `client_certificate` the client showed one that a trusted authority has signed. `certificate_digest` is the SHA-256 of our
    certificate in DER form; empty without TLS.
    """

    tls: str = ""
    cipher: str = ""
    client_certificate: bool = False
    certificate_digest: bytes = b""


class Authenticator(Protocol):
    """One login attempt by one plugin."""

    def challenge(self) -> bytes:
        """Return the whole data that a switch request carries after the plugin's name."""

    def respond(self, data: bytes) -> Step | Work:
        """Take the client's next packet."""


def printable_scramble(random_bytes: bytes) -> bytes:
    """Return a challenge from 20 random bytes, without zero bytes, which end strings, and `$`, which old clients interpret."""
    return bytes(byte % 93 + 33 if byte % 93 + 33 != 0x24 else 0x7E for byte in random_bytes)
