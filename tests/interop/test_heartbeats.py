"""Replicas stay attached to a silent relay: heartbeats as often as they asked, with the position that they count."""

import time

import pytest

from deploy.servers import BinlogPosition, Server
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain

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
