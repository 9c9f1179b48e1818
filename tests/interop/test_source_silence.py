"""Heartbeats from the source: an idle stream is left alone, a silent one is dead after three periods, over TLS and semi-sync too."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.binlog_comparison import differences
from tests.support.cutting_proxy import CuttingProxy
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess, wait_for_line
from tests.support.semi_sync import facts, wait_clients, waiting_source

pytestmark = pytest.mark.interop
PERIOD_S = 0.5
WAYS = pytest.mark.parametrize(
    ("name", "mode", "ack"),
    [
        ("mysql56", "preferred", "none"),
        ("mariadb", "preferred", "synced"),
        ("mysql97", "verify_ca", "none"),
        ("mysql97", "verify_ca", "synced"),
        ("mysql97", "disabled", "synced"),
    ],
)


@dataclass(frozen=True)
class Way:
    """The source's port is the proxy's. datadir: where a MySQL has what it proves itself by."""

    port: int
    replication_user: str
    replication_password: str
    datadir: Path


def source_of(servers: ServerFactory, name: str, ack: str) -> Server:
    return waiting_source(servers(name)) if ack == "synced" else servers(name).start(server_id=1)


@contextmanager
def relay_behind(source: Server, port: int, directory: Path, mode: str, ack: str) -> Iterator[RelayProcess]:
    way = Way(port, source.replication_user, source.replication_password, source.datadir)
    keys = {"ack": ack, "heartbeat_period_s": PERIOD_S} | ({} if mode == "verify_ca" else {"ssl_mode": mode})
    with RelayProcess(directory, way, port=free_port(), sections={"source": keys}) as relay:
        wait_for_line(relay, "source_attached")
        if ack == "synced":
            wait_clients(source)
        source.execute_many(["CREATE DATABASE work", "CREATE TABLE work.t (a INT NOT NULL PRIMARY KEY) ENGINE=InnoDB"])
        yield relay


def followed(relay: RelayProcess, source: Server) -> None:
    end = source.master_status()
    relay.wait_archived(end.file, end.position)
    assert differences(source.binlogs(), relay.archive) == []


@WAYS
def test_an_idle_source_is_not_lost(servers: ServerFactory, tmp_path: Path, name: str, mode: str, ack: str) -> None:
    source = source_of(servers, name, ack)
    with relay_behind(source, source.port, tmp_path, mode, ack) as relay:
        time.sleep(8 * PERIOD_S)
        source.sql("INSERT INTO work.t VALUES (1)")
        followed(relay, source)
        assert relay.logged("source_lost") == []
        if ack == "synced":
            assert facts(source)["no_tx"] == "0"


@WAYS
def test_a_silent_source_is_lost_after_three_periods_and_found_again(
    servers: ServerFactory, tmp_path: Path, name: str, mode: str, ack: str
) -> None:
    source = source_of(servers, name, ack)
    with CuttingProxy(source.port) as proxy, relay_behind(source, proxy.port, tmp_path, mode, ack) as relay:
        followed(relay, source)
        proxy.stall_after(0)
        stalled = time.monotonic()
        line = wait_for_line(relay, "source_lost", "source_silent")
        # A heartbeat may have come just before; and it is looked once a period.
        assert 2 * PERIOD_S < time.monotonic() - stalled < 6 * PERIOD_S
        assert f"every {PERIOD_S:g} s" in line["what"]
        proxy.flow()
        source.sql("INSERT INTO work.t VALUES (1)")
        followed(relay, source)
