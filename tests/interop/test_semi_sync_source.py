"""Real sources whose commits wait for the relay: what returned is archived, and nothing else makes them wait."""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql.err
import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support import ack_run
from tests.support.binlog_comparison import differences
from tests.support.chain import purge_before_newest
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess, wait_for_line
from tests.support.semi_sync import facts, switch, wait_clients, waiting_source

pytestmark = pytest.mark.interop
BOTH = pytest.mark.parametrize("name", ["mariadb", "mysql97"])
CREATE = ["CREATE DATABASE work", "CREATE TABLE work.t (a INT NOT NULL PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB"]
KILLS = 10


@contextlib.contextmanager
def relay_behind(source: Server, directory: Path, *, ack: str = "synced", **settings: Any) -> Iterator[RelayProcess]:
    """A running relay whose archive syncs nothing on its own; killed at the end."""
    sections = {"source": {"ack": ack, **settings}, "archive": {"sync": "none"}, "[account]": {"admin": True}}
    with RelayProcess(directory / "relay", source, port=free_port(), sections=sections) as relay:
        yield relay


def until(true: Callable[[], object], what: str, timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(0.02)


class Commit:
    """Statements in a thread of their own, which may wait, at most as long as the source lives."""

    def __init__(self, source: Server, *statements: str) -> None:
        self._thread = threading.Thread(target=self._run, args=(source, statements), daemon=True)
        self._thread.start()

    def _run(self, source: Server, statements: tuple[str, ...]) -> None:
        with contextlib.suppress(pymysql.err.OperationalError):
            source.execute_many(statements)

    @property
    def returned(self) -> bool:
        return not self._thread.is_alive()


def compared(source: Server, relay: RelayProcess) -> None:
    end = source.master_status()
    relay.wait_archived(end.file, end.position)
    assert differences(source.binlogs(), relay.archive) == []


@BOTH
def test_a_commit_that_waited_before_the_relay_came_returns_with_its_acknowledgement(
    servers: ServerFactory, tmp_path: Path, name: str
) -> None:
    source = waiting_source(servers(name))
    commit = Commit(source, *CREATE, "INSERT INTO work.t VALUES (1, 'x')")
    time.sleep(0.5)
    assert not commit.returned
    with relay_behind(source, tmp_path) as relay:
        until(lambda: commit.returned, "the commits return")
        assert wait_for_line(relay, "source_attached")["semi_sync"] is True
        compared(source, relay)
        assert facts(source)["no_tx"] == "0"


@BOTH
@pytest.mark.parametrize("tls", [False, True], ids=["in clear", "TLS"])
def test_every_commit_is_acknowledged_over_files_and_packets_of_any_size(
    servers: ServerFactory, tmp_path: Path, name: str, tls: bool
) -> None:
    source = waiting_source(servers(name))
    # MySQL's account has a plugin that asks for the password: only a server that proves to be the source gets it.
    proven = {"ssl_mode": "verify_ca", "ssl_ca": str(source.datadir / "ca.pem")}
    encrypted = proven if name == "mysql97" else {"ssl_mode": "preferred"}
    with relay_behind(source, tmp_path, **(encrypted if tls else {"ssl_mode": "disabled"})) as relay:
        wait_clients(source)
        source.execute_many(CREATE)
        for number, size in enumerate([1, 300_000, 16_777_136, 16_777_215, 20_000_000]):
            # The last event of a transaction asks; it stands behind the big one, and a small transaction behind that.
            source.sql(f"INSERT INTO work.t VALUES ({number}, REPEAT('z', {size}))")
            source.sql(f"INSERT INTO work.t VALUES ({number + 100}, 'y')")
            source.sql("FLUSH LOGS")
        compared(source, relay)
        told = facts(source)
        assert (int(told["yes_tx"]) >= 12, told["no_tx"], told["no_times"]) == (True, "0", "0")
        assert relay.logged("source_lost") == []


@BOTH
def test_it_may_be_switched_off_and_on_in_the_running_source(servers: ServerFactory, tmp_path: Path, name: str) -> None:
    source = waiting_source(servers(name), enabled=False)
    with relay_behind(source, tmp_path) as relay:
        assert wait_for_line(relay, "semi_sync_agreed")["enabled"] == "OFF"
        wait_clients(source)
        source.execute_many(CREATE)
        acknowledged = []
        for number, on in enumerate([True, False, True]):
            switch(source, on)
            source.sql(f"INSERT INTO work.t VALUES ({number}, 'x')")
            compared(source, relay)
            acknowledged.append(int(facts(source)["yes_tx"]))
        assert acknowledged == [1, 1, 2]
        assert relay.logged("source_lost") == []


@BOTH
def test_a_source_that_waits_is_followed_after_its_crash(servers: ServerFactory, tmp_path: Path, name: str) -> None:
    source = waiting_source(servers(name))
    with relay_behind(source, tmp_path) as relay:
        wait_clients(source)
        source.execute_many([*CREATE, "INSERT INTO work.t VALUES (1, 'x')"])
        source.kill()
        source.start()
        source.sql("INSERT INTO work.t VALUES (2, 'x')")
        compared(source, relay)
        assert len(relay.logged("semi_sync_agreed")) == 1


def test_a_source_that_cannot_is_followed_without_and_that_is_said_once(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql56").start(server_id=1)
    with relay_behind(source, tmp_path) as relay:
        source.execute_many(CREATE)
        compared(source, relay)
        source.restart()
        source.sql("INSERT INTO work.t VALUES (1, 'x')")
        compared(source, relay)
        assert [line["semi_sync"] for line in relay.logged("source_attached")] == [False, False]
        (line,) = relay.logged("semi_sync_unsupported")
        assert "INSTALL PLUGIN" in line["advice"]


def test_a_relay_that_acknowledges_nothing_attaches_while_a_commit_waits_for_somebody_else(
    servers: ServerFactory, tmp_path: Path
) -> None:
    source = waiting_source(servers("mariadb"))
    with relay_behind(source, tmp_path, ack="none") as relay:
        until(lambda: relay.logged("source_attached"), "the relay is attached")
        commits = [Commit(source, statement) for statement in ("CREATE DATABASE a", "CREATE DATABASE b")]
        relay.kill()
        relay.start()
        until(lambda: len(relay.logged("source_attached")) == 2, "the relay is attached again")
        # MariaDB lists no binlogs while commits wait.
        assert relay.logged("binlog_list_withheld")
        until(lambda: b"CREATE DATABASE a" in held(relay) or b"CREATE DATABASE b" in held(relay), "one is archived")
        assert not any(commit.returned for commit in commits)
    source.kill()


def held(relay: RelayProcess) -> bytes:
    return b"".join((relay.archive / name).read_bytes() for name in relay.archived())


@BOTH
def test_a_position_that_the_source_refuses_is_explained_as_without_semi_sync(
    servers: ServerFactory, tmp_path: Path, name: str
) -> None:
    source = waiting_source(servers(name))
    with relay_behind(source, tmp_path) as relay:
        wait_clients(source)
        source.execute_many(CREATE)
        relay.kill()
        switch(source, False)
        for _ in range(3):
            source.sql("FLUSH LOGS")
        purge_before_newest(source)
        relay.start()
        assert "no longer has mysql-bin.000001" in wait_for_line(relay, "source_given_up", "position_purged")["what"]


@pytest.mark.slow
@BOTH
def test_what_returned_is_in_the_archive_of_a_relay_that_was_killed_that_instant(
    servers: ServerFactory, tmp_path: Path, name: str
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    assert ack_run.run(servers(name), tmp_path / "relay", KILLS, seed, print) == []


@BOTH
def test_a_commit_waits_while_the_relay_was_told_to_stop(servers: ServerFactory, tmp_path: Path, name: str) -> None:
    source = waiting_source(servers(name))
    with relay_behind(source, tmp_path) as relay:
        wait_clients(source)
        source.execute_many(CREATE)
        relay.sql("STOP SLAVE")
        commit = Commit(source, "INSERT INTO work.t VALUES (1, 'x')")
        time.sleep(0.5)
        assert not commit.returned
        relay.sql("START SLAVE")
        until(lambda: commit.returned, "the commit returns")
        compared(source, relay)
        assert facts(source)["no_tx"] == "0"


def test_a_plugin_that_is_installed_later_is_used_from_the_next_start(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql97").start(server_id=1)
    with relay_behind(source, tmp_path) as relay:
        assert wait_for_line(relay, "source_attached")["semi_sync"] is False
        source.execute_many(
            [
                *CREATE,
                "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
                "SET GLOBAL rpl_semi_sync_source_timeout = 3600000",
            ]
        )
        relay.sql("STOP SLAVE")
        relay.sql("START SLAVE")
        until(lambda: len(relay.logged("source_attached")) == 2, "the relay is attached again")
        assert relay.logged("source_attached")[-1]["semi_sync"] is True
        switch(source, True)
        source.sql("INSERT INTO work.t VALUES (1, 'x')")
        compared(source, relay)
        assert (facts(source)["yes_tx"], facts(source)["no_tx"]) == ("1", "0")
