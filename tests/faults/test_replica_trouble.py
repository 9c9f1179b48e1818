"""Replicas that stall, crawl or die: the others do not notice, and the relay's memory stays bounded."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("relays_of_their_own")]

FIRST = "mysql-bin.000001"
XID, HEARTBEAT = 16, 27
BACKLOG_ROWS, ROW_BYTES = 60, 1_000_000
MEMORY_LIMIT_KIB = 120 * 1024
# On an idle machine a commit arrives within a millisecond or two. Others may be busy here.
USUAL_DELAY_S, WORST_DELAY_S = 0.1, 2.0
COMMITS = 150


@pytest.fixture
def source(servers: ServerFactory) -> Iterator[Server]:
    """A source with 60 MB behind it."""
    server = servers("mysql56").start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(
        [
            "CREATE DATABASE big",
            "CREATE TABLE big.t (a INT PRIMARY KEY, b LONGBLOB)",
            "CREATE TABLE big.edge (a INT PRIMARY KEY)",
            *(f"INSERT INTO big.t VALUES ({n}, REPEAT('x', {ROW_BYTES}))" for n in range(BACKLOG_ROWS)),
        ]
    )
    yield server


@pytest.fixture
def relay(source: Server, tmp_path: Path) -> Iterator[RelayProcess]:
    with RelayProcess(tmp_path, source, port=free_port()) as running:
        end = source.master_status()
        running.wait_archived(end.file, end.position)
        yield running
        assert running.stop() == 0


def replica(relay: RelayProcess, file: str, offset: int, server_id: int) -> ReplicaClient:
    client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD, timeout_s=30)
    client.set_up(server_id=server_id, heartbeat_s=1.0)
    client.ask_dump(file, offset, server_id=server_id)
    return client


def peak_kib(relay: RelayProcess) -> int:
    """The most memory it ever had resident."""
    for line in Path(f"/proc/{relay.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    raise AssertionError("no VmHWM")


class EdgeReader:
    """A replica at the live edge that notes when each transaction came. `with` starts and ends it."""

    def __init__(self, relay: RelayProcess, source: Server) -> None:
        end = source.master_status()
        self.came: list[float] = []
        self._client = replica(relay, end.file, end.position, 50)
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> "EdgeReader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._client.cut()

    def _read(self) -> None:
        while len(self.came) < COMMITS:
            event = self._client.event()
            assert event is not None
            if event.kind == XID:
                self.came.append(time.monotonic())


def delays(relay: RelayProcess, source: Server) -> list[float]:
    """Commits COMMITS transactions, one each 10 ms; for each the seconds from COMMIT to its arrival at the edge."""
    with EdgeReader(relay, source) as reader:
        sent = []
        connection = source.connect("big")
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT COALESCE(MAX(a), 0) FROM edge")
            first = cursor.fetchone()[0] + 1
            for number in range(first, first + COMMITS):
                cursor.execute(f"INSERT INTO edge VALUES ({number})")
                sent.append(time.monotonic())
                time.sleep(0.01)
    return sorted(came - left for came, left in zip(reader.came, sent, strict=True))


def assert_undisturbed(found: list[float]) -> None:
    print(f"delay p50 {found[len(found) // 2] * 1000:.1f} ms, worst {found[-1] * 1000:.1f} ms")
    assert found[len(found) // 2] < USUAL_DELAY_S
    assert found[-1] < WORST_DELAY_S


def test_replicas_that_read_nothing_disturb_nobody_and_cost_little_memory(relay: RelayProcess, source: Server) -> None:
    stalled = [replica(relay, FIRST, 4, 100 + number) for number in range(16)]
    assert_undisturbed(delays(relay, source))
    assert peak_kib(relay) < MEMORY_LIMIT_KIB
    for client in stalled:
        client.cut()


def test_a_slow_replica_disturbs_nobody_and_gets_everything(relay: RelayProcess, source: Server) -> None:
    slow = replica(relay, FIRST, 4, 100)
    stopping = threading.Event()

    def crawl() -> None:
        while not stopping.wait(0.02):
            slow.event()

    thread = threading.Thread(target=crawl, daemon=True)
    thread.start()
    assert_undisturbed(delays(relay, source))
    stopping.set()
    thread.join()
    end = source.master_status()
    event = slow.event()
    while event is not None and event.end_log_pos < end.position:
        event = slow.event()
    slow.cut()


def test_a_replica_that_stalled_goes_on_where_it_was(relay: RelayProcess, source: Server) -> None:
    stalled = replica(relay, FIRST, 4, 100)
    time.sleep(1.0)
    size = 4
    while size < source.master_status().position:
        event = stalled.event()
        assert event is not None
        if event.end_log_pos and event.kind != HEARTBEAT:
            size += len(event.data)
            assert event.end_log_pos == size
    stalled.cut()


def test_a_replica_killed_while_it_catches_up_disturbs_nobody_and_resumes(
    relay: RelayProcess, source: Server, servers: ServerFactory
) -> None:
    lower = servers("mysql56").start(server_id=2, options=["--relay-log-info-repository=TABLE"])
    lower.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, file=FIRST, position=4)
    while not lower.replica_status()["exec_position"] > 2 * ROW_BYTES:
        time.sleep(0.01)
    # MySQL 5.6 does not survive SIGKILL soon after CREATE TABLE (it finds the table's first page empty): this makes the
    # tables safe. The kill then falls where it begins to catch up again.
    lower.restart()
    while lower.replica_status()["io_running"] != "Yes":
        time.sleep(0.01)
    lower.kill()
    assert_undisturbed(delays(relay, source))
    # It starts its replication threads by itself; what it had not applied it asks for again.
    lower.start()
    lower.wait_for_source(source)
    assert lower.checksum_tables(["big"]) == source.checksum_tables(["big"])


def test_a_hundred_replicas_that_come_and_go_leave_nothing_behind(relay: RelayProcess, source: Server) -> None:
    def come_and_go(number: int) -> None:
        for turn in range(20):
            client = replica(relay, FIRST, 4, 1000 + 100 * number + turn)
            client.event()
            client.cut()

    threads = [threading.Thread(target=come_and_go, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    assert_undisturbed(delays(relay, source))
    for thread in threads:
        thread.join()
    deadline = time.monotonic() + 5
    while (
        len(started := relay.logged("dump_started")) != len(relay.logged("dump_ended")) and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    assert len(started) == len(relay.logged("dump_ended")) >= 101
    assert peak_kib(relay) < MEMORY_LIMIT_KIB
