"""Real sources that cannot or will not be followed: each is told apart, named, and nothing archived is touched."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.servers import Server
from relay.archive_inspection.listing import read_ledger
from tests.conftest import ServerFactory
from tests.support.binlog_comparison import differences
from tests.support.chain import purge_before_newest
from tests.support.free_port import free_port
from tests.support.relay_inside import damage
from tests.support.relay_process import RelayProcess

pytestmark = pytest.mark.interop
WAIT_S = 15.0
USER, PASSWORD = "limited", "limited-password"


@pytest.fixture(params=["mysql56", "mariadb"])
def source(request: pytest.FixtureRequest, servers: ServerFactory) -> Iterator[Server]:
    yield servers(request.param).start(server_id=1)


def some_work(source: Server, name: str = "work") -> None:
    source.execute_many(
        [
            f"CREATE DATABASE {name}",
            f"CREATE TABLE {name}.t (a INT NOT NULL PRIMARY KEY) ENGINE=InnoDB",
            f"INSERT INTO {name}.t VALUES (1), (2), (3)",
        ]
    )


@contextlib.contextmanager
def relay_behind(source: Server, directory: Path, **settings: Any) -> Iterator[RelayProcess]:
    """A relay that is not started yet; killed at the end."""
    relay = RelayProcess(directory / "relay", source, port=free_port(), sections={"source": settings})
    try:
        yield relay
    finally:
        if relay.running:
            relay.kill()


def followed(relay: RelayProcess, source: Server) -> dict[str, bytes]:
    """Starts the relay, waits until it has everything; the archive's binlogs."""
    relay.start()
    end = source.master_status()
    relay.wait_archived(end.file, end.position)
    return held(relay)


def held(relay: RelayProcess) -> dict[str, bytes]:
    return {name: (relay.archive / name).read_bytes() for name in relay.archived()}


