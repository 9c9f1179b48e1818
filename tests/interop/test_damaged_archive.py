"""Archived files that were changed, shortened, removed or locked while the relay runs: replicas stop before that, by name."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.servers import BinlogPosition, Server
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, purge_before_newest, wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess

pytestmark = pytest.mark.interop

ROWS = 20


def a_chain(chains: ChainFactory, source_name: str = "mysql56") -> tuple[Chain, Path, int]:
    """A chain whose first file, which is returned, holds ROWS transactions and is sealed, and where the 11th begins."""
    chain = chains(source_name, options=["--binlog-checksum=CRC32"], sections={"[account]": {"admin": True}})
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
    # A server tells the error before its thread has ended.
    wait_until(lambda: replica.replica_status()["io_running"] == "No", "the receiver has stopped", timeout_s=5)
    assert replica.replica_status()["io_errno"] == errno
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


@pytest.mark.parametrize(
    ("source_name", "damage"),
    [
        *(("mysql56", how) for how in ("changed", "shortened", "removed", "emptied")),
        ("mysql97", "changed"),
        ("mariadb", "changed"),
    ],
)
def test_a_repair_fetches_from_the_source_what_was_archived(
    chains: ChainFactory, source_name: str, damage: str
) -> None:
    chain, path, begins = a_chain(chains, source_name)
    sound = path.read_bytes()
    if damage == "changed":
        change_a_byte(path, begins)
    elif damage == "shortened":
        shorten(path, begins)
    elif damage == "emptied":
        path.write_bytes(b"")
    else:
        path.unlink()
    replica = chain.replica(source_name)
    stopped_by_name(replica, path.name)
    chain.relay.stop()
    repaired = chain.relay.command("archive", "repair")
    assert (repaired.returncode, "was fetched again from" in repaired.stdout) == (0, True), repaired.stderr
    assert path.read_bytes() == sound
    chain.relay.start()
    replica.stop_replica()
    replica.start_replica()
    chain.check_tables([replica], ["d"])
    chain.relay.stop()
    assert chain.relay.command("archive", "verify", "--deep").stdout == "The archive is fine.\n"
    assert "damaged" not in chain.relay.command("archive", "list").stdout
    kinds = [line.split("\t")[1] for line in chain.relay.command("archive", "ledger").stdout.splitlines()]
    assert kinds == ["damaged", "repaired"]


def test_a_file_that_was_missing_at_a_start_is_put_back(chains: ChainFactory) -> None:
    chain, path, _begins = a_chain(chains)
    for _ in range(2):
        chain.source.execute_many(["FLUSH BINARY LOGS", "INSERT INTO d.t VALUES (200 + RAND() * 100000, 'more')"])
    chain.wait_published()
    middle = path.with_name(chain.source.binlogs()[1].name)
    sound = middle.read_bytes()
    chain.relay.stop()
    middle.unlink()
    chain.relay.start()
    chain.relay.stop()
    assert chain.relay.command("archive", "repair").returncode == 0
    assert middle.read_bytes() == sound
    chain.relay.start()
    chain.check_archive()
    chain.check_tables([chain.replica("mysql56")], ["d"])


def test_a_repair_from_another_relays_archive_and_from_another_relay(chains: ChainFactory, tmp_path: Path) -> None:
    chain, path, begins = a_chain(chains)
    sound = path.read_bytes()
    copies = tmp_path / "copies"
    shutil.copytree(path.parent, copies)
    second = RelayProcess(tmp_path / "second", chain.source, port=free_port(), server_id=4343)
    second.add_account(user=chain.source.replication_user, password=chain.source.replication_password)
    with second:
        second.wait_archived(*chain.source.master_status())
        chain.relay.stop()
        for origin in (str(copies), f"127.0.0.1:{second.port}"):
            change_a_byte(path, begins)
            fetched = chain.relay.command("archive", "repair", path.name, "--from", origin)
            assert (fetched.returncode, path.read_bytes() == sound) == (0, True), fetched.stdout + fetched.stderr
    kept = sorted(path.parent.glob(f"{path.name}.damaged-*"))
    assert len(kept) == 2
    assert all(len(one.read_bytes()) == len(sound) for one in kept)


def test_another_file_of_that_name_is_not_put_in_place(chains: ChainFactory, tmp_path: Path) -> None:
    chain, path, begins = a_chain(chains)
    copies = tmp_path / "copies"
    shutil.copytree(path.parent, copies)
    change_a_byte(path, begins)
    damaged = path.read_bytes()
    chain.relay.stop()
    (copies / path.name).write_bytes((copies / chain.source.binlogs()[1].name).read_bytes())
    refused = chain.relay.command("archive", "repair", path.name, "--from", str(copies))
    assert (refused.returncode, "has another" in refused.stdout) == (1, True)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mysql-bin.000077"], "is no file of the archive"),
        (["--from", "nowhere"], "this is no directory and no HOST:PORT"),
        (["--generation", "7"], "has no generation 7"),
    ],
)
def test_a_wrong_use_of_a_repair_is_named(chains: ChainFactory, words: list[str], told: str) -> None:
    chain, _path, _begins = a_chain(chains)
    running = chain.relay.command("archive", "repair")
    assert (running.returncode, "CALL binlog_relay.repair()" in running.stderr) == (2, True)
    chain.relay.stop()
    assert "No file is known to be damaged" in chain.relay.command("archive", "repair").stdout
    wrong = chain.relay.command("archive", "repair", *words)
    assert (wrong.returncode, told in wrong.stderr) == (2, True)


def test_a_source_that_has_the_file_no_more_is_named(chains: ChainFactory) -> None:
    chain, path, begins = a_chain(chains)
    purge_before_newest(chain.source)
    change_a_byte(path, begins)
    stopped_by_name(chain.replica("mysql56", BinlogPosition(path.name, 4)), path.name)
    chain.relay.stop()
    failed = chain.relay.command("archive", "repair")
    assert (failed.returncode, path.name in failed.stdout) == (1, True)
    assert "Could not find first log file name" in failed.stdout


def test_a_running_relay_repairs_at_a_word(chains: ChainFactory) -> None:
    chain, path, begins = a_chain(chains)
    sound = path.read_bytes()
    change_a_byte(path, begins)
    replica = chain.replica("mysql56")
    stopped_by_name(replica, path.name)
    ((file, state, what),) = chain.relay.sql("CALL binlog_relay.repair()")
    assert (file, state, "was fetched again" in what) == (path.name, "repaired", True)
    assert path.read_bytes() == sound
    assert dict(chain.relay.sql("SHOW STATUS LIKE 'Binlog_relay_archive_damaged_files'")) == {
        "Binlog_relay_archive_damaged_files": "0"
    }
    assert chain.relay.sql("CALL binlog_relay.repair()") == []
    replica.stop_replica()
    replica.start_replica()
    chain.check_tables([replica], ["d"])


def test_a_scrub_at_a_word_finds_what_nobody_has_read(chains: ChainFactory) -> None:
    chain, path, begins = a_chain(chains)
    change_a_byte(path, begins)
    assert chain.relay.sql("CALL binlog_relay.scrub()")[0][0] == "1"

    def status(name: str) -> str:
        return str(dict(chain.relay.sql(f"SHOW STATUS LIKE 'Binlog_relay_{name}'"))[f"Binlog_relay_{name}"])

    wait_until(lambda: status("archive_damaged_files") == "1", "the scrub has found it")
    wait_until(lambda: status("scrub_state") == "resting", "the scrub is through")
    assert status("scrub_files_due") == "0"
