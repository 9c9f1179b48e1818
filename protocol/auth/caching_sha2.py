"""caching_sha2_password: a SHA-256 challenge where the password's digest is known, otherwise the password itself.

login = token ( fast ok | full request ( password over TLS | [ key request  key ] password encrypted by RSA ) )

The digest is known for an account whose password is configured, and after the first full authentication for one with a server's
stored hash. Source: MySQL 9.x `sql/auth/sha2_password.cc`, `sql-common/client_authentication.cc`.
"""

import hashlib
import hmac
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Final

from protocol.auth.authenticator import ACCEPTED, REFUSED, SCRAMBLE_BYTES, AuthResult, Step, Work
from protocol.auth.rsa_key import CIPHERTEXT_BYTES, RsaKey
from protocol.auth.sha_crypt import sha256_crypt

_TOKEN_BYTES: Final = 32
_KEY_REQUEST: Final = b"\x02"
_FAST_OK: Final = b"\x03"
_FULL_REQUEST: Final = b"\x04"
# The limit of servers; the time of SHA-crypt grows with the length, and anybody may request it.
_MAX_PASSWORD_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class StoredSha2:
    """A server's stored text: `$A$`, rounds in thousands, `$`, 20 bytes of salt, 43 characters of SHA-crypt."""

    rounds: int
    salt: bytes
    encoded: bytes = field(repr=False)

    def matches(self, password: bytes) -> bool:
        """Return whether it was made from `password`. This takes milliseconds."""
        return hmac.compare_digest(sha256_crypt(password, self.salt, self.rounds), self.encoded)


# The digests that full authentications have shown, by stored hash. In memory only.
DigestCache = MutableMapping[StoredSha2, bytes]


def sha2_digest(password: bytes) -> bytes:
    """Return SHA256(SHA256(password)), 32 bytes, which suffice to check tokens; b"" for an empty password."""
    return hashlib.sha256(hashlib.sha256(password).digest()).digest() if password else b""


def sha2_token(password: bytes, scramble: bytes) -> bytes:
    """Return a client's answer: SHA256(password) XOR SHA256(SHA256(SHA256(password)) + scramble)."""
    first = hashlib.sha256(password).digest()
    second = hashlib.sha256(hashlib.sha256(first).digest() + scramble).digest()
    return bytes(a ^ b for a, b in zip(first, second, strict=True))


def sha2_matches(token: bytes, scramble: bytes, digest: bytes) -> bool:
    """Return whether `token` answers `scramble` for the password with this digest."""
    if len(token) != _TOKEN_BYTES:
        return False
    mask = hashlib.sha256(digest + scramble).digest()
    first = bytes(a ^ b for a, b in zip(token, mask, strict=True))
    return hmac.compare_digest(hashlib.sha256(first).digest(), digest)


class CachingSha2:
    """One login by caching_sha2_password.

    `secret` is a digest as `sha2_digest` returns it, or a server's stored text. `secure`: the connection has TLS. `rsa_key` is called
    in a thread and may generate the key.
    """

    def __init__(
        self,
        secret: bytes | StoredSha2,
        scramble: bytes,
        *,
        secure: bool,
        cache: DigestCache,
        rsa_key: Callable[[], RsaKey],
    ) -> None:
        self._secret = secret
        self._scramble = scramble
        self._secure = secure
        self._cache = cache
        self._rsa_key = rsa_key
        self._full = False
        self._key_sent = False

    def challenge(self) -> bytes:
        """Return the 20-byte scramble and a zero byte."""
        return self._scramble + b"\0"

    def respond(self, data: bytes) -> Step | Work:
        """Take the token, then the packets of the full authentication."""
        if self._full:
            return self._respond_in_full(data)
        stored = self._secret if isinstance(self._secret, StoredSha2) else None
        digest = self._cache.get(self._secret, b"") if isinstance(self._secret, StoredSha2) else self._secret
        if data in (b"", b"\0"):
            return ACCEPTED if not digest and stored is None else REFUSED
        if len(data) != _TOKEN_BYTES:
            return REFUSED
        if digest and sha2_matches(data, self._scramble, digest):
            return Step(AuthResult.ACCEPTED, _FAST_OK)
        if stored is None:
            # A server asks for the password here, as its cache may be old. Our digest is the password's: the token is wrong.
            return REFUSED
        # This is done also when the digest is known: a wrong password must not look different from an unknown user.
        self._full = True
        return Step(AuthResult.CONTINUE, _FULL_REQUEST)

    def _respond_in_full(self, data: bytes) -> Step | Work:
        if self._secure:
            return lambda: self._check(data)
        if data == _KEY_REQUEST and not self._key_sent:
            self._key_sent = True
            return lambda: Step(AuthResult.CONTINUE, self._rsa_key().public_pem)
        if len(data) == CIPHERTEXT_BYTES:
            return lambda: self._check(self._decrypted(data))
        return REFUSED

    def _decrypted(self, ciphertext: bytes) -> bytes:
        masked = self._rsa_key().decrypt(ciphertext) or b""
        mask = self._scramble * (len(masked) // SCRAMBLE_BYTES + 1)
        return bytes(a ^ b for a, b in zip(masked, mask, strict=False))

    def _check(self, data: bytes) -> Step:
        """Check `data`, which is the password and its zero byte."""
        stored = self._secret
        password = data[:-1]
        if data[-1:] != b"\0" or len(password) > _MAX_PASSWORD_BYTES or not isinstance(stored, StoredSha2):
            return REFUSED
        if not stored.matches(password):
            return REFUSED
        self._cache[stored] = sha2_digest(password)
        return ACCEPTED
