"""TLS towards replicas, with Python's own TLS as the client and with PyMySQL."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import pymysql
import pytest
import structlog.testing

from protocol.auth.account import Account
from protocol.auth.credentials import Credentials
from protocol.capabilities import Capability
from protocol.framing import frame_payload
from protocol.statements import GivenAnswer, Request
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.downstream.connection.client_status import ClientStatus
from relay.downstream.listen_options import ListenOptions
from relay.downstream.server import DownstreamServer
from relay.process.certificates import load_server_tls
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.certificates import Authority
from tests.support.replica_client import PASSWORD, USER, ReplicaClient

T = TypeVar("T")
FILE = "mysql-bin.000001"
SSL_REQUEST = b"\x20\0\0\1" + struct.pack("<IIB23x", 0x00BFA285 | Capability.SSL, 1 << 24, 33)


class Served:
    """A server with TLS, and who signed its certificate."""

    def __init__(
        self, server: DownstreamServer, generation: Generation, authority: Authority, built: BinlogBuilder
    ) -> None:
        self.server = server
        self.generation = generation
        self.authority = authority
        self.built = built
        self.logs: list[Any] = []

    def logged(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.logs if line["event"] == event]

    def trust(self, certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority.certificate)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        return context

    def connect(self, context: ssl.SSLContext | None, user: str = USER, password: str = PASSWORD) -> Any:
        arguments: dict[str, Any] = {"ssl": context} if context is not None else {"ssl_disabled": True}
        return pymysql.connect(
            host="127.0.0.1", port=self.server.port, user=user, password=password, read_timeout=10, **arguments
        )


async def call(function: Callable[[], T]) -> T:
    return await asyncio.wait_for(asyncio.to_thread(function), 20)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    authority = Authority.make(tmp_path / "certificates")
    files = authority.server()
    built = BinlogBuilder().transaction(300).transaction(20, 4000)
    generation = await Generation.open(tmp_path / "archive")
    generation.set_identity(SourceIdentity("mysql", "5.6.24-log", 1, "11111111-2222-3333-4444-555555555555"))
    await generation.begin_file(FILE)
    await append_all(generation, built.data)
    credentials = Credentials.from_password(PASSWORD)
    accounts = [
        Account.with_password(USER, PASSWORD),
        Account("secure", credentials, require_tls=True),
        Account("known", credentials, require_client_cert=True),
    ]
    tls = load_server_tls(files.certificate, files.key, authority.certificate)
    server = DownstreamServer(
        Archive.of(generation), accounts, options=ListenOptions(tls=tls, handshake_timeout_s=1.0, max_login_failures=0)
    )
    with structlog.testing.capture_logs() as logs:
        await server.start("127.0.0.1", 0)
        served = Served(server, generation, authority, built)
        served.logs = logs
        yield served
        await server.close()
        await generation.close()


async def until_logged(served: Served, event: str) -> dict[str, Any]:
    async with asyncio.timeout(10):
        while not served.logged(event):
            await asyncio.sleep(0.01)
    return served.logged(event)[0]


async def test_a_client_that_checks_the_certificate_logs_in_over_tls(served: Served) -> None:
    connection = await call(lambda: served.connect(served.trust()))
    with contextlib.closing(connection), connection.cursor() as cursor:
        assert await call(lambda: cursor.execute("SELECT VERSION()")) == 1
    line = await until_logged(served, "replica_logged_in")
    assert (line["tls"], line["plugin"]) == ("TLSv1.3", "mysql_native_password")


async def test_tls_1_2_is_spoken(served: Served) -> None:
    context = served.trust()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    connection = await call(lambda: served.connect(context))
    connection.close()
    assert (await until_logged(served, "replica_logged_in"))["tls"] == "TLSv1.2"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
async def test_tls_1_1_is_refused_by_name(served: Served) -> None:
    context = served.trust()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(pymysql.err.OperationalError):
        await call(lambda: served.connect(context))
    assert "no TLS of version 1.2" in (await until_logged(served, "connection_ended"))["reason"]


async def test_clear_connections_are_still_taken(served: Served) -> None:
    connection = await call(lambda: served.connect(None))
    await call(connection.ping)
    connection.close()


@pytest.mark.parametrize(
    ("user", "reason"),
    [("secure", "requires TLS"), ("known", "requires a client certificate"), ("nobody", "no account")],
)
async def test_an_account_that_requires_more_gets_the_same_answer_as_a_wrong_password(
    served: Served, user: str, reason: str
) -> None:
    with pytest.raises(pymysql.err.OperationalError) as caught:
        await call(lambda: served.connect(None, user))
    text = f"Access denied for user '{user}'@'127.0.0.1' (using password: YES)"
    assert caught.value.args == (1045, text)
    assert reason in served.logged("login_refused")[0]["reason"]


async def test_an_account_that_requires_tls_logs_in_with_it(served: Served) -> None:
    connection = await call(lambda: served.connect(served.trust(), "secure"))
    connection.close()


async def test_an_account_that_requires_a_certificate_logs_in_with_one(served: Served) -> None:
    files = served.authority.client("replica")
    connection = await call(lambda: served.connect(served.trust(files.certificate, files.key), "known"))
    connection.close()


async def test_an_account_that_requires_a_certificate_is_refused_without_one(served: Served) -> None:
    with pytest.raises(pymysql.err.OperationalError) as caught:
        await call(lambda: served.connect(served.trust(), "known"))
    assert caught.value.args[0] == 1045


async def test_a_certificate_of_another_authority_ends_the_handshake(served: Served, tmp_path: Path) -> None:
    files = Authority.make(tmp_path / "other", name="Somebody else").client("replica")
    with pytest.raises((pymysql.err.OperationalError, OSError)):
        await call(lambda: served.connect(served.trust(files.certificate, files.key), "known"))
    assert "tls_client_ca" in (await until_logged(served, "connection_ended"))["reason"]


async def test_a_client_that_does_not_trust_the_certificate_is_named(served: Served) -> None:
    with pytest.raises((pymysql.err.OperationalError, OSError)):
        await call(lambda: served.connect(ssl.create_default_context()))
    assert "does not trust our certificate" in (await until_logged(served, "connection_ended"))["reason"]


async def test_a_dump_over_tls_is_the_archive(served: Served) -> None:
    def fetch() -> bytes:
        client = ReplicaClient(served.server.port, context=served.trust())
        client.set_up()
        client.ask_dump(FILE, 4, flags=1)
        events = client.events_to_eof()
        client.close()
        return b"".join(event.data for event in events if event.end_log_pos)

    assert await call(fetch) == bytes(served.built.data[4:])


def greeted(port: int) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", port), timeout=10)
    assert link.recv(4096)
    return link


def read_to_end(link: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := link.recv(65536):
            data += piece
    return data


@pytest.mark.parametrize(
    "garbage",
    [b"\x16\x03\x01\x00\x05hello", b"GET / HTTP/1.0\r\n\r\n", bytes(5000), b"\xff" * 5000],
    ids=["a record of no handshake", "http", "zeros", "ones"],
)
async def test_garbage_instead_of_a_client_hello_is_refused_by_name(served: Served, garbage: bytes) -> None:
    def send() -> bytes:
        with greeted(served.server.port) as link:
            link.sendall(SSL_REQUEST + garbage)
            return read_to_end(link)

    answer = await call(send)
    assert answer[:1] in (b"", b"\x15"), "an alert at most, and no clear text"
    assert (await until_logged(served, "connection_ended"))["reason"].startswith("TLS: ")


async def test_a_client_that_asks_for_tls_and_says_no_more_is_ended_in_time(served: Served) -> None:
    def wait() -> bytes:
        with greeted(served.server.port) as link:
            link.sendall(SSL_REQUEST)
            return read_to_end(link)

    assert await call(wait) == b""
    assert "Waited too long" in (await until_logged(served, "connection_ended"))["reason"]


async def test_a_login_in_clear_behind_the_request_for_tls_is_no_login(served: Served) -> None:
    # What a man in the middle could put there.
    def send() -> bytes:
        with greeted(served.server.port) as link:
            link.sendall(SSL_REQUEST + b"\x01\0\0\0\x0e")
            return read_to_end(link)

    assert b"Access" not in await call(send)
    assert not served.logged("replica_logged_in")


def raw_tls(served: Served) -> ssl.SSLSocket:
    link = greeted(served.server.port)
    link.sendall(SSL_REQUEST)
    return served.trust().wrap_socket(link, server_hostname="127.0.0.1")


async def test_a_client_hello_that_comes_byte_by_byte_is_the_same(served: Served) -> None:
    def shake() -> str | None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = served.trust().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with greeted(served.server.port) as link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.sendall(SSL_REQUEST)
            while True:
                try:
                    client.do_handshake()
                    return client.version()
                except ssl.SSLWantReadError:
                    for byte in outgoing.read():
                        link.sendall(bytes((byte,)))
                    incoming.write(link.recv(65536))

    assert await call(shake) == "TLSv1.3"


async def test_the_end_is_said_before_the_line_is_cut(served: Served) -> None:
    def quit_and_read() -> bytes:
        link = raw_tls(served)
        with link:
            link.sendall(b"\x01\0\0\x02\x01")  # no login: a bad handshake, then the end
            data = b""
            # Without close_notify this raises SSLEOFError.
            while piece := link.recv(65536):
                data += piece
            return data

    assert b"Bad handshake" in await call(quit_and_read)


async def test_the_clients_goodbye_ends_its_connection(served: Served) -> None:
    def leave() -> None:
        link = raw_tls(served)
        link.unwrap().close()

    await call(leave)
    async with asyncio.timeout(5):
        while served.server.sessions:
            await asyncio.sleep(0.01)


class Speechless:
    """A console that never answers."""

    async def answer(self, request: Request, asker: ClientStatus) -> GivenAnswer:
        await asyncio.Event().wait()
        raise AssertionError


async def test_what_floods_in_over_tls_behind_a_question_is_not_read_until_it_is_answered(served: Served) -> None:
    served.server.mirror.console = Speechless()
    client = await call(lambda: ReplicaClient(served.server.port, context=served.trust()))
    await call(lambda: client.command(3, b"SHOW BINARY LOGS"))
    ping = frame_payload(b"\x0e", 0) * 20_000

    def flood() -> int:
        client.connection._sock.settimeout(0.5)
        for number in range(400):
            try:
                client.connection._sock.sendall(ping)
            except TimeoutError:
                return number
        return 400

    assert await call(flood) < 400
    client.cut()


async def test_a_changed_byte_in_a_record_ends_the_connection(served: Served) -> None:
    def disturb() -> bytes:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = served.trust().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with greeted(served.server.port) as link:
            link.sendall(SSL_REQUEST)
            while True:
                try:
                    client.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    link.sendall(outgoing.read())
                    incoming.write(link.recv(65536))
            client.write(b"\x01\0\0\x02\x0e")
            record = bytearray(outgoing.read())
            record[-1] ^= 1
            link.sendall(record)
            return read_to_end(link)

    await call(disturb)
    assert (await until_logged(served, "connection_ended"))["reason"].startswith("TLS: ")


async def test_a_new_certificate_is_shown_to_whoever_comes_next_and_others_stay(served: Served, tmp_path: Path) -> None:
    before = await call(lambda: served.connect(served.trust()))
    other = Authority.make(tmp_path / "renewed", name="Its successor")
    files = other.server("renewed")
    served.server.replace_tls(load_server_tls(files.certificate, files.key, None))
    context = ssl.create_default_context(cafile=other.certificate)
    after = await call(lambda: served.connect(context))
    await call(before.ping)
    for connection in (before, after):
        connection.close()
