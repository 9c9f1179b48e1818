"""A relay with a view, its replicas and its disk die at random; the view is byte for byte what it would have been."""

import contextlib
import fcntl
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.relay_process import wait_for_line
from tests.support.small_disk import small_disk
from tests.support.table_values import differences, table_values
from tests.support.view_chain import VIEW, ViewChain, view_keys, wait_executed
from tests.support.view_files import binlogs_in, check_same_files
from tests.support.view_kill_run import ViewKillRun, made_anew

pytestmark = [pytest.mark.interop, pytest.mark.slow]
KILLS = 4


@pytest.mark.parametrize("dependencies", ["serial", "writeset"])
def test_kills_of_relay_and_replicas_leave_the_view_as_if_it_were_made_in_one_go(
    servers: ServerFactory, tmp_path: Path, dependencies: str
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    with ViewKillRun(servers, tmp_path, seed=seed, dependencies=dependencies) as run:
        run.befall(KILLS)
        run.settle()
        assert run.findings() == []


@pytest.fixture
def chain(servers: ServerFactory, tmp_path: Path) -> Iterator[ViewChain]:
    """A source with a table, and a relay with a view."""
    with make_chain(servers, tmp_path / "relay") as made:
        yield made


def make_chain(servers: ServerFactory, directory: Path) -> ViewChain:
    made = ViewChain(servers, "mysql56", directory)
    made.source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v LONGTEXT) ENGINE=InnoDB"])
    return made


def write(chain: ViewChain, first: int, count: int, size: int) -> None:
    chain.source.execute_many([f"INSERT INTO d.t VALUES ({first + n}, '{'x' * size}')" for n in range(count)])


def test_the_mirror_goes_on_where_the_disk_of_the_view_is_full_and_so_does_the_view_with_more_room(
    servers: ServerFactory, tmp_path: Path
) -> None:
    chain = make_chain(servers, tmp_path / "relay")
    views = chain.relay.archive / "views"
    with small_disk(views, "3m"), chain:
        replica = chain.view_replica()
        write(chain, 0, 40, 100_000)
        chain.check_archive()
        stop = chain.wait_stopped()
        assert "No space left" in stop["what"], stop
        mirror = chain.replica("mysql56")
        chain.check_tables([mirror], ["d"])
        subprocess.run(["mount", "-o", "remount,size=100m", str(views)], check=True)
        chain.check_replica(replica, ["d"])
        chain.relay.stop()
        assert check_same_files(chain.view_directory(), made_anew(chain, tmp_path / "fresh")) > 4_000_000


def test_a_view_whose_last_write_found_no_room_goes_on_while_the_source_is_silent(
    servers: ServerFactory, tmp_path: Path
) -> None:
    chain = make_chain(servers, tmp_path / "relay")
    views = chain.relay.archive / "views"
    with small_disk(views, "3m"), chain:
        write(chain, 0, 2, 1000)
        chain.wait_viewed()
        filler = views / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        write(chain, 100, 1, 30_000)
        assert "No space left" in chain.wait_stopped()["what"]
        filler.unlink()
        chain.wait_viewed()


def fill(directory: Path) -> Path:
    """Takes all room of the file system there; the file that has it."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler


def view_line(chain: ViewChain) -> dict[str, str]:
    """What the relay's list says of the view."""
    names = (
        "view",
        "gtids",
        "uuid",
        "for",
        "files",
        "bytes",
        "made",
        "in_view",
        "behind",
        "dependencies",
        "not_kept",
        "stopped",
    )
    return dict(zip(names, chain.view_sql("CALL binlog_relay.view_list()")[0], strict=True))


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "made"])
def test_a_view_that_finds_no_room_at_the_start_is_opened_when_there_is_some(
    servers: ServerFactory, tmp_path: Path, *, is_new: bool
) -> None:
    chain = make_chain(servers, tmp_path / "relay")
    views = chain.relay.archive / "views"
    with contextlib.ExitStack() as running:
        running.enter_context(small_disk(views, "3m"))
        if is_new:
            filler = fill(views)
        running.enter_context(chain)
        if not is_new:
            write(chain, 0, 2, 1000)
            chain.wait_viewed()
            chain.relay.stop()
            filler = fill(views)
            chain.relay.start()
        write(chain, 10, 5, 1000)
        told = wait_for_line(chain.relay, "view_not_served")
        assert "No space left" in told["what"] and told["retry_in_s"] > 0, told
        wait_until(lambda: "next at" in view_line(chain)["stopped"], "the view is tried again")
        stopped = view_line(chain)["stopped"]
        assert stopped.startswith("view_not_served: ") and "No space left" in stopped, stopped
        status = dict(chain.view_sql("SHOW STATUS LIKE 'Binlog_relay_view%'"))
        assert "It is tried again by itself, next at" in status["Binlog_relay_view_stop"]
        mirror = chain.replica("mysql56")
        chain.check_tables([mirror], ["d"])
        # A replica that comes meanwhile is told why, and comes again by itself.
        replica = chain.view_replica()
        wait_until(lambda: "No space left" in replica.replica_status()["io_error"], "the replica is told why")
        files = open_files(chain)
        tries = view_line(chain)["stopped"]
        for _ in range(2):  # two attempts more
            wait_until(lambda: view_line(chain)["stopped"] != tries, "it is tried again", 60)  # noqa: B023
            tries = view_line(chain)["stopped"]
        assert open_files(chain) <= files, "an attempt leaves files open"
        assert len(chain.relay.logged("view_not_served")) == 1
        filler.unlink()
        wait_for_line(chain.relay, "view_served", timeout_s=60)
        chain.check_replica(replica, ["d"])
        assert view_line(chain)["stopped"] == ""


