"""What clients make a relay hold in memory is bounded, the largest loses by name, and what a connection held is free at its end."""

import time
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest
from pymysql.constants import COMMAND

from tests.memory_under_attack import attack
from tests.support.binlog_builder import BinlogBuilder
from tests.support.free_port import free_port
from tests.support.memory_attack import Attacker, resident_mib
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess, wait_for_line
from tests.support.replica_client import ReplicaClient

FIRST = "mysql-bin.000001"
BUILT = BinlogBuilder().ddl().transaction(20, 60000)
BUDGET_MIB = 128
SET_BYTES = 40 << 20
OUT_OF_RESOURCES, UNKNOWN_ERROR = 1041, 1105
OTHER = "monitor"


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory, relays_of_their_own: None) -> Iterator[RelayProcess]:
    directory = tmp_path_factory.mktemp("memory")
    binlogs = directory / "binlogs"
    binlogs.mkdir()
    (binlogs / FIRST).write_bytes(BUILT.data)
    (binlogs / "mysql-bin.index").write_text(f"./{FIRST}\n")
    sections = {"memory": {"budget": f"{BUDGET_MIB}MiB"}}
    running = RelayProcess(directory, binlogs, port=free_port(), sections=sections)
    running.add_account(user=OTHER, password=REPLICA_PASSWORD)
    with running:
        running.wait_archived(FIRST, BUILT.size)
        yield running
        assert running.stop() == 0
        assert not [line for line in running.log_lines() if "Traceback" in str(line) or "exception" in line]


@pytest.fixture(autouse=True)
def memory_goes_back(relay: RelayProcess) -> Iterator[None]:
    """After every test: nobody is connected, nothing is held, and the system has it within a second."""
    before = resident_mib(relay.pid)
    yield
    deadline = time.monotonic() + 3
    while resident_mib(relay.pid) > before + 24 or held(relay) > 1 << 20:
        assert time.monotonic() < deadline, f"{resident_mib(relay.pid):.0f} MiB, before {before:.0f}"
        time.sleep(0.05)


def held(relay: RelayProcess) -> int:
    (row,) = relay.sql("SHOW STATUS LIKE 'Binlog_relay_memory_held'", OTHER)
    return int(row[1])


def wait_held(relay: RelayProcess, least: int) -> None:
    deadline = time.monotonic() + 10
    while held(relay) < least:
        assert time.monotonic() < deadline, held(relay)
        time.sleep(0.02)


def test_requests_that_never_end_take_no_more_than_the_budget_and_the_relay_gives_it_back(relay: RelayProcess) -> None:
    before, said = resident_mib(relay.pid), len(relay.logged("memory_budget_exceeded"))
    attackers = [Attacker(relay.port) for _ in range(10)]
    for attacker in attackers:
        attacker.unfinished_packet(COMMAND.COM_BINLOG_DUMP_GTID, SET_BYTES)
    assert resident_mib(relay.pid) - before < BUDGET_MIB * 1.5
    lines = relay.logged("memory_budget_exceeded")[said:]
    assert len(lines) >= 6
    assert {line["user"] for line in lines} == {REPLICA_USER}
    assert min(line["held_bytes"] for line in lines) > SET_BYTES // 4
    for attacker in attackers:
        attacker.close()


def test_answers_that_are_not_read_take_no_more_than_the_budget(relay: RelayProcess) -> None:
    before = resident_mib(relay.pid)
    attackers = [Attacker(relay.port) for _ in range(8)]
    for attacker in attackers:
        attacker.unread_answer()
    wait_for_line(relay, "memory_budget_exceeded")
    deadline = time.monotonic() + 5
    while resident_mib(relay.pid) - before > BUDGET_MIB * 1.5:
        assert time.monotonic() < deadline, resident_mib(relay.pid)
        time.sleep(0.1)
    for attacker in attackers:
        attacker.close()


def test_another_account_and_its_variables_outlast_whoever_takes_the_memory(relay: RelayProcess) -> None:
    mine = ReplicaClient(relay.port, user=OTHER, password=REPLICA_PASSWORD)
    mine.query(f"SET @mine = '{'m' * 16000}'")
    said = len(relay.logged("memory_budget_exceeded"))
    attackers = [Attacker(relay.port) for _ in range(6)]
    for attacker in attackers:
        attacker.unfinished_packet(COMMAND.COM_BINLOG_DUMP_GTID, SET_BYTES)
    assert len(relay.logged("memory_budget_exceeded")) > said
    assert mine.query("SELECT LENGTH(@mine)") == ((16000,),)
    mine.close()
    for attacker in attackers:
        attacker.close()


def test_a_replica_is_told_to_come_again_and_not_to_stop(relay: RelayProcess) -> None:
    """1041 would stop its receiving thread until somebody acts."""
    attackers = [Attacker(relay.port) for _ in range(4)]
    for attacker in attackers:
        attacker.unfinished_packet(COMMAND.COM_BINLOG_DUMP_GTID, SET_BYTES)
    ended = []
    for attacker in attackers:
        attacker.socket.settimeout(1.5)
        try:
            ended.append(attacker.answer_of_end())
        except TimeoutError:
            ended.append(-1)
        attacker.close()
    assert UNKNOWN_ERROR in ended
    assert OUT_OF_RESOURCES not in ended


def test_prepared_statements_are_counted_and_forgotten(relay: RelayProcess) -> None:
    attacker = Attacker(relay.port)
    attacker.statements(16)
    wait_held(relay, 3 << 19)
    attacker.close()


def test_a_large_set_of_one_replica_is_served_while_others_are_connected(relay: RelayProcess) -> None:
    """Refused for the source's GTID_MODE, which is looked at once the set is there."""
    others = [ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD) for _ in range(15)]
    replica = Attacker(relay.port)
    data = (1).to_bytes(8, "little") + bytes(15) + b"\1" + (4_000_000).to_bytes(8, "little")
    numbers = b"".join((3 * n + 1).to_bytes(8, "little") + (3 * n + 2).to_bytes(8, "little") for n in range(1000))
    body = bytes(2) + (77).to_bytes(4, "little") + bytes(4) + (4).to_bytes(8, "little")
    whole = data + numbers * 4000
    said = len(relay.logged("memory_budget_exceeded"))
    with pytest.raises(pymysql.MySQLError, match="GTID_MODE"):
        replica._client.command(COMMAND.COM_BINLOG_DUMP_GTID, body + len(whole).to_bytes(4, "little") + whole)
        replica._client.connection._read_packet()
    assert len(relay.logged("memory_budget_exceeded")) == said
    replica.close()
    for other in others:
        assert other.query("SELECT 1") == ((1,),)
        other.close()


def test_all_kinds_of_attacks_together_leave_a_relay_of_the_default_budget_below_a_gibibyte(
    tmp_path: Path, relays_of_their_own: None
) -> None:
    found = attack(tmp_path, seconds=3, seed=7, connections=40)
    assert sum(found["attacks"].values()) > 4  # type: ignore[attr-defined]


def test_the_relay_says_in_its_configuration_check_how_much_it_needs(relay: RelayProcess, tmp_path: Path) -> None:
    done = relay.command("check-config")
    assert done.returncode == 0, done.stderr
    assert f"{BUDGET_MIB} MiB for what clients make the relay hold (memory.budget)" in done.stdout
    assert "MemoryHigh=576M, MemoryMax=768M" in done.stdout
