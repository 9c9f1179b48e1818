"""The relay as a process: wrong configurations, a full disk, signals, secrets, permissions."""

import contextlib
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.conftest import ServerFactory
from tests.support.binlog_builder import BinlogBuilder
from tests.support.fake_source import FakeSource
from tests.support.free_port import free_port
from tests.support.relay_inside import damage, ledger
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient
from tests.support.small_disk import small_disk
from tests.support.workload import SteadyWriter

pytestmark = pytest.mark.usefixtures("relays_of_their_own")

FIRST = "mysql-bin.000001"
ROOT = Path(__file__).resolve().parents[2]
BUILT = BinlogBuilder().ddl().transaction(10, 40).transaction(5)
WAIT_S = 15.0


@pytest.fixture
def source() -> Iterator[FakeSource]:
    with FakeSource({FIRST: bytes(BUILT.data)}) as fake:
        yield fake


@contextlib.contextmanager
def unstarted(directory: Path, source: Any, **arguments: Any) -> Iterator[RelayProcess]:
    """A relay that is not started yet; killed at the end."""
    relay = RelayProcess(directory, source, **{"port": free_port(), **arguments})
    try:
        yield relay
    finally:
        if relay.running:
            relay.kill()


@contextlib.contextmanager
def filled(directory: Path, source: Any, **arguments: Any) -> Iterator[RelayProcess]:
    """A running relay that has all of BUILT."""
    with unstarted(directory, source, **arguments) as relay:
        relay.start().wait_archived(FIRST, BUILT.size)
        yield relay


def replica_of(relay: RelayProcess, offset: int = 4, **arguments: Any) -> ReplicaClient:
    """A replica that asked for the stream from FIRST, with heartbeats every 100 ms."""
    client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
    client.set_up(**{"server_id": 77, "heartbeat_s": 0.1, **arguments})
    client.ask_dump(FIRST, offset, server_id=arguments.get("server_id", 77))
    return client


def wait_until(condition: Callable[[], object], what: str, relay: RelayProcess) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {WAIT_S} s: {what}\n{relay.log_tail()}"
        time.sleep(0.02)


# ---- wrong use -------------------------------------------------------------------------------------------------------


def test_a_configuration_with_three_mistakes_has_all_three_reported(tmp_path: Path) -> None:
    config = tmp_path / "relay.toml"
    config.write_text(
        '[source]\nhost = "db"\nport = 99999\nuser = "repl"\npassword = "s3cret-word"\nserver_id = 0\n'
        '[archive]\ndir = "archive"\nsync = "sometimes"\n'
    )
    config.chmod(0o600)
    for command in (["run"], ["check-config"]):
        done = subprocess.run(
            [sys.executable, "-m", "relay", *command, "--config", str(config)],
            cwd=ROOT, capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        for key in ("source.port", "source.server_id", "archive.sync"):
            assert key in done.stderr
        assert "3 problems" in done.stderr or done.stderr.count("\n  ") == 3
        assert "s3cret-word" not in done.stderr + done.stdout
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "archive").exists()


def test_a_port_that_is_taken_ends_the_relay_with_its_name(tmp_path: Path, source: FakeSource) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with unstarted(tmp_path, source, port=port) as relay:
            relay.start(wait=False)
            assert relay.wait_ended() == 2
            [line] = relay.logged("cannot_listen")
            assert f"127.0.0.1:{port}" in line["what"]
            assert "listen.port" in line["advice"]
            assert "Traceback" not in relay.log_path.read_text()
    assert source.attempts == 0


def test_an_archive_that_another_relay_has_open_is_left_alone(tmp_path: Path, source: FakeSource) -> None:
    with filled(tmp_path / "one", source) as first:
        sections = {"archive": {"dir": str(tmp_path / "one" / "archive")}}
        with unstarted(tmp_path / "two", source, sections=sections) as second:
            second.start(wait=False)
            assert second.wait_ended() == 2
            [line] = second.logged("archive_not_opened")
            assert "another process has" in line["what"]
            assert "stop the other one" in line["advice"]
        assert first.sql("SELECT 1") == [(1,)]
        assert first.stop() == 0
    assert damage(first.archive) == []


