"""Before the source was reached for the first time: people see why, and can act; replicas are told by name, and come again."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import prepare, wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess, wait_for_line
from tests.support.replica_client import ReplicaClient

pytestmark = pytest.mark.interop
WRONG = "not-the-password"
GTID_OPTIONS = {
    "mysql56": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates"],
    "mysql97": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
}
UNREACHED = "has not heard from its source yet"
# What people, monitors and drivers ask first, besides SHOW SLAVE STATUS.
ASKED = (
    "SELECT 1",
    "SELECT VERSION()",
    "SELECT @@version_comment LIMIT 1",
    "SHOW VARIABLES",
    "SHOW GLOBAL STATUS",
    "SHOW MASTER STATUS",
    "SHOW BINARY LOGS",
    "SHOW SLAVE HOSTS",
    "SHOW FULL PROCESSLIST",
    "SHOW DATABASES",
    "FLUSH HOSTS",
)


@pytest.fixture(params=["mysql56", "mysql97", "mariadb"])
def source(request: pytest.FixtureRequest, servers: ServerFactory) -> Iterator[Server]:
    yield servers(request.param).start(server_id=1)


@contextlib.contextmanager
def relay_of(source: Server, directory: Path, **settings: Any) -> Iterator[RelayProcess]:
    """A relay that has never reached its source; the account is an admin's."""
    sections = {"source": {"password": WRONG, **settings}, "[account]": {"admin": True}}
    with RelayProcess(directory / "relay", source, port=free_port(), sections=sections) as relay:
        wait_for_line(relay, "source_lost")
        yield relay
        assert relay.stop() == 0
        assert not [line for line in relay.log_lines() if "Traceback" in str(line) or "exception" in line]


