"""What `binlog-relay init` writes and prints, run through on real servers: a working chain."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess
from tests.support.terminal import Terminal

pytestmark = pytest.mark.interop


def binlog_relay(*words: object) -> "subprocess.CompletedProcess[str]":
    """Without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "relay", *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def init(directory: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    """Everything in this directory."""
    return binlog_relay("init", "--config", directory / "relay.toml", "--archive", directory / "archive", *words)


def statements(directory: Path) -> tuple[list[str], list[str]]:
    """Those for the source, and those for the replica, with the passwords."""
    text = (directory / "relay.sql").read_text()
    parts = text.split("-- At the replica:\n")
    found = []
    for part in parts:
        lines = [line.partition(";  --")[0].rstrip(";") for line in part.splitlines()]
        found.append([line for line in lines if line and not line.startswith("--")])
    return found[0], found[1]


def run_through(source: Server, replica: Server, directory: Path, *words: object) -> None:
    """init, its statements at the source, doctor, run, its statements at the replica: the replica gets the rows."""
    port = free_port()
    if source.name == "mysql97":
        words = (*words, "--ssl-ca", source.datadir / "ca.pem")
    ended = init(
        directory, "--source-host", "127.0.0.1", "--source-port", source.port, "--source-user", "relay", "--listen-host", "127.0.0.1",
        "--listen-port", port, "--relay-host", "127.0.0.1", *words,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    for name in ("source.password", "replica.password", "relay.toml", "relay.sql"):
        assert stat.S_IMODE((directory / name).stat().st_mode) == 0o600
        assert name == "relay.toml" or (directory / name).read_text().strip() not in ended.stdout
    checked = binlog_relay("check-config", "--config", directory / "relay.toml")
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stderr

    at_source, at_replica = statements(directory)
    source.execute_many(at_source)
    examined = binlog_relay("doctor", "--config", directory / "relay.toml")
    assert examined.returncode == 0, examined.stdout
    relay = RelayProcess(directory / "unused", source, port=port)
    relay.config = directory / "relay.toml"
    relay.archive = directory / "archive" / "source"
    with relay:
        source.execute_many(
            ["CREATE DATABASE work", "CREATE TABLE work.t (a INT PRIMARY KEY)", "INSERT INTO work.t VALUES (7)"]
        )
        # A replica that comes before is told to try again, and does so after a minute.
        end = source.master_status()
        relay.wait_archived(end.file, end.position)
        replica.stop_replica()
        replica.execute_many(at_replica)
        wait_until(
            lambda: (
                bool(replica.sql("SHOW TABLES FROM work") if replica.sql("SHOW DATABASES LIKE 'work'") else ())
                and replica.sql("SELECT a FROM work.t") == [(7,)]
            ),
            f"the replica has the row: {replica.replica_status()}",
            60,
        )


@pytest.mark.parametrize("name", ["mysql56", "mysql97", "mariadb"])
def test_what_is_written_and_printed_gives_a_working_chain(servers: ServerFactory, tmp_path: Path, name: str) -> None:
    source = servers(name).start(server_id=1)
    replica = servers(name).start(server_id=2)
    run_through(source, replica, tmp_path / "relay")


def test_a_replica_of_another_version_gets_its_own_words(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql56").start(server_id=1)
    replica = servers("mysql97").start(server_id=2)
    run_through(source, replica, tmp_path / "relay", "--replica-version", "mysql-9.7")


def test_the_source_is_asked_what_it_knows(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql97").start(server_id=71)
    secret = tmp_path / "asked.password"
    secret.write_text(source.replication_password + "\n")
    words = ("--source-host", "127.0.0.1", "--source-port", source.port)
    asked = ("--ask-user", source.replication_user, "--ask-password-file", secret)
    ended = init(tmp_path / "unproved", *words, *asked)
    assert ended.returncode == 0
    assert "asks for the password itself" in ended.stdout and "Copy ca.pem" in ended.stdout
    assert 'ssl_mode = "verify_ca" and ssl_ca' in (tmp_path / "unproved" / "relay.toml").read_text()
    asked = (*asked, "--ssl-ca", source.datadir / "ca.pem")
    ended = init(tmp_path / "first", *words, *asked)
    assert ended.returncode == 0
    assert "MySQL 9.7" in ended.stdout and "gtid_mode" in ended.stdout and source.binlogs()[0].name in ended.stdout
    assert "CHANGE REPLICATION SOURCE TO" in ended.stdout and source.replication_password not in ended.stdout
    taken = init(tmp_path / "second", *words, *asked, "--server-id", 71)
    assert taken.returncode == 2 and "71" in taken.stderr
    assert not (tmp_path / "second").exists()


def test_without_an_account_the_version_is_taken_from_the_greeting(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mariadb").start(server_id=1)
    ended = init(tmp_path, "--source-host", "127.0.0.1", "--source-port", source.port)
    assert ended.returncode == 0 and "MariaDB 10.11" in ended.stdout and "MASTER_USE_GTID = slave_pos" in ended.stdout


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    (tmp_path / "relay.toml").write_text("mine")
    ended = init(tmp_path, "--source-host", "127.0.0.1", "--source-port", free_port())
    assert ended.returncode == 2 and "nothing is overwritten" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["relay.toml"]
    assert (tmp_path / "relay.toml").read_text() == "mine"


def test_a_source_that_is_away_leaves_a_configuration_that_is_fine(tmp_path: Path) -> None:
    words = ("--source-host", "127.0.0.1", "--source-port", free_port(), "--view", "mysql-9.7")
    ended = init(tmp_path, *words, "--source-user", 'o\'neil "x" \\')
    assert ended.returncode == 0 and "cannot be reached" in ended.stdout
    assert "CREATE USER 'o''neil \"x\" \\\\'@'%'" in ended.stdout
    checked = binlog_relay("check-config", "--config", tmp_path / "relay.toml")
    assert checked.returncode == 0, checked.stderr
    assert "AUTO_POSITION = 1" in ended.stdout


def test_what_is_missing_is_named_where_nobody_can_be_asked(tmp_path: Path) -> None:
    ended = init(tmp_path)
    assert ended.returncode == 2 and "--source-host" in ended.stderr
    assert os.listdir(tmp_path) == []


def test_a_password_that_no_replica_takes_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    long = tmp_path / "long.password"
    long.write_text("x" * 33)
    ended = init(
        tmp_path / "relay", "--source-host", "127.0.0.1", "--source-port", free_port(), "--replica-password-file", long
    )
    assert ended.returncode == 2 and "32 characters" in ended.stderr
    assert os.listdir(tmp_path / "relay") == []


def test_at_a_terminal_it_asks_for_what_was_not_said(tmp_path: Path) -> None:
    with Terminal("init", "--config", tmp_path / "relay.toml", "--source-port", free_port()) as terminal:
        terminal.answer("Host of the source", "")
        terminal.answer("Host of the source", "127.0.0.1", times=2)
        terminal.answer("The relay's account there [repl]", "")
        terminal.answer("A copy of its ca.pem, for MySQL 8.0 and later (empty: none)", "")
        terminal.answer("Directory of the archive [/var/lib/binlog-relay]", str(tmp_path / "archive"))
        terminal.answer("Port for replicas [3307]", "none")
        terminal.answer("Port for replicas [3307]", str(free_port()), times=2)
        terminal.answer("Account of the replicas here [replica]", "reader")
        assert terminal.wait_ended() == 0, terminal.shown
    assert "-- At the source:" in terminal.shown and "CREATE USER 'repl'@'%'" in terminal.shown
    text = (tmp_path / "relay.toml").read_text()
    assert f'"{tmp_path / "archive"}"' in text and 'user = "reader"' in text and 'host = "127.0.0.1"' in text
    checked = binlog_relay("check-config", "--config", tmp_path / "relay.toml")
    assert checked.returncode == 0, checked.stderr


def test_nothing_is_written_where_somebody_gives_up_at_a_question(tmp_path: Path) -> None:
    with Terminal("init", "--config", tmp_path / "relay.toml") as terminal:
        terminal.answer("Host of the source", "db.example")
        terminal.wait_for("Port of the source")
        assert terminal.interrupt() not in (0, 2)
    assert "Traceback" not in terminal.shown
    assert os.listdir(tmp_path) == []