def wait_line(relay: RelayProcess, event: str, trouble: str | None = None) -> dict[str, Any]:
    """The first log line of this event and trouble."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        for line in relay.logged(event):
            if trouble is None or line["trouble"] == trouble:
                return line
        time.sleep(0.02)
    raise AssertionError(f"no {event} {trouble or ''} within {WAIT_S} s:\n{relay.log_tail()}")


def assert_untouched(relay: RelayProcess, before: dict[str, bytes], trouble: str) -> None:
    """The archive is as it was and is served, the error stands once in the log, SIGTERM ends the relay with 0."""
    assert held(relay) == before
    assert relay.sql("SELECT @@global.server_id") == [(1,)]
    assert [line["trouble"] for line in relay.logged("source_given_up")] == [trouble]
    assert relay.stop() == 0
    assert held(relay) == before
    assert damage(relay.archive) == []


def test_reset_master_while_the_relay_was_away(source: Server, tmp_path: Path) -> None:
    some_work(source)
    with relay_behind(source, tmp_path) as relay:
        before = followed(relay, source)
        assert relay.stop() == 0
        time.sleep(1.1)  # file creation times are whole seconds
        source.sql("RESET MASTER")
        some_work(source, "more")
        some_work(source, "even_more")
        relay.start()
        line = wait_line(relay, "source_given_up")
        assert line["trouble"] in ("source_was_reset", "source_lost_its_tail")
        assert_untouched(relay, before, line["trouble"])


def test_reset_master_under_an_attached_relay(source: Server, tmp_path: Path) -> None:
    some_work(source)
    with relay_behind(source, tmp_path) as relay:
        before = followed(relay, source)
        time.sleep(1.1)
        # The dump threads of both flavours go on as if nothing had happened until the connection ends.
        source.sql("RESET MASTER")
        source.restart()
        line = wait_line(relay, "source_given_up")
        assert line["trouble"] in ("source_was_reset", "source_lost_its_tail")
        assert_untouched(relay, before, line["trouble"])


def test_a_file_that_was_purged_before_the_relay_had_it(source: Server, tmp_path: Path) -> None:
    some_work(source)
    with relay_behind(source, tmp_path) as relay:
        before = followed(relay, source)
        relay.kill()
        for name in ("a", "b", "c"):
            source.sql("FLUSH LOGS")
            some_work(source, name)
        purge_before_newest(source)
        relay.start()
        line = wait_line(relay, "source_given_up")
        assert "no longer has mysql-bin.000001" in line["what"]
        assert "copy them from a backup" in line["advice"]
        assert_untouched(relay, before, "position_purged")


def test_a_source_that_lost_its_tail(source: Server, tmp_path: Path) -> None:
    some_work(source)
    with relay_behind(source, tmp_path) as relay:
        size = source.master_status().position
        source.sql("INSERT INTO work.t VALUES (4)")
        before = followed(relay, source)
        source.kill()
        path = source.binlogs()[-1]
        with path.open("r+b") as file:
            file.truncate(size)
        source.start()
        line = wait_line(relay, "source_given_up")
        assert f"archive holds it up to {len(before[path.name])}" in line["what"]
        assert_untouched(relay, before, "source_lost_its_tail")


def test_a_source_without_a_binlog(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql56").start(server_id=1, options=["--skip-log-bin"])
    with relay_behind(source, tmp_path) as relay:
        relay.start(wait=False)
        assert relay.wait_ended() == 3
        line = wait_line(relay, "source_given_up")
        assert "writes no binlog (log_bin is OFF)" in line["what"]
        assert "--log-bin" in line["advice"]


def test_a_mariadb_source_without_a_binlog(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mariadb").start(server_id=1, options=["--skip-log-bin"])
    with relay_behind(source, tmp_path) as relay:
        relay.start(wait=False)
        assert relay.wait_ended() == 3
        assert "writes no binlog (log_bin is OFF)" in wait_line(relay, "source_given_up")["what"]


def test_a_first_file_that_the_source_has_not_is_a_mistake_in_the_configuration(source: Server, tmp_path: Path) -> None:
    with relay_behind(source, tmp_path, start={"file": "mysql-bin.000999", "position": 4}) as relay:
        relay.start(wait=False)
        assert relay.wait_ended() == 3
        (line,) = relay.logged("source_given_up")
        assert line["trouble"] == "start_not_found" and "source.start" in line["advice"]
        assert "mysql-bin.000999" in line["what"] and source.binlogs()[-1].name in line["what"]
        assert read_ledger(relay.archive) == []


def test_a_wrong_password_is_tried_again_slowly(source: Server, tmp_path: Path) -> None:
    with relay_behind(source, tmp_path, password="not-the-password") as relay:
        relay.start()
        line = wait_line(relay, "source_lost", "authentication")
        assert "refuses the user 'repl'" in line["what"]
        assert 2.5 <= line["retry_in_s"] <= 5.0
        assert "not-the-password" not in relay.log_path.read_text()
        assert relay.stop() == 0


def test_a_user_without_the_privilege_of_a_replica(source: Server, tmp_path: Path) -> None:
    source.execute_many([f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'"])
    with relay_behind(source, tmp_path, user=USER, password=PASSWORD) as relay:
        relay.start()
        line = wait_line(relay, "source_lost", "authentication")
        assert "GRANT REPLICATION SLAVE" in line["advice"]
        assert relay.archived() == {}
        assert relay.stop() == 0


def test_a_user_that_may_replicate_but_not_look(source: Server, tmp_path: Path) -> None:
    some_work(source)
    source.execute_many(
        [f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'", f"GRANT REPLICATION SLAVE ON *.* TO '{USER}'@'%'"]
    )
    with relay_behind(source, tmp_path, user=USER, password=PASSWORD) as relay:
        followed(relay, source)
        assert differences(source.binlogs(), relay.archive) == []


def test_the_sources_own_server_id_is_refused_before_the_dump(source: Server, tmp_path: Path) -> None:
    with relay_behind(source, tmp_path, server_id=1) as relay:
        relay.start(wait=False)
        assert relay.wait_ended() == 3
        line = wait_line(relay, "source_given_up")
        assert (line["trouble"], "server_id 1 is the source's own" in line["what"]) == ("server_id_clash", True)


def test_of_two_relays_with_one_server_id_one_goes_on_and_the_other_says_why(source: Server, tmp_path: Path) -> None:
    some_work(source)
    with relay_behind(source, tmp_path / "a") as one, relay_behind(source, tmp_path / "b") as two:
        followed(one, source)
        followed(two, source)
        if source.flavour == "mariadb":
            # MariaDB ends the stream of the one that was there first.
            line = wait_line(one, "source_given_up")
            assert (line["trouble"], "give source.server_id" in line["advice"]) == ("server_id_clash", True)
        source.sql("INSERT INTO work.t VALUES (9)")
        end = source.master_status()
        two.wait_archived(end.file, end.position)
        if source.flavour == "mysql":
            # MySQL tells replicas apart by their uuid: both stay.
            one.wait_archived(end.file, end.position)
        assert two.logged("source_lost") + two.logged("source_given_up") == []
        assert differences(source.binlogs(), two.archive) == []
