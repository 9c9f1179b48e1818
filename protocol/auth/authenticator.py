"""What the authentication plugins have in common."""

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
    """What a plugin says after the client's bytes."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class Step:
    """A plugin's answer. `data`: sent first, as AuthMoreData; with CONTINUE the client's next packet is awaited."""

    result: AuthResult
    data: bytes = b""


ACCEPTED: Final = Step(AuthResult.ACCEPTED)
REFUSED: Final = Step(AuthResult.REFUSED)

# Takes milliseconds, so it is called in a thread; it touches nothing that the event loop uses meanwhile.
Work = Callable[[], Step]


@dataclass(frozen=True, slots=True)
class Channel:
    """What protects the connection. `tls`: the version, such as TLSv1.3, empty without TLS; `cipher`: its name.
    `client_certificate`: the client showed one that a trusted authority has signed. `certificate_digest`: SHA-256 of
    what we showed, in DER form; empty without TLS."""

    tls: str = ""
    cipher: str = ""
    client_certificate: bool = False
    certificate_digest: bytes = b""


class Authenticator(Protocol):
    """One login attempt by one plugin."""

    def challenge(self) -> bytes:
        """What a switch request carries behind the plugin's name, whole."""

    def respond(self, data: bytes) -> Step | Work:
        """Take the client's next packet."""


def printable_scramble(random_bytes: bytes) -> bytes:
    """Return a challenge from 20 random bytes: zero bytes end strings on the wire and `$` means something to old clients."""
    return bytes(byte % 93 + 33 if byte % 93 + 33 != 0x24 else 0x7E for byte in random_bytes)
