"""mysql_native_password: SHA-1 with a 20-byte challenge. Replicas before MySQL 5.7.23 know nothing else."""

import hashlib
import hmac

from protocol.auth.authenticator import ACCEPTED, REFUSED, SCRAMBLE_BYTES, Step


def native_hash(password: str) -> bytes:
    """Return SHA1(SHA1(password)), 20 bytes, which an account stores; b"" for an empty password."""
    if not password:
        return b""
    return hashlib.sha1(hashlib.sha1(password.encode(), usedforsecurity=False).digest(), usedforsecurity=False).digest()


def native_token(password: str, scramble: bytes) -> bytes:
    """Return a client's answer: SHA1(password) XOR SHA1(scramble + SHA1(SHA1(password)))."""
    first = hashlib.sha1(password.encode(), usedforsecurity=False).digest()
    stored = hashlib.sha1(first, usedforsecurity=False).digest()
    second = hashlib.sha1(scramble + stored, usedforsecurity=False).digest()
    return bytes(a ^ b for a, b in zip(first, second, strict=True))


def native_matches(token: bytes, scramble: bytes, stored_hash: bytes) -> bool:
    """Return whether `token` answers `scramble` for the account. An empty token (no password) never does."""
    if len(token) != SCRAMBLE_BYTES:
        return False
    mask = hashlib.sha1(scramble + stored_hash, usedforsecurity=False).digest()
    first = bytes(a ^ b for a, b in zip(token, mask, strict=True))
    return hmac.compare_digest(hashlib.sha1(first, usedforsecurity=False).digest(), stored_hash)


class NativePassword:
    """One login by mysql_native_password. `stored_hash` is the result of `native_hash`."""

    def __init__(self, stored_hash: bytes, scramble: bytes) -> None:
        self._stored_hash = stored_hash
        self._scramble = scramble

    def challenge(self) -> bytes:
        """Return the 20-byte scramble and a zero byte."""
        return self._scramble + b"\0"

    def respond(self, data: bytes) -> Step:
        """Check the 20-byte token."""
        matches = native_matches(data, self._scramble, self._stored_hash) if self._stored_hash else not data
        return ACCEPTED if matches else REFUSED
