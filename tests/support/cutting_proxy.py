"""A TCP proxy as unkind as a network: it cuts connections after so many bytes, stalls, and splits what it passes.

One thread serves all connections. Only what goes to the client is counted and disturbed.
"""

import contextlib
import os
import selectors
import signal
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_TICK_S: Final = 0.01
_READ_BYTES: Final = 65536
_OK_BYTES: Final = 11


class _Link:
    """One client's connection and the one to the server."""

    def __init__(self, client: socket.socket, server: socket.socket, limit: int | None) -> None:
        self.client = client
        self.server = server
        self.limit = limit  # bytes to the client after which it is cut; None: none
        self.is_reset = False  # whether the client's next write is to fail at once
        self.client_pid: int | None = None  # The process that is suspended while it is cut
        self.passed = 0
        self.to_client = bytearray()
        self.to_server = bytearray()


class CuttingProxy:
    """A proxy that listens on `port` and passes data on to `target_port`, both on loopback. `with` starts and ends it.

    `cuts` says for each new connection in turn after how many bytes to the client it is cut; when they are used up connections are left
    alone. `split_bytes` is the most that is passed on at once. `stall` passes nothing to clients any more, and reads nothing from the
    server; `flow` ends that.
    """

    def __init__(self, target_port: int, *, split_bytes: int = _READ_BYTES) -> None:
        self.target_port = target_port
        self.split_bytes = split_bytes
        self.connections = 0
        self.cut_count = 0
        self._cuts: deque[int] = deque()
        self._commands: deque[tuple[int, int | None]] = deque()
        self._stall_after: int | None = None
        self._stalled = False
        self._links: list[_Link] = []
        self._orders: deque[Callable[[], None]] = deque()
        self._ending = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="cutting-proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending = True
        self._thread.join()

    # ---- what a test tells it ------------------------------------------------------------------------------------

    def cut_after(self, *counts: int) -> None:
        """Cut the next connections after so many bytes each."""
        self._order(lambda: self._cuts.extend(counts))

    def cut_behind_answer(self, command: int, times: int = 1, *, client_pid: int | None = None) -> None:
        """Cut the next connections that send this command as soon as its OK has passed: what they write next fails.

        With `client_pid` this always works: that process is suspended from before the OK until the cut has reached it. Without, a quick
        client may have written before the cut.
        """
        self._order(lambda: self._commands.extend([(command, client_pid)] * times))

    def cut_now_after(self, count: int) -> None:
        """Cut the existing connections after `count` more bytes."""

        def limit() -> None:
            for link in self._links:
                link.limit = link.passed + count

        self._order(limit)

    def cut_all(self) -> None:
        """Cut every connection now."""

        def cut() -> None:
            for link in list(self._links):
                self._cut(link)

        self._order(cut)

    def stall_after(self, count: int) -> None:
        """Stall all clients after `count` more bytes to them."""
        self._order(lambda: setattr(self, "_stall_after", count))

    def flow(self) -> None:
        """End the stall."""

        def end() -> None:
            self._stalled = False
            self._stall_after = None

        self._order(end)

    @property
    def stalled(self) -> bool:
        """True if it holds back what the server sends."""
        return self._stalled

    @property
    def cuts_left(self) -> int:
        """Return how many connections are still to be cut."""
        return len(self._cuts)

    def _order(self, what: Callable[[], None]) -> None:
        """Run `what` in the proxy's thread and wait for that."""
        done = threading.Event()

        def run() -> None:
            what()
            done.set()

        self._orders.append(run)
        assert done.wait(10), "the proxy's thread does not answer"

    # ---- its thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        with contextlib.closing(self._listener):
            while not self._ending:
                while self._orders:
                    self._orders.popleft()()
                self._turn()
            for link in list(self._links):
                self._cut(link)

    def _turn(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ, None)
            for link in self._links:
                _register(selector, link.client, link, not link.to_server, bool(link.to_client) and not self._stalled)
                _register(selector, link.server, link, not link.to_client, bool(link.to_server))
            for key, events in selector.select(_TICK_S):
                link = key.data
                if link is None:
                    self._accept()
                elif link in self._links:
                    try:
                        self._serve(link, key.fileobj is link.client, events)
                    except OSError:
                        self._cut(link)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        self.connections += 1
        limit = self._cuts.popleft() if self._cuts else None
        try:
            server = socket.create_connection(("127.0.0.1", self.target_port), timeout=5)
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._links.append(_Link(client, server, limit))

    def _serve(self, link: _Link, is_client: bool, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            if not is_client:
                del link.to_server[: link.server.send(link.to_server)]
            else:
                with contextlib.nullcontext() if link.client_pid is None else _standing_still(link.client_pid):
                    self._pass_to_client(link)
            return
        data = (link.client if is_client else link.server).recv(_READ_BYTES)
        if not data:
            if not is_client and link.to_client:
                return
            self._cut(link, counted=False)
        elif is_client:
            link.to_server += data
            if self._commands and data[3:5] == bytes((0, self._commands[0][0])):
                _, link.client_pid = self._commands.popleft()
                link.limit, link.is_reset = link.passed + len(link.to_client) + _OK_BYTES, True
        else:
            link.to_client += data

    def _pass_to_client(self, link: _Link) -> None:
        most = self.split_bytes
        if link.limit is not None:
            most = min(most, link.limit - link.passed)
        if self._stall_after is not None:
            most = min(most, self._stall_after)
        if most > 0:
            sent = link.client.send(memoryview(link.to_client)[:most])
            del link.to_client[:sent]
            link.passed += sent
            if self._stall_after is not None:
                self._stall_after -= sent
        if self._stall_after is not None and self._stall_after <= 0:
            self._stalled = True
        if link.limit is not None and link.passed >= link.limit:
            self._cut(link)

    def _cut(self, link: _Link, *, counted: bool = True) -> None:
        self._links.remove(link)
        if counted:
            self.cut_count += 1
        if link.is_reset:
            link.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.client.close()
        link.server.close()


@contextlib.contextmanager
def _standing_still(pid: int) -> Iterator[None]:
    """Suspend the process by SIGSTOP inside, and wait until it is."""
    os.kill(pid, signal.SIGSTOP)
    try:
        state = Path(f"/proc/{pid}/stat")
        while state.read_bytes().rpartition(b") ")[2][:1] != b"T":
            time.sleep(0.001)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _register(selector: selectors.BaseSelector, end: socket.socket, link: _Link, read: bool, write: bool) -> None:
    events = (selectors.EVENT_READ if read else 0) | (selectors.EVENT_WRITE if write else 0)
    if events:
        selector.register(end, events, link)
