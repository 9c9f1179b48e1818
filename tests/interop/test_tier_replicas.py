"""Replicas of several kinds, a view that is made from the bucket and its export: what one archive in a bucket does for all of them.

All kinds of replicas, each for itself: `python -m tests.interop.tier_matrix`.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.servers import SERVERS, Server
from deploy.servers.mysql97 import MySQL97
from tests.conftest import ServerFactory
from tests.interop.tier_matrix import MATRIX
from tests.support.bucket_chain import OF_VIEW, POSITION, BucketChain, Follower
from tests.support.chain import wait_until
from tests.support.s3_server import S3Server, need_rclone
from tests.support.storage_faults import Fault
from tests.support.view_chain import REPLICA_DEFAULTS, VIEW, account_of, executed_by

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    need_rclone()
    with S3Server(tmp_path_factory.mktemp("storage") / "s3") as server:
        yield server


@pytest.fixture(scope="module")
def old_chain(
    module_servers: ServerFactory, storage: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BucketChain]:
    """With a view that was made from what is in the bucket."""
    kind, options, _ = MATRIX["mysql56"]
    directory = tmp_path_factory.mktemp("old") / "old"
    with BucketChain(module_servers, kind, directory, storage, options=options, has_view=True) as chain:
        yield chain


@pytest.fixture(scope="module")
def replicas(old_chain: BucketChain) -> list[Server]:
    """Of each kind one, which are at the end: MySQL 5.6, MySQL 9.7 of the view, and the newer MariaDB."""
    wanted = [Follower("mysql56", POSITION), Follower("mysql97", OF_VIEW), Follower("mariadb118", POSITION)]
    made = old_chain.followers(wanted)
    old_chain.add_and_compare(made, -1)
    return made


def empty(replica: Server) -> None:
    """As a new one: it begins again."""
    replica.stop_replica()
    replica.execute_many(["SET SESSION sql_log_bin = 0", "DROP DATABASE d"])


@pytest.mark.timeout(300)
def test_replicas_that_a_bucket_that_is_away_brings_to_1105_go_on_by_themselves_when_it_is_back(
    old_chain: BucketChain, replicas: list[Server], storage: S3Server
) -> None:
    """In the middle of the stream: the first files come, the third does not."""
    by_position = [server for server in replicas if server.name != "mysql97"]
    made = [*by_position, old_chain.server("mysql97")]
    for server in by_position:
        empty(server)
    old_chain.start_anew()
    storage.faults.order(Fault.THROTTLED, 1_000_000, method="GET", part=f"{old_chain.source.binlogs()[2].name}.zst")
    try:
        for server in made:
            old_chain.begin_to_follow(server, POSITION)

        def told() -> set[int]:
            refused = [line for line in old_chain.relay.logged("dump_refused") if line["number"] == 1105]
            broken = [line for line in old_chain.relay.logged("dump_stopped") if "may try again" in line["reason"]]
            return {line["server_id"] for line in [*refused, *broken]}

        ids = {int(server.sql("SELECT @@server_id")[0][0]) for server in made}
        wait_until(lambda: ids <= told(), "each got 1105", 100)
        assert all(server.replica_status()["io_running"] != "No" for server in made)
        # Who needs nothing from there goes on.
        old_chain.add_and_compare(replicas[1:2], -3)
    finally:
        storage.faults.forgive()
    old_chain.add_and_compare(made, -4)


def test_a_view_is_exported_with_its_gtids_for_mysqlbinlog_and_mysql(old_chain: BucketChain, tmp_path: Path) -> None:
    target = old_chain.server("mysql97", REPLICA_DEFAULTS)
    out = tmp_path / "exported"
    done = old_chain.relay.command("archive", "export", "--view", VIEW, "--out", str(out))
    assert done.returncode == 0, done.stderr
    files = [str(path) for path in sorted(out.iterdir())]
    reader = [*SERVERS["mysql97"].mysqlbinlog(), "--no-defaults", "--verify-binlog-checksum", *files]
    client = [*SERVERS["mysql97"].mysql_client(), "--no-defaults", "--user=root"]
    plugins = [f"--plugin-dir={MySQL97.plugin_directory()}", f"--socket={target.socket}"]
    read = subprocess.run(reader, capture_output=True, check=False)
    assert read.returncode == 0, read.stderr.decode(errors="replace")
    applied = subprocess.run([*client, *plugins], input=read.stdout, capture_output=True, check=False)
    assert applied.returncode == 0, applied.stderr.decode(errors="replace")
    assert target.checksum_tables(["d"]) == old_chain.source.checksum_tables(["d"])
    ((executed,),) = old_chain.relay.sql("SELECT @@GLOBAL.gtid_executed", account_of(VIEW))
    assert executed_by(target) == str(executed).replace("\n", "")
    # It goes on behind the relay's view, by its own numbers.
    old_chain.begin_to_follow(target, OF_VIEW)
    old_chain.add_and_compare([target], -5)
