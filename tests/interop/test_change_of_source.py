"""A relay goes over to another source by GTID, with pairs of real servers: accepted ones, refused ones, and crashes."""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from pydantic import SecretStr

from deploy.servers import Server
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.verify import verify_archive, verify_generations
from relay.config import ServerSource
from relay.upstream.source.log_replica_updates import warn_of_a_replica
from relay.upstream.source.open_source import open_source
from tests.conftest import ServerFactory
from tests.support.binlog_comparison import differences
from tests.support.chain import purge_before_newest, wait_for_checkpoint, wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess, wait_for_line
from tests.support.source_changes import applied, executed, follow_by_gtid

pytestmark = pytest.mark.interop
OPTIONS = {
    "mysql56": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates"],
    "mysql97": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
    "mariadb": ["--log-slave-updates"],
}
PAIRS = sorted(OPTIONS)
ADMIN = {"[account]": {"admin": True}}
MakeRelay = Callable[..., RelayProcess]


@pytest.fixture
def relay_of(tmp_path: Path) -> Iterator[MakeRelay]:
    """Makes relays; they end with the test."""
    made: list[RelayProcess] = []

    def make(source: Server, **keys: Any) -> RelayProcess:
        directory = tmp_path / f"relay{len(made)}"
        made.append(RelayProcess(directory, source, port=free_port(), sections={"source": keys, **ADMIN}))
        return made[-1]

    yield make
    for relay in made:
        if relay.running:
            relay.kill()


def pair(servers: ServerFactory, name: str) -> tuple[Server, Server]:
    """A source, and a replica of it that can take its place."""
    first = servers(name).start(server_id=1, options=OPTIONS[name])
    second = servers(name).start(server_id=2, options=OPTIONS[name])
    # So that the names of both say nothing of what is in them.
    second.sql("FLUSH BINARY LOGS")
    second.attach_to(first)
    first.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (a INT NOT NULL PRIMARY KEY, b TEXT) ENGINE=InnoDB"])
    insert(first, 1, 2)
    first.sql("FLUSH BINARY LOGS")
    insert(first, 3, 4)
    second.wait_for_source(first)
    return first, second


def insert(server: Server, *keys: int) -> None:
    server.execute_many(f"INSERT INTO d.t VALUES ({key}, REPEAT('x', 300))" for key in keys)


def followed(relay: RelayProcess, source: Server, generation: int = 1) -> None:
    """Returns when the generation has all that the source has."""
    directory = relay.archive if generation == 1 else relay.archive / f"g{generation:04d}"
    wait_for_checkpoint(source)  # afterwards only statements write there
    end = source.master_status()
    path = directory / end.file
    wait_until(
        lambda: path.exists() and path.stat().st_size >= end.position, f"{path} has all:\n{relay.log_tail()}", 30
    )
    first = min(binlogs_in(directory))
    assert differences([path for path in source.binlogs() if path.name >= first], directory) == []


def binlogs_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.suffix[1:].isdigit())


def change(relay: RelayProcess, source: Server) -> None:
    relay.sql("STOP SLAVE")
    relay.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={source.port}")
    relay.sql("START SLAVE")


def contents(relay: RelayProcess) -> dict[str, bytes]:
    return {file: (relay.archive / file).read_bytes() for file in relay.archived()}


def kinds(directory: Path) -> list[str]:
    return [row.kind for row in read_ledger(directory)]


def names_last(text: str, server: Server) -> bool:
    """Whether a refusal names the newest transaction of this server: by itself, or as the end of a range."""
    if server.name == "mariadb":
        return str(server.sql("SELECT @@global.gtid_binlog_pos")[0][0]) in text
    uuid, _, numbers = str(server.sql("SELECT @@global.gtid_executed")[0][0]).partition(":")
    return re.search(rf"{uuid}:(\d+-)?{numbers.rpartition('-')[2]}\b", text) is not None


def refused(relay: RelayProcess, source: Server, trouble: str) -> str:
    """Tries to go over to `source`; the refusal, of which the archive must notice nothing."""
    before = contents(relay)
    change(relay, source)
    line = wait_for_line(relay, "source_given_up", trouble, timeout_s=30)
    assert contents(relay) == before
    assert not (relay.archive / "g0002").exists()
    # Replicas are served on.
    assert relay.sql("SHOW BINARY LOGS") != []
    return f"{line['what']}. {line['advice']}"


def go_back(relay: RelayProcess, source: Server) -> None:
    """To the first source, which has all there is: nothing but another address was tried."""
    change(relay, source)
    insert(source, 1000)
    followed(relay, source)


