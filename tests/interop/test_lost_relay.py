"""The relay is killed and its disk is gone: an archive from the bucket alone, and everybody goes on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.binlog_comparison import check_archive
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.hand_over import write_load
from tests.support.http_relay import get_json, http_section, metric
from tests.support.mirrored_relay import (
    copied_to,
    lose_disk,
    mirrored_relay,
    objects,
    restore,
    wait_copied,
    whole_files,
)
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.s3_server import S3Server, need_rclone
from tests.support.storage_faults import Fault

pytestmark = pytest.mark.interop


@pytest.fixture
def store(tmp_path: Path) -> Iterator[S3Server]:
    need_rclone()
    with S3Server(tmp_path / "s3") as server:
        yield server


def follow(replica: Server, relay: RelayProcess, source: Server, **options: object) -> None:
    at = (None, None) if options.get("use_gtid") == "slave_pos" else (source.binlogs()[0].name, 4)
    replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, *at, connect_retry=1, **options)


@pytest.mark.parametrize("source_name", ["mysql56", "mariadb"])
def test_replicas_go_on_behind_a_relay_that_came_back_from_its_bucket(
    servers: ServerFactory, store: S3Server, tmp_path: Path, source_name: str
) -> None:
    source = servers(source_name).start(server_id=1)
    replicas = [servers(source_name).start(server_id=2), servers("mariadb").start(server_id=3)]
    with mirrored_relay(tmp_path / "relay", source, store, free_port()) as relay:
        follow(replicas[0], relay, source)
        follow(replicas[1], relay, source, use_gtid="slave_pos" if source_name == "mariadb" else "no")
        with write_load(source) as written:
            wait_until(lambda: whole_files(store) >= 2, "two binlogs are in the bucket", 30)
            lose_disk(relay)
            lost_at = written()
            told = restore(relay, "--download", store=store)
            assert told["files"] >= 2
            relay.start()
            wait_until(lambda: written() > lost_at + 40, "the source was written to all the time", 30)
        end = source.master_status()
        relay.wait_archived(*end)
        wanted = source.checksum_tables(["load_"])
        for replica in replicas:
            replica.wait_caught_up(*end, timeout=60)
            assert replica.checksum_tables(["load_"]) == wanted
        assert check_archive(relay.archive, source.binlogs()) > 100
        # The copy goes on too, from the same place.
        wait_copied(store, *end)
        assert not relay.logged("mirror_refused")


@pytest.mark.parametrize("source_name", ["mysql97", "mariadb"])
def test_replicas_go_on_from_binlogs_that_stay_in_the_bucket_of_a_lost_relay(
    servers: ServerFactory, store: S3Server, tmp_path: Path, source_name: str
) -> None:
    by_gtid = {"mysql97": {"auto_position": 1}, "mariadb": {"use_gtid": "slave_pos"}}.get(source_name, {})
    options = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"] if source_name == "mysql97" else []
    source = servers(source_name).start(server_id=1, options=options)
    first = source.binlogs()[0].name
    # One follows all the time; one was stopped long ago, and one is new: they need what is in the bucket.
    near, late, new = (servers(source_name).start(server_id=number, options=options) for number in (2, 3, 4))
    more = {"archive.tiers": {"read_cache": "1MiB"}, **http_section(web := free_port())}
    with mirrored_relay(tmp_path / "relay", source, store, free_port(), more=more) as relay:
        for replica in (near, late):
            at = (None, None) if by_gtid else (first, 4)
            replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, *at, connect_retry=1, **by_gtid)
        with write_load(source, 0.005) as written:
            wait_until(lambda: written() > 15, "the load has begun")
            late.stop_replica()
            wait_until(lambda: whole_files(store) >= 2, "two binlogs are in the bucket", 60)
            lose_disk(relay)
            lost_at = written()
            told = restore(relay, "--from", store.options("relay-a").url, store=store)
            assert told["files"] >= 2 and told["downloaded"] is False
            held = {path.name for path in relay.archive.iterdir()}
            in_bucket = [name.removesuffix(".place") for name in held if name.endswith(".place")]
            assert len(in_bucket) == told["files"]
            assert not {name for name in held if name in in_bucket or ".zst" in name}
            relay.start()
            late.start_replica()
            new.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, first, 4, connect_retry=1)
            wait_until(lambda: written() > lost_at + 40, "the source was written to all the time", 60)
        end = source.master_status()
        relay.wait_archived(*end)
        wanted = source.checksum_tables(["load_"])
        for replica in (near, late, new):
            replica.wait_caught_up(*end, timeout=90)
            assert replica.checksum_tables(["load_"]) == wanted, replica
        assert (metric(web, "read_cache_fetches_total", source="bucket") or 0) > 0
        assert metric(web, "read_cache_errors_total", kind="damaged") == 0
        assert metric(web, "bucket_away") == 0
        # The copy goes on from the same place, and is whole.
        wait_copied(store, *end)
        assert not relay.logged("mirror_refused") and not relay.logged("bucket_fails")
        relay.stop()
        done = relay.command("archive", "verify", "--deep")
        assert done.returncode == 0, done.stdout


def test_a_second_relay_on_a_copy_and_a_relay_of_another_archive_do_not_write_there(
    servers: ServerFactory, store: S3Server, tmp_path: Path
) -> None:
    source = servers("mariadb").start(server_id=1)
    with mirrored_relay(tmp_path / "relay", source, store, free_port()) as relay:
        source.sql("CREATE DATABASE d")
        wait_copied(store, *source.master_status())
        held = objects(store)
        with mirrored_relay(tmp_path / "other", source, store, free_port()) as other:
            wait_until(lambda: other.logged("mirror_refused"), "it is refused")
            assert "the copy of another archive" in other.logged("mirror_refused")[0]["what"]
            wait_until(lambda: other.sql("SHOW BINARY LOGS"), "it serves all the same")
        assert objects(store) == held
        assert relay.running


def test_a_bucket_that_is_gone_for_a_while_is_behind_and_catches_up(
    servers: ServerFactory, store: S3Server, tmp_path: Path
) -> None:
    source = servers("mariadb").start(server_id=1)
    web = free_port()
    with mirrored_relay(tmp_path / "relay", source, store, free_port(), more=http_section(web)) as relay:
        source.sql("CREATE DATABASE d")
        source.sql("CREATE TABLE d.t (a INT)")
        wait_copied(store, *source.master_status())
        # What is asked for fails, in every way there is but one that is only waited for.
        for number, fault in enumerate(Fault):
            if fault is not Fault.SILENT:
                store.faults.order(fault)
            source.sql(f"INSERT INTO d.t VALUES ({number})")
        source.sql("FLUSH BINARY LOGS")
        source.sql("INSERT INTO d.t VALUES (1000)")
        end = source.master_status()
        store.stop()
        relay.wait_archived(*end)
        wait_until(lambda: metric(web, "mirror_up") == 0 and (metric(web, "mirror_lag_bytes") or 0) > 0, "it is behind")
        told = get_json(web, "mirror")
        assert (told["state"], told["failures"] > 0, told["trouble"] is not None) == ("behind", True, True)
        store.faults.forgive()
        store.start()
        wait_copied(store, *end, timeout_s=60)
        wait_until(lambda: metric(web, "mirror_up") == 1 and metric(web, "mirror_lag_bytes") == 0, "it follows")
        done = relay.command("archive", "mirror", "--json")
        assert (done.returncode, json.loads(done.stdout)["lag_bytes"]) == (0, 0), done.stderr
        assert f"{source.binlogs()[0].name}.place" in objects(store)
        assert copied_to(store, end.file) >= end.position
        lose_disk(relay)
        told = restore(relay, "--download")
        # MariaDB writes a checkpoint behind it when it has the time.
        assert told["end_file"] == end.file and told["end_position"] >= end.position
        assert check_archive(relay.archive, source.binlogs()[:-1]) > 3
