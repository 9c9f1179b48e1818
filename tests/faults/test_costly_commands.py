"""What one account may send costs the event loop no more than 20 ms of processor time at once, and everybody else no wait.

Unbounded, one REGEXP of these held the loop for 13 s, one SELECT of GTID functions for 2 s. The long run is `python -m
tests.fuzz_commands`, which sends 20,000.
"""

import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.framing import frame_payload
from tests.fuzz_commands import ADMIN, Admin, Client, connected, fuzz, watched_relay
from tests.support.command_flood import command_flood
from tests.support.costly_commands import costly_commands
from tests.support.loop_holds import LIMIT_S
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient

RANDOM = 120
MANY_CONNECTIONS = 40
ACKNOWLEDGEMENTS = 10_000
ASKED = 30
ACCOUNT = {"user": REPLICA_USER, "password": REPLICA_PASSWORD}
LONGEST_WAIT_S = 2.0
"""Wall-clock on a busy machine; it was a minute."""


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[RelayProcess]:
    with watched_relay(tmp_path) as running:
        yield running
        running.loop_holds().check()
        assert not [line for line in running.log_lines() if line.get("level") == "error"]


def test_random_and_costly_commands_leave_the_loop_to_others(relay: RelayProcess) -> None:
    assert max(fuzz(relay, seed=1, commands=RANDOM).waits_s) < LONGEST_WAIT_S


def test_gtid_functions_sent_ahead_are_worked_off_beside_the_loop(relay: RelayProcess) -> None:
    client = Client(relay)
    with Admin(relay) as admin:
        client.send(costly_commands()["GTID_SUBTRACT"], 4)
    assert max(admin.waits_s) < LONGEST_WAIT_S


def test_a_list_of_many_connections_is_made_beside_the_loop(relay: RelayProcess) -> None:
    connections = [connected(relay) for _ in range(MANY_CONNECTIONS)]
    admin = Client(relay, connected(relay, ADMIN))
    for statement in (b"SHOW FULL PROCESSLIST", b"SHOW SLAVE HOSTS", b"SHOW STATUS"):
        admin.send(b"\x03" + statement, 8)
    for connection in connections:
        connection._force_close()
    assert relay.loop_holds().longest.cpu_s < LIMIT_S


def test_of_what_many_connections_send_ahead_a_few_commands_are_taken_before_an_admin_s(relay: RelayProcess) -> None:
    admin = connected(relay, ADMIN)

    def questions() -> int:
        with admin.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
            return int(cursor.fetchall()[0][1])

    with command_flood(relay.port, "SHOW VARIABLES", ahead=True, connections=MANY_CONNECTIONS, **ACCOUNT):
        before = questions()
        for _ in range(ASKED):
            admin.query("SELECT 1")
        answered = questions() - before
    admin.close()
    # All that wait have one for each of the admin's, or more, where connections take turns but the loop has no round.
    assert answered / ASKED < MANY_CONNECTIONS / 2


def test_acknowledgements_are_taken_by_turns(relay: RelayProcess) -> None:
    file = "mysql-bin.000001"
    relay.wait_archived(file, 100)
    replica = ReplicaClient(relay.port, user="replica", password="replica-password")
    replica.query("SET @rpl_semi_sync_slave = 1, @master_binlog_checksum = 'CRC32'")
    replica.ask_dump(file, 4)
    acknowledgement = frame_payload(b"\xef" + struct.pack("<Q", 4) + file.encode(), 0)
    replica.connection._sock.sendall(acknowledgement * ACKNOWLEDGEMENTS)
    with Admin(relay) as admin:
        time.sleep(1.0)
    replica.cut()
    assert max(admin.waits_s) < LONGEST_WAIT_S
