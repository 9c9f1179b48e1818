"""A TCP proxy on the loopback that cuts connections: at once, or after so many more bytes."""

import contextlib
import socket
import struct
import threading
from types import TracebackType
from typing import Self

# SO_LINGER on with 0 seconds: closing sends a reset and throws away what was not sent, as a dead machine would.
_RESET = struct.pack("ii", 1, 0)
_CHUNK_BYTES = 65536


class CuttingProxy:
    """Listens on a free port and passes bytes on to 127.0.0.1:`target`. `with` closes it.

    `cut()` resets all connections now; `cut_after(n)` when n more bytes have gone to the clients, all connections
    together: that is how a cut falls inside a transaction, an event or a packet header.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._links: list[tuple[socket.socket, socket.socket]] = []
        self._left: int | None = None
        self._closed = False
        self._accepting = threading.Thread(target=self._accept, name="cutting-proxy", daemon=True)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stops listening and ends all connections."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        self.cut()

    def cut(self) -> int:
        """Resets all connections; how many there were."""
        with self._lock:
            links, self._links = self._links, []
            self._left = None
        for link in links:
            for end in link:
                _reset(end)
        self.cuts += bool(links)
        return len(links)

    def cut_after(self, size: int) -> None:
        """Resets all connections once `size` more bytes went to the clients."""
        with self._lock:
            self._left = size

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                _reset(client)
                continue
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._links.append((client, server))
            for source, sink, counted in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass_on, args=(source, sink, counted), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                if counted and self._left is not None:
                    with self._lock:
                        left = self._left
                        if left is not None:
                            self._left = max(0, left - len(data))
                    if left is not None and left <= len(data):
                        sink.sendall(data[:left])
                        # Without this the reset would overtake what was just sent.
                        sink.shutdown(socket.SHUT_WR)
                        self.cut()
                        return
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            gone = [link for link in self._links if source in link]
            self._links = [link for link in self._links if source not in link]
        for link in gone:
            for end in link:
                end.close()


def _reset(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        # shutdown wakes the thread that reads; close alone would not.
        end.shutdown(socket.SHUT_RD)
    with contextlib.suppress(OSError):
        end.close()
