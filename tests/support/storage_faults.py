"""An HTTP proxy before an object storage, with its possible faults: 503, silence, cut bodies, wrong bytes, refused connections.

It also corrects a difference of `rclone serve s3` from S3: a range is answered there with status 200, clients expect 206.

    python -m tests.support.storage_faults PORT TARGET_PORT      without faults, in a process of its own, for measuring
"""

import contextlib
import enum
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, NamedTuple, Self

_READ_BYTES: Final = 256 << 10
_LENGTH: Final = re.compile(rb"^content-length:\s*(\d+)\s*$", re.IGNORECASE | re.MULTILINE)
_RANGE: Final = re.compile(rb"^range:\s*(.*?)\s*$", re.IGNORECASE | re.MULTILINE)


class Fault(enum.Enum):
    """The fate of a request. CUT: half of the answer's body, then a reset. HALF: the same, as if it were all. WRONG: a byte of the
    body is changed. SILENT: no answer until `end_silence`. RESET: a reset without an answer. TIMED_OUT, ABORTED, SKEWED: the errors
    of S3."""

    THROTTLED = "503"
    CUT = "cut"
    HALF = "half"
    WRONG = "wrong"
    SILENT = "silent"
    RESET = "reset"
    TIMED_OUT = "RequestTimeout"
    ABORTED = "OperationAborted"
    SKEWED = "RequestTimeTooSkewed"


_ANSWERS: Final = {
    Fault.THROTTLED: (b"503 Slow Down", "SlowDown", "Please reduce your request rate."),
    Fault.TIMED_OUT: (
        b"400 Bad Request",
        Fault.TIMED_OUT.value,
        "Your socket connection was not read from or written to.",
    ),
    Fault.ABORTED: (
        b"409 Conflict",
        Fault.ABORTED.value,
        "A conflicting conditional operation is currently in progress.",
    ),
    Fault.SKEWED: (
        b"403 Forbidden",
        Fault.SKEWED.value,
        "The difference between the request time and the server's is too large.",
    ),
}
"""The status, code and message of those that are answers."""


class StorageRequest(NamedTuple):
    """A received request. `byte_range` is that of its head, "" if there is none."""

    method: str
    path: str
    byte_range: str
    at: float


@dataclass
class _Order:
    fault: Fault
    left: int
    fits: Callable[[StorageRequest], bool]


