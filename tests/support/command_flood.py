"""Connections of one account that send one statement repeatedly: each when it has its answer, or far ahead of the answers."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pymysql

from protocol.framing import frame_payload

_AHEAD = 20
_QUERY = b"\x03"


@contextlib.contextmanager
def command_flood(port: int, statement: str, *, ahead: bool, connections: int = 50, **account: Any) -> Iterator[None]:
    """Send statements while the block runs."""
    packet = frame_payload(_QUERY + statement.encode(), 0)
    ended = threading.Event()
    with contextlib.ExitStack() as held:
        clients = [
            held.enter_context(contextlib.closing(pymysql.connect(host="127.0.0.1", port=port, **account)))
            for _ in range(connections)
        ]
        thread = threading.Thread(target=_send, args=([one._sock for one in clients], packet, ahead, ended))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(30)


def _send(sockets: list[socket.socket], packet: bytes, ahead: bool, ended: threading.Event) -> None:
    with selectors.DefaultSelector() as ready:
        for one in sockets:
            one.setblocking(False)
            ready.register(one, selectors.EVENT_READ | (selectors.EVENT_WRITE if ahead else 0))
            if not ahead:
                one.send(packet)
        while not ended.is_set():
            for key, happened in ready.select(0.1):
                sender = key.fileobj
                assert isinstance(sender, socket.socket)
                with contextlib.suppress(BlockingIOError):
                    if happened & selectors.EVENT_READ:
                        sender.recv(1 << 20)
                        if not ahead:
                            sender.send(packet)
                    if happened & selectors.EVENT_WRITE:
                        sender.send(packet * _AHEAD)
