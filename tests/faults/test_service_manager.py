"""A relay that a service manager started: what that hears of a whole life, on a real unix datagram socket."""

import contextlib
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pymysql
import pytest

from tests.support.costly_commands import costly_commands, settings
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient

RECORDED = Path(__file__).resolve().parents[2] / "deploy" / "recorded"
WATCHDOG_S = 0.6
LONGEST_GAP_S = 5.0
"""Wall-clock on a busy machine."""


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(20)
        yield listening


@pytest.fixture
def relay(tmp_path: Path, manager: socket.socket) -> Iterator[RelayProcess]:
    shutil.copytree(RECORDED, tmp_path / "binlogs")
    environment = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}
    made = RelayProcess(tmp_path / "relay", tmp_path / "binlogs", port=free_port(), environment=environment)
    yield made
    if made.running:
        made.kill()


def hear(manager: socket.socket, wanted: str) -> dict[str, str]:
    """The next message that begins with this; it comes in time or the test fails."""
    while True:
        lines = manager.recv(4096).decode().split("\n")
        if lines[0] == wanted:
            return dict(line.split("=", 1) for line in lines)


def test_a_life_is_told_from_the_start_to_the_end(relay: RelayProcess, manager: socket.socket) -> None:
    relay.start(wait=False)
    hear(manager, "EXTEND_TIMEOUT_USEC=30000000")
    ready = hear(manager, "READY=1")
    assert f"listens on 127.0.0.1:{relay.port}" in ready["STATUS"]
    relay.sql("SELECT 1")  # it does, from that moment
    hear(manager, "WATCHDOG=1")
    os.kill(relay.pid, signal.SIGHUP)
    assert int(hear(manager, "RELOADING=1")["MONOTONIC_USEC"]) > 0
    hear(manager, "READY=1")
    os.kill(relay.pid, signal.SIGTERM)
    hear(manager, "STOPPING=1")
    assert relay.wait_ended() == 0


def test_a_refused_reload_is_over_too(relay: RelayProcess, manager: socket.socket) -> None:
    relay.start()
    hear(manager, "READY=1")
    relay.config.write_text("no toml")
    os.kill(relay.pid, signal.SIGHUP)
    hear(manager, "RELOADING=1")
    hear(manager, "READY=1")
    assert relay.logged("reload_refused")


def test_a_relay_that_stands_still_is_silent(relay: RelayProcess, manager: socket.socket) -> None:
    relay.start()
    hear(manager, "READY=1")
    hear(manager, "WATCHDOG=1")
    os.kill(relay.pid, signal.SIGSTOP)
    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            manager.recv(4096)
    # All that was under way is heard: from now on there is nothing for longer than the manager bears.
    time.sleep(2 * WATCHDOG_S)
    with pytest.raises(BlockingIOError):
        manager.recv(4096)
    os.kill(relay.pid, signal.SIGCONT)
    manager.settimeout(20)
    hear(manager, "WATCHDOG=1")


def test_the_costliest_statements_of_an_account_leave_the_watchdog_its_messages(
    relay: RelayProcess, manager: socket.socket
) -> None:
    relay.start()
    hear(manager, "READY=1")
    times = [time.monotonic()]
    done = threading.Event()

    def listen() -> None:
        while not done.is_set():
            hear(manager, "WATCHDOG=1")
            times.append(time.monotonic())

    listening = threading.Thread(target=listen)
    listening.start()
    client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD, timeout_s=60)
    for command in (*settings(), costly_commands()["REGEXP that may be anything"], costly_commands()["GTID_SUBTRACT"]):
        with contextlib.suppress(pymysql.MySQLError):
            client.query(command[1:].decode())
    done.set()
    listening.join()
    # Held by one of them, the loop sent nothing for 13 s.
    assert max(later - earlier for earlier, later in pairwise(times)) < LONGEST_GAP_S


def test_a_start_that_fails_never_says_that_it_serves(relay: RelayProcess, manager: socket.socket) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", relay.port))
        other.listen()
        relay.start(wait=False)
        assert relay.wait_ended() == 2
    manager.setblocking(False)
    told = []
    with pytest.raises(BlockingIOError):
        while True:
            told.append(manager.recv(4096).decode())
    assert told and not [text for text in told if "READY" in text]
