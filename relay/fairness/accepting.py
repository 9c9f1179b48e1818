"""Connections as the system hands them over, before TLS, so that each is counted from its first moment.

The event loop's own servers take one connection a turn. A flood then fills the system's queue, and every client waits in it.
"""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable
from typing import Final

from relay.process.background import guarded

_AT_ONCE: Final = 32
"""The connections accepted at once, before the event loop's other work has its turn."""
_REST_S: Final = 0.2
"""The pause when the system has no descriptor, or no memory, for another connection."""
_KEPT_FREE: Final = 8
"""Descriptors that no connection gets: the source and the archive open files meanwhile."""
_PASSING: Final = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR, errno.ECONNABORTED, errno.EPROTO)


class Accepting:
    """Listens at an address, and calls `came(socket, address)` for each connection. `begin`, then `close`; on the event loop."""

    def __init__(self, came: Callable[[socket.socket, str], None], backlog: int) -> None:
        self._came = came
        self._backlog = backlog
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._rests: asyncio.TimerHandle | None = None

    @property
    def port(self) -> int:
        """The port that is listened on; 0 if there is none."""
        return int(self._sockets[0].getsockname()[1]) if self._sockets else 0

    async def begin(self, host: str, port: int) -> None:
        """Listen. Raises: OSError, for instance when the port is taken."""
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, kind, protocol, _name, address in dict.fromkeys(found):
                listening = socket.socket(family, kind, protocol)
                self._sockets.append(listening)
                listening.setblocking(False)
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listening.bind(address)
                listening.listen(self._backlog)
        except OSError:
            self.close()
            raise
        self._go_on()

    def close(self) -> None:
        """Stop accepting."""
        if self._rests is not None:
            self._rests.cancel()
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            listening.close()
        self._sockets.clear()

    def _go_on(self) -> None:
        self._rests = None
        take = guarded(self._take, "accepting a connection", lambda _fault: None)
        for listening in self._sockets:
            self._loop.add_reader(listening, take, listening)

    def _take(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            if not _has_room(listening):
                self._rest()
                return
            try:
                taken, address = listening.accept()
            except OSError as error:
                if error.errno not in _PASSING:
                    self._rest()
                return
            taken.setblocking(False)
            with contextlib.suppress(OSError):
                taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._came(taken, str(address[0]))

    def _rest(self) -> None:
        for listening in self._sockets:
            self._loop.remove_reader(listening)
        self._rests = self._loop.call_later(_REST_S, self._go_on)


def _has_room(listening: socket.socket) -> bool:
    """Return whether the system gives a connection its descriptor, and would give `_KEPT_FREE` more."""
    tried: list[int] = []
    try:
        for _ in range(_KEPT_FREE + 1):
            tried.append(os.dup(listening.fileno()))
    except OSError:
        return False
    finally:
        for fd in tried:
            os.close(fd)
    return True
