"""aiohttp's server with bounds: on the number of connections, and on the time of each for a request or an answer.

With too many, the address that has most loses one: one that waits for its next request, else the one whose request has been
incomplete for longest, else the one that has been answered for longest. The newcomer stays.
"""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from enum import IntEnum
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from relay.fairness.accepting import Accepting
from relay.fairness.address_group import address_group
from relay.fairness.fair_places import FairPlaces
from relay.fairness.fair_pool import FairPool
from relay.fairness.fair_queue import Turn
from relay.http.tls_connection import TlsConnection
from relay.process.background import begin_task

Answerer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
"""The headers of each answer that sets no others."""
_IDLE_S: Final = 75.0
"""A monitor that polls once a minute keeps its connection."""
_LONGEST_LINE: Final = 4096
_LONGEST_FIELD: Final = 4096
_MOST_HEADERS: Final = 64
_MOST_UNREAD: Final = 16 << 10
_BACKLOG: Final = 128

# aiohttp's log lines about malformed requests add nothing to the counts, and a peer could cause as many as it wants.
_silent = logging.getLogger("relay.http.aiohttp")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


class RequestPhase(IntEnum):
    """The event that a connection waits for. With too many connections those of the first phase are closed first."""

    IDLE = 0
    ASKING = 1
    ANSWERED = 2


class BoundedConnection(RequestHandler):
    """One connection. It is closed when a deadline passes: for a request, for its answer, for the next request."""

    __slots__ = ("_bounds", "_deadline", "_making", "_phase", "_secured")

    def __init__(self, server: "BoundedServer", **options: Any) -> None:
        super().__init__(server, **options)
        self._bounds = server
        self._deadline: asyncio.TimerHandle | None = None
        self._making: asyncio.Task[Any] | None = None
        self._secured: TlsConnection | None = None
        self._phase = RequestPhase.ASKING

    def begin(self, accepted: socket.socket, tls: ssl.SSLContext | None, threads: Executor, turn: Turn) -> None:
        """Create a connection on the socket; with TLS, after a handshake, which `threads` perform by this turn."""
        if tls is not None:
            self._secured = TlsConnection(self, tls, threads, turn)
            self._due_in(self._bounds.request_timeout_s)
        protocol = self._secured or self
        made = self._loop.connect_accepted_socket(lambda: protocol, accepted)
        self._making = begin_task(made, "taking an HTTP connection", expected=(OSError,))
        self._making.add_done_callback(self._made)

    def _made(self, making: asyncio.Task[Any]) -> None:
        if making.cancelled() or making.exception() is not None:
            self._let_go()

    def end(self) -> None:
        """Close it now, without a shutdown: that would wait for a peer that takes nothing."""
        if self.transport is not None:
            self.transport.abort()
        elif self._making is not None and not self._making.done():
            self._making.cancel()
        elif self._secured is not None:
            self._secured.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for its request."""
        super().connection_made(transport)
        self._due_in(self._bounds.request_timeout_s)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Note that it has ended; one with TLS perhaps before its handshake was done."""
        self._let_go()
        if self.transport is not None:
            super().connection_lost(exc)

    def _let_go(self) -> None:
        self._bounds.left(self)
        self._secured = None
        if self._deadline is not None:
            self._deadline.cancel()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        if self._phase is RequestPhase.IDLE:
            self._enter(RequestPhase.ASKING)
            self._due_in(self._bounds.request_timeout_s)
        super().data_received(data)

    def answer_begins(self) -> None:
        """Note that its request is complete."""
        self._enter(RequestPhase.ANSWERED)
        self._due_in(self._bounds.request_timeout_s)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Do as aiohttp's; then wait for the next request."""
        done = await super().finish_response(request, resp, start_time)
        self._enter(RequestPhase.IDLE)
        self._due_in(_IDLE_S)
        return done

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no request without repeating it, which aiohttp would do."""
        response = super().handle_error(request, status, exc, f"{status}: this is no request that is understood here\n")
        response.headers.update(HEADERS)
        return response

    def _enter(self, phase: RequestPhase) -> None:
        self._phase = phase
        self._bounds.moved(self, phase)

    def _due_in(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._loop.call_later(seconds, self._too_late, seconds)

    def _too_late(self, seconds: float) -> None:
        if seconds != _IDLE_S:
            self._bounds.refusals["timeout"] += 1
        self.end()


class BoundedServer(web.Server):
    """Creates the connections. refusals: the connections that were closed without an answer, by reason."""

    def __init__(self, answerer: Answerer, *, max_connections: int, request_timeout_s: float) -> None:
        super().__init__(
            answerer,
            handler_cancellation=True,
            keepalive_timeout=_IDLE_S,
            access_log=None,
            logger=_silent,
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_FIELD,
            max_headers=_MOST_HEADERS,
            read_bufsize=_MOST_UNREAD,
            lingering_time=0.0,
        )
        self.request_timeout_s = request_timeout_s
        self.refusals: Counter[str] = Counter()
        self.on_refusal: Callable[[], None] | None = None
        """Called when a connection was closed for another one."""
        self._max_connections = max_connections
        self._places = FairPlaces[BoundedConnection](ranks=len(RequestPhase))
        self._tls: ssl.SSLContext | None = None
        self._handshakes = FairPool(1, "http-handshake", newest_first=True)
        self._accepting: Accepting | None = None

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        """Listen. Raises: OSError."""
        self._tls = tls
        self._accepting = Accepting(self._came, _BACKLOG)
        await self._accepting.begin(host, port)

    def stop_listening(self) -> None:
        """Stop listening; existing connections stay."""
        if self._accepting is not None:
            self._accepting.close()

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  (aiohttp's)
        """End all connections, within `timeout` seconds."""
        await super().shutdown(timeout)
        # Those in their handshake are not aiohttp's yet.
        for connection in self._places:
            connection.end()
        self._handshakes.shutdown(wait=False, cancel_futures=True)

    @property
    def open(self) -> int:
        """The number of connections, including those in their TLS handshake."""
        return len(self._places)

    def moved(self, connection: BoundedConnection, phase: RequestPhase) -> None:
        """Note that the connection waits for something else now."""
        self._places.move(connection, phase)

    def left(self, connection: BoundedConnection) -> None:
        """Note that the connection has ended."""
        self._places.discard(connection)

    def _came(self, accepted: socket.socket, address: str) -> None:
        connection = BoundedConnection(self, loop=self._loop, **self._kwargs)
        group = address_group(address)
        self._places.add(connection, group, RequestPhase.ASKING)
        connection.begin(accepted, self._tls, self._handshakes, Turn(group))
        while len(self._places) > self._max_connections:
            first = self._places.first_to_go(newcomer=connection)
            assert first is not None
            self.refusals["too_many_connections"] += 1
            if self.on_refusal is not None:
                self.on_refusal()
            self._places.discard(first)
            first.end()
