"""Semi-sync replicas of both families behind the relay: they replicate, and acknowledge everything up to the end."""

import random
import threading
from pathlib import Path

import pytest

from deploy.servers import BinlogPosition, Server
from tests.interop.conftest import ChainFactory
from tests.support.certificates import Authority
from tests.support.chain import Chain, exec_position, last_group_end, start_again, wait_until
from tests.support.cutting_proxy import CuttingProxy
from tests.support.workload import DATABASE, light_workload

pytestmark = pytest.mark.interop

PAIRS = [("mysql56", "mysql97"), ("mysql56", "mariadb"), ("mariadb", "mariadb")]
PERIOD_S = 0.1


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest, chains: ChainFactory) -> tuple[Chain, Server]:
    """A relay that demands acknowledgements, and a semi-sync replica that follows nobody yet."""
    source_name, replica_name = request.param
    chain = chains(source_name, sections={"listen": {"demand_acks": True}}, options=["--binlog-format=MIXED"])
    return chain, semi_sync(chain.server(replica_name))


def semi_sync(replica: Server) -> Server:
    """The server with its side of semi-sync turned on."""
    if replica.name == "mysql97":
        replica.sql("INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'")
        replica.sql("SET GLOBAL rpl_semi_sync_replica_enabled = 1")
    else:
        replica.sql("SET GLOBAL rpl_semi_sync_slave_enabled = 1")
    return replica


def is_on(replica: Server) -> bool:
    """Whether the replica itself says that its connection is a semi-sync one."""
    rows = dict(replica.sql("SHOW GLOBAL STATUS LIKE 'rpl_semi_sync_%_status'"))
    return "ON" in (rows.get("Rpl_semi_sync_replica_status"), rows.get("Rpl_semi_sync_slave_status"))


