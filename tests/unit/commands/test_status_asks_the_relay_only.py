"""`binlog-relay status` beside somebody who listens at the relay's port, and at its HTTP port."""

import asyncio
import fcntl
import http.server
import os
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from relay.archive.storage.files import LOCK_NAME
from relay.config import Config, load_config
from relay.status import relay_status as looking
from relay.status.http_answers import ask_http
from relay.status.running_relay import ask_relay
from tests.support.certificates import Authority
from tests.support.free_port import free_port
from tests.support.hostile_server import OWN_PEM, HostileServer, switch

ADMIN: Final = "the-admins-password"
TOKEN: Final = "the-token-of-http"
NATIVE, SHA2 = "mysql_native_password", "caching_sha2_password"
WAYS: Final = [
    (SHA2, [b"\x01\x04", b"\x01" + OWN_PEM]),
    (NATIVE, [switch(SHA2), b"\x01\x04", b"\x01" + OWN_PEM]),
    (NATIVE, [switch("sha256_password"), b"\x01" + OWN_PEM]),
    (NATIVE, [switch("mysql_clear_password", b"")]),
]


def configured(directory: Path, port: int, host: str = "0.0.0.0", listen: str = "", http_port: int = 1) -> Config:
    path = directory / "relay.toml"
    (directory / "binlogs").mkdir(exist_ok=True)
    path.write_text(
        f"""
        [source]
        kind = "directory"
        path = "binlogs"
        [archive]
        dir = "archive"
        [listen]
        host = "{host}"
        port = {port}
        {listen}
        [http]
        enabled = true
        port = {http_port}
        token = "{TOKEN}"
        [[account]]
        user = "dba"
        password = "{ADMIN}"
        admin = true
        """
    )
    path.chmod(0o600)
    config = load_config(path)
    config.archive_directory.mkdir(parents=True, exist_ok=True)
    return config


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Path]:
    """The lock that this process holds, as a relay that is starting would."""
    directory = tmp_path / "archive" / "source"
    directory.mkdir(parents=True)
    with open(directory / LOCK_NAME, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield directory


class Listener(http.server.BaseHTTPRequestHandler):
    """Keeps the headers of whoever asks."""

    seen: list[str]

    def do_GET(self) -> None:
        self.seen.append(str(self.headers))
        self.send_error(500)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def web() -> Iterator[tuple[int, list[str]]]:
    seen: list[str] = []
    server = http.server.HTTPServer(("127.0.0.1", 0), type("Kept", (Listener,), {"seen": seen}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1], seen
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "::"])
def test_nobody_is_asked_while_no_relay_runs(tmp_path: Path, host: str, web: tuple[int, list[str]]) -> None:
    with HostileServer(NATIVE, [switch("mysql_clear_password", b"")]) as server:
        config = configured(tmp_path, server.port, host, http_port=web[0])
        found = asyncio.run(looking.relay_status(config))
        assert not found["relay"]["running"]
        assert server.received == [] and web[1] == []


@pytest.mark.usefixtures("lock")
def test_who_listens_in_place_of_a_relay_that_does_not_is_not_asked(
    tmp_path: Path, web: tuple[int, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with HostileServer(NATIVE, [switch("mysql_clear_password", b"")]) as server:
        config = configured(tmp_path, server.port, http_port=web[0])
        # The lock is this process's, as the listeners are: they are taken away from it.
        seen = looking.process_sockets(os.getpid())
        assert seen is not None and {server.port, web[0]} <= seen.listening
        others = type(seen)(seen.listening - {server.port, web[0]}, seen.connected)
        monkeypatch.setattr(looking, "process_sockets", lambda _pid: others)
        found = asyncio.run(looking.relay_status(config))
        assert found["relay"]["running"] and "does not listen" in found["relay"]["not_asked"]
        assert "does not listen" in found["relay"]["not_asked_by_http"]
        assert server.received == [] and web[1] == []


def test_the_token_goes_to_nobody_of_whom_nothing_is_known(tmp_path: Path, web: tuple[int, list[str]]) -> None:
    config = configured(tmp_path, free_port(), http_port=web[0])
    assert "nothing proves" in str(ask_http(config, None).why) and web[1] == []
    ask_http(config, True)
    assert TOKEN in web[1][0]  # what the other would have got


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(("plugin", "script"), WAYS)
def test_a_password_goes_to_nobody_in_the_relays_place(
    tmp_path: Path, plugin: str, script: list[bytes], tls: bool
) -> None:
    authority = Authority.make(tmp_path / "strange")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    strange = authority.server("strange")
    context.load_cert_chain(strange.certificate, strange.key)
    ours = authority.server("ours")  # of the same authority: the certificate itself is what counts
    listen = f'tls_cert = "{ours.certificate}"\ntls_key = "{ours.key}"' if tls else ""
    leaf = tmp_path / "leaf.pem"
    if tls:
        text = ours.certificate.read_text()
        leaf.write_text(text.partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n")
        listen = f'tls_cert = "{leaf}"\ntls_key = "{ours.key}"'
    with HostileServer(plugin, script, context if tls else None) as server:
        answers = asyncio.run(ask_relay(configured(tmp_path, server.port, listen=listen)))
        assert answers.asked_as is None and ADMIN not in str(answers)
        assert not server.has(ADMIN)
        assert bool(server.received) is not tls
