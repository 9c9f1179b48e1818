"""The HTTP port of a relay between real servers, and a real Prometheus that scrapes it while things go wrong."""

import contextlib
import json
import os
import socket
import time
from pathlib import Path

import pymysql
import pytest

from deploy.servers import BinlogPosition, ServerUnavailable
from relay.http.answers.metric_families import FAMILIES
from relay.http.answers.openapi import PATHS
from tests.interop.conftest import ChainFactory
from tests.support.certificates import Authority
from tests.support.chain import Chain, wait_until
from tests.support.described_json import differences
from tests.support.free_port import free_port
from tests.support.http_relay import TOKEN, get, get_json, http_section, metric
from tests.support.prometheus_server import PrometheusServer, prometheus_tools
from tests.support.relay_process import REPLICA_USER
from tests.support.small_disk import small_disk

pytestmark = pytest.mark.interop

ROOT = Path(__file__).resolve().parents[2]


def filled(chain: Chain) -> None:
    chain.source.execute_many(
        ["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)"]
    )
    chain.wait_archived()


def test_metrics_and_answers_tell_what_runs(chains: ChainFactory) -> None:
    port = free_port()
    chain = chains("mysql56", sections=http_section(port))
    filled(chain)
    replica = chain.replica("mysql56")
    wait_until(lambda: metric(port, "replicas", state="at_end") == 1, "the replica to be at the end")
    assert get(port, "/healthz", token=None) == (200, b"ok\n")
    wait_until(lambda: get(port, "/readyz", token=None) == (200, b"ready\n"), "the relay to be ready")
    assert metric(port, "source_connected") == 1
    assert metric(port, "replica_lag_bytes", server_id=str(replica.server_id)) == 0
    assert (metric(port, "source_received_transactions_total") or 0) >= 3
    wait_until(lambda: (metric(port, "archive_sync_seconds_count") or 0) > 0, "a sync to be counted")
    assert (metric(port, "kernel_seconds_count") or 0) > 0
    wait_until(lambda: (metric(port, "source_last_heartbeat_timestamp_seconds") or 0) > 0, "a heartbeat")
    wait_until(lambda: (metric(port, "disk_free_bytes") or 0) > 0, "the disk to be looked at")

    end = chain.wait_published()
    document = get_json(port, "openapi.json")
    kept = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    assert document | {"info": None} == kept | {"info": None}
    questions = {"positions": f"positions?file={end.file}&offset={end.position}", "history": "history?resolution=fine"}
    wait_until(lambda: get_json(port, questions["history"])["at"], "a sample of history")
    for path, (schema, *_) in PATHS.items():
        answer = get_json(port, questions.get(path, path))
        assert differences(answer, document["components"]["schemas"][schema], document) == [], path
    assert get_json(port, questions["positions"])["verdict"] == "boundary"
    inside = get_json(port, f"positions?file={end.file}&offset={end.position - 3}")
    assert (inside["verdict"], inside["after"]) == ("inside event", end.position)
    assert get_json(port, "overview")["ready"] is True

    served = {
        line.split(" ")[2] for line in get(port, "/metrics")[1].decode().splitlines() if line.startswith("# TYPE")
    }
    assert {one for one in served if one.startswith("binlog_relay_")} == {one.full_name for one in FAMILIES}
    page = (ROOT / "docs" / "METRICS.md").read_text(encoding="utf-8")
    assert all(f"| `{one.full_name}` |" in page for one in FAMILIES)

    chain.source.stop()
    wait_until(lambda: get(port, "/readyz", token=None)[0] == 503, "the relay to miss its source")
    assert get(port, "/readyz", token=None)[1].startswith(b"source_not_attached: ")
    assert get(port, "/healthz", token=None)[0] == 200
    replica.stop()
    wait_until(lambda: metric(port, "replica_up", server_id=str(replica.server_id)) == 0, "the replica to be missed")