def written_at_once(chain: Chain) -> None:
    """Small transactions from four connections, and the light workload beside them."""
    chain.source.execute_many(["CREATE DATABASE load_", "CREATE TABLE load_.t (id INT NOT NULL PRIMARY KEY)"])

    def write(first: int) -> None:
        chain.source.execute_many(f"INSERT INTO load_.t VALUES ({first + number})" for number in range(400))

    writers = [threading.Thread(target=write, args=(1000 * number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    light_workload(chain.source)
    for writer in writers:
        writer.join()


def acknowledged(chain: Chain, replica: Server) -> list[BinlogPosition]:
    """Stops the replica; up to where each of its connections had acknowledged when it ended."""
    replica.stop_replica()
    started = len(chain.relay.logged("dump_started"))
    wait_until(
        lambda: len(chain.relay.logged("dump_ended")) + len(chain.relay.logged("dump_stopped")) == started,
        "the relay has seen the replica leave",
    )
    ends = [line for line in chain.relay.log_lines() if line.get("event") in ("dump_ended", "dump_stopped")]
    return [
        BinlogPosition(file, int(offset))
        for file, _, offset in (line["acknowledged"].partition(":") for line in ends)
        if offset
    ]


def test_a_loaded_source_is_replicated_and_acknowledged_up_to_its_end(pair: tuple[Chain, Server]) -> None:
    chain, replica = pair
    chain.attach(replica, heartbeat_period=PERIOD_S)
    written_at_once(chain)
    chain.source.sql("FLUSH LOGS")
    light_workload(chain.source, database="after")
    chain.check_tables([replica], [DATABASE, "load_", "after"])
    assert is_on(replica)
    status = replica.replica_status()
    assert (status["io_running"], status["io_errno"]) == ("Yes", 0)
    end = last_group_end(chain.source)
    wait_until(
        lambda: any(
            f"acknowledged {end.file}:{end.position}" in str(row) for row in chain.relay.sql("SHOW FULL PROCESSLIST")
        ),
        "the process list shows what the replica acknowledged",
    )
    assert acknowledged(chain, replica) == [last_group_end(chain.source)]
    assert [line["semi_sync"] for line in chain.relay.logged("dump_started")] == [True]
    assert chain.relay.logged("connection_ended") == []


def test_heartbeats_between_transactions_disturb_no_numbering(pair: tuple[Chain, Server]) -> None:
    chain, replica = pair
    chain.attach(replica, heartbeat_period=0.001)
    chain.source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT NOT NULL PRIMARY KEY)"])
    for number in range(300):
        chain.source.sql(f"INSERT INTO one.t VALUES ({number})")
    chain.check_tables([replica], ["one"])
    assert is_on(replica)
    assert acknowledged(chain, replica) == [last_group_end(chain.source)]
    assert len(chain.relay.logged("dump_started")) == 1


def test_stopped_and_started_under_load_it_comes_back_as_a_semi_sync_replica(pair: tuple[Chain, Server]) -> None:
    chain, replica = pair
    chain.attach(replica, heartbeat_period=PERIOD_S)
    writer = threading.Thread(target=written_at_once, args=(chain,))
    writer.start()
    for _ in range(4):
        replica.stop_replica()
        replica.start_replica()
    writer.join()
    chain.check_tables([replica], [DATABASE, "load_"])
    assert is_on(replica)
    assert acknowledged(chain, replica)[-1] == last_group_end(chain.source)
    assert all(line["semi_sync"] for line in chain.relay.logged("dump_started"))
    assert chain.relay.logged("dump_refused") == chain.relay.logged("connection_ended") == []


def test_connections_cut_inside_transactions_lose_nothing(pair: tuple[Chain, Server]) -> None:
    chain, replica = pair
    places = random.Random(1018)
    with CuttingProxy(chain.relay.port) as proxy:
        chain.attach(replica, port=proxy.port, heartbeat_period=PERIOD_S)
        proxy.cut_after(*(places.randrange(8000, 40_000) for _ in range(8)))
        proxy.cut_now_after(10_000)
        written_at_once(chain)
        end = chain.source.master_status()
        wait_until(lambda: start_again(replica) and exec_position(replica) >= end, "the replica is at the end", 60)
        chain.check_tables([replica], [DATABASE, "load_"])
        assert proxy.cut_count >= 6
        assert is_on(replica)
        assert acknowledged(chain, replica)[-1] == last_group_end(chain.source)
    assert any(line["resumed_in_transaction"] for line in chain.relay.logged("dump_started"))
    assert chain.relay.logged("dump_refused") == chain.relay.logged("connection_ended") == []


def test_a_transaction_in_one_event_of_17_mb_is_acknowledged(pair: tuple[Chain, Server]) -> None:
    """It takes two packets and is flagged in the first of them; MySQL counts from 1 behind the second."""
    chain, replica = pair
    chain.attach(replica, heartbeat_period=PERIOD_S)
    chain.source.execute_many(
        [
            "CREATE DATABASE one",
            "CREATE TABLE one.t (id INT NOT NULL PRIMARY KEY)",
        ]
    )
    chain.source.sql(f"CREATE TABLE one.large (id INT NOT NULL PRIMARY KEY) /* {'x' * 17_500_000} */")
    chain.source.sql("INSERT INTO one.t VALUES (2)")
    assert chain.source.master_status().position > 17_500_000
    chain.check_tables([replica], ["one"])
    assert acknowledged(chain, replica) == [last_group_end(chain.source)]
    assert len(chain.relay.logged("dump_started")) == 1


@pytest.mark.parametrize("replica_name", ["mysql97", "mariadb"])
def test_acknowledgements_come_through_tls(chains: ChainFactory, tmp_path: Path, replica_name: str) -> None:
    files = Authority.make(tmp_path / "authority").server()
    listen = {"demand_acks": True, "tls_cert": str(files.certificate), "tls_key": str(files.key)}
    chain = chains("mysql56", sections={"listen": listen})
    replica = semi_sync(chain.server(replica_name))
    chain.attach(replica, heartbeat_period=0.01, ssl=1)
    written_at_once(chain)
    chain.check_tables([replica], [DATABASE, "load_"])
    assert is_on(replica)
    assert all(line.get("tls") for line in chain.relay.logged("replica_logged_in"))
    assert acknowledged(chain, replica) == [last_group_end(chain.source)]


def test_a_mariadb_replica_that_stops_has_its_connection_killed_without_a_complaint(chains: ChainFactory) -> None:
    chain = chains("mariadb", sections={"listen": {"demand_acks": True}})
    replica = semi_sync(chain.server("mariadb"))
    chain.attach(replica, heartbeat_period=PERIOD_S)
    light_workload(chain.source)
    chain.check_tables([replica], [DATABASE])
    assert acknowledged(chain, replica) == [last_group_end(chain.source)]
    wait_until(lambda: "Slave I/O thread exiting" in replica.error_log.read_text(), "the replica stopped")
    assert "Failed to gracefully kill" not in replica.error_log.read_text()
    assert chain.relay.logged("statement_refused") == []


@pytest.mark.parametrize("replica_name", ["mysql97", "mariadb"])
def test_a_relay_that_demands_nothing_serves_semi_sync_replicas_asynchronously(
    chains: ChainFactory, replica_name: str
) -> None:
    chain = chains("mysql56")
    replica = semi_sync(chain.server(replica_name))
    chain.attach(replica)
    light_workload(chain.source)
    chain.check_tables([replica], [DATABASE])
    assert not is_on(replica)
    assert [line["semi_sync"] for line in chain.relay.logged("dump_started")] == [False]
