"""Connections without end, and a process with few descriptors: replicas go on, the archive goes on, memory stays bounded."""

import contextlib
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from tests.support.binlog_builder import BinlogBuilder
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient

pytestmark = pytest.mark.usefixtures("relays_of_their_own")

FIRST = "mysql-bin.000001"
CONNECTIONS, MOST_CONNECTIONS = 1000, 200
LOGIN_WAIT_S = 3.0
MEMORY_KIB = 64 * 1024
XID = 16


class Growing:
    """A directory of binlogs whose only file grows by a transaction at a time."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory
        self._builder = BinlogBuilder().ddl()
        self._written = 0
        (directory / "mysql-bin.index").write_text(f"./{FIRST}\n")
        self._write()

    def commit(self) -> None:
        self._builder.transaction(20)
        self._write()

    def _write(self) -> None:
        with (self.directory / FIRST).open("ab") as file:
            file.write(self._builder.data[self._written :])
        self._written = self._builder.size

    @property
    def size(self) -> int:
        return self._written


@pytest.fixture
def source(tmp_path: Path) -> Growing:
    return Growing(tmp_path / "binlogs")


@pytest.fixture
def relay(tmp_path: Path, source: Growing) -> Iterator[RelayProcess]:
    listen = {"handshake_timeout_s": LOGIN_WAIT_S, "max_connections": MOST_CONNECTIONS}
    with RelayProcess(tmp_path, source.directory, port=free_port(), sections={"listen": listen}) as running:
        running.wait_archived(FIRST, source.size)
        yield running
        assert running.stop() == 0
        assert not [line for line in running.log_lines() if "Traceback" in str(line) or "exception" in line]


class Follower:
    """A replica at the live edge; `arrived` counts its transactions."""

    def __init__(self, relay: RelayProcess, server_id: int = 77) -> None:
        self._client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD, timeout_s=60)
        self._client.set_up(server_id=server_id)
        self._client.ask_dump(FIRST, 4, server_id=server_id)
        self.arrived = 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(pymysql.MySQLError, OSError):
            while (event := self._client.event()) is not None:
                self.arrived += event.kind == XID

    def wait(self, count: int, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while self.arrived < count:
            assert time.monotonic() < deadline, f"{self.arrived} of {count} transactions came within {limit_s} s"
            time.sleep(0.005)

    def leave(self) -> None:
        self._client.connection._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._client.cut()


def memory_kib(relay: RelayProcess, what: str) -> int:
    for line in Path(f"/proc/{relay.pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1])
    raise AssertionError(f"no {what}")


def sockets_of(relay: RelayProcess) -> int:
    return sum(1 for _ in Path(f"/proc/{relay.pid}/fd").iterdir())


@pytest.mark.parametrize("sent", [b"", b"\x00", b"\x20\x00\x00\x01" + b"\xff" * 32, b"\x16\x03\x01" * 50])
def test_a_thousand_connections_at_once_leave_a_replica_undisturbed(
    relay: RelayProcess, source: Growing, sent: bytes
) -> None:
    follower = Follower(relay)
    source.commit()
    follower.wait(1, 10)
    before_kib, before_fds = memory_kib(relay, "VmRSS"), sockets_of(relay)
    with contextlib.ExitStack() as links:
        for number in range(CONNECTIONS):
            link = links.enter_context(socket.create_connection(("127.0.0.1", relay.port), timeout=10))
            link.settimeout(None)
            if sent:
                with contextlib.suppress(OSError):
                    link.sendall(sent)
            if number % 100 == 0:
                source.commit()
        source.commit()
        follower.wait(12, 5)
        assert memory_kib(relay, "VmHWM") - before_kib < MEMORY_KIB
        # Who does not log in is sent away, whether its own connection is closed or not.
        deadline = time.monotonic() + LOGIN_WAIT_S + 5
        while sockets_of(relay) > before_fds:
            assert time.monotonic() < deadline, f"{sockets_of(relay) - before_fds} connections are left"
            time.sleep(0.05)
    ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD).close()
    follower.leave()


def test_a_replica_can_log_in_while_strangers_hold_every_connection(relay: RelayProcess) -> None:
    with contextlib.ExitStack() as links:
        for _ in range(MOST_CONNECTIONS):
            links.enter_context(socket.create_connection(("127.0.0.1", relay.port), timeout=10)).recv(200)
        started = time.monotonic()
        client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
        assert client.query("SELECT 1") == ((1,),)
        assert time.monotonic() - started < LOGIN_WAIT_S / 2
        client.close()


def test_a_relay_without_free_descriptors_serves_on_and_takes_connections_again_when_it_has_some(
    relay: RelayProcess, source: Growing
) -> None:
    follower = Follower(relay)
    source.commit()
    follower.wait(1, 10)
    resource.prlimit(relay.pid, resource.RLIMIT_NOFILE, (sockets_of(relay) + 10,) * 2)
    with contextlib.ExitStack() as links:
        for _ in range(40):
            links.enter_context(socket.create_connection(("127.0.0.1", relay.port), timeout=10))
        time.sleep(0.5)
        source.commit()
        follower.wait(2, 10)
    deadline = time.monotonic() + LOGIN_WAIT_S + 10
    while True:
        try:
            ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD, timeout_s=2).close()
            break
        except pymysql.MySQLError:
            assert time.monotonic() < deadline, "no connection is taken any more"
            time.sleep(0.1)
    follower.leave()


FEW_FILES, SILENT = 256, 400


def rotated(builder: BinlogBuilder, number: int) -> bytes:
    """The file, which goes on in that of the next number."""
    return bytes(builder.rotate(f"mysql-bin.{number + 1:06d}").data)


def test_with_256_descriptors_400_silent_strangers_neither_stop_the_archive_nor_lock_replicas_out(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "binlogs"
    directory.mkdir()
    number = 1
    sizes: dict[str, int] = {}

    def write_file() -> None:
        nonlocal number
        data = rotated(BinlogBuilder().ddl().transaction(20), number)
        name = f"mysql-bin.{number:06d}"
        (directory / f"{name}.part").write_bytes(data)
        (directory / f"{name}.part").rename(directory / name)
        sizes[name] = len(data)
        number += 1

    write_file()
    listen = {"handshake_timeout_s": 60, "max_connections": 500}
    with RelayProcess(
        tmp_path, directory, port=free_port(), sections={"listen": listen}, open_files=FEW_FILES
    ) as relay:
        relay.wait_archived(FIRST, sizes[FIRST])
        (few,) = relay.logged("few_descriptors")
        most = few["max_connections"]
        assert 20 < most < FEW_FILES // 3
        with contextlib.ExitStack() as links:
            for count in range(SILENT):
                links.enter_context(socket.create_connection(("127.0.0.1", relay.port), timeout=10))
                if count % 40 == 0:
                    write_file()  # a rotation in the middle of the flood
            followers = [Follower(relay, server_id) for server_id in range(100, 100 + most // 2)]
            assert relay.sql("SHOW VARIABLES LIKE 'max_connections'") == [("max_connections", str(most))]
            assert sockets_of(relay) < FEW_FILES
            for _ in range(5):
                write_file()
            newest = f"mysql-bin.{number - 1:06d}"
            relay.wait_archived(newest, sizes[newest])
            for follower in followers:
                follower.wait(number - 1, 10)
            assert relay.logged("archive_write_failed") == []
            assert relay.logged("source_lost") == []
            for follower in followers:
                follower.leave()
        assert relay.stop() == 0
        assert not [line for line in relay.log_lines() if "Traceback" in str(line) or "exception" in line]


def test_a_blocked_address_that_goes_on_connecting_takes_no_descriptors_from_others(
    tmp_path: Path, source: Growing
) -> None:
    blocked = ("127.0.0.9", 0)
    listen = {"max_login_failures": 3, "login_block_s": 60}
    with RelayProcess(
        tmp_path, source.directory, port=free_port(), sections={"listen": listen}, open_files=FEW_FILES
    ) as relay:
        relay.wait_archived(FIRST, source.size)
        for _ in range(3):
            with pytest.raises(pymysql.MySQLError):
                pymysql.connect(host="127.0.0.1", port=relay.port, bind_address=blocked[0], user="x", password="y")
        with contextlib.ExitStack() as links:
            for number in range(FEW_FILES + 100):
                links.enter_context(socket.create_connection(("127.0.0.1", relay.port), 10, blocked))
                if number % 128 == 0:
                    ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD).close()
                    source.commit()
            assert sockets_of(relay) < FEW_FILES
            relay.wait_archived(FIRST, source.size)
        assert not [line for line in relay.log_lines() if "Too many open files" in str(line)]
        assert relay.stop() == 0


STALLED, LARGE_ROWS = 40, 200


def test_replicas_that_ask_for_everything_and_read_nothing_cost_the_relay_and_a_reader_little(tmp_path: Path) -> None:
    directory = tmp_path / "binlogs"
    directory.mkdir()
    built = BinlogBuilder().ddl()
    for _ in range(LARGE_ROWS):
        built.transaction(60_000)
    (directory / FIRST).write_bytes(built.data)
    (directory / "mysql-bin.index").write_text(f"./{FIRST}\n")
    with RelayProcess(tmp_path, directory, port=free_port()) as relay:
        relay.wait_archived(FIRST, built.size)
        before_kib = memory_kib(relay, "VmRSS")
        stalled = []
        for server_id in range(1000, 1000 + STALLED):
            client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
            client.connection._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.set_up(server_id=server_id)
            client.ask_dump(FIRST, 4, server_id=server_id)
            stalled.append(client)
        reader = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
        reader.set_up()
        reader.ask_dump(FIRST, 4, flags=1)
        assert sum(len(event.data) for event in reader.events_to_eof()[1:]) == built.size - 4
        assert memory_kib(relay, "VmHWM") - before_kib < MEMORY_KIB
        for client in (*stalled, reader):
            client.cut()
        assert relay.stop() == 0
