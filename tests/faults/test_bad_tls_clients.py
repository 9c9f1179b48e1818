"""What anybody may send where TLS is offered: garbage, halves, floods of handshakes. A replica goes on meanwhile."""

import contextlib
import random
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pymysql
import pytest

from protocol.capabilities import Capability
from tests.support.binlog_builder import BinlogBuilder
from tests.support.certificates import Authority
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient

pytestmark = pytest.mark.usefixtures("relays_of_their_own")

FIRST = "mysql-bin.000001"
SSL_REQUEST = b"\x20\0\0\1" + struct.pack("<IIB23x", 0x00BFA285 | Capability.SSL, 1 << 24, 33)
HANDSHAKE_S = 2.0
HEARTBEAT_S = 0.02
LATE_S = 0.5
HANDSHAKES = 300


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("certificates"), rsa_keys=True)


@pytest.fixture
def relay(tmp_path: Path, authority: Authority) -> Iterator[RelayProcess]:
    binlogs = tmp_path / "binlogs"
    binlogs.mkdir()
    built = BinlogBuilder().ddl().transaction(10, 40)
    (binlogs / FIRST).write_bytes(built.data)
    # RSA: the kind of key whose handshakes cost the most.
    files = authority.server(rsa_keys=True)
    listen = {
        "tls_cert": str(files.certificate),
        "tls_key": str(files.key),
        "handshake_timeout_s": HANDSHAKE_S,
        "max_connections": 2 * HANDSHAKES,
    }
    with RelayProcess(tmp_path, binlogs, port=free_port(), sections={"listen": listen}) as running:
        running.wait_archived(FIRST, built.size)
        yield running
        assert running.stop() == 0
        assert not [line for line in running.log_lines() if "Traceback" in str(line) or "exception" in line]


class Listener:
    """A replica over TLS with a heartbeat every 20 ms. `worst_s`: the longest silence that it heard."""

    def __init__(self, relay: RelayProcess, authority: Authority) -> None:
        context = ssl.create_default_context(cafile=authority.certificate)
        self._client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD, context=context)
        self._client.set_up(heartbeat_s=HEARTBEAT_S)
        self._client.ask_dump(FIRST, 4)
        self.heard = 0
        self.worst_s = 0.0
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        last = time.monotonic()
        with contextlib.suppress(pymysql.MySQLError, OSError):
            while not self._leaving.is_set() and self._client.event() is not None:
                now = time.monotonic()
                self.worst_s, last = max(self.worst_s, now - last), now
                self.heard += 1

    def check(self) -> None:
        """Events go on arriving, and never came late."""
        heard = self.heard
        deadline = time.monotonic() + 5
        while self.heard < heard + 5:
            assert time.monotonic() < deadline, "the replica hears nothing any more"
            time.sleep(0.01)
        assert self.worst_s < LATE_S

    def leave(self) -> None:
        self._leaving.set()
        self._thread.join(5)
        self._client.cut()


@pytest.fixture
def listener(relay: RelayProcess, authority: Authority) -> Iterator[Listener]:
    made = Listener(relay, authority)
    yield made
    made.check()
    made.leave()


def greeted(relay: RelayProcess) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", relay.port), timeout=20)
    assert link.recv(4096)[4] == 10
    return link


def to_the_end(link: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while more := link.recv(65536):
            data += more
    return data


def client_hello(authority: Authority) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context(cafile=authority.certificate).wrap_bio(
        incoming, outgoing, server_hostname="127.0.0.1"
    )
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_three_hundred_kinds_of_garbage_after_the_request_for_tls(
    relay: RelayProcess, authority: Authority, listener: Listener
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    hello = client_hello(authority)
    for _ in range(300):
        garbage = dice.randbytes(dice.randrange(1, 3000))
        changed = bytearray(hello)
        for _ in range(dice.randrange(1, 5)):
            changed[dice.randrange(len(changed))] = dice.randrange(256)
        cut = hello[: dice.randrange(len(hello))]
        with greeted(relay) as link, contextlib.suppress(ConnectionResetError, BrokenPipeError):
            link.sendall(SSL_REQUEST + dice.choice([garbage, bytes(changed), cut + garbage, hello + garbage, cut]))
    assert not relay.logged("replica_logged_in")[1:]


@pytest.mark.parametrize("part", [0, 1, 100])
def test_who_stops_in_the_handshake_is_sent_away_in_time_and_without_a_word_in_clear(
    relay: RelayProcess, authority: Authority, listener: Listener, part: int
) -> None:
    with greeted(relay) as link:
        started = time.monotonic()
        link.sendall(SSL_REQUEST + client_hello(authority)[:part])
        assert to_the_end(link) == b""
        assert HANDSHAKE_S / 2 < time.monotonic() - started < HANDSHAKE_S + 3


def test_a_megabyte_of_garbage_in_the_handshake_is_not_kept(relay: RelayProcess, listener: Listener) -> None:
    before = resident_kib(relay)
    with contextlib.ExitStack() as links:
        for _ in range(50):
            link = links.enter_context(greeted(relay))
            link.settimeout(0.2)
            # A record that announces more than comes: OpenSSL waits for the rest of it.
            with contextlib.suppress(OSError):
                link.sendall(SSL_REQUEST + b"\x16\x03\x01\x40\x00\x01" + bytes(1 << 20))
        assert resident_kib(relay) - before < 20_000


def storm(count: int, one: Callable[[], None]) -> None:
    threads = [threading.Thread(target=one, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_hundreds_of_handshakes_at_once_do_not_hold_up_a_replica(
    relay: RelayProcess, authority: Authority, listener: Listener
) -> None:
    hello = client_hello(authority)
    answers: list[int] = []

    def shake() -> None:
        with contextlib.suppress(OSError), greeted(relay) as link:
            link.sendall(SSL_REQUEST + hello)
            answers.append(len(link.recv(65536)))

    storm(HANDSHAKES, shake)
    assert len([size for size in answers if size > 500]) == HANDSHAKES


def test_a_connection_over_tls_costs_little_memory(relay: RelayProcess, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=authority.certificate)
    clients = []

    def connect(count: int) -> None:
        for _ in range(count):
            clients.append(ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD, context=context))

    connect(20)
    before = resident_kib(relay)
    connect(100)
    each_kib = (resident_kib(relay) - before) / 100
    print(f"{each_kib:.0f} KiB for each connection over TLS")
    for client in clients:
        client.cut()
    assert each_kib < 200


def resident_kib(relay: RelayProcess) -> int:
    for line in Path(f"/proc/{relay.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")