def status(relay: RelayProcess) -> dict[str, Any]:
    """SHOW SLAVE STATUS."""
    with (
        contextlib.closing(
            pymysql.connect(host="127.0.0.1", port=relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
        ) as connection,
        connection.cursor(pymysql.cursors.DictCursor) as cursor,
    ):
        cursor.execute("SHOW SLAVE STATUS")
        row: dict[str, Any] | None = cursor.fetchone()
        assert row is not None
        return row


def set_password(relay: RelayProcess, source: Server) -> None:
    """In relay.toml."""
    relay.config.write_text(relay.config.read_text().replace(WRONG, source.replication_password))


def follows(relay: RelayProcess, source: Server) -> None:
    """Returns when it has everything of the source, sooner than the back-off would let it try again."""
    end = source.master_status()
    relay.wait_archived(end.file, end.position, timeout_s=4)


def test_the_reason_is_seen_at_the_prompt_and_the_password_corrected_there(source: Server, tmp_path: Path) -> None:
    with relay_of(source, tmp_path) as relay:
        shown = status(relay)
        assert (shown["Slave_IO_Running"], shown["Last_IO_Errno"]) == ("Connecting", 1045)
        assert source.replication_user in shown["Last_IO_Error"]
        for statement in ASKED:
            relay.sql(statement)
        assert ("Binlog_relay_source_error", "1045") in relay.sql("SHOW STATUS")
        relay.sql("STOP SLAVE")
        assert status(relay)["Slave_IO_Running"] == "No"
        relay.sql(f"CHANGE MASTER TO MASTER_PASSWORD='{source.replication_password}'")
        relay.sql("START SLAVE")
        follows(relay, source)
        wait_until(lambda: relay.sql("SELECT @@global.server_id") == [(1,)], "who logs in now sees the source")


def test_the_greeting_has_the_version_of_the_configuration(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql56").start(server_id=1)
    sections = {"source": {"password": WRONG}, "listen": {"version": "10.6.5-MariaDB-log"}}
    with RelayProcess(tmp_path / "relay", source, port=free_port(), sections=sections) as relay:
        wait_for_line(relay, "source_lost")
        assert relay.sql("SELECT VERSION()") == [("10.6.5-MariaDB-log",)]
        assert relay.stop() == 0


def test_sighup_takes_the_source_s_password_over_and_tries_at_once(source: Server, tmp_path: Path) -> None:
    with relay_of(source, tmp_path) as relay:
        set_password(relay, source)
        relay.config.write_text(
            relay.config.read_text().replace("heartbeat_period_s = 1.0", "heartbeat_period_s = 2.0")
        )
        line = relay.reload()
        assert line["source_account_changed"] == [f"127.0.0.1:{source.port}"]
        assert line["source_account_kept"] is None
        assert line["waits_for_restart"] == ["source.heartbeat_period_s"]
        follows(relay, source)


def test_sighup_leaves_an_account_that_was_set_by_statement(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql56").start(server_id=1)
    with relay_of(source, tmp_path) as relay:
        relay.sql("STOP SLAVE")
        relay.sql("CHANGE MASTER TO MASTER_PASSWORD='another-wrong-one'")
        set_password(relay, source)
        line = relay.reload()
        assert "CHANGE MASTER TO" in line["source_account_kept"]
        assert line["source_account_changed"] == [f"127.0.0.1:{source.port}"]
        assert "another-wrong-one" not in relay.log_path.read_text()


def test_sighup_changes_the_account_of_a_source_that_is_followed_and_its_stream_goes_on(
    source: Server, tmp_path: Path
) -> None:
    with relay_of(source, tmp_path) as relay:
        set_password(relay, source)
        relay.reload()
        follows(relay, source)
        source.execute_many(source_account("later", "later-password"))
        text = relay.config.read_text().replace(f'"{source.replication_password}"', '"later-password"')
        relay.config.write_text(text.replace(f'user = "{source.replication_user}"', 'user = "later"'))
        assert relay.reload()["source_account_changed"]
        assert len(relay.logged("source_attached")) == 1
        source.execute_many(["CREATE DATABASE after_the_reload"])
        follows(relay, source)
        source.restart()
        source.execute_many(["CREATE DATABASE after_the_restart"])
        end = source.master_status()
        relay.wait_archived(end.file, end.position)
        assert status(relay)["Master_User"] == "later"


def source_account(user: str, password: str) -> list[str]:
    """The statements that make an account for replication."""
    return [
        f"CREATE USER '{user}'@'%' IDENTIFIED BY '{password}'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{user}'@'%'",
    ]


def test_start_slave_does_not_wait_for_the_next_attempt(source: Server, tmp_path: Path) -> None:
    with relay_of(source, tmp_path) as relay:
        # The account is corrected at the source: the relay, which may wait for minutes by now, is not told.
        wait_until(lambda: len(relay.logged("source_lost")) == 2, "a second refusal")
        user, host = account_of(source)
        changed = f"ALTER USER '{user}'@'{host}' IDENTIFIED BY '{WRONG}'"
        if source.name == "mysql56":
            changed = f"SET PASSWORD FOR '{user}'@'{host}' = PASSWORD('{WRONG}')"
        source.execute_many(["SET sql_log_bin = 0", changed])
        relay.sql("START SLAVE")
        follows(relay, source)
        assert [line["by"] for line in relay.logged("source_tried_at_once")] == ["operator"]


def account_of(source: Server) -> tuple[str, str]:
    """User and host of the source's account for replicas."""
    ((user, host),) = source.sql(f"SELECT user, host FROM mysql.user WHERE user = '{source.replication_user}'")
    return user, host


@pytest.mark.parametrize("by_gtid", [False, True])
@pytest.mark.parametrize("name", ["mysql56", "mysql97", "mariadb"])
def test_a_replica_is_told_the_reason_and_comes_again_by_itself(
    servers: ServerFactory, tmp_path: Path, name: str, by_gtid: bool
) -> None:
    options = GTID_OPTIONS.get(name, []) if by_gtid else []
    source = servers(name).start(server_id=1, options=options)
    replica = servers(name).start(server_id=2, options=options)
    source.execute_many(["CREATE DATABASE work", "CREATE TABLE work.t (a INT NOT NULL PRIMARY KEY)"])
    with relay_of(source, tmp_path) as relay:
        attach(replica, relay, source, by_gtid)
        wait_until(lambda: sent_away(relay, name), "the replica was sent away")
        assert replica.replica_status()["io_running"] != "No", "it would not come again by itself"
        if name == "mysql97":
            number, text = replica.wait_io_error()
            assert number == 1105
            assert UNREACHED in text
            assert "authentication" in text
        set_password(relay, source)
        relay.reload()
        follows(relay, source)
        replica.wait_for_source(source)
        assert replica.checksum_tables(["work"]) == source.checksum_tables(["work"])


def attach(replica: Server, relay: RelayProcess, source: Server, by_gtid: bool) -> None:
    extra: dict[str, Any] = {"connect_retry": 1}
    place: tuple[Any, ...] = (source.binlogs()[0].name, 4)
    if by_gtid and replica.name == "mariadb":
        extra["use_gtid"] = "slave_pos"
    elif by_gtid:
        extra["auto_position"], place = 1, ()
    replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, *place, **extra)


def sent_away(relay: RelayProcess, name: str) -> bool:
    """A MySQL that says at its login what it is, is told there; others when they ask who the source is."""
    if name == "mysql97":
        return bool([line for line in relay.logged("login_refused") if "never reached" in line["reason"]])
    return bool([line for line in relay.logged("statement_refused") if line["number"] == 1053])


def test_a_dump_request_is_refused_with_the_reason(source: Server, tmp_path: Path) -> None:
    with relay_of(source, tmp_path) as relay:
        client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
        prepare(client, "mysql")
        client.ask_dump("mysql-bin.000001", 4)
        with pytest.raises(pymysql.MySQLError, match=f"1105.*{UNREACHED}: authentication: the source 127.0.0.1:"):
            client.event()
        client.cut()


def test_a_connection_from_before_is_asked_to_connect_again(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql56").start(server_id=1)
    with relay_of(source, tmp_path) as relay:
        client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
        prepare(client, "mysql")
        set_password(relay, source)
        relay.reload()
        follows(relay, source)
        client.ask_dump("mysql-bin.000001", 4)
        with pytest.raises(pymysql.MySQLError, match=r"1105.*connect again"):
            client.event()
        client.cut()
        again = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
        prepare(again, "mysql")
        again.ask_dump("mysql-bin.000001", 4)
        assert again.event() is not None
        again.cut()


def test_a_relay_that_is_worked_on_by_statements_does_not_end_before_its_first_stream(
    servers: ServerFactory, tmp_path: Path
) -> None:
    source = servers("mysql56").start(server_id=1)
    with relay_of(source, tmp_path) as relay:
        other = servers("mysql56").start(server_id=4242)  # the relay's own server_id: nothing a retry could cure
        relay.sql("STOP SLAVE")
        relay.sql(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={other.port}, "
            f"MASTER_USER='{other.replication_user}', MASTER_PASSWORD='{other.replication_password}'"
        )
        relay.sql("START SLAVE")
        wait_for_line(relay, "source_given_up")
        shown = status(relay)
        assert (shown["Slave_IO_Running"], shown["Last_IO_Errno"]) == ("No", 1593)
