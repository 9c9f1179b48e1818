"""The HTTP port of a relay that has nothing yet: TLS, tokens that change, a port that is taken, and what is off."""

import contextlib
import http.client
import socket
import ssl
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.http_relay import get, http_section
from tests.support.relay_process import RelayProcess


def waiting_relay(directory: Path, sections: dict[str, dict[str, object]]) -> RelayProcess:
    (directory / "binlogs").mkdir()
    return RelayProcess(directory / "relay", directory / "binlogs", port=free_port(), sections=sections)


def seen_certificate(port: int, authority: Path) -> bytes:
    context = ssl.create_default_context(cafile=str(authority))
    raw = socket.create_connection(("127.0.0.1", port), timeout=10)
    with context.wrap_socket(raw, server_hostname="127.0.0.1") as secured:
        return secured.getpeercert(binary_form=True) or b""


def test_a_reload_takes_a_new_token_and_a_new_certificate_over(tmp_path: Path) -> None:
    port, token = free_port(), tmp_path / "token"
    token.write_text("the-first-token-of-all\n")
    authority = Authority.make(tmp_path / "ca")
    shown, later = authority.server("one"), authority.server("two")
    section = {"enabled": True, "port": port, "token_file": str(token)}
    section |= {"tls_cert": str(shown.certificate), "tls_key": str(shown.key)}

    def status(sent: str) -> int:
        context = ssl.create_default_context(cafile=str(shown.authority))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {sent}"})
            return connection.getresponse().status

    with waiting_relay(tmp_path, {"http": section}) as relay:
        assert (status("the-first-token-of-all"), status("the-second-token-of-all")) == (200, 401)
        before = seen_certificate(port, shown.authority)
        token.write_text("the-second-token-of-all\n")
        shown.certificate.write_bytes(later.certificate.read_bytes())
        shown.key.write_bytes(later.key.read_bytes())
        assert relay.reload()["waits_for_restart"] == []
        assert (status("the-first-token-of-all"), status("the-second-token-of-all")) == (401, 200)
        assert seen_certificate(port, shown.authority) != before
        log = relay.log_path.read_text(encoding="utf-8")
        assert "the-first-token" not in log and "the-second-token" not in log


def test_nobody_listens_where_it_is_not_switched_on(tmp_path: Path) -> None:
    port = free_port()
    with waiting_relay(tmp_path, http_section(port, enabled=False)), pytest.raises(ConnectionRefusedError):
        get(port, "/healthz")


def test_a_relay_of_nothing_lives_and_says_what_it_waits_for(tmp_path: Path) -> None:
    port = free_port()
    with waiting_relay(tmp_path, http_section(port)) as relay:
        assert get(port, "/healthz", token=None) == (200, b"ok\n")
        wait_until(lambda: get(port, "/readyz", token=None)[0] in (200, 503), "an answer")
        assert get(port, "/metrics")[0] == 200
        assert get(port, "/api/v1/overview")[0] == 200
        assert get(port, "/api/v1/map")[0] == 200
        assert relay.stop() == 0


def test_a_port_that_is_taken_is_said_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        relay = waiting_relay(tmp_path, http_section(taken.getsockname()[1]))
        relay.start(wait=False)
        assert relay.wait_ended() == 2
    assert "http.port" in relay.logged("cannot_listen")[0]["advice"]