@pytest.mark.parametrize("name", PAIRS)
def test_sources_that_the_archive_cannot_go_on_with_are_refused_by_name(
    servers: ServerFactory, relay_of: MakeRelay, name: str
) -> None:
    """In one run, since each pair takes its time: behind, with another transaction of the same name's place, purged, reset."""
    first, second = pair(servers, name)
    with relay_of(first) as relay:
        followed(relay, first)
        second.stop_replica()
        insert(first, 10, 11)
        followed(relay, first)
        text = refused(relay, second, "source_lacks_transactions")
        assert names_last(text, first)
        assert "START REPLICA" in text
        # It is promoted all the same, and goes its own way.
        insert(second, 20)
        text = refused(relay, second, "source_lacks_transactions")
        assert names_last(text, first)
        go_back(relay, first)


@pytest.mark.parametrize("name", PAIRS)
def test_a_source_that_has_purged_what_the_archive_lacks_is_refused(
    servers: ServerFactory, relay_of: MakeRelay, name: str
) -> None:
    first, second = pair(servers, name)
    with relay_of(first) as relay:
        followed(relay, first)
        relay.sql("STOP SLAVE")
        first.sql("FLUSH BINARY LOGS")
        insert(first, 10)
        second.wait_for_source(first)
        second.sql("FLUSH BINARY LOGS")
        purge_before_newest(second)
        text = refused(relay, second, "gtid_refused" if name == "mariadb" else "source_purged_transactions")
        assert "purged" in text
        if name != "mariadb":
            assert names_last(text, first)
        go_back(relay, first)


@pytest.mark.parametrize("name", PAIRS)
def test_a_source_after_reset_master_is_refused_and_nothing_is_overwritten(
    servers: ServerFactory, relay_of: MakeRelay, name: str
) -> None:
    first, second = pair(servers, name)
    reset = "RESET BINARY LOGS AND GTIDS" if name == "mysql97" else "RESET MASTER"
    with relay_of(first) as relay:
        followed(relay, first)
        before = contents(relay)
        # The replica is promoted after it was reset: another server without the archive's transactions.
        second.stop_replica()
        second.sql(reset)
        insert(second, 30)
        text = refused(relay, second, "source_lacks_transactions")
        assert "RESET MASTER" in text and ("1-" in text or "up to" in text)
        # And the first source itself.
        relay.sql("STOP SLAVE")
        first.sql(reset)
        insert(first, 31)
        relay.sql(f"CHANGE MASTER TO MASTER_PORT={first.port}")
        relay.sql("START SLAVE")
        wait_until(lambda: len(relay.logged("source_given_up")) == 2, f"the refusal:\n{relay.log_tail()}", 30)
        line = relay.logged("source_given_up")[1]
        assert line["trouble"] in ("source_was_reset", "source_lost_its_tail", "source_lacks_transactions")
        assert "lacks transactions that the archive has" in line["what"]
        assert contents(relay) == before and relay.sql("SHOW BINARY LOGS") != []


def test_servers_without_gtids_are_told_what_is_missing(servers: ServerFactory, relay_of: MakeRelay) -> None:
    first = servers("mysql56").start(server_id=1)
    second = servers("mysql56").start(server_id=2, options=["--log-slave-updates"])
    second.attach_to(first)
    first.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (a INT NOT NULL PRIMARY KEY, b TEXT) ENGINE=InnoDB"])
    insert(first, 1)
    second.wait_for_source(first)
    with relay_of(first) as relay:
        followed(relay, first)
        text = refused(relay, second, "source_file_differs")
        assert "It could be gone on with by GTID, but" in text and "GTID_MODE = OFF" in text
        assert "same binlogs at the same coordinates" in text
        go_back(relay, first)


@pytest.mark.parametrize("mode", ["manual", "automatic"])
def test_another_source_is_named_or_taken_when_the_first_cannot_be_reached(
    servers: ServerFactory, tmp_path: Path, mode: str
) -> None:
    first, second = pair(servers, "mariadb")
    relay = RelayProcess(tmp_path / "relay", first, port=free_port(), sections=ADMIN)
    text = relay.config.read_text().replace("[source]", "[[source]]").replace("[archive]", "@[archive]")
    other = f'[[source]]\nport = {second.port}\n[failover]\nmode = "{mode}"\nafter_s = 1\n'
    relay.config.write_text(text.replace("@", other))
    with relay:
        followed(relay, first)
        first.kill()
        second.stop_replica()
        insert(second, 5)
        if mode == "manual":
            line = wait_for_line(relay, "source_candidates", timeout_s=30)
            assert line["verdicts"][f"127.0.0.1:{second.port}"].startswith("would do: with a new generation, from its ")
            assert f"SOURCE_PORT={second.port}" in line["advice"]
            assert not (relay.archive / "g0002").exists()
            change(relay, second)
        followed(relay, second, 2)
        assert ("source_failover" in kinds(relay.archive)) is (mode == "automatic")
        # A restart goes on with it, also by a file that prefers the first.
        relay.kill()
        relay.start()
        insert(second, 6)
        followed(relay, second, 2)
        assert relay.logged("source_given_up") == []


