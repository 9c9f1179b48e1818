"""The disk refuses a write while nothing else happens: who is told, how soon, and what goes on meanwhile."""

import contextlib
import resource
import select
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.support.binlog_builder import BinlogBuilder
from tests.support.fake_source import Dump, FakeSource
from tests.support.free_port import free_port
from tests.support.relay_inside import damage
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess, wait_for_line
from tests.support.replica_client import ReplicaClient

FIRST = "mysql-bin.000001"
LIMIT_BYTES = 256 << 10
AT_ONCE_S = 5.0
HEARTBEAT = 27


def nearly_full() -> BinlogBuilder:
    """Up to a few bytes below the limit: the next transaction does not fit."""
    built = BinlogBuilder().ddl()
    while built.size < LIMIT_BYTES - 1000:
        built.transaction(min(20_000, LIMIT_BYTES - 700 - built.size))
    return built


@pytest.fixture
def source() -> Iterator[FakeSource]:
    with FakeSource({FIRST: bytes(nearly_full().data)}, heartbeats=False) as fake:
        yield fake


def limit(relay: RelayProcess, size: int = resource.RLIM_INFINITY) -> None:
    resource.prlimit(relay.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def replica_at(relay: RelayProcess, offset: int, server_id: int, heartbeat_s: float = 0.0) -> ReplicaClient:
    client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
    client.set_up(server_id=server_id, heartbeat_s=heartbeat_s)
    client.ask_dump(FIRST, offset, server_id=server_id)
    return client


def replica_status(relay: RelayProcess) -> dict[str, Any]:
    """The row of SHOW SLAVE STATUS."""
    with (
        contextlib.closing(
            pymysql.connect(
                host="127.0.0.1",
                port=relay.port,
                user=REPLICA_USER,
                password=REPLICA_PASSWORD,
                cursorclass=pymysql.cursors.DictCursor,
            )
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SHOW SLAVE STATUS")
        row = cursor.fetchone()
        assert isinstance(row, dict)
        return row


def is_silent(client: ReplicaClient, wait_s: float) -> bool:
    """Whether nothing comes, no end of the connection either."""
    return not select.select([client.connection._sock], [], [], wait_s)[0]


def receive_up_to(client: ReplicaClient, end: int) -> None:
    while True:
        event = client.event()
        assert event is not None
        if event.kind != HEARTBEAT and event.end_log_pos == end:
            return


def status_within(seconds: float, relay: RelayProcess, **expected: str) -> dict[str, Any]:
    """The first SHOW SLAVE STATUS with these values: each attempt to go on clears the failure until the disk refuses again."""
    deadline = time.monotonic() + seconds
    while True:
        status = replica_status(relay)
        if all(status[column] == value for column, value in expected.items()):
            return status
        assert time.monotonic() < deadline, f"{status}\n{relay.log_tail()}"
        time.sleep(0.02)


def test_a_disk_that_fills_at_rest_is_said_at_once_and_replicas_are_served_all_the_time(
    tmp_path: Path, source: FakeSource
) -> None:
    built = nearly_full()
    before = built.size
    built.transaction(3000)

    def one_more(dump: Dump) -> None:
        source.files[FIRST] = bytes(built.data)
        dump.rest()
        dump.until_gone()

    # The next sign of life of this source is due in an hour.
    sections = {"source": {"heartbeat_period_s": 3600.0}}
    relay = RelayProcess(tmp_path, source, port=free_port(), sections=sections)
    with relay:
        relay.wait_archived(FIRST, before)
        with_heartbeats = replica_at(relay, before, 77, heartbeat_s=0.1)
        without = replica_at(relay, before, 78)
        for client in (with_heartbeats, without):
            assert [event.kind for event in client.events(2)] == [4, 15]
        limit(relay, LIMIT_BYTES)
        source.then(one_more)
        line = wait_for_line(relay, "archive_write_failed")
        assert (line["file"], "File too large" in line["what"]) == (FIRST, True)

        status = status_within(AT_ONCE_S, relay, Slave_SQL_Running="No")
        assert (status["Last_SQL_Errno"], "File too large" in status["Last_SQL_Error"]) == (1595, True)
        lost = wait_for_line(relay, "source_lost", timeout_s=AT_ONCE_S)
        assert (lost["trouble"], "File too large" in lost["what"]) == ("archive_failed", True)
        assert "File too large" in replica_status(relay)["Last_IO_Error"]

        beats = with_heartbeats.events(5)
        assert {(event.kind, event.end_log_pos) for event in beats} == {(HEARTBEAT, before)}
        assert is_silent(without, 0.5)
        another = replica_at(relay, 4, 79)
        receive_up_to(another, before)
        assert is_silent(another, 0.2)

        limit(relay)
        for client in (with_heartbeats, without, another):
            receive_up_to(client, built.size)
            client.cut()
        status_within(AT_ONCE_S, relay, Slave_SQL_Running="Yes", Last_SQL_Error="")
        assert relay.stop() == 0
    assert (relay.archive / FIRST).stat().st_size == built.size
    assert damage(relay.archive) == []
