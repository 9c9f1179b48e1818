"""Passwords go to who proved to be the server: every client of ours, each ssl_mode, each way of asking for the password."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import SecretStr

from relay.applying.replica_question import open_replica
from relay.commands.named_server import named_server
from relay.config import ReplicaSection, ServerSource
from relay.feed.feed_config import FeedSource
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.snapshot.source_rows import SourceRows
from relay.upstream.source.open_source import open_source
from relay.upstream.source.source_errors import UpstreamError
from tests.support.certificates import Authority
from tests.support.hostile_server import OWN_PEM, SCRAMBLE, HostileServer, switch

PASSWORD: Final = "not-to-be-had-ß"
NATIVE, SHA2, SHA256, CLEAR = (
    "mysql_native_password", "caching_sha2_password", "sha256_password", "mysql_clear_password",
)  # fmt: skip
FULL: Final = b"\x01\x04"
KEY: Final = b"\x01" + OWN_PEM


@dataclass(frozen=True)
class Asking:
    """How the password is asked for. for_whole: a peer that proved to be the server gets it this way."""

    name: str
    greeted: str
    script: Sequence[bytes]
    for_whole: bool = False


WAYS: Final = [
    Asking("clear, switch", NATIVE, [switch(CLEAR, b"")], for_whole=True),
    Asking("clear, greeting", CLEAR, []),
    Asking("clear, greeting, switch", CLEAR, [switch(CLEAR, b"")], for_whole=True),
    Asking("caching_sha2, switch", NATIVE, [switch(SHA2), FULL, KEY], for_whole=True),
    Asking("caching_sha2, greeting", SHA2, [FULL, KEY], for_whole=True),
    Asking("sha256, switch", NATIVE, [switch(SHA256), KEY], for_whole=True),
    Asking("sha256, greeting", SHA256, [KEY]),
    Asking("sha256, greeting, switch", SHA256, [switch(SHA256), KEY], for_whole=True),
    Asking("native, then caching_sha2", NATIVE, [switch(NATIVE), switch(SHA2), FULL, KEY], for_whole=True),
    Asking("caching_sha2, then clear", SHA2, [switch(SHA2), switch(CLEAR, b"")], for_whole=True),
    Asking("caching_sha2 full twice", SHA2, [switch(SHA2), FULL, FULL, KEY], for_whole=True),
    Asking("ed25519, then sha256", NATIVE, [switch("client_ed25519", SCRAMBLE + bytes(12)), switch(SHA256), KEY], for_whole=True),
    Asking("full unasked", NATIVE, [FULL, KEY]),
    Asking("key unasked", SHA2, [KEY, KEY]),
    Asking("more data unasked", NATIVE, [b"\x01", b"\x02"]),
    Asking("old, no name", NATIVE, [b"\xfe"]),
    Asking("old, by name", NATIVE, [switch("mysql_old_password")]),
    Asking("dialog", NATIVE, [switch("dialog", b"\x04Password: ")]),
    Asking("unknown", NATIVE, [switch("auth_gssapi_client", b"x")]),
    Asking("not text", NATIVE, [b"\xfe\xff\xfe\0" + SCRAMBLE]),
    Asking("file", NATIVE, [b"\xfb/etc/hostname"]),
    Asking("next factor", NATIVE, [b"\x02mysql_clear_password\0"]),
    Asking("without end", NATIVE, [switch(NATIVE)] * 40),
]  # fmt: skip


def relay(port: int, keys: dict[str, Any]) -> str:
    """The relay itself, and all that asks the source by relay.toml."""
    settings = ServerSource(
        host="127.0.0.1", port=port, user="repl", password=PASSWORD, server_id=7, connect_timeout_s=5, **keys
    )
    with pytest.raises(UpstreamError) as caught:
        asyncio.run(open_source(settings))
    return f"{caught.value.name}: {caught.value} {caught.value.advice}"


def feed(port: int, keys: dict[str, Any]) -> str:
    """Snapshots, and `feed verify`."""
    with pytest.raises(FeedStop) as caught:
        SourceRows(FeedSource(host="127.0.0.1", port=port, user="feed", password=PASSWORD, **keys))
    return str(caught.value)


def doctor(directory: Path) -> Callable[[int, dict[str, Any]], str]:
    """`doctor --replica`."""
    file = directory / "password"
    file.write_text(PASSWORD)

    def ask(port: int, keys: dict[str, Any]) -> str:
        text = ",".join([f"127.0.0.1:{port}", "monitor", str(file), *(f"{key}={value}" for key, value in keys.items())])
        with pytest.raises(UpstreamError) as caught:
            asyncio.run(open_source(named_server("--replica", text), section="--replica", who="the replica"))
        return f"{caught.value.name}: {caught.value} {caught.value.advice}"

    return ask


def watch(port: int, keys: dict[str, Any]) -> str:
    """What asks a [[replica]] how far it has applied: the running relay, and `status`."""
    section = ReplicaSection(host="127.0.0.1", port=port, user="watch", password=SecretStr(PASSWORD), **keys)
    with pytest.raises(UpstreamError) as caught:
        asyncio.run(open_replica(section))
    return f"{caught.value.name}: {caught.value} {caught.value.advice}"


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Authority]:
    directory = tmp_path_factory.mktemp("authorities")
    return {name: Authority.make(directory / name) for name in ("ours", "strange")}


def context_of(authority: Authority) -> ssl.SSLContext:
    files = authority.server(f"server{len(list(authority.directory.iterdir()))}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    return context


@pytest.fixture(scope="module")
def offered(authorities: dict[str, Authority]) -> dict[str, ssl.SSLContext | None]:
    """What a peer may offer: no TLS, TLS with anybody's certificate, with one of the server's authority."""
    return {
        "none": None,
        "strange": context_of(authorities["strange"]),
        "ours": context_of(authorities["ours"]),
    }


@pytest.mark.parametrize("client", ["relay", "feed", "doctor", "replica"])
@pytest.mark.parametrize("offers", ["none", "strange", "ours"])
@pytest.mark.parametrize("mode", ["disabled", "preferred", "required", "verify_ca", "verify_identity"])
def test_the_password_goes_to_nobody_but_who_proved_to_be_the_server(
    client: str, offers: str, mode: str, offered: dict[str, Any], authorities: dict[str, Authority], tmp_path: Path
) -> None:
    ask = {"relay": relay, "feed": feed, "doctor": doctor(tmp_path), "replica": watch}[client]
    keys = {"ssl_mode": mode}
    if mode.startswith("verify"):
        keys["ssl_ca"] = authorities["ours"].certificate  # type: ignore[assignment]
    proved = mode.startswith("verify") and offers == "ours"
    got = {}
    for way in WAYS if client in ("relay", "feed") else WAYS[:8]:
        with HostileServer(way.greeted, way.script, offered[offers]) as server:
            said = ask(server.port, keys)
            got[way.name] = server.has(PASSWORD)
        assert PASSWORD not in said
        logs_in = mode in ("disabled", "preferred") or (mode == "required" and offers != "none")
        if way.for_whole and logs_in:
            section = {"relay": "source", "feed": "feed.source", "doctor": "--replica", "replica": "replica"}[client]
            advice = f'Write {section}.ssl_mode = "verify_ca" with {section}.ssl_ca.'
            if client == "doctor":
                advice = f"Add ,ssl_mode=verify_ca,ssl_ca=FILE to the value of {section}."
            assert advice in said, (way.name, said)
    assert got == {name: proved and way.for_whole for name, way in ((way.name, way) for way in WAYS) if name in got}


@pytest.mark.parametrize("mode", ["disabled", "preferred"])
@pytest.mark.parametrize("client", [relay, feed])
def test_a_password_for_the_servers_own_key_is_opened_by_nobody_else(
    client: Callable[[int, dict[str, Any]], str], mode: str, tmp_path: Path
) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    file = tmp_path / "public_key.pem"
    file.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    for script in ([switch(SHA2), FULL, KEY], [switch(SHA256), KEY]):
        with HostileServer(NATIVE, script) as server:
            client(server.port, {"ssl_mode": mode, "public_key": file})
            assert not server.has(PASSWORD)
            assert 256 in map(len, server.received)  # the cipher, which it has no key for
            assert b"\x01" not in server.received and b"\x02" not in server.received  # no other key was asked for


def test_a_key_of_ones_own_counts_where_it_is_the_servers(tmp_path: Path) -> None:
    file = tmp_path / "public_key.pem"
    file.write_bytes(OWN_PEM)
    with HostileServer(NATIVE, [switch(SHA2), FULL]) as server:
        relay(server.port, {"ssl_mode": "disabled", "public_key": file})
        assert server.has(PASSWORD)  # what the other tests would see, were it given to them


def test_a_certificate_of_an_authority_of_the_system_proves_nothing_without_the_name(
    authorities: dict[str, Authority], offered: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever has a domain has a certificate that passes.
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities["ours"].certificate))
    with HostileServer(NATIVE, [switch(CLEAR, b"")], offered["ours"]) as server:
        assert "password_withheld" in relay(server.port, {"ssl_mode": "verify_ca"})
        assert not server.has(PASSWORD)
        relay(server.port, {"ssl_mode": "verify_identity"})
        assert server.has(PASSWORD)


def test_a_servers_own_certificate_will_do_for_its_authority(authorities: dict[str, Authority]) -> None:
    files = authorities["strange"].server("alone")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    alone = files.certificate.with_name("leaf.pem")
    alone.write_text(
        files.certificate.read_text().partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
    )
    with HostileServer(NATIVE, [switch(SHA2), FULL], context) as server:
        relay(server.port, {"ssl_mode": "verify_ca", "ssl_ca": alone})
        assert server.has(PASSWORD)
