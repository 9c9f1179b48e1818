"""The keys that files are encrypted with: their origins, and the one that is used for new files.

A file has a random data key of its own. Only that is encrypted with a key of the ring ("wrapped"). A new key is for new files;
existing ones keep theirs, so the ring must keep it too.
"""

import base64
import binascii
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from relay.packed.packed_errors import KEYS_ADVICE, KeyMissing, KeyUnreadable, KeyWrong

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12


@dataclass(frozen=True, slots=True)
class KeySource:
    """The origin of the key called `id`: a file, an environment variable, or a credential of systemd.

    The key is 32 bytes: as they are, as 64 hexadecimal digits or as base64, white space around them.
    """

    id: str
    file: str | None = None
    env: str | None = None
    credential: str | None = None

    @property
    def place(self) -> str:
        """The place in words, for messages."""
        if self.file is not None:
            return f"file {self.file}"
        if self.env is not None:
            return f"environment variable {self.env}"
        return f"systemd credential {self.credential}"

    def read(self) -> bytes:
        """Return the key. Raises: KeyUnreadable."""
        try:
            if self.file is not None:
                found = Path(self.file).read_bytes()
            elif self.env is not None:
                found = os.environ[self.env].encode()
            else:
                found = (Path(os.environ["CREDENTIALS_DIRECTORY"]) / str(self.credential)).read_bytes()
        except KeyError as error:
            raise KeyUnreadable(f"key {self.id!r}: {self.place}: {error.args[0]} is not in the environment") from None
        except OSError as error:
            raise KeyUnreadable(f"key {self.id!r}: {self.place}: {error.strerror}") from None
        key = _key_of(found)
        if key is None:
            raise KeyUnreadable(
                f"key {self.id!r}: {self.place} has no key of {KEY_BYTES} bytes; `openssl rand -hex {KEY_BYTES}` makes one"
            )
        return key


def _key_of(found: bytes) -> bytes | None:
    if len(found) == KEY_BYTES:
        return found
    text = found.strip()
    try:
        key = (
            bytes.fromhex(text.decode("ascii")) if len(text) == 2 * KEY_BYTES else base64.b64decode(text, validate=True)
        )
    except (ValueError, UnicodeError, binascii.Error):
        return None
    return key if len(key) == KEY_BYTES else None


def sealing(key: bytes) -> Any:
    """Return AES-256-GCM with that key."""
    # A process without encrypted files, as most of Spark's executors, needs no cryptography.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


class KeyRing:
    """Keys by id. Neither `repr` nor any message shows one."""

    def __init__(self, keys: dict[str, bytes], active: str | None) -> None:
        self._keys = dict(keys)
        self.active = active
        """The id of the key for new files; None: new files are not encrypted."""
        if active is not None and active not in self._keys:
            raise KeyUnreadable(f"the active key is {active!r}, and there is no key of that id")

    @classmethod
    def load(cls, sources: Sequence[KeySource], active: str | None = None) -> "KeyRing":
        """Read all keys. Raises: KeyUnreadable."""
        return cls({source.id: source.read() for source in sources}, active)

    @property
    def ids(self) -> list[str]:
        """The ids of all keys."""
        return sorted(self._keys)

    def wrap(self, key_id: str, data_key: bytes, bound: bytes) -> bytes:
        """Return the data key, encrypted. `bound`: authenticated with it. A nonce is random: one key is good for some 2^32 files."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + bytes(sealing(self._keys[key_id]).encrypt(nonce, data_key, bound))

    def unwrap(self, key_id: str, wrapped: bytes, bound: bytes, file: str) -> bytes:
        """Return the data key. Raises: KeyMissing, KeyWrong."""
        from cryptography.exceptions import InvalidTag

        key = self._keys.get(key_id)
        if key is None:
            known = ", ".join(map(repr, self.ids)) or "none"
            raise KeyMissing(
                f"it is encrypted with the key {key_id!r}; keys given: {known}", file=file, advice=KEYS_ADVICE
            )
        try:
            return bytes(sealing(key).decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], bound))
        except (InvalidTag, ValueError):
            what = f"the key {key_id!r} that was given is not the one it was encrypted with, or its head was changed"
            raise KeyWrong(what, file=file, offset=0, advice=KEYS_ADVICE) from None

    def derived(self, key_id: str, purpose: bytes) -> bytes | None:
        """Return a key for another purpose, by HKDF of one of the ring; None: it has none of that id."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        key = self._keys.get(key_id)
        return None if key is None else HKDF(SHA256(), KEY_BYTES, None, purpose).derive(key)

    def for_own_process(self) -> dict[str, bytes]:
        """Return the keys themselves, for a process that this one has started, over a socket that no other process has."""
        return dict(self._keys)

    def __repr__(self) -> str:
        return f"KeyRing(ids={self.ids}, active={self.active!r})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("keys are not pickled: send KeySource, which says where they come from")
