"""aiohttp's server with bounds: so many connections, and each of them only so long at a time with a request or an answer."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

Answerer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_IDLE_S: Final = 75.0
"""A monitor that comes once a minute keeps its connection."""
_LONGEST_LINE: Final = 4096
_LONGEST_FIELD: Final = 4096
_MOST_HEADERS: Final = 64
_MOST_UNREAD: Final = 16 << 10

# What aiohttp would log of each malformed request has nothing that the counts do not say, and as many lines as a peer wants.
_silent = logging.getLogger("relay.http.aiohttp")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


class BoundedConnection(RequestHandler):
    """One connection. It is closed when a deadline passes: for a request, for its answer, for the next request."""

    __slots__ = ("_bounds", "_deadline", "is_counted")

    def __init__(self, server: "BoundedServer", **options: Any) -> None:
        super().__init__(server, **options)
        self._bounds = server
        self._deadline: asyncio.TimerHandle | None = None
        self.is_counted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes it, where there is room."""
        super().connection_made(transport)
        if not self._bounds.takes(self):
            self.force_close()
            return
        self._due_in(self._bounds.request_timeout_s)

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is gone."""
        self._bounds.left(self)
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def answer_begins(self) -> None:
        """Its request is complete."""
        self._due_in(self._bounds.request_timeout_s)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """As aiohttp's; then the next request is waited for."""
        done = await super().finish_response(request, resp, start_time)
        self._due_in(_IDLE_S)
        return done

    def _due_in(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._loop.call_later(seconds, self._too_late, seconds)

    def _too_late(self, seconds: float) -> None:
        if seconds != _IDLE_S:
            self._bounds.refusals["timeout"] += 1
        if self.transport is not None:
            # Not closed in order: that would wait for a peer that takes nothing.
            self.transport.abort()


class BoundedServer(web.Server):
    """Makes the connections. refusals: by why, what was closed without an answer."""

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
        """Called when there was no room for a connection."""
        self.open = 0
        """How many connections there are."""
        self._max_connections = max_connections

    def __call__(self) -> BoundedConnection:
        """A connection comes."""
        return BoundedConnection(self, loop=self._loop, **self._kwargs)

    def takes(self, connection: BoundedConnection) -> bool:
        """Whether there is room for it."""
        if self.open >= self._max_connections:
            self.refusals["too_many_connections"] += 1
            if self.on_refusal is not None:
                self.on_refusal()
            return False
        self.open += 1
        connection.is_counted = True
        return True

    def left(self, connection: BoundedConnection) -> None:
        """It is gone."""
        self.open -= connection.is_counted
        connection.is_counted = False
