"""The source moves to another host, another server claims its place, and replicas with our ids: with real servers."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.servers import Server
from relay.archive_inspection.listing import read_ledger
from tests.conftest import ServerFactory
from tests.support.binlog_comparison import differences
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess, wait_for_line

pytestmark = pytest.mark.interop
ADMIN = {"admin": True}


@contextlib.contextmanager
def relay_behind(source: Server, directory: Path, **source_keys: Any) -> Iterator[RelayProcess]:
    sections = {"source": source_keys, "[account]": ADMIN}
    with RelayProcess(directory / "relay", source, port=free_port(), sections=sections) as relay:
        yield relay


def some_work(source: Server, name: str) -> None:
    source.execute_many(
        [
            f"CREATE DATABASE {name}",
            f"CREATE TABLE {name}.t (a INT NOT NULL PRIMARY KEY) ENGINE=InnoDB",
            f"INSERT INTO {name}.t VALUES (1), (2), (3)",
        ]
    )


def followed(relay: RelayProcess, source: Server) -> None:
    end = source.master_status()
    relay.wait_archived(end.file, end.position)
    assert differences(source.binlogs(), relay.archive) == []


@pytest.mark.parametrize("name", ["mariadb", "mysql56", "mysql97"])
def test_a_source_that_was_moved_with_its_binlogs_is_followed_after_a_change(
    servers: ServerFactory, tmp_path: Path, name: str
) -> None:
    source, moved = servers(name).start(server_id=1), servers(name)
    some_work(source, "first")
    with relay_behind(source, tmp_path) as relay:
        followed(relay, source)
        source.stop()
        moved.directory.mkdir(exist_ok=True)
        shutil.copytree(source.datadir, moved.datadir)
        for path in (moved.datadir, *moved.datadir.rglob("*")):
            shutil.chown(path, source.datadir.owner(), source.datadir.group())
        index = moved.datadir / "mysql-bin.index"
        index.write_text(index.read_text().replace(str(source.datadir), str(moved.datadir)))
        (moved.datadir / "auto.cnf").unlink(missing_ok=True)
        # MariaDB servers have no uuid: there it is the id that tells them apart.
        moved.start(server_id=11)
        some_work(moved, "second")
        relay.sql("STOP SLAVE")
        relay.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={moved.port}")
        relay.sql("START SLAVE")
        followed(relay, moved)
        assert len(relay.logged("source_attached")) == 2
        assert relay.stop() == 0
        # By now: rows are written beside the stream.
        assert [row.kind for row in read_ledger(relay.archive)].count("source_changed") == 1
        # relay.toml names the old address still: what was attached to last counts.
        relay.start()
        some_work(moved, "third")
        followed(relay, moved)
        assert relay.logged("source_given_up") == []


@pytest.mark.parametrize("name", ["mariadb", "mysql56", "mysql97"])
def test_another_server_with_files_of_the_same_names_is_refused(
    servers: ServerFactory, tmp_path: Path, name: str
) -> None:
    source, other = servers(name).start(server_id=1), servers(name).start(server_id=11)
    some_work(source, "first")
    some_work(other, "other")
    some_work(other, "more_than_the_first_one_has")
    with relay_behind(source, tmp_path) as relay:
        followed(relay, source)
        before = {file: (relay.archive / file).read_bytes() for file in relay.archived()}
        relay.sql("STOP SLAVE")
        relay.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={other.port}")
        relay.sql("START SLAVE")
        line = wait_for_line(relay, "source_given_up")
        refusals = ("source_file_differs", "source_was_reset", "position_gone", "source_lacks_transactions")
        assert line["trouble"] in refusals
        assert {file: (relay.archive / file).read_bytes() for file in relay.archived()} == before
        relay.sql(f"CHANGE MASTER TO MASTER_PORT={source.port}")
        relay.sql("START SLAVE")
        some_work(source, "second")
        followed(relay, source)


@pytest.mark.parametrize("how", ["statement", "command line"])
def test_the_relay_is_not_followed_by_itself(servers: ServerFactory, tmp_path: Path, how: str) -> None:
    """It shows its source's identity and has all of its archive: only the address tells."""
    source = servers("mysql56").start(server_id=1)
    some_work(source, "first")
    account = {"user": REPLICA_USER, "password": REPLICA_PASSWORD}
    source.sql(
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{user}'@'%' IDENTIFIED BY '{password}'".format(
            **account
        )
    )
    with relay_behind(source, tmp_path, **account) as relay:
        followed(relay, source)
        if how == "statement":
            relay.sql("STOP SLAVE")
            relay.sql(f"CHANGE MASTER TO MASTER_HOST='localhost', MASTER_PORT={relay.port}")
            relay.sql("START SLAVE")
        else:
            relay.stop()
            relay.start(options=["--source", f"127.0.0.1:{relay.port}"])
        line = wait_for_line(relay, "source_given_up", "source_is_this_relay")
        assert f":{relay.port} is this relay itself" in line["what"] and "--source" in line["advice"]
        assert read_ledger(relay.archive) == []
        relay.stop()
        # Nothing of that was kept.
        some_work(source, "second")
        relay.start()
        followed(relay, source)


