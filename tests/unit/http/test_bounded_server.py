"""A full house by HTTP: the address that has most loses a connection, idle ones first; a TLS handshake counts, too."""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from relay.http.bounded_server import BoundedConnection, BoundedServer
from tests.support.certificates import Authority
from tests.support.free_port import free_port

MOST = 4
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Held:
    """A server whose answers to /held wait for `release`."""

    def __init__(self) -> None:
        self.port = free_port()
        self.release = asyncio.Event()
        self.server = BoundedServer(self._answer, max_connections=MOST, request_timeout_s=5)
        self._opened: list[asyncio.StreamWriter] = []

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        assert isinstance(request.protocol, BoundedConnection)
        request.protocol.answer_begins()
        if request.path == "/held":
            await self.release.wait()
        return web.Response(text="ok\n")

    async def connect(self, address: str, sent: bytes = b"") -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
        self._opened.append(writer)
        writer.write(sent)
        await asyncio.sleep(0.02)
        return reader

    async def ask(self, address: str) -> bool:
        reader = await self.connect(address, REQUEST)
        try:
            return (await asyncio.wait_for(reader.readline(), 2)).startswith(b"HTTP/1.1 200")
        except (TimeoutError, ConnectionError):
            return False

    async def close(self) -> None:
        self.server.stop_listening()
        for writer in self._opened:
            writer.close()
        await self.server.shutdown(0.2)


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(), 0.2) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


@pytest.fixture
async def held() -> AsyncIterator[Held]:
    one = Held()
    await one.server.listen("127.0.0.1", one.port, None)
    yield one
    await one.close()


async def test_the_address_that_has_most_loses_the_request_that_was_incomplete_for_longest(held: Held) -> None:
    other = await held.connect("127.0.0.2", b"GET / HT")
    silent = [await held.connect("127.0.0.3") for _ in range(MOST - 1)]
    assert await held.ask("127.0.0.4")
    assert [await ended(one) for one in (other, *silent)] == [False, True, False, False]
    assert held.server.refusals["too_many_connections"] == 1
    assert held.server.open == MOST


async def test_who_waits_for_a_next_request_goes_before_who_sends_one(held: Held) -> None:
    slow = await held.connect("127.0.0.2", b"GET / HT")
    kept = await held.connect("127.0.0.2", REQUEST)
    await kept.readuntil(b"ok\n")
    for _ in range(MOST - 1):
        await held.connect("127.0.0.2", b"GET / HT")
    assert [await ended(slow), await ended(kept)] == [False, True]


async def test_who_takes_no_answers_locks_nobody_out_not_even_at_the_same_address(held: Held) -> None:
    asked = [await held.connect("127.0.0.2", REQUEST.replace(b"healthz", b"held")) for _ in range(MOST)]
    assert await held.ask("127.0.0.2")
    assert await held.ask("127.0.0.3")
    assert sum([await ended(one) for one in asked]) >= 1
    held.release.set()


async def test_ten_times_as_many_as_there_are_places_leave_a_probe_every_answer(held: Held) -> None:
    for _ in range(5):
        for _ in range(2 * MOST):
            await held.connect("127.0.0.2")
        assert await held.ask("127.0.0.2")
        assert await held.ask("127.0.0.3")
    assert held.server.open <= MOST


async def test_a_tls_handshake_that_does_not_end_counts(tmp_path: Path) -> None:
    files = Authority.make(tmp_path).server("relay")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    one = Held()
    await one.server.listen("127.0.0.1", one.port, context)
    silent = [await one.connect("127.0.0.2") for _ in range(3 * MOST)]
    assert one.server.open == MOST
    assert sum([await ended(reader) for reader in silent]) == 2 * MOST
    trusting = ssl.create_default_context(cafile=str(files.authority))
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", one.port, ssl=trusting, server_hostname="127.0.0.1", local_addr=("127.0.0.3", 0)
    )
    writer.write(REQUEST)
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()
    await one.close()


async def test_tls_handshakes_are_made_beside_the_loop(tmp_path: Path) -> None:
    files = Authority.make(tmp_path).server("relay")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    made_in = set()

    class Watched(ssl.SSLObject):
        def do_handshake(self) -> None:
            made_in.add(threading.current_thread().name)
            super().do_handshake()

    context.sslobject_class = Watched
    one = Held()
    await one.server.listen("127.0.0.1", one.port, context)
    trusting = ssl.create_default_context(cafile=str(files.authority))
    _reader, writer = await asyncio.open_connection("127.0.0.1", one.port, ssl=trusting, server_hostname="127.0.0.1")
    writer.close()
    await one.close()
    assert made_in == {"http-handshake_0"}


@pytest.mark.parametrize(
    "request_text",
    [b"<img src=x onerror=alert(1)>\r\n\r\n", REQUEST[:-2] + b"X: \x1b[2J<img>\r\n\r\n",
        REQUEST[:-2] + b"X: <img>" + b"x" * 5000 + b"\r\n\r\n"],
)  # fmt: skip
async def test_what_is_no_request_is_not_repeated_in_its_answer(held: Held, request_text: bytes) -> None:
    reader = await held.connect("127.0.0.2", request_text)
    answer = await asyncio.wait_for(reader.read(), 2)
    assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    assert b"nosniff" in answer and b"img" not in answer and len(answer) < 600


async def test_a_port_that_is_taken_is_told(held: Held) -> None:
    with pytest.raises(OSError, match="in use"):
        await Held().server.listen("127.0.0.1", held.port, None)
    with socket.create_connection(("127.0.0.1", held.port), timeout=5):
        pass
