"""Binlogs copied from a source while it lives: followed as the copies grow, archived and served like a stream."""

import random
import shutil
import time
from pathlib import Path

import pymysql
import pytest

from deploy.servers import BinlogPosition, Server
from tests.conftest import ServerFactory
from tests.support.binlog_comparison import check_archive
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.workload import DATABASE, light_workload

pytestmark = pytest.mark.interop


class Copier:
    """Copies a server's binlogs into a directory, in pieces of any size, oldest first, up to what there is now."""

    def __init__(self, source: Server, directory: Path) -> None:
        self._source = source
        self._directory = directory
        self._sizes = random.Random(2687)
        directory.mkdir()

    def copies(self) -> list[Path]:
        """The copied files, oldest first."""
        return sorted(self._directory.iterdir())

    def copy(self) -> None:
        """Brings the copies up to date; the next file appears only when the one before is complete."""
        for path in self._source.binlogs():
            copy = self._directory / path.name
            with path.open("rb") as read, copy.open("ab") as write:
                read.seek(write.tell())
                # Small pieces are rare, or a run would take minutes.
                while piece := read.read(self._sizes.choice((1, 7, 300, 20_000, 150_000))):
                    write.write(piece)
                    write.flush()
                    time.sleep(0.002)


@pytest.mark.parametrize(
    ("source_name", "replica_names"), [("mysql56", ("mysql56", "mysql97", "mariadb")), ("mariadb", ("mariadb",))]
)
def test_a_growing_directory_is_archived_and_served_like_its_source(
    servers: ServerFactory, tmp_path: Path, source_name: str, replica_names: tuple[str, ...]
) -> None:
    source = servers(source_name).start(server_id=1)
    copier = Copier(source, tmp_path / "copies")
    with RelayProcess(tmp_path / "relay", tmp_path / "copies", port=free_port()) as relay:
        first = BinlogPosition(source.binlogs()[0].name, 4)
        copier.copy()
        replicas = []
        for number, name in enumerate(replica_names):
            replica = servers(name).start(server_id=10 + number)
            replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, first.file, first.position)
            replicas.append(replica)
        light_workload(source)
        copier.copy()
        # What is there is served, whether or not more comes.
        check(relay, source, copier, replicas, [DATABASE])
        source.restart()
        light_workload(source, database="restarted")
        copier.copy()
        check(relay, source, copier, replicas, [DATABASE, "restarted"])
        relay.kill()
        source.sql("FLUSH LOGS")
        source.sql("CREATE DATABASE later")
        copier.copy()
        relay.start()
        check(relay, source, copier, replicas, [DATABASE, "restarted"])
        for replica in replicas:
            wait_until(lambda replica=replica: replica.sql("SHOW DATABASES LIKE 'later'"), "later")  # type: ignore[misc]


def check(relay: RelayProcess, source: Server, copier: Copier, replicas: list[Server], databases: list[str]) -> None:
    # Up to what was copied: MariaDB writes a Binlog_checkpoint event up to a second after a rotation.
    copies = copier.copies()
    end = BinlogPosition(copies[-1].name, copies[-1].stat().st_size)
    relay.wait_archived(*end)
    wanted = source.checksum_tables(databases)
    for replica in replicas:
        replica.wait_caught_up(*end)
        assert replica.checksum_tables(databases) == wanted
    check_archive(relay.archive, copies)