class StorageFaults:
    """A proxy that listens on `port` and passes requests on to `target_port`, both on loopback. `with` starts and ends it.

    `requests` are all that came, in order. `delay_s` delays each answer.
    """

    def __init__(self, target_port: int, port: int = 0) -> None:
        self.target_port = target_port
        self.requests: list[StorageRequest] = []
        self.delay_s = 0.0
        self._orders: list[_Order] = []
        self._lock = threading.Lock()
        self._heard = threading.Event()
        self._links: set[socket.socket] = set()
        self._listener: socket.socket | None = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port: int = self._listener.getsockname()[1]

    def order(
        self, fault: Fault, times: int = 1, *, method: str = "", part: str = "", ranges_only: bool = False
    ) -> None:
        """Let the next `times` requests of that method, with `part` in their path, meet the fault."""

        def fits(request: StorageRequest) -> bool:
            return (
                method in ("", request.method)
                and part in request.path
                and (not ranges_only or request.byte_range != "")
            )

        with self._lock:
            self._orders.append(_Order(fault, times, fits))

    def order_behind(self, passed: int, fault: Fault) -> None:
        """Let `passed` more requests pass; all later ones meet the fault until `forgive`."""
        left = iter(range(passed))
        with self._lock:
            self._orders.append(_Order(fault, 1 << 30, lambda _request: next(left, None) is None))

    def forgive(self) -> None:
        """Make no more faults."""
        with self._lock:
            self._orders.clear()
        self.end_silence()

    def end_silence(self) -> None:
        """End requests that were met with silence with a reset."""
        self._heard.set()
        self._heard = threading.Event()

    def refuse(self) -> None:
        """Stop listening; existing connections are reset."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            links = list(self._links)
        for link in links:
            _reset(link)
        self.end_silence()

    def listen(self) -> None:
        """End `refuse`."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self._accept(self._listener)

    def __enter__(self) -> Self:
        assert self._listener is not None
        self._accept(self._listener)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()

    def _accept(self, listener: socket.socket) -> None:
        def accept() -> None:
            while True:
                try:
                    client, _address = listener.accept()
                except OSError:
                    return
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, name="storage-faults", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._links.add(client)
        server = None
        try:
            server = socket.create_connection(("127.0.0.1", self.target_port))
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            from_client, from_server = _Reader(client), _Reader(server)
            while self._one(client, server, from_client, from_server):
                pass
        except OSError:
            pass
        finally:
            with self._lock:
                self._links.discard(client)
            client.close()
            if server is not None:
                server.close()

    def _one(self, client: socket.socket, server: socket.socket, asked: "_Reader", answered: "_Reader") -> bool:
        """Pass one request and its answer; return whether the connection continues."""
        head = asked.head()
        if head is None:
            return False
        method, path = head.split(b" ", 2)[:2]
        found = _RANGE.search(head)
        request = StorageRequest(
            method.decode(), path.decode(), found[1].decode() if found is not None else "", time.monotonic()
        )
        fault = self._fault(request)
        if self.delay_s:
            time.sleep(self.delay_s)
        if fault is Fault.SILENT:
            self._heard.wait(120)
            _reset(client)
            return False
        if fault is Fault.RESET:
            _reset(client)
            return False
        if fault in _ANSWERS:
            status, code, message = _ANSWERS[fault]
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
            asked.pass_body(_length(head), lambda data: None)
            client.sendall(
                b"HTTP/1.1 %s\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
                + (b"" if method == b"HEAD" else body)
            )
            return True
        server.sendall(head)
        asked.pass_body(_length(head), server.sendall)
        return self._answer(client, answered, method == b"HEAD", fault)

    def _answer(self, client: socket.socket, answered: "_Reader", bodiless: bool, fault: Fault | None) -> bool:
        head = answered.head()
        while head is not None and head.startswith(b"HTTP/1.1 100"):
            head = answered.head()
        if head is None:
            return False
        if re.search(rb"(?im)^content-range:", head):
            head = re.sub(rb"^HTTP/1\.1 200 OK", b"HTTP/1.1 206 Partial Content", head)
        if re.search(rb"(?im)^transfer-encoding:\s*chunked", head):
            client.sendall(head)
            answered.pass_chunks(client.sendall)
            return True
        length = 0 if bodiless else _length(head)
        if fault is Fault.HALF and length:
            half = length // 2
            client.sendall(_LENGTH.sub(b"Content-Length: %d" % half, head))
            answered.pass_body(half, client.sendall)
            return False
        client.sendall(head)
        if fault is Fault.CUT and length:
            answered.pass_body(length // 2, client.sendall)
            _reset(client)
            return False
        if fault is Fault.WRONG and length:
            place = length // 2
            answered.pass_body(place, client.sendall)
            answered.pass_body(1, lambda data: client.sendall(bytes([data[0] ^ 0x55])))
            length -= place + 1
        answered.pass_body(length, client.sendall)
        return True

    def _fault(self, request: StorageRequest) -> Fault | None:
        with self._lock:
            self.requests.append(request)
            for order in self._orders:
                if order.left > 0 and order.fits(request):
                    order.left -= 1
                    return order.fault
        return None


class _Reader:
    """A reader of heads and bodies of HTTP/1.1 from a socket."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._data = b""

    def head(self) -> bytes | None:
        """Return the head up to the empty line, with it; None if the other side has closed."""
        while (end := self._data.find(b"\r\n\r\n")) < 0:
            more = self._link.recv(_READ_BYTES)
            if not more:
                return None
            self._data += more
        head, self._data = self._data[: end + 4], self._data[end + 4 :]
        return head

    def pass_body(self, length: int, to: Callable[[bytes], object]) -> None:
        while length:
            if not self._data:
                self._data = self._link.recv(_READ_BYTES)
                if not self._data:
                    raise ConnectionError
            part, self._data = self._data[:length], self._data[length:]
            length -= len(part)
            to(part)

    def pass_chunks(self, to: Callable[[bytes], object]) -> None:
        while True:
            line = self._line()
            to(line)
            size = int(line.split(b";")[0], 16)
            self.pass_body(size, to)
            to(self._line())
            if not size:
                return

    def _line(self) -> bytes:
        while (end := self._data.find(b"\r\n")) < 0:
            more = self._link.recv(_READ_BYTES)
            if not more:
                raise ConnectionError
            self._data += more
        line, self._data = self._data[: end + 2], self._data[end + 2 :]
        return line


def _length(head: bytes) -> int:
    found = _LENGTH.search(head)
    return int(found[1]) if found is not None else 0


def _reset(link: socket.socket) -> None:
    with contextlib.suppress(OSError):
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.shutdown(socket.SHUT_RDWR)
        link.close()


if __name__ == "__main__":
    with StorageFaults(int(sys.argv[2]), int(sys.argv[1])):
        threading.Event().wait()
