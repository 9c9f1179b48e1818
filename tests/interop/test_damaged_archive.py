"""Archived files that were changed, shortened, removed or locked while the relay runs: replicas stop before that, by name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.servers import BinlogPosition, Server
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until

pytestmark = pytest.mark.interop

ROWS = 20


def a_chain(chains: ChainFactory, source_name: str = "mysql56") -> tuple[Chain, Path, int]:
    """A chain whose first file, which is returned, holds ROWS transactions and is sealed, and where the 11th begins."""
    chain = chains(source_name, options=["--binlog-checksum=CRC32"])
    chain.source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a TEXT) ENGINE=InnoDB"])
    begins = 0
    for number in range(1, ROWS + 1):
        if number == 11:
            begins = chain.source.master_status().position
        chain.source.sql(f"INSERT INTO d.t VALUES ({number}, REPEAT('M', 300))")
    name = chain.source.master_status().file
    chain.source.sql("FLUSH BINARY LOGS")
    chain.source.sql("INSERT INTO d.t VALUES (100, 'behind')")
    chain.wait_published()
    return chain, chain.relay.archive / name, begins


def change_a_byte(path: Path, begins: int) -> None:
    data = bytearray(path.read_bytes())
    data[begins + 150] ^= 1
    path.write_bytes(data)


def shorten(path: Path, begins: int) -> None:
    with path.open("r+b") as file:
        file.truncate(begins + 40)


def empty_the_rest(path: Path, begins: int) -> None:
    with path.open("r+b") as file:
        file.seek(begins)
        file.write(bytes(path.stat().st_size - begins))


def stopped_by_name(replica: Server, name: str) -> str:
    errno, text = replica.wait_io_error()
    assert errno in (1236, 13114)
    assert f"binlog-relay's archive is damaged at {name}:" in text
    assert replica.replica_status()["io_running"] == "No"
    return text


def told(chain: Chain, name: str) -> None:
    """In ledger and status, once, within a second."""
    status = dict(chain.relay.sql("SHOW STATUS LIKE 'Binlog_relay_archive_damaged%'"))
    assert status["Binlog_relay_archive_damaged_files"] == "1"
    assert status["Binlog_relay_archive_damaged_first"].startswith(f"{name}:")
    assert len([line for line in chain.relay.logged("archive_ledger") if line["kind"] == "damaged"]) == 1


@pytest.mark.parametrize("damage", [change_a_byte, shorten, empty_the_rest])
def test_a_replica_gets_all_before_the_damage_and_nothing_of_it(
    chains: ChainFactory, damage: Callable[[Path, int], None]
) -> None:
    chain, path, begins = a_chain(chains)
    damage(path, begins)
    replica = chain.replica("mariadb")
    assert f"All before {begins} of this file is good" in stopped_by_name(replica, path.name)
    wait_until(lambda: replica.sql("SELECT COUNT(*) FROM d.t") == [(10,)], "what is before the damage is applied")
    told(chain, path.name)
    # Those who are behind it go on.
    end = chain.source.binlogs()[-1].name
    chain.attach(other := chain.server("mysql56"), BinlogPosition(end, 4), start=False)
    other.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a TEXT) ENGINE=InnoDB"])
    other.start_replica()
    wait_until(lambda: other.sql("SELECT a FROM d.t") == [("behind",)], "what is behind the damage is applied")


@pytest.mark.parametrize("how", ["removed", "renamed", "a directory is in its place"])
def test_a_file_that_cannot_be_read_any_more_stops_replicas_by_name(chains: ChainFactory, how: str) -> None:
    chain, path, _begins = a_chain(chains)
    if how == "removed":
        path.unlink()
    else:
        path.rename(path.with_name("other"))
    if how == "a directory is in its place":
        path.mkdir()
    replica = chain.replica("mysql56")
    stopped_by_name(replica, path.name)
    told(chain, path.name)


def test_a_damaged_file_is_looked_at_once_whoever_asks_again(chains: ChainFactory) -> None:
    chain, path, begins = a_chain(chains)
    shorten(path, begins)
    replica = chain.replica("mysql56")
    stopped_by_name(replica, path.name)
    for _ in range(3):
        replica.stop_replica()
        replica.start_replica()
        stopped_by_name(replica, path.name)
    told(chain, path.name)
    assert chain.relay.logged("archive_ledger")[-1]["kind"] == "damaged"


def test_a_growing_file_that_is_shortened_has_no_hole_and_is_fetched_again(chains: ChainFactory) -> None:
    chain, _path, _begins = a_chain(chains)
    newest = chain.relay.archive / chain.source.master_status().file
    with newest.open("r+b") as file:
        file.truncate(newest.stat().st_size - 100)
    short = newest.stat().st_size
    chain.source.sql("INSERT INTO d.t VALUES (101, 'behind')")
    wait_until(lambda: chain.relay.logged("source_lost"), "the relay notices it at its next write")
    assert "shortened from outside" in str(chain.relay.log_lines())
    assert newest.stat().st_size == short
    chain.relay.stop()
    assert chain.relay.command("archive", "rebuild").returncode == 0
    chain.relay.start()
    chain.check_archive()
    chain.check_tables([chain.replica("mysql56")], ["d"])