@pytest.mark.parametrize("checksum", ["CRC32", "NONE"])
@pytest.mark.parametrize(
    ("source_name", "replica_names"),
    [("mysql56", ("mysql56", "mysql97", "mariadb")), ("mariadb", ("mariadb", "mariadb118"))],
)
def test_replicas_get_heartbeats_behind_a_last_file_whose_next_one_is_not_there(
    servers: ServerFactory, tmp_path: Path, source_name: str, replica_names: tuple[str, ...], checksum: str
) -> None:
    source = servers(source_name).start(server_id=1, options=[f"--binlog-checksum={checksum}"])
    source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY)", "FLUSH LOGS"])
    source.sql("INSERT INTO one.t VALUES (1)")
    first, *others = source.binlogs()[-2:]
    copies = tmp_path / "copies"
    copies.mkdir()
    shutil.copy(first, copies)
    with RelayProcess(tmp_path / "relay", copies, port=free_port()) as relay:
        replicas = [servers(name).start(server_id=10 + number) for number, name in enumerate(replica_names)]
        for replica in replicas:
            replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, first.name, 4, heartbeat_period=0.5)
        for replica in replicas:
            wait_until(lambda replica=replica: has_table(replica), "what the file holds is applied")
        time.sleep(3)
        for replica in replicas:
            status = replica.replica_status()
            assert (status["io_running"], status["io_errno"], status["sql_errno"]) == ("Yes", 0, 0), status
            if replica.name != "mysql97":  # there only the performance schema tells
                (row,) = replica.sql("SHOW GLOBAL STATUS LIKE 'Slave_received_heartbeats'")
                assert int(row[1]) >= 4
            # The Rotate waits: behind it a replica takes no heartbeat.
            assert status["source_file"] == first.name
        assert int(
            dict(relay.sql("SHOW STATUS LIKE 'Binlog_relay_replicas_at_end'"))["Binlog_relay_replicas_at_end"]
        ) == len(replicas)
        for other in others:
            shutil.copy(other, copies)
        for replica in replicas:
            wait_until(
                lambda replica=replica: replica.sql("SELECT id FROM one.t") == [(1,)],
                "the next file is applied",
            )
            assert replica.replica_status()["source_file"] == others[0].name
        assert len(relay.logged("dump_started")) == len(replicas)


def has_table(server: Server) -> bool:
    return bool(server.sql("SELECT 1 FROM information_schema.tables WHERE table_schema = 'one'"))


WITH_GTIDS = ("--gtid-mode=ON", "--enforce-gtid-consistency", "--log-slave-updates")


def test_a_replica_that_asks_for_the_mode_of_gtids_before_any_were_read_comes_again(
    servers: ServerFactory, tmp_path: Path
) -> None:
    # Told OFF it would stop for good (1593).
    source = servers("mysql56").start(server_id=1, options=WITH_GTIDS)
    source.sql("RESET MASTER")
    source.sql("FLUSH LOGS")
    source.sql(f"CREATE DATABASE {DATABASE}")
    empty, full = source.binlogs()
    copies = tmp_path / "copies"
    copies.mkdir()
    shutil.copy(empty, copies)
    (copies / full.name).write_bytes(full.read_bytes()[:4])
    with RelayProcess(tmp_path / "relay", copies, port=free_port()) as relay:
        relay.wait_archived(empty.name, empty.stat().st_size)
        replica = servers("mysql56").start(server_id=10, options=WITH_GTIDS)
        replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1, connect_retry=1)
        asked = "'SELECT @@GLOBAL.GTID_MODE' failed with error 'binlog-relay has not read its directory to the end yet"
        wait_until(lambda: asked in replica.error_log.read_text(errors="replace"), "the replica asked for the mode")
        assert replica.replica_status()["io_running"] != "No"
        shutil.copy(full, copies)
        wait_until(lambda: (DATABASE,) in replica.sql("SHOW DATABASES"), "the replica has what came then")


def test_the_mode_of_gtids_is_known_where_a_directory_was_read_and_has_none(
    servers: ServerFactory, tmp_path: Path
) -> None:
    source = servers("mysql56").start(server_id=1)
    copies = tmp_path / "copies"
    copies.mkdir()
    shutil.copy(source.binlogs()[0], copies)
    with RelayProcess(tmp_path / "relay", copies, port=free_port()) as relay:
        relay.wait_archived(source.binlogs()[0].name, source.binlogs()[0].stat().st_size)

        def mode() -> object:
            try:
                return relay.sql("SELECT @@GLOBAL.gtid_mode")[0][0]
            except pymysql.err.OperationalError as refused:
                return refused.args[0]

        wait_until(lambda: mode() == "OFF", "the mode is known")
