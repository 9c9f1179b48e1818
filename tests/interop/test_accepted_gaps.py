"""Accepting a gap, with real sources: by the command and by the statement, what is refused, and what a decision holds for."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from deploy.servers import Server
from relay.archive.storage.files import ACCEPTED_NAME
from relay.archive_inspection.listing import read_ledgers
from relay.archive_inspection.verify import verify_generations
from tests.conftest import ROOT, ServerFactory
from tests.support.binlog_comparison import differences
from tests.support.chain import purge_before_newest, wait_for_checkpoint, wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess, wait_for_line
from tests.support.source_accidents import into_another_second

pytestmark = pytest.mark.interop
GAP = "CALL binlog_relay.accept_gap()"


@pytest.fixture
def source(servers: ServerFactory) -> Server:
    server = servers("mysql56").start(server_id=1)
    server.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (a INT NOT NULL PRIMARY KEY) ENGINE=InnoDB"])
    write(server, 1, 2)
    return server


@pytest.fixture
def relay(source: Server, tmp_path: Path) -> Iterator[RelayProcess]:
    with RelayProcess(tmp_path / "relay", source, port=free_port(), sections={"[account]": {"admin": True}}) as relay:
        followed(relay, source)
        yield relay


def write(server: Server, *rows: int) -> None:
    server.execute_many(f"INSERT INTO d.t VALUES ({row})" for row in rows)


def followed(relay: RelayProcess, source: Server, generation: int = 1) -> None:
    """Returns when the generation has all that the source has, byte for byte."""
    directory = relay.archive if generation == 1 else relay.archive / f"g{generation:04d}"
    wait_for_checkpoint(source)
    end = source.master_status()
    path = directory / end.file
    wait_until(
        lambda: path.exists() and path.stat().st_size >= end.position, f"{path} has all:\n{relay.log_tail()}", 30
    )
    first = min(path.name for path in directory.iterdir() if path.suffix[1:].isdigit())
    assert differences([path for path in source.binlogs() if path.name >= first], directory) == []


def purge_what_the_relay_lacks(relay: RelayProcess, source: Server) -> None:
    """While it is stopped. What is left begins with row 20, and has two files."""
    assert relay.stop() == 0
    source.sql("FLUSH BINARY LOGS")
    write(source, 10)
    source.sql("FLUSH BINARY LOGS")
    purge_before_newest(source)
    write(source, 20, 21)
    source.sql("FLUSH BINARY LOGS")
    write(source, 30)


def command(relay: RelayProcess, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "relay", "archive", "accept-gap", "--config", str(relay.config), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(relay: RelayProcess, statement: str = GAP) -> str:
    with pytest.raises(pymysql.err.MySQLError) as error:
        relay.sql(statement)
    return str(error.value.args[1])


def test_a_stopped_relay_is_told_by_the_command_and_goes_on_at_its_next_start(
    relay: RelayProcess, source: Server
) -> None:
    purge_what_the_relay_lacks(relay, source)
    first = source.binlogs()[0].name
    told = command(relay)
    assert told.returncode == 0, told.stderr
    assert "inlogs are missing between mysql-bin.000001:" in told.stdout and f"{first}:4" in told.stdout
    assert (relay.archive / ACCEPTED_NAME).exists() and not (relay.archive / "g0002").exists()
    relay.start()
    followed(relay, source, 2)
    (row,) = [row for _number, row in read_ledgers(relay.archive) if row.kind == "gap_accepted"]
    assert "by the command line" in row.text and json.loads(row.details)["to"] == {"file": first, "offset": 4}
    # Carried out, it is forgotten, also where the relay was killed.
    relay.kill()
    relay.start()
    write(source, 40)
    followed(relay, source, 2)
    assert not (relay.archive / ACCEPTED_NAME).exists() and not (relay.archive / "g0003").exists()
    assert relay.stop() == 0
    assert list(verify_generations(relay.archive, deep=True)) == []


def test_where_the_purged_file_was_archived_to_its_end_nothing_is_missing(relay: RelayProcess, source: Server) -> None:
    source.sql("FLUSH BINARY LOGS")
    followed(relay, source)
    relay.kill()
    # As if it had stopped before the file behind the first one.
    for path in relay.archive.glob("mysql-bin.000002*"):
        path.unlink()
    write(source, 3)
    purge_before_newest(source)
    relay.start()
    wait_for_line(relay, "source_given_up", "position_purged")
    rows = dict(relay.sql(GAP))
    assert (rows["Missing"], rows["Lost by the source"]) == ("nothing", "nothing that is known"), rows
    followed(relay, source, 2)


def test_beside_a_running_relay_the_command_says_which_statement_to_issue(relay: RelayProcess) -> None:
    told = command(relay, "--to", "mysql-bin.000007:120")
    assert told.returncode == 2
    assert "CALL binlog_relay.accept_gap('mysql-bin.000007', 120)" in told.stderr
    assert f"-P {relay.port}" in told.stderr


def test_where_the_source_leads_on_there_is_nothing_to_accept(relay: RelayProcess, source: Server) -> None:
    assert "There is no gap: the relay follows its source" in refused(relay)
    relay.sql("STOP SLAVE")
    write(source, 3)
    assert "START REPLICA goes on there" in refused(relay)
    relay.sql("START SLAVE")
    followed(relay, source)
    assert relay.stop() == 0
    told = command(relay)
    assert (told.returncode, told.stdout) == (1, "") and "There is no gap" in told.stderr
    source.stop()
    told = command(relay)
    assert (told.returncode, told.stdout) == (3, "") and "cannot be reached" in told.stderr


def test_a_place_is_checked_at_the_source_and_told_to_replicas(
    relay: RelayProcess, source: Server, servers: ServerFactory
) -> None:
    replica = servers("mysql56").start(server_id=3)
    replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, "mysql-bin.000001", 4)
    replica.wait_for_source(source)
    purge_what_the_relay_lacks(relay, source)
    relay.start()
    wait_for_line(relay, "source_given_up", "position_purged")
    first = source.binlogs()[0].name
    events = source.sql(f"SHOW BINLOG EVENTS IN '{first}'")
    second_transaction = int([row for row in events if row[5] == "BEGIN"][1][1])
    inside = int(events[[int(row[1]) for row in events].index(second_transaction) + 1][1])
    size = source.binlogs()[0].stat().st_size
    call = "CALL binlog_relay.accept_gap('{}', {})"
    assert f"has no mysql-bin.000001; it has {first}" in refused(relay, call.format("mysql-bin.000001", 4))
    assert "is not between two transactions" in refused(relay, call.format(first, inside))
    assert "is not between two transactions" in refused(relay, call.format(first, inside + 1))
    assert f"it goes from 4 to {size}" in refused(relay, call.format(first, size + 1))
    assert not (relay.archive / "g0002").exists() and not (relay.archive / ACCEPTED_NAME).exists()
    relay.sql(call.format(first, second_transaction))
    followed(relay, source, 2)
    wait_until(lambda: replica.replica_status()["io_errno"] == 1236, "the replica is stopped")
    text = replica.replica_status()["io_error"]
    assert f"MASTER_LOG_FILE='{first}', MASTER_LOG_POS={second_transaction}" in text, text
    replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, first, second_transaction)
    wait_until(lambda: (30,) in replica.sql("SELECT a FROM d.t"), "the replica goes on")
    assert [row[0] for row in replica.sql("SELECT a FROM d.t ORDER BY a")] == [1, 2, 21, 30]


def test_a_place_that_is_archived_already_is_none_to_go_on_with(relay: RelayProcess, source: Server) -> None:
    """The newest file was lost: the one before it is the same at the source and here."""
    source.sql("FLUSH BINARY LOGS")
    write(source, 3)
    followed(relay, source)
    relay.sql("STOP SLAVE")
    source.kill()
    into_another_second()
    newest = source.binlogs()[-1]
    newest.unlink()
    index = source.datadir / "mysql-bin.index"
    index.write_text("".join(index.read_text().splitlines(keepends=True)[:-1]))
    source.start()
    write(source, 4)
    relay.sql("START SLAVE")
    wait_for_line(relay, "source_given_up")
    text = refused(relay, "CALL binlog_relay.accept_gap('mysql-bin.000001', 4)")
    assert "lies before the archive's end" in text and f"{newest.name}:4" in text
    rows = dict(relay.sql(GAP))
    assert rows["Goes on with"].startswith(f"{newest.name}:4 of ")
    assert "the source has lost what the archive has from mysql-bin.000001:" in rows["Lost by the source"]
    followed(relay, source, 2)


def test_files_that_were_removed_by_hand_are_a_gap_that_can_be_accepted(relay: RelayProcess, source: Server) -> None:
    assert relay.stop() == 0
    source.sql("FLUSH BINARY LOGS")
    write(source, 10)
    source.sql("FLUSH BINARY LOGS")
    write(source, 20)
    source.stop()
    gone = source.binlogs()[1]
    gone.unlink()
    index = source.datadir / "mysql-bin.index"
    index.write_text("".join(line for line in index.read_text().splitlines(keepends=True) if gone.name not in line))
    source.start()
    relay.start()
    line = wait_for_line(relay, "source_given_up", "file_chain_broken", timeout_s=30)
    assert GAP in line["advice"]
    rows = dict(relay.sql(GAP))
    assert rows["Goes on with"].startswith(f"{source.binlogs()[1].name}:4 of ")
    assert (rows["Missing"], rows["Lost by the source"]) == ("not known: no GTIDs tell", "nothing that is known")
    followed(relay, source, 2)


def test_a_decision_holds_for_the_gap_that_it_was_made_for(relay: RelayProcess, source: Server) -> None:
    purge_what_the_relay_lacks(relay, source)
    assert command(relay).returncode == 0
    purge_before_newest(source)  # more is missing now
    relay.start()
    line = wait_for_line(relay, "gap_not_carried_out")
    assert "by the command line accepted is not carried out" in line["what"]
    wait_for_line(relay, "source_given_up", "position_purged")
    assert not (relay.archive / "g0002").exists() and not (relay.archive / ACCEPTED_NAME).exists()
    assert "gap_not_carried_out" in [row.kind for _number, row in read_ledgers(relay.archive)]
    relay.sql(GAP)
    followed(relay, source, 2)


def test_a_relay_that_is_killed_as_a_gap_is_accepted_goes_on_behind_it_once(
    relay: RelayProcess, source: Server
) -> None:
    purge_what_the_relay_lacks(relay, source)
    assert command(relay).returncode == 0
    for _ in range(3):
        relay.start()
        relay.kill()
    relay.start()
    followed(relay, source, 2)
    assert not (relay.archive / "g0003").exists()
    kinds = [row.kind for _number, row in read_ledgers(relay.archive)]
    assert (kinds.count("gap_accepted"), "gap_not_carried_out" in kinds) == (1, False)
