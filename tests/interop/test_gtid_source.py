"""Sources with GTIDs: where the archive begins, what the source must have, and its GTID_MODE as replicas see it."""

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pymysql
import pytest

from deploy.servers import BinlogPosition, Server
from tests.conftest import ServerFactory
from tests.support.chain import purge_before_newest, wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess, wait_for_line

pytestmark = pytest.mark.interop
OPTIONS = {
    "mysql56": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates"],
    "mysql97": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--binlog-transaction-compression=ON"],
    "mariadb": ["--gtid-domain-id=7"],
}
ADMIN = {"[account]": {"admin": True}}
SOURCES = sorted(OPTIONS)
# What a server says of a position inside an event, by the bytes that it takes for a header there.
INSIDE_AN_EVENT = ("bogus data in log event", "log event entry exceeded max_allowed_packet")
MakeRelay = Callable[..., RelayProcess]
POSITION = {"mariadb": "@@global.gtid_binlog_pos"}


@pytest.fixture
def relay_of(tmp_path: Path) -> Iterator[MakeRelay]:
    """Makes relays, one after the other; they end with the test."""
    made: list[RelayProcess] = []

    def make(source: Server, **keys: Any) -> RelayProcess:
        relay = RelayProcess(
            tmp_path / f"relay{len(made)}", source, port=free_port(), sections={"source": keys, **ADMIN}
        )
        made.append(relay)
        return relay

    yield make
    for relay in made:
        if relay.running:
            relay.kill()


def begun(servers: ServerFactory, name: str) -> Server:
    source = servers(name).start(server_id=1, options=OPTIONS[name])
    source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (a INT NOT NULL PRIMARY KEY, b TEXT) ENGINE=InnoDB"])
    return source


def insert(source: Server, *keys: int, tag: bool = False) -> None:
    for key in keys:
        before = ["SET gtid_next='AUTOMATIC:work'"] if tag else []
        source.execute_many([*before, f"INSERT INTO d.t VALUES ({key}, REPEAT('x', 300))"])


def executed(source: Server) -> str:
    return str(source.sql(f"SELECT {POSITION.get(source.name, '@@global.gtid_executed')}")[0][0])


def followed(relay: RelayProcess, source: Server) -> None:
    end = source.master_status()
    relay.wait_archived(end.file, end.position)


def given_up(relay: RelayProcess, trouble: str) -> dict[str, Any]:
    return wait_for_line(relay, "source_given_up", trouble, timeout_s=30)


@pytest.mark.parametrize("name", SOURCES)
def test_a_start_by_gtid_archives_whole_files_from_the_one_that_has_the_next_transaction(
    servers: ServerFactory, relay_of: MakeRelay, name: str
) -> None:
    source = begun(servers, name)
    for number in range(3):
        insert(source, number * 10, number * 10 + 1, tag=name == "mysql97")
        if number == 1:
            middle, file = executed(source), source.master_status().file
            insert(source, 100)
        source.sql("FLUSH BINARY LOGS")
    with relay_of(source, start={"gtid": middle.replace("\n", "")}) as relay:
        followed(relay, source)
        held = relay.archived()
        sizes = {path.name: path.stat().st_size for path in source.binlogs()}
        assert min(held) == file
        assert held == {name: size for name, size in sizes.items() if name >= file}


@pytest.mark.parametrize("name", SOURCES)
def test_a_start_at_purged_transactions_is_refused_by_name(
    servers: ServerFactory, relay_of: MakeRelay, name: str
) -> None:
    source = begun(servers, name)
    early = executed(source).replace("\n", "")
    for key in range(3):
        insert(source, key)
        source.sql("FLUSH BINARY LOGS")
    purge_before_newest(source)
    relay = relay_of(source, start={"gtid": early}).start(wait=False)
    line = given_up(relay, "gtid_refused")
    assert "purged" in line["what"]
    assert relay.wait_ended() == 3
    assert relay.archived() == {}