def open_files(chain: ViewChain) -> int:
    return len([path for path in Path(f"/proc/{chain.relay.pid}/fd").iterdir() if "views" in os.path.realpath(path)])


def test_a_view_that_another_process_has_open_is_opened_when_that_has_ended(chain: ViewChain) -> None:
    write(chain, 0, 2, 1000)
    chain.wait_viewed()
    chain.relay.stop()
    with (chain.view_directory() / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        chain.relay.start()
        told = wait_for_line(chain.relay, "view_not_served")
        assert "another process has" in told["what"], told
    wait_for_line(chain.relay, "view_served", timeout_s=60)
    chain.check_replica(chain.view_replica(), ["d"])


def test_a_damaged_file_of_the_view_itself_is_made_again_and_its_replicas_are_told_how(chain: ViewChain) -> None:
    write(chain, 0, 20, 1000)
    chain.source.sql("FLUSH LOGS")
    write(chain, 100, 5, 1000)
    chain.wait_viewed()
    first = binlogs_in(chain.view_directory())[0]
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 0x10
    first.write_bytes(data)
    replica = chain.view_replica()
    wait_until(lambda: replica.replica_status()["io_errno"] == 13114, "the replica is told of the damage")
    told = replica.replica_status()["io_error"]
    rebuild = (
        'Stop the relay, run "binlog-relay view rebuild gtid" and start it: the view is made again from the archive.'
    )
    assert rebuild in told and "archive repair" not in told, told
    verified = chain.relay.command("archive", "verify", "--deep")
    assert rebuild in verified.stdout and "archive repair" not in verified.stdout, verified.stdout
    chain.relay.stop()
    assert chain.relay.command("view", "rebuild", VIEW).returncode == 0
    chain.relay.start()
    chain.wait_viewed()
    replica.sql("START REPLICA")
    chain.check_replica(replica, ["d"])


def test_a_damaged_file_of_the_archive_stops_the_view_by_name_and_nothing_else(chain: ViewChain) -> None:
    write(chain, 0, 20, 1000)
    chain.source.sql("FLUSH LOGS")
    write(chain, 100, 20, 1000)
    chain.wait_viewed()
    chain.relay.stop()
    shutil.rmtree(chain.view_directory())
    first = binlogs_in(chain.relay.archive)[0]
    data = bytearray(first.read_bytes())
    whole = bytes(data)
    data[len(data) // 2] ^= 0x10
    first.write_bytes(data)
    chain.relay.start()
    replica = chain.view_replica()
    stop = chain.wait_stopped()
    assert (stop["file"], stop["view"]) == (first.name, VIEW)
    assert abs(stop["offset"] - len(data) // 2) < 2000 and "archive repair" in stop["advice"], stop
    write(chain, 200, 5, 1000)
    chain.wait_archived()
    wait_executed(replica, chain.gtids_of_view(), chain.relay)
    rows = replica.sql("SELECT COUNT(*) FROM d.t")[0][0]
    assert 5 <= rows < 20
    # As `archive repair` does it.
    first.write_bytes(whole)
    chain.check_replica(replica, ["d"])


def test_a_gap_in_the_archive_stops_the_view_by_name_before_it(servers: ServerFactory, tmp_path: Path) -> None:
    with make_chain(servers, tmp_path / "relay") as chain:
        chain.source.sql("FLUSH LOGS")
        write(chain, 0, 20, 100)
        chain.wait_viewed()
        before = table_values(chain.source, ["d"])
        replica = chain.view_replica()
        chain.check_replica(replica, ["d"])
        end = chain.source.master_status()
        chain.relay.stop()
        chain.source.sql("FLUSH LOGS")
        write(chain, 100, 20, 100)
        chain.source.sql("FLUSH LOGS")
        write(chain, 200, 20, 100)
        newest = chain.source.master_status().file
        chain.source.sql(f"PURGE BINARY LOGS TO '{newest}'")
        done = chain.relay.command("archive", "accept-gap")
        assert done.returncode == 0, done.stderr
        chain.relay.start()
        stop = chain.wait_stopped()
        assert stop["file"] in (end.file, newest) and stop["advice"], stop
        assert not differences(before, table_values(replica, ["d"]))


def test_views_of_one_relay_are_made_each_by_itself(servers: ServerFactory, tmp_path: Path) -> None:
    views = [view_keys(), view_keys("anonymous", gtids="anonymous"), view_keys("innodb", engines="innodb")]
    with ViewChain(servers, "mysql56", tmp_path / "relay", views=views) as chain:
        chain.source.sql("CREATE DATABASE d")
        for keys in views:
            chain.wait_viewed(keys["name"])
        shutil.rmtree(chain.view_directory("anonymous"), ignore_errors=True)
        chain.source.sql("CREATE TABLE d.t (id INT PRIMARY KEY, v LONGTEXT) ENGINE=InnoDB")
        write(chain, 0, 20, 100)
        for name in (VIEW, "innodb"):
            chain.check_replica(chain.view_replica(name), ["d"], name)
