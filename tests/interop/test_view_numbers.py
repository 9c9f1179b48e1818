"""Replicas of a view that was deleted behind purged files: their GTIDs are the transactions they were, or it stops by name."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.relay_process import REPLICA_PASSWORD
from tests.support.table_values import check_equal
from tests.support.view_chain import UUID_OF_VIEW, VIEW, ViewChain, executed_by, wait_executed
from tests.support.view_files import ViewGroup, binlogs_in, groups_in

pytestmark = pytest.mark.interop
START = re.compile(r'start = \{ file = "[^"]+", position = 4, next = \d+ \}')


@pytest.fixture
def chain(servers: ServerFactory, tmp_path: Path) -> Iterator[ViewChain]:
    """A source with three binlogs, and a relay with a view; an admin account of each."""
    made = ViewChain(servers, "mysql56", tmp_path / "relay")
    made.relay.add_account(user="dba", password=REPLICA_PASSWORD, admin=True)
    made.relay.add_account(user="dba_of_view", password=REPLICA_PASSWORD, admin=True, view=VIEW)
    made.source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=InnoDB"])
    with made:
        for number in range(3):
            write(made.source, 100 * number, 10)
            made.source.sql("FLUSH LOGS")
        yield made


def write(source: Server, first: int, count: int) -> None:
    source.execute_many([f"INSERT INTO d.t VALUES ({number})" for number in range(first, first + count)])


def numbers(chain: ViewChain) -> dict[tuple[str, int], ViewGroup]:
    return {(group.file, group.offset): group for group in groups_in(chain.view_directory())}


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_view_that_is_made_again_behind_purged_files_gives_each_transaction_the_number_it_had(
    chain: ViewChain, by_hand: bool
) -> None:
    """Made again without a `start` it would begin with 1, and the replica would pass over all there is."""
    replica = chain.view_replica()
    chain.check_replica(replica, ["d"])
    replica.sql("STOP REPLICA")
    oldest_kept = binlogs_in(chain.relay.archive)[2].name
    for admin in ("dba_of_view", "dba"):
        chain.relay.sql(f"PURGE BINARY LOGS TO '{oldest_kept}'", admin)
    write(chain.source, 1000, 10)
    chain.wait_viewed()
    chain.relay.stop()
    before = numbers(chain)
    refused = chain.relay.command("view", "rebuild", VIEW)
    assert refused.returncode == 1 and numbers(chain) == before, refused.stdout + refused.stderr
    told = refused.stderr
    if by_hand:
        shutil.rmtree(chain.view_directory())
        chain.relay.start()
        stop = chain.wait_stopped()
        assert (stop["reason"], stop["file"]) == ("gtid_number_unknown", oldest_kept), stop
        assert not list(chain.view_directory().glob("mysql-bin.0*[0-9]"))
        told = stop["advice"]
        listed = chain.relay.command("view", "list")
        assert "gtid_number_unknown" in listed.stdout, listed.stdout
        chain.relay.stop()
    found = START.search(told)
    assert found is not None, told
    config = chain.relay.config.read_text()
    chain.relay.config.write_text(config.replace("[[view]]\n", f"[[view]]\n{found[0]}\n", 1))
    if by_hand:
        shutil.rmtree(chain.view_directory())
    else:
        removed = chain.relay.command("view", "rebuild", VIEW)
        assert removed.returncode == 0 and not chain.view_directory().exists(), removed.stderr
    chain.relay.start()
    chain.wait_viewed()
    assert numbers(chain) == before
    write(chain.source, 2000, 10)
    replica.sql("START REPLICA")
    chain.wait_viewed()
    wait_executed(replica, chain.gtids_of_view(), chain.relay)
    check_equal(chain.source, replica, ["d"])
    assert executed_by(replica) == chain.gtids_of_view() == f"{UUID_OF_VIEW}:1-{2 + 30 + 20}"


def test_maps_that_were_lost_are_made_again_and_the_replica_notices_nothing(chain: ViewChain) -> None:
    """As after a power failure: nothing but each map's first record has to have reached the disk, and not even that."""
    replica = chain.view_replica()
    chain.check_replica(replica, ["d"])
    chain.relay.kill()
    for number, path in enumerate(binlogs_in(chain.view_directory())):
        for suffix in (".map", ".rules"):
            beside = path.with_name(path.name + suffix)
            if beside.exists():
                beside.write_bytes(b"" if number % 2 else bytes(beside.stat().st_size))
    chain.relay.start()
    write(chain.source, 1000, 10)
    chain.check_replica(replica, ["d"])
    end = chain.source.master_status()
    found = chain.relay.command("view", "find", VIEW, "--source", f"{end.file}:{end.position}")
    assert found.returncode == 0 and f"{UUID_OF_VIEW}:1-42" in found.stdout, found.stdout + found.stderr
