"""The client's half of a login, with a SourceSide without any network."""

import struct
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from protocol.auth.caching_sha2 import sha2_token
from protocol.auth.ed25519 import ed25519_signature
from protocol.auth.native import native_token
from protocol.capabilities import Capability
from protocol.framing import frame_payload
from protocol.source_side.connection_events import CheckRequested, Event
from protocol.source_side.machine import SourceSide

MODERN = Capability(0x19FFA685)
BEFORE_PLUGINS = Capability(0x0003A685) & ~Capability.CONNECT_WITH_DB


def packets(data: bytes) -> list[tuple[int, bytes]]:
    """Return (sequence, payload) of each packet."""
    found = []
    while data:
        size = int.from_bytes(data[:3], "little")
        found.append((data[3], data[4 : 4 + size]))
        data = data[4 + size :]
    return found


@dataclass
class LoginClient:
    """A client that logs in to `side`; `run` does it all. `plugin` is the one it proposes, with the greeting's challenge if it is that.

    With `asks_for_key` it encrypts its password if there is no TLS, instead of giving up. `said` is what it was sent.
    """

    side: SourceSide
    user: str = "repl"
    password: str = "s3cret"
    plugin: str = "caching_sha2_password"
    capabilities: Capability = MODERN
    tls: bool = False
    asks_for_key: bool = True
    now: float = 100.0
    events: list[Event] = field(default_factory=list)
    said: list[tuple[int, bytes]] = field(default_factory=list)
    works: int = 0
    _scramble: bytes = b""
    _sequence: int = 0
    _using: str = ""

    def run(self) -> list[Event]:
        """Run the whole conversation and return its events, except those that ask for work."""
        self.take_greeting()
        self.log_in()
        while self._answer():
            pass
        return self.events

    def take_greeting(self) -> None:
        """Read the greeting."""
        ((self._sequence, payload),) = self._read()
        start = payload.index(b"\0") + 5
        self._scramble = payload[start : start + 8] + payload[start + 27 : start + 39]
        self._using = payload[start + 40 :].rstrip(b"\0").decode()

    def log_in(self) -> None:
        """Send the login packet."""
        data = b""
        if self.plugin == self._using or not self.capabilities & Capability.PLUGIN_AUTH:
            data = self._token(self.plugin, self._scramble)
        payload = struct.pack("<IIB23x", self.capabilities, 1 << 24, 33) + self.user.encode() + b"\0"
        payload += bytes((len(data),)) + data
        if self.capabilities & Capability.CONNECT_WITH_DB:
            payload += b"\0"
        if self.capabilities & Capability.PLUGIN_AUTH:
            payload += self.plugin.encode() + b"\0"
        if self.capabilities & Capability.CONNECT_ATTRS:
            payload += b"\0"
        self._using = self.plugin
        self.send(payload)

    def send(self, payload: bytes) -> None:
        """Send the next packet; do what the machine asks for after it."""
        pending = self.side.receive(frame_payload(payload, self._sequence + 1), self.now)
        self._sequence += 1
        while pending:
            event = pending.pop(0)
            if isinstance(event, CheckRequested):
                self.works += 1
                pending += self.side.answer_check(event.work(), self.now)
            else:
                self.events.append(event)

    def _read(self) -> list[tuple[int, bytes]]:
        got = packets(self.side.bytes_to_send())
        self.said += got
        return got

    def _answer(self) -> bool:
        """Answer what was received; return False when the login is over."""
        got = self._read()
        if not got:
            return False
        self._sequence, payload = got[-1]
        if payload[:1] in (b"\x00", b"\xff"):
            return False
        if payload[:1] == b"\xfe":
            name, _, challenge = payload[1:].partition(b"\0")
            self._using, self._scramble = name.decode(), challenge
            self.send(self._token(self._using, challenge))
        elif payload == b"\x01\x04":
            if self.tls:
                self.send(self.password.encode() + b"\0")
            elif self.asks_for_key:
                self.send(b"\x02")
            else:
                return False
        else:
            self.send(self._encrypted(payload[1:]))
        return True

    def _token(self, plugin: str, challenge: bytes) -> bytes:
        if plugin == "client_ed25519":
            assert len(challenge) == 32, "clients refuse any other nonce"
            return ed25519_signature(self.password, challenge)
        scramble = challenge[:20]
        assert challenge[20:] in (b"", b"\0")
        if not self.password:
            return b"\0" if plugin == "caching_sha2_password" else b""
        if plugin == "caching_sha2_password":
            return sha2_token(self.password.encode(), scramble)
        if plugin == "mysql_native_password":
            return native_token(self.password, scramble)
        return b"whatever"

    def _encrypted(self, pem: bytes) -> bytes:
        key: Any = load_pem_public_key(pem)
        assert isinstance(key, rsa.RSAPublicKey)
        data = self.password.encode() + b"\0"
        mask = (self._scramble[:20] * (len(data) // 20 + 1))[: len(data)]
        masked = bytes(a ^ b for a, b in zip(data, mask, strict=True))
        return key.encrypt(masked, padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None))
