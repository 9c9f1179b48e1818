"""TLS between the socket of an HTTP connection and aiohttp: asyncio's own performs handshakes, of milliseconds each, on the event
loop."""

import asyncio
import ssl
from concurrent.futures import Executor
from functools import partial
from typing import cast

from relay.fairness.fair_pool import TURN
from relay.fairness.fair_queue import Turn
from relay.process.background import begin_task
from relay.process.tls_transport import TlsTransport


class TlsConnection(asyncio.Protocol):
    """Creates `inner`'s connection when the handshake is done, which threads perform by turns of the address.

    turn: of its address. Before the handshake's end `inner` is notified of nothing but the end of the connection.
    """

    def __init__(self, inner: asyncio.Protocol, context: ssl.SSLContext, threads: Executor, turn: Turn) -> None:
        self._inner = inner
        self._context = context
        self._threads = threads
        self._turn = turn
        self._tls: TlsTransport | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._is_made = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        on_more = partial(self.data_received, b"")
        self._tls = TlsTransport(cast(asyncio.Transport, transport), self._context, on_more=on_more)
        self._handshake = begin_task(self._shake_hands(self._tls), "an HTTP client's TLS handshake", self._broken)

    async def _shake_hands(self, tls: TlsTransport) -> None:
        TURN.set(self._turn)
        try:
            await tls.handshake(self._threads)
        except ssl.SSLError:
            tls.close()
            return
        self._is_made = True
        self._inner.connection_made(tls)
        self.data_received(b"")

    def data_received(self, data: bytes) -> None:
        """Take bytes of the socket."""
        if self._tls is None:
            return
        try:
            plain = self._tls.received(data)
        except ssl.SSLError:
            self._tls.abort()
            return
        if plain and self._is_made:
            self._inner.data_received(plain)
        if self._tls.peer_said_goodbye:
            self._tls.close()

    def pause_writing(self) -> None:
        """Pause: the socket is full."""
        if self._is_made:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Continue: the socket took what was written."""
        if self._is_made:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, with or without a finished handshake."""
        if self._handshake is not None:
            self._handshake.cancel()
        self._tls = self._handshake = None
        self._inner.connection_lost(exc)

    def abort(self) -> None:
        """Close it now."""
        if self._tls is not None:
            self._tls.abort()

    def _broken(self, _fault: Exception) -> None:
        self.abort()
