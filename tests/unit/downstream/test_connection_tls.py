"""The TLS of one connection, with a transport that only remembers and Python's own TLS as the client."""

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest

from protocol.auth.authenticator import Channel
from relay.downstream.connection.connection_tls import ConnectionTls, TlsBroken
from relay.process.certificates import ServerTls, load_server_tls
from tests.support.certificates import Authority


class Wire(asyncio.Transport):
    """The socket's end: what was written to it waits to be taken."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False
        self.is_read = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def taken(self) -> bytes:
        data = bytes(self.written)
        self.written.clear()
        return data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        """Nothing reads."""
        self.is_read = False

    def resume_reading(self) -> None:
        """Nothing reads."""
        self.is_read = True


class Client:
    """Python's TLS, with what it says first in `hello`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")
        self.hello = self.answer(b"")

    def answer(self, data: bytes) -> bytes:
        """What it says to that, as far as the handshake goes."""
        self._incoming.write(data)
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self._outgoing.read()

    def say(self, text: bytes) -> bytes:
        self.tls.write(text)
        return self._outgoing.read()

    def goodbye(self) -> bytes:
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.unwrap()
        return self._outgoing.read()

    def read(self, data: bytes) -> bytes:
        self._incoming.write(data)
        return self.tls.read()


class Connection:
    """One connection that has asked for TLS, and what became of that."""

    def __init__(self, offered: ServerTls, received: bytes, threads: Executor) -> None:
        self.wire = Wire()
        self.outcomes: list[Channel | TlsBroken] = []
        self.faults: list[Exception] = []
        self.done = asyncio.Event()
        self.more = bytearray()
        self.tls = ConnectionTls(
            self.wire,
            offered,
            received,
            threads,
            self.secured,
            lambda tls: self.more.extend(tls.received(b"")),
            self.faults.append,
        )

    def secured(self, tls: ConnectionTls, outcome: Channel | TlsBroken) -> None:
        assert tls is self.tls
        self.outcomes.append(outcome)
        self.done.set()

    async def until_said(self) -> bytes:
        async with asyncio.timeout(10):
            while not self.wire.written:
                await asyncio.sleep(0.001)
        return self.wire.taken()

    async def shake_hands(self, client: Client) -> Channel | TlsBroken:
        assert self.tls.received(client.answer(await self.until_said())) == b""
        await asyncio.wait_for(self.done.wait(), 10)
        (outcome,) = self.outcomes
        return outcome


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def offered(authority: Authority, tmp_path: Path) -> ServerTls:
    files = authority.server()
    return load_server_tls(files.certificate, files.key, authority.certificate)


@pytest.fixture
def client(authority: Authority) -> Client:
    return Client(ssl.create_default_context(cafile=authority.certificate))


@pytest.fixture
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as threads:
        yield threads


async def test_the_handshake_says_what_protects_the_connection(
    offered: ServerTls, client: Client, threads: Executor
) -> None:
    connection = Connection(offered, client.hello, threads)
    outcome = await connection.shake_hands(client)
    assert outcome == Channel("TLSv1.3", "TLS_AES_256_GCM_SHA384", False, offered.digest)
    connection.tls.transport.write(b"an answer")
    assert client.read(connection.wire.taken()) == b"an answer"
    assert connection.tls.received(client.say(b"a command")) == b"a command"
    assert not connection.tls.peer_said_goodbye
    assert connection.tls.received(client.goodbye()) == b""
    assert connection.tls.peer_said_goodbye
    assert (connection.faults, len(connection.outcomes)) == ([], 1)


async def test_what_came_behind_the_handshake_is_given_once_it_is_done(
    offered: ServerTls, client: Client, threads: Executor
) -> None:
    connection = Connection(offered, client.hello, threads)
    last = client.answer(await connection.until_said()) + client.say(b"a login")
    assert connection.tls.received(last) == b""
    await asyncio.wait_for(connection.done.wait(), 10)
    assert connection.tls.received(b"") == b"a login"


async def test_of_very_many_records_some_are_opened_at_once_and_nothing_is_read_meanwhile(
    offered: ServerTls, client: Client, threads: Executor
) -> None:
    connection = Connection(offered, client.hello, threads)
    await connection.shake_hands(client)
    sent = bytes(number % 251 for number in range(1100))
    first = connection.tls.received(b"".join(client.say(bytes([one])) for one in sent))
    assert 0 < len(first) <= 200 and not connection.wire.is_read
    connection.tls.transport.resume_reading()
    assert not connection.wire.is_read, "more is read while there is enough"
    async with asyncio.timeout(5):
        while len(first) + len(connection.more) < len(sent):
            await asyncio.sleep(0)
    assert first + connection.more == sent
    await asyncio.sleep(0)
    assert connection.wire.is_read


async def test_a_record_that_comes_in_pieces_is_opened_when_it_is_whole(
    offered: ServerTls, client: Client, threads: Executor
) -> None:
    connection = Connection(offered, client.hello, threads)
    await connection.shake_hands(client)
    record = client.say(b"a command")
    assert [connection.tls.received(record[at : at + 1]) for at in range(len(record))][-1] == b"a command"


async def test_a_handshake_that_fails_is_told_in_words(offered: ServerTls, threads: Executor) -> None:
    connection = Connection(offered, b"GET / HTTP/1.1\r\n\r\n", threads)
    await asyncio.wait_for(connection.done.wait(), 10)
    (outcome,) = connection.outcomes
    assert isinstance(outcome, TlsBroken)
    assert "HTTP request" in str(outcome)
    assert connection.faults == []


async def test_bytes_that_were_changed_on_their_way_break_it(
    offered: ServerTls, client: Client, threads: Executor
) -> None:
    connection = Connection(offered, client.hello, threads)
    await connection.shake_hands(client)
    data = bytearray(client.say(b"a command"))
    data[-1] ^= 1
    with pytest.raises(TlsBroken):
        connection.tls.received(bytes(data))


@pytest.mark.parametrize("turns_before", [0, 5])
async def test_a_connection_that_is_gone_hears_no_more(
    offered: ServerTls, client: Client, threads: Executor, turns_before: int
) -> None:
    connection = Connection(offered, b"", threads)
    for _ in range(turns_before):
        await asyncio.sleep(0)
    connection.tls.drop()
    connection.tls.received(client.hello)
    await asyncio.sleep(0.1)
    assert (connection.outcomes, connection.faults, connection.wire.taken()) == ([], [], b"")


async def test_a_fault_in_telling_ends_what_depends_on_it(
    offered: ServerTls, client: Client, threads: Executor
) -> None:
    connection = Connection(offered, client.hello, threads)
    connection.outcomes = None  # type: ignore[assignment]
    connection.tls.received(client.answer(await connection.until_said()))
    async with asyncio.timeout(10):
        while not connection.faults:
            await asyncio.sleep(0.001)
    assert [type(fault) for fault in connection.faults] == [AttributeError]