def test_the_archive_of_another_source_is_not_touched_and_goes_on_being_served(
    tmp_path: Path, source: FakeSource
) -> None:
    with filled(tmp_path, source) as relay:
        assert relay.stop() == 0
    before = (relay.archive / FIRST).read_bytes()
    longer = BinlogBuilder().ddl().transaction(11, 40).transaction(5).transaction(9)
    other = FakeSource({FIRST: bytes(longer.data)}, server_uuid="99999999-2222-3333-4444-555555555555")
    with other, unstarted(tmp_path, other) as relay:
        relay.start()
        wait_until(lambda: relay.logged("serving_what_is_archived"), "a verdict on the source", relay)
        [line] = relay.logged("source_given_up")
        assert line["trouble"] == "source_file_differs"
        assert "source.name" in line["advice"]
        client = replica_of(relay)
        assert [event.kind for event in client.events(3)] == [4, 15, 2]
        client.cut()
        assert relay.stop() == 0
    assert (relay.archive / FIRST).read_bytes() == before
    assert damage(relay.archive) == []


# ---- a full disk -----------------------------------------------------------------------------------------------------


class SmallDisk:
    """A tmpfs of 4 MiB; a filler file makes it full."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._mounted = contextlib.ExitStack()
        self._mounted.enter_context(small_disk(directory, "4m"))

    def fill(self, relay: RelayProcess) -> None:
        """Leaves 256 KiB."""
        free = os.statvfs(self.directory).f_bavail * os.statvfs(self.directory).f_frsize
        (self.directory / "filler").write_bytes(bytes(free - (256 << 10)))

    def free(self, relay: RelayProcess) -> None:
        """Gives the room back."""
        (self.directory / "filler").unlink()

    def close(self) -> None:
        """Unmounts."""
        self._mounted.close()


class FileSizeLimit:
    """RLIMIT_FSIZE of the relay's process: works for everybody."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def fill(self, relay: RelayProcess) -> None:
        """No file may grow beyond 256 KiB."""
        resource.prlimit(relay.pid, resource.RLIMIT_FSIZE, (256 << 10, resource.RLIM_INFINITY))

    def free(self, relay: RelayProcess) -> None:
        """No limit any more."""
        resource.prlimit(relay.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def close(self) -> None:
        """Nothing to do."""


@pytest.fixture(params=[SmallDisk, FileSizeLimit], ids=["tmpfs", "limit"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk | FileSizeLimit]:
    made = request.param(tmp_path / "disk")
    try:
        yield made
    finally:
        made.close()


def test_a_full_disk_is_named_and_receiving_goes_on_when_there_is_room(
    tmp_path: Path, source: FakeSource, disk: SmallDisk | FileSizeLimit
) -> None:
    sections = {"archive": {"dir": str(disk.directory)}}
    more = BinlogBuilder().ddl().transaction(10, 40).transaction(5)
    for _ in range(40):
        more.transaction(20_000)
    with unstarted(tmp_path, source, sections=sections) as relay:
        relay.archive = disk.directory / "source"
        relay.start().wait_archived(FIRST, BUILT.size)
        disk.fill(relay)
        connected = replica_of(relay, BUILT.size)
        source.files[FIRST] = bytes(more.data)
        source.drop()
        wait_until(lambda: relay.logged("archive_write_failed"), "the full disk is noticed", relay)
        [line] = relay.logged("archive_write_failed")
        assert line["file"] == FIRST
        assert "No space left on device" in line["what"] or "File too large" in line["what"]
        # What replicas are sent stands in the file, at any time: published bytes are never taken back.
        sent, until = 0, time.monotonic() + 0.3
        while time.monotonic() < until:
            event = connected.event()
            assert event is not None
            sent = max(sent, event.end_log_pos)
        assert BUILT.size <= sent <= (relay.archive / FIRST).stat().st_size
        assert relay.sql("SELECT 1") == [(1,)]
        wait_until(lambda: len(_given(relay, "archive_failed")) >= 2, "another try", relay)
        for tried in _given(relay, "archive_failed"):
            assert tried["advice"] not in tried["what"], "the advice is told once"
        # An attempt may get a little further than the one before; between two the file has whole transactions.
        assert len(relay.logged("archive_write_failed")) == 1
        assert _size_between_attempts(relay) in more.boundaries
        disk.free(relay)
        relay.wait_archived(FIRST, more.size)
        while sent < more.size:
            event = connected.event()
            assert event is not None
            sent = max(sent, event.end_log_pos)
        connected.cut()
        assert relay.stop() == 0
        archived = (relay.archive / FIRST).read_bytes()
        assert len(archived) == more.size
        assert damage(relay.archive) == []


def test_a_full_disk_at_the_start_is_no_damage(tmp_path: Path, source: FakeSource) -> None:
    disk = SmallDisk(tmp_path / "disk")
    try:
        with unstarted(tmp_path, source, sections={"archive": {"dir": str(disk.directory)}}) as relay:
            disk.fill(relay)
            relay.start(wait=False)
            assert relay.wait_ended() == 2
            [line] = relay.logged("archive_not_opened")
            assert "No space left on device" in line["what"] and str(disk.directory) in line["advice"]
    finally:
        disk.close()


def _size_between_attempts(relay: RelayProcess) -> int:
    """Bytes in FIRST while no attempt is under way."""
    deadline = time.monotonic() + WAIT_S
    while True:
        before = _attempts(relay)
        size = (relay.archive / FIRST).stat().st_size
        if before[-1] == "source_lost" and _attempts(relay) == before:
            return size
        assert time.monotonic() < deadline, relay.log_tail()
        time.sleep(0.02)


def _attempts(relay: RelayProcess) -> list[str]:
    return [line["event"] for line in relay.log_lines() if line.get("event") in ("source_attached", "source_lost")]


def _given(relay: RelayProcess, trouble: str) -> list[dict[str, Any]]:
    """The attempts that ended for this reason."""
    return [line for line in relay.logged("source_lost") if line["trouble"] == trouble]


# ---- signals ---------------------------------------------------------------------------------------------------------


@pytest.mark.interop
def test_sigterm_ends_it_within_three_seconds_under_load_with_a_stalled_replica(
    servers: ServerFactory, tmp_path: Path
) -> None:
    upper, lower = servers("mysql56").start(server_id=1), servers("mysql56").start(server_id=2)
    with unstarted(tmp_path, upper) as relay:
        relay.start().wait_archived(FIRST, 4)
        lower.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, file=FIRST, position=4)
        upper.execute_many(
            [
                "CREATE DATABASE big",
                "CREATE TABLE big.t (a INT PRIMARY KEY, b LONGBLOB)",
                *(f"INSERT INTO big.t VALUES ({n}, REPEAT('x', 1000000))" for n in range(20)),
            ]
        )
        stalled = replica_of(relay, server_id=99)
        with SteadyWriter(upper):
            time.sleep(1.0)
            started = time.monotonic()
            code = relay.stop(10)
            took = time.monotonic() - started
            assert (code, took < 3.0) == (0, True), f"code {code} after {took:.1f} s\n{relay.log_tail()}"
            stalled.cut()
            assert damage(relay.archive) == []
            relay.start()
        lower.wait_for_source(upper)
        assert lower.checksum_tables(["steady", "big"]) == upper.checksum_tables(["steady", "big"])
        assert relay.stop() == 0


def test_sigterm_while_the_source_is_away_ends_it_at_once(tmp_path: Path, source: FakeSource) -> None:
    with filled(tmp_path, source) as relay:
        source.close()
        wait_until(lambda: relay.logged("source_lost"), "the loss of the source", relay)
        started = time.monotonic()
        assert relay.stop() == 0
        assert time.monotonic() - started < 3.0


def test_sighup_changes_the_accounts_and_keeps_who_is_connected(tmp_path: Path, source: FakeSource) -> None:
    with filled(tmp_path, source) as relay:
        connected = replica_of(relay)
        connected.events(3)
        text = relay.config.read_text()
        relay.config.write_text(text.replace(REPLICA_PASSWORD, "the-new-one"))
        os.kill(relay.pid, signal.SIGHUP)
        wait_until(lambda: relay.logged("reloaded"), "the reload", relay)
        with pytest.raises(pymysql.err.OperationalError, match="1045"):
            relay.sql("SELECT 1")
        ReplicaClient(relay.port, user=REPLICA_USER, password="the-new-one").cut()
        assert connected.event() is not None
        connected.cut()


def test_sighup_with_a_mistake_in_the_file_changes_nothing(tmp_path: Path, source: FakeSource) -> None:
    with filled(tmp_path, source) as relay:
        relay.config.write_text(relay.config.read_text() + "\n[[account]]\nuser = 3\n")
        os.kill(relay.pid, signal.SIGHUP)
        wait_until(lambda: relay.logged("reload_refused"), "the refusal", relay)
        assert relay.sql("SELECT 1") == [(1,)]


def test_a_restart_finds_nothing_to_remark_about_its_own_files(tmp_path: Path, source: FakeSource) -> None:
    with filled(tmp_path, source) as relay:
        assert relay.stop() == 0
        # At the very first start whoever looks whether it listens may come before its source is known, and is told so.
        first_start = len(relay.log_lines())
        relay.start()
        assert relay.stop() == 0
        relay.start()
        relay.kill()
        relay.start()
        assert relay.stop() == 0
        assert [line for line in relay.log_lines()[first_start:] if line["level"] not in ("info", "debug")] == []
    assert ledger(relay.archive) == []


# ---- secrets and permissions -----------------------------------------------------------------------------------------


def test_no_secret_is_in_the_log_the_command_line_or_a_file_of_state(tmp_path: Path, source: FakeSource) -> None:
    secrets = {REPLICA_PASSWORD.encode(), source.replication_password.encode(), b"a-wrong-guess"}
    with filled(tmp_path, source) as relay:
        with pytest.raises(pymysql.err.OperationalError):
            ReplicaClient(relay.port, user=REPLICA_USER, password="a-wrong-guess")
        client = replica_of(relay)
        client.events(2)
        with pytest.raises(pymysql.err.ProgrammingError):
            relay.sql(f"CREATE USER x IDENTIFIED BY '{REPLICA_PASSWORD}'")
        source.password = "something else"
        source.drop()
        wait_until(lambda: len(relay.logged("source_lost")) >= 2, "a refused login at the source", relay)
        os.kill(relay.pid, signal.SIGHUP)
        wait_until(lambda: relay.logged("reloaded"), "the reload", relay)
        shown = Path(f"/proc/{relay.pid}/cmdline").read_bytes()
        environment = Path(f"/proc/{relay.pid}/environ").read_bytes()
        client.cut()
        assert relay.stop() == 0
    texts = {"the command line": shown, "the environment": environment, "the log": relay.log_path.read_bytes()}
    texts |= {str(path): path.read_bytes() for path in relay.archive.parent.rglob("*") if path.is_file()}
    found = [(place, secret) for place, text in texts.items() for secret in secrets if secret in text]
    assert found == []


def test_modes_are_0640_and_0750_whatever_the_umask(tmp_path: Path, source: FakeSource) -> None:
    source.files["mysql-bin.000002"] = bytes(BinlogBuilder(timestamp=1_700_000_100).transaction(5).data)
    before = os.umask(0)
    try:
        with filled(tmp_path, source) as relay:
            relay.wait_archived("mysql-bin.000002", len(source.files["mysql-bin.000002"]))
            client = replica_of(relay)
            client.events(2)
            time.sleep(0.3)
            client.cut()
            running = _modes(relay.archive)
            assert relay.stop() == 0
    finally:
        os.umask(before)
    assert running == {}
    assert _modes(relay.archive) == {}


def _modes(directory: Path) -> dict[str, str]:
    """What is neither a file of at most 0640 nor a directory of at most 0750."""
    wrong = {}
    for path in (directory, *directory.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & ~(0o750 if path.is_dir() else 0o640):
                wrong[path.name] = oct(mode)
    return wrong


def test_nobody_else_can_end_it_by_connecting_and_leaving(tmp_path: Path, source: FakeSource) -> None:
    with filled(tmp_path, source) as relay:

        def knock() -> None:
            for _ in range(100):
                socket.create_connection(("127.0.0.1", relay.port)).close()

        threads = [threading.Thread(target=knock) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert relay.sql("SELECT 1") == [(1,)]
