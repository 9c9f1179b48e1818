"""A client of TLS 1.3 that writes its records itself, after a handshake that Python's TLS has made: any type, any padding, any number
of key changes.

Its keys come from the secret that OpenSSL logs for debuggers (SSLKEYLOGFILE). Source: RFC 8446, sections 5.2, 7.1, 7.2 and 7.3.
"""

import contextlib
import ssl
import struct
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

APPLICATION_DATA: Final = 23
ALERT: Final = 21
HANDSHAKE: Final = 22
CHANGE_CIPHER_SPEC: Final = 20
_KEY_UPDATE: Final = 24
_VERSION: Final = b"\x03\x03"


class TlsClient:
    """A client. `hello` is what it sends first; `answer` continues the handshake; from then on `record` and `key_update` make its
    records."""

    def __init__(self, authority: Path, key_log: Path) -> None:
        context = ssl.create_default_context(cafile=str(authority))
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.keylog_filename = str(key_log)
        self._key_log = key_log
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")
        self._secret = b""
        self._number = 0
        self.hello = self.answer(b"")

    def answer(self, data: bytes) -> bytes:
        """Return its answer to that, as far as the handshake goes."""
        self._incoming.write(data)
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
            assert self._tls.cipher()[0] == "TLS_AES_256_GCM_SHA384"  # type: ignore[index]
            self._use(_logged_secret(self._key_log))
        return self._outgoing.read()

    def record(self, content: bytes, kind: int = APPLICATION_DATA, padding: int = 0) -> bytes:
        """Return one encrypted record."""
        plain = content + bytes([kind]) + bytes(padding)
        head = bytes([APPLICATION_DATA]) + _VERSION + struct.pack(">H", len(plain) + 16)
        nonce = (int.from_bytes(self._iv) ^ self._number).to_bytes(12)
        self._number += 1
        return head + self._cipher.encrypt(nonce, plain, head)

    def key_update(self, *, wants_answer: bool = False) -> bytes:
        """Return a record that changes its key."""
        made = self.record(bytes([_KEY_UPDATE, 0, 0, 1, wants_answer]), HANDSHAKE)
        self._use(_expanded(self._secret, b"traffic upd", 48))
        return made

    def _use(self, secret: bytes) -> None:
        self._secret, self._number = secret, 0
        self._cipher, self._iv = AESGCM(_expanded(secret, b"key", 32)), _expanded(secret, b"iv", 12)


def _expanded(secret: bytes, label: bytes, length: int) -> bytes:
    whole = b"tls13 " + label
    info = struct.pack(">H", length) + bytes([len(whole)]) + whole + b"\0"
    return HKDFExpand(SHA384(), length, info).derive(secret)


def _logged_secret(key_log: Path) -> bytes:
    lines = [line.split() for line in key_log.read_text(encoding="ascii").splitlines()]
    return bytes.fromhex([words[2] for words in lines if words and words[0] == "CLIENT_TRAFFIC_SECRET_0"][-1])
