"""What a peer's TLS records cost the event loop, and that what is inside of them comes out whole: random series of all kinds."""

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import pytest_asyncio

from relay.process.certificates import load_server_tls
from relay.process.tls_transport import TlsTransport
from tests.support.certificates import Authority
from tests.support.loop_holds import LIMIT_S
from tests.support.tls_client import ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, TlsClient

_MOST_READ_AT_ONCE = 256 << 10
"""By asyncio, of a socket."""
_WARNING = bytes([1, 90])


class Socket(asyncio.Transport):
    """Takes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """Nothing reads."""

    def resume_reading(self) -> None:
        """Nothing reads."""


class Peer:
    """A connection after its handshake. longest_s: processor time of the callback that took most."""

    def __init__(self, client: TlsClient, socket: Socket, context: ssl.SSLContext) -> None:
        self.client, self.socket = client, socket
        self.plain = bytearray()
        self.failed: ssl.SSLError | None = None
        self.longest_s = 0.0
        self.tls = TlsTransport(socket, context, client.hello, lambda: self._take(b""))

    async def send(self, data: bytes) -> None:
        """As many callbacks of the loop as it takes."""
        for at in range(0, len(data), _MOST_READ_AT_ONCE):
            self._take(data[at : at + _MOST_READ_AT_ONCE])
            while self.tls._has_more and self.failed is None:
                await asyncio.sleep(0)

    def _take(self, data: bytes) -> None:
        if self.failed is not None:
            return
        began = time.thread_time()
        try:
            self.plain += self.tls.received(data)
        except ssl.SSLError as error:
            self.failed = error
        self.longest_s = max(self.longest_s, time.thread_time() - began)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("certificates"))


@pytest_asyncio.fixture
async def connect(authority: Authority, tmp_path: Path) -> AsyncIterator[Callable[[], "asyncio.Future[Peer]"]]:
    files = authority.server()
    context = load_server_tls(files.certificate, files.key, authority.certificate).context
    with ThreadPoolExecutor(1) as threads:

        async def connected() -> Peer:
            client, socket = TlsClient(authority.certificate, tmp_path / "keys"), Socket()
            peer = Peer(client, socket, context)
            handshake = asyncio.ensure_future(peer.tls.handshake(threads))
            async with asyncio.timeout(10):
                while not socket.written:
                    await asyncio.sleep(0.001)
            peer.tls.received(client.answer(bytes(socket.written)))
            await asyncio.wait_for(handshake, 10)
            return peer

        yield lambda: asyncio.ensure_future(connected())


Connect = Callable[[], "asyncio.Future[Peer]"]


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_records_come_no_callback_is_long_and_data_is_whole(connect: Connect, seed: int) -> None:
    rnd = random.Random(seed)
    peer = await connect()
    client, sent, data, empty = peer.client, bytearray(), bytearray(), 0
    share = rnd.choice((0.0, 0.001, 0.5))
    largest = rnd.choice((1, 40, 16384))
    while len(data) < 400_000:
        if rnd.random() < share:
            data += client.key_update(wants_answer=rnd.random() < 0.5)
            empty += 1
        elif rnd.random() < share:
            data += client.record(b"")
            empty += 1
        else:
            content = rnd.randbytes(rnd.randint(1, largest))
            sent += content
            data += client.record(content, padding=rnd.choice((0, 0, min(300, 16384 - len(content)))))
    await peer.send(bytes(data))
    assert peer.longest_s < LIMIT_S
    if empty <= 64:
        assert (peer.failed, peer.plain) == (None, sent)
    else:
        assert "records without data" in str(peer.failed)
        assert sent.startswith(peer.plain)


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(lambda client: client.key_update(wants_answer=True), id="changes of keys"),
        pytest.param(lambda client: client.record(b""), id="empty records"),
        pytest.param(lambda client: client.record(b"", padding=16000), id="padding"),
        pytest.param(lambda client: client.record(_WARNING, ALERT), id="warnings"),
        pytest.param(lambda client: client.record(b"\x01", CHANGE_CIPHER_SPEC), id="changes of ciphers"),
        pytest.param(lambda client: b"\x14\x03\x03\x00\x01\x01", id="plain changes of ciphers"),
        pytest.param(lambda client: client.record(b"\x04\0\0\0", HANDSHAKE), id="messages of the handshake"),
        pytest.param(lambda client: b"\x17\x03\x03\x00\x20" + bytes(32), id="forged records"),
        pytest.param(lambda client: b"\x17\x03\x03\xff\xff" + bytes(65535), id="records that are too long"),
    ],
)
async def test_a_flood_of_one_kind_ends_the_connection_and_no_callback_is_long(
    connect: Connect, flood: Callable[[TlsClient], bytes]
) -> None:
    peer = await connect()
    records = [flood(peer.client) for _ in range(100)]
    while sum(map(len, records)) < 400_000:
        records += [flood(peer.client) for _ in range(100)]
    await peer.send(b"".join(records))
    assert peer.failed is not None
    assert peer.longest_s < LIMIT_S


async def test_data_after_each_of_60_changes_of_keys_comes_out_whole(connect: Connect) -> None:
    peer = await connect()
    sent, data = bytearray(), bytearray()
    for number in range(60):
        sent += bytes([number])
        data += peer.client.key_update() + peer.client.record(bytes([number]), APPLICATION_DATA)
    await peer.send(bytes(data))
    assert (peer.failed, peer.plain) == (None, sent)
