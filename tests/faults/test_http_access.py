"""The HTTP port of a relay that has nothing yet: TLS, tokens that change, a port that is taken, and what is off."""

import contextlib
import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.http_relay import TOKEN, get, http_section, metric
from tests.support.relay_process import RelayProcess


def waiting_relay(directory: Path, sections: dict[str, dict[str, object]]) -> RelayProcess:
    (directory / "binlogs").mkdir(parents=True)
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


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/api/v1/overview"])
def test_a_web_page_with_a_name_of_its_own_reads_nothing_through_a_browser(tmp_path: Path, path: str) -> None:
    port = free_port()
    with waiting_relay(tmp_path, http_section(port)) as relay:
        for own in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST.:{port}", f"[::1]:{port}", "127.0.0.1"):
            assert get(port, path, Host=own)[0] == 200, own
        for name in (
            f"rebound.example:{port}",
            f"127.0.0.1.rebound.example:{port}",
            f"10.0.0.7:{port}",
            "",
            "[::1",
            "::1",
        ):
            status, body = get(port, path, Host=name)
            assert (status, b"host_refused" in body, b"http.hosts" in body) == (421, True, True), name
        assert relay.logged("http_refused")[0]["why"] == "host"


def test_one_good_name_among_two_is_not_enough_and_old_clients_need_none(tmp_path: Path) -> None:
    port = free_port()

    def first_line(request: str) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
            raw.sendall(request.encode())
            return raw.recv(200).partition(b"\r\n")[0]

    with waiting_relay(tmp_path, http_section(port)):
        two = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: rebound.example\r\n\r\n"
        assert first_line(two).split()[1] in (b"400", b"421")
        assert first_line("GET http://localhost/ HTTP/1.1\r\nHost: rebound.example\r\n\r\n").split()[1] == b"421"
        assert first_line("GET /healthz HTTP/1.0\r\n\r\n").split()[1] == b"200"


def test_names_of_the_configuration_are_let_in_and_a_reload_brings_new_ones(tmp_path: Path) -> None:
    port = free_port()
    with waiting_relay(tmp_path, http_section(port, hosts=["relay.example"])) as relay:
        assert get(port, "/metrics", Host="Relay.Example:443")[0] == 200
        assert get(port, "/metrics", Host="monitor.example")[0] == 421
        text = relay.config.read_text(encoding="utf-8")
        relay.config.write_text(text.replace("relay.example", "monitor.example"), encoding="utf-8")
        assert relay.reload()["waits_for_restart"] == []
        assert get(port, "/metrics", Host="monitor.example")[0] == 200
        assert get(port, "/metrics", Host="relay.example")[0] == 421


def test_beyond_loopback_names_count_only_where_there_is_a_list(tmp_path: Path) -> None:
    port = free_port()
    with waiting_relay(tmp_path / "open", http_section(port, host="0.0.0.0")):
        assert get(port, "/metrics", Host="whatever.example")[0] == 200
    with waiting_relay(tmp_path / "listed", http_section(port, host="0.0.0.0", hosts=["relay.example"])):
        assert [get(port, "/metrics", Host=name)[0] for name in ("relay.example", "10.0.0.7:9307", "whatever.example")] == [
            200, 200, 421,
        ]  # fmt: skip


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


# ---- many, slow and huge requests: bounded ------------------------------------------------------------------------------

SCRAPE = f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"


def resident_bytes(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024


@contextlib.contextmanager
def connected(port: int, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)) for _ in range(count)]


def closed_after_s(connection: socket.socket) -> float:
    """How long until the relay ends it; what comes before is thrown away."""
    began = time.monotonic()
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(65536):
            pass
    return time.monotonic() - began


def test_a_thousand_scrapers_at_once_are_answered_or_closed_and_the_memory_stays(tmp_path: Path) -> None:
    port = free_port()

    def scraped(_number: int) -> int:
        with contextlib.suppress(OSError, http.client.HTTPException):
            return get(port, "/metrics")[0]
        return 0

    with waiting_relay(tmp_path, http_section(port)) as relay:
        assert get(port, "/metrics")[0] == 200
        before = resident_bytes(relay.pid)
        began = time.monotonic()
        with ThreadPoolExecutor(100) as pool:
            answers = list(pool.map(scraped, range(1000)))
        took_s = time.monotonic() - began
        assert set(answers) <= {0, 200} and answers.count(200) >= 64
        assert resident_bytes(relay.pid) - before < 64 << 20
        print(
            f"{answers.count(200)} of 1000 answered in {took_s:.1f} s, {resident_bytes(relay.pid) - before} bytes more"
        )
        wait_until(lambda: (metric(port, "http_connections") or 0) <= 2, "they are gone")


def test_requests_that_never_end_and_answers_that_nobody_takes_are_ended_in_time(tmp_path: Path) -> None:
    port = free_port()
    with waiting_relay(tmp_path, http_section(port, request_timeout_s=1)) as relay:
        before = resident_bytes(relay.pid)
        with connected(port, 60) as slow:
            for number, one in enumerate(slow):
                if number % 3 == 0:
                    one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localh")
                elif number % 3 == 1:
                    one.sendall(f"{SCRAPE}Content-Length: 1000000000000\r\n\r\n".encode())
                else:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    one.sendall(f"{SCRAPE}\r\n".encode() * 100)
            # All at once: whoever waits last has waited for all.
            took = [closed_after_s(one) for number, one in enumerate(slow) if number % 3 != 2]
            assert sum(took) < 10
            wait_until(lambda: _answers(port), "room for others again")
            assert resident_bytes(relay.pid) - before < 64 << 20
        wait_until(
            lambda: (metric(port, "http_refusals_total", reason="timeout") or 0) >= 20, "the slow ones are counted"
        )


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return get(port, "/healthz", token=None)[0] == 200
    return False


@pytest.mark.parametrize(
    "request_text",
    [
        "GET /" + "a" * 100_000 + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
        SCRAPE + "X: " + "a" * 100_000 + "\r\n\r\n",
        SCRAPE + "".join(f"X-{number}: 1\r\n" for number in range(10_000)) + "\r\n",
        SCRAPE + "Transfer-Encoding: chunked\r\n\r\n" + "10000\r\n" + "a" * 65536 + "\r\n",
    ],
    ids=["path", "header", "headers", "body"],
)
def test_a_huge_request_is_refused_and_the_next_is_answered(tmp_path: Path, request_text: str) -> None:
    port = free_port()
    with waiting_relay(tmp_path, http_section(port)):
        with connected(port, 1) as (one,), contextlib.suppress(ConnectionError):
            one.sendall(request_text.encode())
            answer = one.recv(4096)
            assert not answer or answer.split()[1] in (b"400", b"413"), answer
        assert get(port, "/metrics")[0] == 200
