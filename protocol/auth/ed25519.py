"""client_ed25519 (MariaDB): the client signs 32 random bytes with a key that is made from its password.

The secret scalar is the clamped first half of SHA512(password), where standard Ed25519 has SHA512(32-byte seed); a
signature is an ordinary one. Source: MariaDB 10.11 `plugin/auth_ed25519`.
"""

import hashlib
from typing import Final

from nacl.bindings import (
    crypto_core_ed25519_scalar_add,
    crypto_core_ed25519_scalar_mul,
    crypto_core_ed25519_scalar_reduce,
    crypto_scalarmult_ed25519_base,
    crypto_scalarmult_ed25519_base_noclamp,
)
from nacl.exceptions import BadSignatureError
from nacl.exceptions import RuntimeError as SodiumError
from nacl.signing import VerifyKey

from protocol.auth.authenticator import ACCEPTED, REFUSED, Step

NONCE_BYTES: Final = 32
PUBLIC_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64


def ed25519_public_key(password: str) -> bytes:
    """Return the 32 bytes that a MariaDB account stores (as 43 characters of base64)."""
    return crypto_scalarmult_ed25519_base(hashlib.sha512(password.encode()).digest()[:32])


def ed25519_signature(password: str, nonce: bytes) -> bytes:
    """Return a client's answer, 64 bytes: its signature of the server's nonce."""
    expanded = hashlib.sha512(password.encode()).digest()
    scalar = bytearray(expanded[:32])
    scalar[0] &= 248
    scalar[31] = scalar[31] & 63 | 64
    chosen = crypto_core_ed25519_scalar_reduce(hashlib.sha512(expanded[32:] + nonce).digest())
    point = crypto_scalarmult_ed25519_base_noclamp(chosen)
    challenge = hashlib.sha512(point + ed25519_public_key(password) + nonce).digest()
    reduced = crypto_core_ed25519_scalar_reduce(challenge)
    secret = crypto_core_ed25519_scalar_reduce(bytes(scalar) + bytes(32))
    return point + crypto_core_ed25519_scalar_add(chosen, crypto_core_ed25519_scalar_mul(reduced, secret))


class Ed25519:
    """One login by client_ed25519. `nonce` contains 32 random bytes, which are sent by a switch request only."""

    def __init__(self, public_key: bytes, nonce: bytes) -> None:
        self._public_key = public_key
        self._nonce = nonce

    def challenge(self) -> bytes:
        """Return the nonce; clients refuse one that a zero byte follows."""
        return self._nonce

    def respond(self, data: bytes) -> Step:
        """Check the 64-byte signature, which takes about 100 microseconds."""
        if len(data) != _SIGNATURE_BYTES:
            return REFUSED
        try:
            VerifyKey(self._public_key).verify(self._nonce, data)
        except (BadSignatureError, SodiumError):
            return REFUSED
        return ACCEPTED
