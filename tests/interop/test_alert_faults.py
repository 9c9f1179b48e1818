"""Alerts about what is slow or comes again and again: each provoked at a running relay that a real Prometheus scrapes."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.servers import ServerUnavailable
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.cutting_proxy import CuttingProxy
from tests.support.free_port import free_port
from tests.support.http_relay import TOKEN, get, http_section, metric
from tests.support.prometheus_server import PrometheusServer, prometheus_tools
from tests.support.relay_process import RelayProcess
from tests.support.small_disk import small_disk
from tests.support.troubled_disk import TroubledDisk

pytestmark = pytest.mark.interop

# What the other tests of alerts leave as it is: facts are gathered every 10 s.
MORE_IMPATIENT = {"facts_age_seconds > 120": "facts_age_seconds > 15", "behind_bytes > 1e9": "behind_bytes > 1e5"}
# Replicas of 9.7 have no such table.
STOPS_THE_VIEW = ["CREATE TABLE shop.parts (a INT) ENGINE=MyISAM PARTITION BY HASH(a) PARTITIONS 2"]
BODY = "x" * 200_000


@contextlib.contextmanager
def watched(directory: Path, port: int) -> Iterator[PrometheusServer]:
    """Scrapes the relay of that HTTP port."""
    try:
        prometheus_tools()
    except ServerUnavailable as error:
        pytest.skip(str(error))
    prometheus = PrometheusServer(directory, free_port(), f"127.0.0.1:{port}", TOKEN)
    rules = directory / "rules.yml"
    text = rules.read_text(encoding="utf-8")
    for patient, impatient in MORE_IMPATIENT.items():
        assert patient in text
        text = text.replace(patient, impatient)
    rules.write_text(text, encoding="utf-8")
    with prometheus:
        yield prometheus


def raised(prometheus: PrometheusServer, alert: str, timeout_s: float = 60) -> None:
    wait_until(lambda: prometheus.fires(alert), f"{alert} to fire", timeout_s)


def over(prometheus: PrometheusServer, alert: str, timeout_s: float = 90) -> None:
    wait_until(lambda: not prometheus.fires(alert), f"{alert} to end", timeout_s)


@pytest.mark.timeout(280)
def test_a_bad_way_to_the_source_a_slow_disk_and_a_busy_processor_are_told(
    servers: ServerFactory, tmp_path: Path
) -> None:
    port, disk = free_port(), TroubledDisk(tmp_path / "disk")
    source = servers("mysql56").start(server_id=1)
    source.execute_many(
        ["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGBLOB)"]
    )
    with CuttingProxy(source.port) as proxy:
        sections = {**http_section(port), "source": {"port": proxy.port, "heartbeat_period_s": 60}}
        relay = RelayProcess(
            tmp_path / "relay", source, port=free_port(), sections=sections, environment=disk.environment
        )
        with relay, watched(tmp_path / "prometheus", port) as prometheus:
            end = source.master_status()
            relay.wait_archived(end.file, end.position)
            wait_until(lambda: (metric(port, "disk_free_bytes") or 0) > 0, "the disk to be looked at")

            # The file system answers nobody who asks for its room.
            disk.stuck(on=True)

            # Streams are cut as soon as they run.
            for count in range(7):
                wait_until(lambda: metric(port, "source_connected") == 1, "a stream", 60)
                wait_until(
                    lambda count=count: (metric(port, "source_streams_total") or 0) > count, "one more stream", 60
                )  # type: ignore[misc]
                proxy.cut_all()
            raised(prometheus, "BinlogRelayReconnects")
            wait_until(lambda: metric(port, "source_connected") == 1, "a stream", 60)

            # A processor that has something else to do, ten times.
            for _ in range(10):
                os.kill(relay.pid, signal.SIGSTOP)
                time.sleep(0.5)
                os.kill(relay.pid, signal.SIGCONT)
                time.sleep(0.3)
            raised(prometheus, "BinlogRelayLoopSlow")

            raised(prometheus, "BinlogRelayFactsOld")
            assert get(port, "/healthz", token=None)[0] == 200
            disk.stuck(on=False)
            over(prometheus, "BinlogRelayFactsOld")

            disk.slow(on=True)
            deadline = time.monotonic() + 60
            while not prometheus.fires("BinlogRelaySyncSlow"):
                assert time.monotonic() < deadline, "SyncSlow does not fire"
                source.sql("INSERT INTO shop.t (body) VALUES ('y')")
                time.sleep(0.3)
            disk.slow(on=False)

            # The network stands still in the middle of a transaction.
            proxy.stall_after(100_000)
            source.sql(f"INSERT INTO shop.t (body) VALUES ('{BODY}')")
            raised(prometheus, "BinlogRelaySourceBehind")
            proxy.flow()
            over(prometheus, "BinlogRelaySourceBehind")
            end = source.master_status()
            relay.wait_archived(end.file, end.position)


@pytest.mark.timeout(280)
def test_a_view_that_stands_and_a_disk_that_fills_are_told(servers: ServerFactory, tmp_path: Path) -> None:
    port = free_port()
    source = servers("mysql56").start(server_id=1)
    source.execute_many(
        ["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGBLOB)"]
    )
    with small_disk(tmp_path / "disk", "64m") as disk:
        sections = {**http_section(port), "archive": {"dir": str(disk / "archive")}}
        relay = RelayProcess(tmp_path / "relay", source, port=free_port(), sections=sections)
        relay.add_view(name="gtid", target="mysql-9.7")
        with relay, watched(tmp_path / "prometheus", port) as prometheus:
            wait_until(lambda: metric(port, "view_up", view="gtid") == 1, "the view to be open", 60)
            assert not prometheus.fires("BinlogRelayViewStopped")

            source.execute_many(STOPS_THE_VIEW)
            raised(prometheus, "BinlogRelayViewStopped")
            for _ in range(20):
                source.sql(f"INSERT INTO shop.t (body) VALUES ('{BODY}')")
            raised(prometheus, "BinlogRelayViewBehind")
            # At this rate the rest of the disk is full within minutes.
            raised(prometheus, "BinlogRelayDiskFullSoon", 90)
            assert 0 < (metric(port, "disk_full_seconds") or 0) < 86_400
            assert not prometheus.fires("BinlogRelayDiskFull")