def test_the_command_line_and_an_edited_file_name_another_source(servers: ServerFactory, tmp_path: Path) -> None:
    first, second = pair(servers, "mysql56")
    relay = RelayProcess(tmp_path / "relay", first, port=free_port(), sections=ADMIN)
    with relay:
        followed(relay, first)
        assert relay.stop() == 0
        insert(first, 5)
        second.wait_for_source(first)
        relay.start(options=["--source", f"127.0.0.1:{second.port}"])
        followed(relay, second, 2)
        assert relay.stop() == 0
        # relay.toml names the first one as before: what was chosen counts.
        relay.start()
        insert(first, 6)
        second.wait_for_source(first)
        followed(relay, second, 2)
        assert relay.stop() == 0
        # Edited, it counts again; the first one has everything.
        relay.config.write_text(
            relay.config.read_text().replace('host = "127.0.0.1"\nport', 'host = "localhost"\nport', 1)
        )
        relay.start()
        insert(first, 7)
        # The second has a transaction of its own no more than the first: the archive can go back.
        followed(relay, first, 3)
        assert relay.stop() == 0


@pytest.mark.parametrize("name", PAIRS)
def test_a_promoted_replica_goes_on_in_a_generation_of_its_own(
    servers: ServerFactory, relay_of: MakeRelay, name: str
) -> None:
    first, second = pair(servers, name)
    replica = servers(name).start(server_id=3, options=OPTIONS[name])
    with relay_of(first) as relay:
        followed(relay, first)
        follow_by_gtid(replica, relay.port, REPLICA_USER, REPLICA_PASSWORD)
        wait_until(lambda: applied(replica) == applied(second), "the replica has all of the first source")
        # What tells a source that must write what it applies: `second` does.
        assert applies(second)
        first.stop()
        before = contents(relay)
        second.stop_replica()
        assert not applies(second)
        insert(second, 5, 6)
        change(relay, second)
        # The replica passes to the second source just now.
        wait_until(lambda: any((relay.archive / "g0002").glob("*.0*")), "the second generation begins")
        relay.kill()
        relay.start(options=["--source", f"127.0.0.1:{second.port}"])
        followed(relay, second, 2)
        assert contents(relay) == before
        for path in (relay.archive, relay.archive / "g0002"):
            wait_until(lambda path=path: not list(verify_archive(path, deep=True)), f"{path} is sound")
        assert kinds(relay.archive / "g0002") == ["generation_begun"]
        wait_until(lambda: "generation_ended" in kinds(relay.archive), "the first one has ended")
        names = [row[0] for row in relay.sql("SHOW BINARY LOGS")]
        assert names == binlogs_in(relay.archive / "g0002")
        # relay.toml names the first one still.
        relay.kill()
        relay.start()
        insert(second, 7)
        followed(relay, second, 2)
        assert not (relay.archive / "g0003").exists()
        wait_until(lambda: has_all_of(replica, second), "the replica has all of the second source", 30)
        assert replica.checksum_tables(["d"]) == second.checksum_tables(["d"])
        assert relay.stop() == 0


def applies(server: Server) -> bool:
    """Whether it is seen to be a replica that runs, by the relay's account."""
    settings = ServerSource(
        host="127.0.0.1",
        port=server.port,
        user=server.replication_user,
        password=SecretStr(server.replication_password),
        server_id=4242,
        # Leaving TLS takes until the server has answered, and the loop ends before.
        ssl_mode="disabled",
        public_key=server.datadir / "public_key.pem" if server.name == "mysql97" else None,
    )
    with structlog.testing.capture_logs() as logs:
        asyncio.run(warn_of_a_replica(lambda: open_source(settings), server.name, "log_slave_updates"))
    return [line["event"] for line in logs] == ["source_leaves_out_what_it_applies"]


def has_all_of(replica: Server, source: Server) -> bool:
    """Raises: AssertionError where it has stopped: what comes twice has a key that is there already."""
    status = replica.replica_status()
    assert not status["sql_errno"] and status["io_errno"] not in (1236, 13114), status
    return applied(replica) == executed(source)


def test_a_relay_that_is_killed_around_the_change_finishes_it_when_it_is_told_again(
    servers: ServerFactory, tmp_path: Path
) -> None:
    first, second = pair(servers, "mariadb")
    relay = RelayProcess(tmp_path / "relay", first, port=free_port(), sections=ADMIN)
    with relay:
        followed(relay, first)
        before = contents(relay)
        second.stop_replica()
        first.stop()
        change(relay, second)
        for delay_s in (0.0, 0.02, 0.05, 0.1, 0.2):
            time.sleep(delay_s)
            relay.kill()
            relay.start(options=["--source", f"127.0.0.1:{second.port}"])
            insert(second, 100 + int(delay_s * 1000))
        followed(relay, second, 2)
        assert contents(relay) == before and not (relay.archive / "g0003").exists()
        assert relay.stop() == 0
    assert list(verify_generations(relay.archive, deep=True)) == []
