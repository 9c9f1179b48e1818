"""A peer that is no source, or a bad one, while the relay logs in: what it asks for is not given, and it is told by name."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from relay.upstream.source.connection import SourceAddress, SourceConnection
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_tls import SourceTls

PASSWORD = "not-to-be-had"
_BASE = 0x000FA20D  # protocol 4.1, plugins by name, no TLS
_SSL = 0x0800
SCRAMBLE = b"abcdefghijklmnopqrst"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def packet(sequence: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([sequence]) + payload


def greeting(*, tls: bool = False, plugin: bytes = b"mysql_native_password") -> bytes:
    flags = _BASE | (_SSL if tls else 0)
    return packet(
        0,
        b"\x0a8.0.43\0" + struct.pack("<I", 7) + SCRAMBLE[:8] + b"\0"
        + struct.pack("<HBHHB", flags & 0xFFFF, 33, 2, flags >> 16, 21) + bytes(10) + SCRAMBLE[8:] + b"\0" + plugin + b"\0",
    )  # fmt: skip


def switch_to(plugin: bytes, data: bytes = SCRAMBLE + b"\0", sequence: int = 2) -> bytes:
    return packet(sequence, b"\xfe" + plugin + b"\0" + data)


class Peer:
    """What it was sent is kept."""

    def __init__(self, port: int, received: bytearray) -> None:
        self.port = port
        self.received = received

    async def refused(self, mode: str = "preferred") -> UpstreamError:
        """The error that the login ends with."""
        address = SourceAddress("127.0.0.1", self.port, "repl", PASSWORD, 1.0, SourceTls(mode))
        with pytest.raises(UpstreamError) as caught:
            await SourceConnection.open(address)
        assert PASSWORD not in f"{caught.value} {caught.value.advice}"
        assert PASSWORD.encode() not in self.received
        return caught.value


@asynccontextmanager
async def peer(*packets: bytes, stay: bool = False) -> AsyncIterator[Peer]:
    """Sends one packet first, and the next ones each after something came; then closes unless it is to `stay`."""
    received = bytearray()
    writers: list[asyncio.StreamWriter] = []
    talks: list[asyncio.StreamWriter] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        talks.append(writer)
        try:
            await conversation(reader, writer)
        finally:
            talks.remove(writer)

    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number, data in enumerate(packets):
            if number:
                received.extend(await reader.read(65536))
            writer.write(data)
            await writer.drain()
        while stay and (part := await reader.read(65536)):
            received.extend(part)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield Peer(server.sockets[0].getsockname()[1], received)
    finally:
        server.close()
        for writer in writers:
            writer.close()
        while talks:
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    "plugin",
    [b"mysql_old_password", b"dialog", b"authentication_ldap_sasl_client", b"\xff\xfe"],
)
async def test_a_plugin_that_is_not_offered_is_told_by_name(plugin: bytes) -> None:
    async with peer(greeting(), switch_to(plugin)) as other:
        error = await other.refused()
        assert (error.name, error.kind, error.number) == ("plugin_unavailable", FailureKind.AUTHENTICATION, 2059)
        assert plugin.decode("ascii", "replace") in error.what


async def test_a_challenge_of_the_wrong_size_is_not_signed() -> None:
    async with peer(greeting(), switch_to(b"client_ed25519", b"short")) as other:
        assert (await other.refused()).kind is FailureKind.SETUP


async def test_a_handshake_that_is_answered_with_garbage_is_one_that_failed() -> None:
    async with peer(greeting(tls=True), b"this is no TLS record at all" * 8) as other:
        error = await other.refused()
        assert error.kind is FailureKind.AUTHENTICATION and error.name in ("tls_failed", "tls_too_old")


async def test_a_handshake_in_which_the_peer_closes_is_one_that_failed() -> None:
    async with peer(greeting(tls=True), b"") as other:
        assert (await other.refused()).name == "tls_failed"


async def test_a_handshake_that_is_never_answered_ends_in_time() -> None:
    async with peer(greeting(tls=True), stay=True) as other:
        error = await other.refused()
        assert error.kind is FailureKind.NETWORK and "did not answer within 1 s" in error.what


async def test_without_tls_on_offer_nothing_of_the_login_is_sent_where_it_is_required() -> None:
    async with peer(greeting()) as other:
        assert (await other.refused("required")).name == "tls_not_offered"
        assert other.received == b""


async def test_preferred_does_not_announce_tls_to_a_server_without() -> None:
    async with peer(greeting(), packet(2, b"\xff\x15\x04#28000Access denied")) as other:
        error = await other.refused("preferred")
        assert (error.kind, error.number) == (FailureKind.AUTHENTICATION, 1045)
        assert not struct.unpack_from("<I", other.received, 4)[0] & _SSL


@pytest.mark.parametrize("plugin", [b"mysql_clear_password", b"sha256_password"])
async def test_who_asks_for_the_password_itself_is_told_apart(plugin: bytes) -> None:
    async with peer(greeting(), switch_to(plugin)) as other:
        error = await other.refused()
        assert (error.name, error.kind, error.number) == ("password_withheld", FailureKind.AUTHENTICATION, 2061)
        assert plugin.decode() in error.what and "source.ssl_ca" in error.advice


@pytest.mark.parametrize("plugin", [b"mysql_clear_password", b"mysql_old_password", b"sha256_password", b"dialog"])
async def test_what_a_greeting_proposes_is_answered_with_a_token_of_another_plugin(plugin: bytes) -> None:
    # The account's own plugin may be another one: a server then asks for it.
    async with peer(greeting(plugin=plugin), packet(2, b"\xff\x15\x04#28000Access denied")) as other:
        assert (await other.refused()).number == 1045
        assert b"mysql_native_password\0" in other.received and plugin not in other.received


async def test_a_switch_without_a_plugin_is_the_one_to_the_old_hash_and_refused() -> None:
    async with peer(greeting(), packet(2, b"\xfe")) as other:
        error = await other.refused()
        assert (error.name, error.number) == ("plugin_unavailable", 2059)


OK = packet(2, b"\0\0\0\x02\0\0\0")
NO_ROWS = (
    packet(1, b"\x01")
    + packet(2, b"\x03def\0\0\0\x01a\0\x0c\x21\0\0\x04\0\0\xfd\0\0\0\0\0")
    + packet(3, b"\xfe\0\0\x02\0")
)


@pytest.mark.parametrize(
    "answer", [packet(1, b""), packet(1, b"\x01") + packet(2, b"\x03"), NO_ROWS + packet(4, b"\xfe\0\0\x02\0")]
)
async def test_an_answer_that_cannot_be_is_a_mistake_in_the_set_up(answer: bytes) -> None:
    async with peer(greeting(), OK, answer) as other:
        assert (await other.refused()).kind is FailureKind.SETUP