def test_a_replica_that_has_our_id_is_named_before_its_stream_is_ended(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mariadb").start(server_id=1)
    source.sql("GRANT REPLICATION MASTER ADMIN ON *.* TO 'repl'@'%'")
    replica = servers("mariadb").start(server_id=4242, options=["--report-host=innocent", "--report-port=3399"])
    replica.attach_to(source)
    replica.wait_for_source(source)
    with relay_behind(source, tmp_path) as relay:
        line = wait_for_line(relay, "source_lost", "server_id_clash")
        assert "innocent:3399" in line["what"]
        status = replica.replica_status()
        assert (status["io_running"], status["io_errno"]) == ("Yes", 0)


def test_a_replica_that_has_our_id_is_named_on_mysql_and_both_stay(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql97").start(server_id=1)
    replica = servers("mysql97").start(server_id=4242, options=["--report-host=innocent", "--report-port=3399"])
    replica.attach_to(source)
    some_work(source, "first")
    replica.wait_for_source(source)
    with relay_behind(source, tmp_path) as relay:
        followed(relay, source)
        (line,) = relay.logged("server_id_shared")
        assert line["replica"] == "innocent:3399"
        some_work(source, "second")
        replica.wait_for_source(source)
        followed(relay, source)


@pytest.mark.parametrize("name", ["mariadb", "mysql56", "mysql97"])
def test_the_source_lists_the_relay_with_its_port(servers: ServerFactory, tmp_path: Path, name: str) -> None:
    source = servers(name).start(server_id=1)
    some_work(source, "first")
    with relay_behind(source, tmp_path) as relay:
        followed(relay, source)
        statement = "SHOW REPLICAS" if name == "mysql97" else "SHOW SLAVE HOSTS"
        ((server_id, host, port, *_),) = source.sql(statement)
        assert (int(server_id), int(port), bool(host)) == (4242, relay.port, True)
        # Killed and started: the source may still list the connection that is gone.
        relay.kill()
        relay.start()
        some_work(source, "second")
        followed(relay, source)
        assert relay.logged("source_lost") == []


def test_a_copied_archive_is_told_where_the_source_tells(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql97").start(server_id=1)
    some_work(source, "first")
    with relay_behind(source, tmp_path / "one") as one:
        followed(one, source)
        shutil.copytree(one.archive, tmp_path / "two" / "relay" / "archive" / "source")
        # As if it had been copied to another machine: this one's name is told by the system.
        (tmp_path / "two" / "relay" / "archive" / "source" / "registration.json").unlink()
        with relay_behind(source, tmp_path / "two", server_id=4343) as two:
            line = wait_for_line(two, "source_lost", "server_uuid_clash")
            assert f":{one.port}," in line["what"] and "archive directory was copied" in line["what"]
            some_work(source, "second")
            followed(one, source)
            assert one.logged("source_lost") + one.logged("source_given_up") == []


def test_a_new_server_id_in_the_configuration_is_said(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql56").start(server_id=1)
    some_work(source, "first")
    with relay_behind(source, tmp_path) as relay:
        followed(relay, source)
        assert relay.stop() == 0
        relay.config.write_text(relay.config.read_text().replace("server_id = 4242", "server_id = 4343"))
        relay.start()
        line = wait_for_line(relay, "server_id_changed")
        assert (line["server_id"], line["before"]) == (4343, 4242)
