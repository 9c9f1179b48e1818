"""The values that an account's secret is checked with: made from its password, or taken over from a server."""

import base64
import re
from dataclasses import dataclass, field
from typing import Final, Self

from protocol.auth.authenticator import CACHING_SHA2, ED25519, NATIVE, Plugin
from protocol.auth.caching_sha2 import StoredSha2, sha2_digest
from protocol.auth.ed25519 import ed25519_public_key
from protocol.auth.native import native_hash

_NATIVE: Final = re.compile(rb"\*[0-9A-Fa-f]{40}")
# The rounds are hexadecimal thousands. Salts contain neither zero bytes nor `$`, but any other control character.
_SHA2: Final = re.compile(rb"\$A\$([0-9A-Fa-f]{3})\$([^\0$]{20})([./0-9A-Za-z]{43})", re.DOTALL)
_ED25519: Final = re.compile(rb"[+/0-9A-Za-z]{43}")
_ROUNDS_UNIT: Final = 1000
# The maximum of servers' caching_sha2_password_digest_rounds.
_MAX_ROUNDS: Final = 4_095_000


@dataclass(frozen=True, slots=True)
class Credentials:
    """The values that each plugin checks against; None for a plugin that this account cannot log in with. Never shown.

    `native` has 20 bytes, or b"" for an empty password. `sha2` has 32 bytes, b"", or a server's stored text. `ed25519` has 32 bytes.
    """

    native: bytes | None = field(default=None, repr=False)
    sha2: bytes | StoredSha2 | None = field(default=None, repr=False)
    ed25519: bytes | None = field(default=None, repr=False)

    @classmethod
    def from_password(cls, password: str) -> Self:
        """Make the values for every plugin."""
        return cls(native_hash(password), sha2_digest(password.encode()), ed25519_public_key(password))

    @classmethod
    def from_stored(cls, text: str) -> Self:
        """Make the value for the one plugin whose stored text this is: as mysql.user shows it, or `0x` and its bytes in hexadecimal.

        Raises: ValueError, without the text, for what is none of the three.
        """
        data = _stored_bytes(text)
        if _NATIVE.fullmatch(data):
            return cls(native=bytes.fromhex(data[1:].decode()))
        match = _SHA2.fullmatch(data)
        if match is not None:
            rounds = int(match[1], 16) * _ROUNDS_UNIT
            if 0 < rounds <= _MAX_ROUNDS:
                return cls(sha2=StoredSha2(rounds, match[2], match[3]))
        if _ED25519.fullmatch(data):
            # 43 characters are always 32 bytes.
            return cls(ed25519=base64.b64decode(data + b"="))
        raise ValueError("not a stored hash of mysql_native_password, caching_sha2_password or client_ed25519")

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """The plugins that can check it, with the one first that most replicas know."""
        has: tuple[tuple[Plugin, object], ...] = (
            (NATIVE, self.native),
            (CACHING_SHA2, self.sha2),
            (ED25519, self.ed25519),
        )
        return tuple(plugin for plugin, secret in has if secret is not None)


def _stored_bytes(text: str) -> bytes:
    if text[:2] in ("0x", "0X"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            return b""
    return text.encode("latin-1", "replace")
