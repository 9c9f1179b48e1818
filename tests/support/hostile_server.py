"""A peer that answers in a server's place and asks for the password, in any way that a script describes."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SCRAMBLE: Final = b"0123456789abcdefghij"
_CAPABILITIES: Final = 0x003BA20D
_SSL: Final = 0x0800
_SSL_REQUEST_BYTES: Final = 32
_PADDING: Final = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)
OWN_KEY: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OWN_PEM: Final = OWN_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def greeting(plugin: str, *, tls: bool) -> bytes:
    """Return Handshake v10 of a MySQL 8."""
    flags = _CAPABILITIES | (_SSL if tls else 0)
    return (
        b"\x0a8.0.43\0" + struct.pack("<I", 7) + SCRAMBLE[:8] + b"\0"
        + struct.pack("<HBHHB", flags & 0xFFFF, 33, 2, flags >> 16, 21) + bytes(10) + SCRAMBLE[8:] + b"\0" + plugin.encode() + b"\0"
    )  # fmt: skip


def switch(plugin: str, data: bytes = SCRAMBLE + b"\0") -> bytes:
    """Return AuthSwitchRequest."""
    return b"\xfe" + plugin.encode() + b"\0" + data


@dataclass
class HostileServer:
    """A server that greets with `plugin`, and sends one packet of `script` after each that it gets. With `tls` None it offers none.
    `with` ends it."""

    plugin: str = "mysql_native_password"
    script: Sequence[bytes] = ()
    tls: ssl.SSLContext | None = None
    received: list[bytes] = field(default_factory=list)
    """All packets that came, decrypted."""
    port: int = 0

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=8)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def has(self, password: str) -> bool:
        """Return whether it has the password from what it got."""
        wanted = password.encode()
        mask = SCRAMBLE * 40
        for data in self.received:
            opened = _decrypted(data)
            if wanted in data or any(
                wanted in bytes(a ^ b for a, b in zip(text, mask, strict=False)) for text in (data, opened)
            ):
                return True
        return False

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            link.settimeout(5)
            with contextlib.suppress(OSError, EOFError):
                self._converse(link)
            link.close()

    def _converse(self, link: socket.socket) -> None:
        _send(link, 0, greeting(self.plugin, tls=self.tls is not None))
        number, packet = _packet(link)
        if self.tls is not None and len(packet) == _SSL_REQUEST_BYTES:
            with self.tls.wrap_socket(link, server_side=True) as secured:
                self._ask(secured, *_packet(secured))
        else:
            self._ask(link, number, packet)

    def _ask(self, link: socket.socket, number: int, packet: bytes) -> None:
        self.received.append(packet)
        for payload in self.script:
            _send(link, number + 1, payload)
            number, packet = _packet(link)
            self.received.append(packet)
        _send(link, number + 1, b"\xff\x15\x04#28000Access denied")


def _decrypted(data: bytes) -> bytes:
    try:
        return OWN_KEY.decrypt(data, _PADDING)
    except ValueError:
        return b""


def _send(link: socket.socket, number: int, payload: bytes) -> None:
    link.sendall(len(payload).to_bytes(3, "little") + bytes([number & 255]) + payload)


def _packet(link: socket.socket) -> tuple[int, bytes]:
    head = _exactly(link, 4)
    return head[3], _exactly(link, int.from_bytes(head[:3], "little"))


def _exactly(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = link.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data