def test_bad_requests_are_bounded_and_replication_goes_on(chains: ChainFactory) -> None:
    port = free_port()
    chain = chains("mysql56", sections=http_section(port, request_timeout_s=1, max_connections=20))
    filled(chain)
    assert get(port, "/metrics", token=None)[0] == 401
    assert get(port, "/api/v1/overview", token="wrong")[0] == 401
    assert get(port, "/metrics", X="a" * 8000)[0] == 400
    assert get(port, "/" + "a" * 8000)[0] == 400
    assert get(port, "/api/v1/positions?file=%3Cscript%3E&offset=4")[1].count(b"<") == 0
    assert get(port, "/api/v1/files?limit=1001")[0] == 400

    def answered(request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw, contextlib.suppress(OSError):
            raw.sendall(request)
            got = b""
            while piece := raw.recv(65536):
                got += piece
        return got

    assert b" 413 " in answered(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nabc")
    assert b" 405 " in answered(b"DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    began = time.monotonic()
    assert answered(b"GET /metrics HTTP/1.1\r\nHost: ") == b""
    assert time.monotonic() - began < 5
    wait_until(lambda: (metric(port, "http_refusals_total", reason="timeout") or 0) >= 1, "the slow one to be counted")

    crowd = []
    try:
        for _ in range(1000):
            one = socket.create_connection(("127.0.0.1", port), timeout=10)
            crowd.append(one)
            with contextlib.suppress(OSError):
                one.sendall(
                    f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
                )
        chain.source.execute_many(["INSERT INTO shop.t VALUES (2)"])
        chain.wait_archived()
    finally:
        for one in crowd:
            one.close()
    wait_until(
        lambda: (metric_or_none(port, "http_refusals_total", "too_many_connections") or 0) > 100,
        "the crowd to be counted",
    )
    assert chain.relay.logged("http_refused")
    assert TOKEN not in chain.relay.log_path.read_text(encoding="utf-8")
    assert metric(port, "source_losses_total", kind="network") == 0


def metric_or_none(port: int, name: str, reason: str) -> float | None:
    with contextlib.suppress(OSError):
        return metric(port, name, reason=reason)
    return None


def test_a_scrape_each_5_s_with_100_replicas_takes_less_than_a_hundredth_of_a_core(chains: ChainFactory) -> None:
    port = free_port()
    chain = chains("mysql56", sections=http_section(port))
    filled(chain)
    clients = [chain.raw_client() for _ in range(100)]
    try:
        first = chain.first_position()
        for number, client in enumerate(clients):
            client.set_up(server_id=1000 + number)
            client.ask_dump(first.file, first.position, server_id=1000 + number)
        wait_until(lambda: metric(port, "replicas", state="at_end") == 100, "100 replicas to be at the end", 60)
        scrapes = 20
        idle = processor_s(chain.relay.pid, lambda: time.sleep(scrapes * 0.6))
        busy = processor_s(chain.relay.pid, lambda: [(get(port, "/metrics"), time.sleep(0.6)) for _ in range(scrapes)])
        a_scrape_s = (busy - idle) / scrapes
        print(f"idle {idle:.3f} s in {scrapes * 0.6:.0f} s, a scrape {a_scrape_s * 1000:.1f} ms")
        assert a_scrape_s / 5 < 0.01
    finally:
        for client in clients:
            client.close()


def processor_s(pid: int, work: object) -> float:
    """Seconds of the processor that a process took meanwhile."""
    before = _taken(pid)
    work()  # type: ignore[operator]
    return _taken(pid) - before


def _taken(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.fixture
def prometheus_here() -> None:
    try:
        prometheus_tools()
    except ServerUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.timeout(280)
def test_a_real_prometheus_raises_alerts_while_things_go_wrong(
    chains: ChainFactory, tmp_path: Path, prometheus_here: None
) -> None:
    port = free_port()
    chain = chains("mysql56", sections={**http_section(port), "retention": {"keep_bytes": "1TiB"}})
    chain.relay.add_account(user="boss", password="boss-password", admin=True)
    chain.relay.stop()
    chain.relay.start()
    filled(chain)
    replica = chain.replica("mysql56")

    def admin(statement: str) -> None:
        with pymysql.connect(host="127.0.0.1", port=chain.relay.port, user="boss", password="boss-password") as link:
            link.cursor().execute(statement)

    with PrometheusServer(tmp_path / "prometheus", free_port(), f"127.0.0.1:{port}", TOKEN) as prometheus:

        def raised(alert: str) -> None:
            wait_until(lambda: prometheus.fires(alert), f"{alert} to fire", 40)

        def over(alert: str) -> None:
            wait_until(lambda: not prometheus.fires(alert), f"{alert} to end", 40)

        wait_until(
            lambda: prometheus.ask('binlog_relay_replicas{state="at_end"}') == [1.0], "the replica to be scraped"
        )
        time.sleep(9)
        assert prometheus.firing() == set()

        admin("STOP SLAVE")
        raised("BinlogRelaySourceStopped")
        admin("START SLAVE")
        over("BinlogRelaySourceStopped")

        for _ in range(12):
            with contextlib.suppress(pymysql.Error):
                pymysql.connect(host="127.0.0.1", port=chain.relay.port, user=REPLICA_USER, password="old")
        raised("BinlogRelayLoginsRefused")

        for _ in range(120):
            get(port, "/metrics", token="wrong")
        raised("BinlogRelayHttpRefused")

        client = chain.raw_client()
        client.ask_dump(chain.first_position().file, 5)
        raised("BinlogRelayReplicaRefused")
        client.close()

        replica.stop()
        raised("BinlogRelayReplicaGone")

        source = chain.source
        source.execute_many(["FLUSH LOGS", "INSERT INTO shop.t VALUES (3)", "FLUSH LOGS"])
        chain.wait_archived()
        written = chain.relay.config.read_text(encoding="utf-8")
        chain.relay.config.write_text(written.replace("1TiB", "1KiB"), encoding="utf-8")
        chain.relay.reload()
        raised("BinlogRelayRetentionHeldBack")
        assert {one["kept_by"] for one in get_json(port, "retention")["held_back"]} == {"replica"}
        chain.relay.config.write_text(written, encoding="utf-8")
        chain.relay.reload()
        over("BinlogRelayRetentionHeldBack")

        source.stop()
        raised("BinlogRelaySourceNotAttached")
        source.restart()
        over("BinlogRelaySourceNotAttached")

        chain.relay.stop()
        raised("BinlogRelayDown")
        for _ in range(2):
            source.execute_many(["FLUSH LOGS"])
        newest = source.binlogs()[-1].name
        source.execute_many([f"PURGE BINARY LOGS TO '{newest}'"])
        chain.relay.start()
        raised("BinlogRelaySourceGivenUp")
        raised("BinlogRelayLedgerGrew")
        over("BinlogRelayDown")


@pytest.mark.timeout(280)
def test_a_real_prometheus_raises_alerts_about_disk_files_and_certificates(
    chains: ChainFactory, tmp_path: Path, prometheus_here: None
) -> None:
    port = free_port()
    shown = Authority.make(tmp_path).server("relay", valid_days=5)
    tls = {"tls_cert": str(shown.certificate), "tls_key": str(shown.key)}
    with small_disk(tmp_path / "disk", "48m") as disk:
        chain = chains(
            "mysql56", sections={**http_section(port), "listen": tls, "archive": {"dir": str(disk / "archive")}}
        )
        chain.relay.add_account(user="boss", password="boss-password", admin=True)
        chain.relay.reload()
        chain.source.execute_many(["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, body LONGBLOB)"])
        chain.source.execute_many(["INSERT INTO shop.t VALUES (1, 'x')", "FLUSH LOGS", "FLUSH LOGS"])
        second = BinlogPosition(chain.source.binlogs()[1].name, 4)
        wait_until(lambda: metric(port, "archive_files") == 3, "three archived files")
        with PrometheusServer(tmp_path / "prometheus", free_port(), f"127.0.0.1:{port}", TOKEN) as prometheus:

            def raised(alert: str) -> None:
                wait_until(lambda: prometheus.fires(alert), f"{alert} to fire", 40)

            raised("BinlogRelayCertificateExpires")
            assert prometheus.firing() == {"BinlogRelayCertificateExpires"}

            with (disk / "archive" / "source" / chain.first_position().file).open("r+b") as file:
                file.seek(200)
                file.write(b"damage")
            with pymysql.connect(
                host="127.0.0.1", port=chain.relay.port, user="boss", password="boss-password"
            ) as link:
                link.cursor().execute("CALL binlog_relay.scrub()")
            raised("BinlogRelayFileDamaged")
            raised("BinlogRelayLedgerGrew")

            slow = chain.raw_client(timeout_s=60)
            # The system must not read for it.
            slow.connection._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.set_up(server_id=99)
            slow.ask_dump(second.file, second.position, server_id=99)
            body = "x" * 1_000_000
            for number in range(2, 18):
                chain.source.execute_many([f"INSERT INTO shop.t VALUES ({number}, '{body}')"])
            raised("BinlogRelayReplicaBehind")
            slow.close()

            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            (disk / "filler").write_bytes(bytes(free - (256 << 10)))
            raised("BinlogRelayDiskFull")
            chain.source.execute_many([f"INSERT INTO shop.t VALUES (30, '{body}')"])
            raised("BinlogRelayArchiveFailed")
            assert get(port, "/readyz", token=None)[1].startswith(b"archive_failed: ")
            (disk / "filler").unlink()
            wait_until(lambda: not prometheus.fires("BinlogRelayArchiveFailed"), "the archive to go on", 60)
        chain.relay.kill()
