"""Replicas stay attached to a silent relay: heartbeats as often as they asked, with the position that they count."""

import random
import time

import pytest

from deploy.servers import BinlogPosition, Server
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until

pytestmark = pytest.mark.interop

PERIOD_S = 0.5
IDLE_S = 3.0
REPLICAS = {"mysql56": ("mysql56", "mysql97", "mariadb"), "mariadb": ("mariadb",)}
WORK = ["CREATE DATABASE one", "CREATE TABLE one.t (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB"]


def stays_attached(chain: Chain, at: BinlogPosition) -> list[Server]:
    """Attaches replicas of each kind there, leaves them alone for a while, and checks that none of them moved."""
    replicas = [chain.server(name) for name in REPLICAS[chain.source.name]]
    for replica in replicas:
        replica.execute_many(WORK)
        chain.attach(replica, at, heartbeat_period=PERIOD_S)
    for replica in replicas:
        replica.wait_for_source(chain.source)
    # One that begins at the end has caught up before it is there.
    wait_until(lambda: len(chain.relay.logged("dump_started")) >= len(replicas), "every replica is attached")
    attached = len(chain.relay.logged("dump_started"))
    assert attached == len(replicas)
    assert {line["heartbeat_s"] for line in chain.relay.logged("dump_started")} == {PERIOD_S}
    time.sleep(IDLE_S)
    for replica in replicas:
        status = replica.replica_status()
        assert (status["io_running"], status["io_errno"], status["sql_running"]) == ("Yes", 0, True), status
        if replica.name != "mysql97":  # there only the performance schema tells
            (row,) = replica.sql("SHOW GLOBAL STATUS LIKE 'Slave_received_heartbeats'")
            assert int(row[1]) >= IDLE_S / PERIOD_S - 2
    assert len(chain.relay.logged("dump_started")) == attached
    # And it goes on from there.
    chain.source.sql("INSERT INTO one.t VALUES (1000)")
    for replica in replicas:
        replica.wait_for_source(chain.source)
        assert replica.sql("SELECT id FROM one.t WHERE id = 1000") == [(1000,)]
    assert len(chain.relay.logged("dump_started")) == attached
    return replicas


@pytest.fixture(params=list(REPLICAS))
def chain(request: pytest.FixtureRequest, chains: ChainFactory) -> Chain:
    made = chains(request.param)
    made.source.execute_many([*WORK, *(f"INSERT INTO one.t VALUES ({number})" for number in range(10))])
    made.wait_archived()
    return made


def test_at_the_end_of_a_running_file(chain: Chain) -> None:
    stays_attached(chain, chain.source.master_status())


def test_in_the_middle_of_a_file(chain: Chain) -> None:
    middle = chain.source.master_status()
    chain.source.sql("INSERT INTO one.t VALUES (100)")
    stays_attached(chain, middle)


def test_at_the_end_of_a_file_that_was_rotated(chain: Chain) -> None:
    end = chain.source.master_status()
    chain.source.sql("FLUSH LOGS")
    chain.wait_archived()
    size = (chain.source.datadir / end.file).stat().st_size
    stays_attached(chain, BinlogPosition(end.file, size))


def test_before_the_stop_event_of_a_file_that_a_restart_ended(chain: Chain) -> None:
    end = chain.source.master_status()
    chain.source.restart()
    chain.wait_archived()
    assert (chain.source.datadir / end.file).stat().st_size > end.position
    stays_attached(chain, end)


def test_while_the_source_is_away_after_its_stop_event(chain: Chain) -> None:
    end = chain.source.master_status()
    replicas = [chain.server(name) for name in REPLICAS[chain.source.name]]
    for replica in replicas:
        replica.execute_many(WORK)
        chain.attach(replica, end, heartbeat_period=PERIOD_S)
    chain.source.stop()
    time.sleep(IDLE_S)
    for replica in replicas:
        status = replica.replica_status()
        assert (status["io_running"], status["io_errno"]) == ("Yes", 0), status
    chain.source.start()
    chain.source.sql("INSERT INTO one.t VALUES (1000)")
    for replica in replicas:
        replica.wait_for_source(chain.source)
        assert replica.sql("SELECT id FROM one.t WHERE id = 1000") == [(1000,)]
    assert len(chain.relay.logged("dump_started")) == len(replicas)


SHORTEST_S = 0.001


@pytest.mark.parametrize("options", [[], ["--binlog-checksum=NONE"]], ids=["crc32", "none"])
@pytest.mark.parametrize("source_name", list(REPLICAS))
def test_a_heartbeat_every_millisecond_between_transactions_rotations_and_a_restart(
    chains: ChainFactory, source_name: str, options: list[str]
) -> None:
    """Each replica checks file and position of each heartbeat: MySQL 5.6 stops at any difference."""
    chain = chains(source_name, options=options)
    replicas = [chain.server(name) for name in REPLICAS[source_name]]
    for replica in replicas:
        chain.attach(replica, heartbeat_period=SHORTEST_S)
    pauses = random.Random(27)
    chain.source.execute_many(WORK)
    for number in range(250):
        chain.source.sql(f"INSERT INTO one.t VALUES ({number})")
        time.sleep(pauses.choice([0, 0, 0.001, 0.002, 0.01, 0.03]))
        if number % 40 == 20:
            chain.source.sql("FLUSH LOGS")
        if number == 150:
            chain.source.restart()
    chain.check_tables(replicas, ["one"])
    for replica in replicas:
        status = replica.replica_status()
        assert (status["io_running"], status["io_errno"]) == ("Yes", 0), status
        if replica.name != "mysql97":  # there only the performance schema tells
            (row,) = replica.sql("SHOW GLOBAL STATUS LIKE 'Slave_received_heartbeats'")
            assert int(row[1]) >= 300
    assert {line["heartbeat_s"] for line in chain.relay.logged("dump_started")} == {SHORTEST_S}
    assert len(chain.relay.logged("dump_started")) == len(replicas)


def test_no_heartbeats_at_a_period_of_zero(chain: Chain) -> None:
    """A replica that asks for none gets none; the stream goes on."""
    at = chain.source.master_status()
    for name in REPLICAS[chain.source.name]:
        replica = chain.server(name)
        replica.execute_many(WORK)
        chain.attach(replica, at, heartbeat_period=0)
        replica.wait_for_source(chain.source)
        time.sleep(1.0)
        if replica.name != "mysql97":
            assert replica.sql("SHOW GLOBAL STATUS LIKE 'Slave_received_heartbeats'")[0][1] == "0"
        assert replica.replica_status()["io_running"] == "Yes"
    assert {line["heartbeat_s"] for line in chain.relay.logged("dump_started")} == {0.0}
