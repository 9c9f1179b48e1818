"""The line after an object's content that binds it to its archive, its name and the manifest that it came with.

    the content | line feed | JSON: whose it is, its key, the manifest's number, what else is bound, key id, the digest over all that

With an active key the digest is HMAC-SHA256, by a key that HKDF derives from that one: it cannot be forged without a key. Without one
it is SHA-256, which anyone can compute.
"""

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import Any, Final

from protocol.errors import RelayError
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import KEYS_ADVICE, KeyMissing, KeyWrong

FORMAT: Final = 1
_PURPOSE: Final = b"binlog-relay bucket manifest 1"
_MOST_LINE_BYTES: Final = 64 << 10
_SHOWN_NAME: Final = 200
_CHECK_DIGITS: Final = 16
_MOST_NUMBER: Final = 1 << 62


class NotAuthentic(RelayError):
    """An object is not what a relay of this archive wrote there. `str()` is half a sentence."""


@dataclass(frozen=True, slots=True)
class SignedContent:
    """archive: the uuid that it was written for. sequence: the number of the first manifest that lists it. bound: what else is bound.
    key_id: of the key of its digest; None: anyone can have created it."""

    content: bytes
    archive: str
    sequence: int
    key_id: str | None
    bound: dict[str, Any] = field(default_factory=dict)


class Signer:
    """keys: the active one is used for digests; None: there is none. Thread-safe."""

    def __init__(self, keys: KeyRing | None) -> None:
        self._keys = keys
        self.key_id = None if keys is None else keys.active

    def sign(self, key: str, content: bytes, archive: str, sequence: int, bound: dict[str, Any] | None = None) -> bytes:
        """Return the bytes to store as the object `key`."""
        told = {"format": FORMAT, "archive": archive, "object": key, "sequence": sequence, "bound": bound or {}}
        told["key"] = self.key_id
        told["check"] = "" if self.key_id is None else self._check(self.key_id, key)
        line = json.dumps({**told, "digest": self._digest(told, content)})
        return content + b"\n" + line.encode()

    def read(self, key: str, data: bytes, *, is_listed: bool = False) -> SignedContent:
        """Return what is stored as the object `key`. is_listed: its digest is in a list that is believed, so no key is needed for it.

        Raises: NotAuthentic; KeyMissing; KeyWrong.
        """
        content, _, line = data.rpartition(b"\n")
        if len(line) > _MOST_LINE_BYTES:
            raise NotAuthentic("its last line is too long to say whose it is")
        try:
            told: dict[str, Any] = json.loads(line)
            digest = told.pop("digest")
            written, archive, sequence, key_id = told["format"], told["archive"], told["sequence"], told["key"]
            named, bound = told["object"], told["bound"]
            if not isinstance(archive, str) or not isinstance(key_id, str | None) or not isinstance(digest, str):
                raise TypeError
            if type(sequence) is not int or not 0 < sequence < _MOST_NUMBER or not isinstance(bound, dict):
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise NotAuthentic("nothing in it says whose it is") from None
        if written != FORMAT:
            raise NotAuthentic(f"it has format {written!r}, this version knows format {FORMAT}")
        if named != key:
            raise NotAuthentic(f"it was written as {str(named)[:_SHOWN_NAME]!r}")
        if is_listed:
            return SignedContent(content, archive, sequence, key_id, bound)
        if key_id is not None and told.get("check") != self._check(key_id, key):
            what = f"the key {key_id!r} that was given is not the one that its digest was made with, or it was changed"
            raise KeyWrong(what, file=key, advice=KEYS_ADVICE)
        if not hmac.compare_digest(digest, self._digest(told, content)):
            raise NotAuthentic("its digest is wrong: it was changed, or made without the key")
        return SignedContent(content, archive, sequence, key_id, bound)

    def _digest(self, told: dict[str, Any], content: bytes) -> str:
        """Return the digest. Raises: KeyMissing."""
        over = json.dumps([told, hashlib.sha256(content).hexdigest()], sort_keys=True).encode()
        key_id = told["key"]
        if key_id is None:
            return f"sha256:{hashlib.sha256(over).hexdigest()}"
        secret = self._secret(key_id, str(told["object"]))
        return f"hmac-sha256:{hmac.new(secret, over, hashlib.sha256).hexdigest()}"

    def _check(self, key_id: str, key: str) -> str:
        """Return a check value that distinguishes another key of the same name from another content. Raises: KeyMissing."""
        return hmac.new(self._secret(key_id, key), _PURPOSE, hashlib.sha256).hexdigest()[:_CHECK_DIGITS]

    def _secret(self, key_id: str, key: str) -> bytes:
        """Return the secret. Raises: KeyMissing."""
        secret = None if self._keys is None else self._keys.derived(key_id, _PURPOSE)
        if secret is None:
            raise KeyMissing(
                f"its digest was made with the key {key_id!r}, which is not given",
                file=key,
                advice=KEYS_ADVICE,
            )
        return secret


def digest_of(data: bytes) -> str:
    """Return the digest of an object as it is stored, for lists of objects."""
    return hashlib.sha256(data).hexdigest()