def test_gtids_of_the_other_kind_of_server_are_refused_by_name(servers: ServerFactory, relay_of: MakeRelay) -> None:
    relay = relay_of(begun(servers, "mariadb"), start={"gtid": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77"})
    relay.start(wait=False)
    assert "MariaDB" in given_up(relay, "gtid_of_another_kind")["what"]
    assert relay.wait_ended() == 3


@pytest.mark.parametrize("name", ["mysql56", "mysql97"])
def test_a_source_with_gtid_mode_off_cannot_be_asked_by_gtid(
    servers: ServerFactory, relay_of: MakeRelay, name: str
) -> None:
    source = servers(name).start(server_id=1)
    relay = relay_of(source, start={"gtid": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77"}).start(wait=False)
    assert "GTID_MODE" in given_up(relay, "gtid_mode_off")["what"]
    assert relay.wait_ended() == 3


# The last two: our place may be inside one of its new events, which the source itself says.
@pytest.mark.parametrize(
    ("written_since", "refusals"),
    [
        (1, ["lacks transactions that the archive has: "]),
        (30, ["was made at ", "in the middle of event", *INSIDE_AN_EVENT]),
    ],
)
@pytest.mark.parametrize("name", SOURCES)
def test_a_source_after_reset_master_is_refused_and_the_archive_served_on(
    servers: ServerFactory, relay_of: MakeRelay, name: str, written_since: int, refusals: list[str]
) -> None:
    source = begun(servers, name)
    insert(source, 1, 2)
    with relay_of(source) as relay:
        followed(relay, source)
        replica = servers(name).start(server_id=5, options=OPTIONS[name])
        relay.sql("STOP SLAVE")
        before = {path.name: path.read_bytes() for path in relay.archive.glob("mysql-bin.0*[0-9]")}
        source.sql("RESET BINARY LOGS AND GTIDS" if name == "mysql97" else "RESET MASTER")
        # Its transactions begin at number 1 again: with as many as before, neither place nor GTIDs tell.
        insert(source, *range(10, 10 + written_since))
        relay.sql("START SLAVE")
        line = wait_for_line(relay, "source_given_up", timeout_s=30)
        assert any(refusal in line["what"] for refusal in refusals), line["what"]
        replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, min(before), 4)
        wait_until(lambda: count(replica) == 2, "the replica has what the archive has", 30)
        assert {path.name: path.read_bytes() for path in relay.archive.glob("mysql-bin.0*[0-9]")} == before


def count(server: Server) -> int:
    with contextlib.suppress(pymysql.err.MySQLError):
        return int(server.sql("SELECT COUNT(*) FROM d.t")[0][0])
    return -1


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_restored_from_an_older_copy_is_refused_with_the_transactions_that_it_lacks(
    servers: ServerFactory, relay_of: MakeRelay, name: str, tmp_path: Path
) -> None:
    source = begun(servers, name)
    insert(source, 1, 2)
    source.stop()
    owner, group = source.datadir.owner(), source.datadir.group()
    copy = shutil.copytree(source.datadir, tmp_path / "copy")
    source.start()
    with relay_of(source) as relay:
        insert(source, 3, 4)
        followed(relay, source)
        lost = executed(source)
        source.stop()
        shutil.rmtree(source.datadir)
        shutil.copytree(copy, source.datadir)
        for path in (source.datadir, *source.datadir.rglob("*")):
            shutil.chown(path, owner, group)
        source.start()
        line = wait_for_line(relay, "source_given_up", timeout_s=60)
        assert "lacks transactions that the archive has: " in line["what"]
        # The last two: numbers 3 and 4 behind CREATE DATABASE and CREATE TABLE.
        assert line["what"].endswith(f"{lost.partition(':')[0]}:5-6" if name != "mariadb" else f"up to {lost}")


def shows(relay: RelayProcess, mode: str) -> bool:
    return relay.sql("SELECT @@GLOBAL.GTID_MODE") == [(mode,)]


def test_the_mode_is_the_sources_as_it_changes_while_replicas_by_file_and_position_go_on(
    servers: ServerFactory, relay_of: MakeRelay
) -> None:
    source = servers("mysql97").start(server_id=1, options=["--gtid-mode=OFF", "--enforce-gtid-consistency=ON"])
    source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (a INT NOT NULL PRIMARY KEY, b TEXT) ENGINE=InnoDB"])
    with relay_of(source) as relay:
        followed(relay, source)
        replica = servers("mysql97").start(server_id=5)
        replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, source.binlogs()[0].name, 4)
        steps = ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON", "ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"]
        for key, mode in enumerate(steps):
            source.sql(f"SET GLOBAL gtid_mode={mode}")
            insert(source, key)
            wait_until(partial(shows, relay, mode), f"the relay says {mode}", 10)
            replica.wait_caught_up(*source.master_status())
            # A replica that connects again asks for the mode.
            replica.stop_replica()
            replica.start_replica()
            insert(source, key + 100)
            replica.wait_caught_up(*source.master_status())
        assert replica.checksum_tables(["d"]) == source.checksum_tables(["d"])
        assert len(relay.logged("source_attached")) == 1
        relay.kill()
        source.stop()
        relay.start()
        assert shows(relay, "OFF")


@pytest.mark.parametrize("name", SOURCES)
def test_gtid_variables_and_statuses_are_the_sources(servers: ServerFactory, relay_of: MakeRelay, name: str) -> None:
    source = begun(servers, name)
    insert(source, 1, 2, tag=name == "mysql97")
    source.sql("FLUSH BINARY LOGS")
    insert(source, 3)
    names = ["gtid_binlog_pos", "gtid_binlog_state", "gtid_domain_id", "gtid_strict_mode"]
    names = names if name == "mariadb" else ["gtid_mode", "gtid_executed", "gtid_purged"]
    asked = f"SELECT {', '.join(f'@@global.{name}' for name in names)}"
    with relay_of(source) as relay:
        followed(relay, source)
        wait_until(lambda: relay.sql(asked) == source.sql(asked), f"{asked} is as at the source")
        status = relay.sql("SHOW SLAVE STATUS")[0]
        if name == "mariadb":
            assert executed(source) in status
        else:
            assert relay.sql("SHOW MASTER STATUS")[0][4] == executed(source)
            # Retrieved_Gtid_Set and Executed_Gtid_Set
            assert status.count(executed(source)) == 2
        insert(source, 4)
        followed(relay, source)
        wait_until(lambda: relay.sql(asked) == source.sql(asked), f"{asked} follows the source")
        last = source.sql(asked)
        relay.kill()
        source.stop()
        relay.start()
        assert relay.sql(asked) == last


WAITING = {
    "mysql97": ("rpl_semi_sync_source", "semisync_source.so", "source"),
    "mariadb": ("", "", "master"),
}


@pytest.mark.parametrize("name", sorted(WAITING))
def test_a_transaction_whose_commit_waits_at_the_source_is_none_that_it_lacks(
    servers: ServerFactory, relay_of: MakeRelay, name: str
) -> None:
    source = begun(servers, name)
    plugin, library, word = WAITING[name]
    if plugin:
        source.sql(f"INSTALL PLUGIN {plugin} SONAME '{library}'")
    with relay_of(source) as relay:
        followed(relay, source)
        source.sql(f"SET GLOBAL rpl_semi_sync_{word}_timeout = 600000")
        source.sql(f"SET GLOBAL rpl_semi_sync_{word}_enabled = 1")
        committing = threading.Thread(target=insert, args=(source, 1), daemon=True)
        committing.start()
        # Written to the binlog and sent, executed only once somebody has acknowledged it.
        wait_until(
            lambda: relay.archived()[source.binlogs()[-1].name] == source.binlogs()[-1].stat().st_size, "archived"
        )
        time.sleep(0.5)
        assert committing.is_alive()
        relay.sql("STOP SLAVE")
        relay.sql("START SLAVE")
        wait_until(lambda: len(relay.logged("source_attached")) == 2, "the relay is attached again")
        assert relay.logged("source_given_up") == []
        source.sql(f"SET GLOBAL rpl_semi_sync_{word}_enabled = 0")
        committing.join(10)
        insert(source, 2)
        followed(relay, source)


ALL_MODES = ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]


@pytest.mark.parametrize("source_mode", ["OFF", "OFF_PERMISSIVE", "ON"])
def test_a_replica_of_any_mode_fares_as_behind_the_source_itself(
    servers: ServerFactory, relay_of: MakeRelay, source_mode: str
) -> None:
    options = [f"--gtid-mode={source_mode}", "--enforce-gtid-consistency=ON"]
    source = servers("mysql97").start(server_id=1, options=options)
    replica = servers("mysql97").start(server_id=5, options=["--gtid-mode=OFF", "--enforce-gtid-consistency=ON"])
    with relay_of(source) as relay:
        followed(relay, source)
        outcomes = []
        for mode in ALL_MODES:
            if mode != "OFF":
                replica.sql(f"SET GLOBAL gtid_mode={mode}")
            for port in (source.port, relay.port):
                user, password = source.replication_user, source.replication_password
                if port == relay.port:
                    user, password = REPLICA_USER, REPLICA_PASSWORD
                replica.attach("127.0.0.1", port, user, password, *source.master_status())
                status = outcome(replica)
                outcomes.append((mode, port, status))
                replica.stop_replica()
        direct = [(mode, status) for mode, port, status in outcomes if port == source.port]
        assert direct == [(mode, status) for mode, port, status in outcomes if port == relay.port]
        # Who takes GTIDs only, or none, refuses a source that writes the other kind.
        refuses = "OFF" if source_mode == "ON" else "ON"
        assert [mode for mode, (attached, _) in direct if not attached] == [refuses]


def outcome(replica: Server) -> tuple[bool, int]:
    """Whether the replica's connection runs, once that is decided, and the number of its error."""
    found: list[tuple[bool, int]] = []

    def decided() -> object:
        status = replica.replica_status()
        # It says "Yes" before it has asked for the mode.
        attached = status["raw"]["Replica_IO_State"] == "Waiting for source to send event"
        found.append((attached, status["io_errno"]))
        return attached or status["io_errno"]

    wait_until(decided, "the replica is attached or refused")
    return found[-1]


@pytest.mark.parametrize("name", SOURCES)
def test_a_promoted_source_without_the_last_transactions_is_refused_with_their_names(
    servers: ServerFactory, relay_of: MakeRelay, name: str
) -> None:
    source = begun(servers, name)
    options = [*OPTIONS[name], "--log-slave-updates"] if name == "mariadb" else OPTIONS[name]
    promoted, replica = (
        servers(name).start(server_id=2, options=options),
        servers(name).start(server_id=5, options=options),
    )
    promoted.attach_to(source, BinlogPosition(source.binlogs()[0].name, 4))
    insert(source, 1, 2)
    promoted.wait_for_source(source)
    promoted.stop_replica()
    with relay_of(source) as relay:
        insert(source, 3, 4)
        followed(relay, source)
        replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, source.binlogs()[0].name, 4)
        relay.sql("STOP SLAVE")
        lost, before = executed(source), relay.archived()
        source.stop()
        insert(promoted, 50)
        relay.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={promoted.port}")
        for attempt in range(1, 3):
            relay.sql("START SLAVE")
            wait_until(lambda: len(relay.logged("source_given_up")) == attempt, "refused")  # noqa: B023
        what = relay.logged("source_given_up")[-1]["what"]
        assert "lacks transactions that the archive has: " in what
        assert what.endswith(f"{lost.partition(':')[0]}:5-6" if name != "mariadb" else f"up to {lost}")
        wait_until(lambda: count(replica) == 4, "the replica has what the archive has")
        assert relay.archived() == before
