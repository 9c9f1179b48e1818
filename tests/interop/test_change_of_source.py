"""A relay goes over to another source by GTID, with pairs of real servers: accepted ones, refused ones, and crashes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.servers import Server
from relay.archive.archive import read_ledger
from relay.archive.verify import verify_archive
from tests.conftest import ServerFactory
from tests.support.binlog_comparison import differences
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess

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


@pytest.mark.parametrize("name", PAIRS)
def test_a_promoted_replica_goes_on_in_a_generation_of_its_own(
    servers: ServerFactory, relay_of: MakeRelay, name: str
) -> None:
    first, second = pair(servers, name)
    with relay_of(first) as relay:
        followed(relay, first)
        first.stop()
        before = contents(relay)
        second.stop_replica()
        insert(second, 5, 6)
        change(relay, second)
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
        assert relay.stop() == 0
