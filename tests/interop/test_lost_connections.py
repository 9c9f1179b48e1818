"""Replicas that lose their connection inside a transaction: they go on there, with nothing twice and nothing missing."""

import random
import time
from collections.abc import Iterator

import pytest

from deploy.servers import Server
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, exec_position, start_again, wait_until
from tests.support.cutting_proxy import CuttingProxy
from tests.support.workload import light_workload

pytestmark = pytest.mark.interop

PAIRS = [("mysql56", "mysql56"), ("mysql56", "mysql97"), ("mysql56", "mariadb"), ("mariadb", "mariadb")]
ROWS = 60
ROW_BYTES = 3000
# A login, the statements and the head of the stream take less, so that each connection brings at least one event.
LEAST_CUT_BYTES = 6000
CUTS = 24
REGISTER = 0x15


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest, chains: ChainFactory) -> tuple[Chain, str]:
    """A chain and the name of the replica to put behind it; half of each transaction is statements, half rows."""
    source_name, replica_name = request.param
    chain = chains(source_name, options=["--binlog-format=MIXED"])
    chain.source.execute_many(
        [
            "CREATE DATABASE one",
            "CREATE TABLE one.t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, part INT, body LONGTEXT)"
            " ENGINE=InnoDB DEFAULT CHARSET=latin1",
            # Applied twice or not at all, these additions show.
            "CREATE TABLE one.sums (id INT NOT NULL PRIMARY KEY, n INT NOT NULL, total BIGINT NOT NULL) ENGINE=InnoDB",
            "INSERT INTO one.sums VALUES (1, 0, 0)",
        ]
    )
    chain.wait_archived()
    return chain, replica_name


@pytest.fixture
def attached(pair: tuple[Chain, str]) -> Iterator[tuple[Chain, Server, CuttingProxy]]:
    """The chain, its replica and the proxy between relay and replica; the replica has caught up."""
    chain, replica_name = pair
    with CuttingProxy(chain.relay.port) as proxy:
        replica = chain.server(replica_name)
        chain.attach(replica, port=proxy.port)
        chain.check_tables([replica], ["one"])
        yield chain, replica, proxy


def write_large_transaction(chain: Chain) -> int:
    """One transaction of many events; its size in the binlog, in bytes."""
    before = chain.source.master_status().position
    statements = ["BEGIN"]
    for number in range(ROWS):
        statements += [
            f"SET @part = {number}",
            # UUID() is unsafe for statements, so every second one is logged as rows.
            f"INSERT INTO one.t (part, body) VALUES (@part, CONCAT('{'ab' * (ROW_BYTES // 2)}', {('1', 'UUID()')[number % 2]}))",
            f"UPDATE one.sums SET n = n + 1, total = total + {number} WHERE id = 1",
        ]
    chain.source.execute_many([*statements, "COMMIT"])
    return chain.source.master_status().position - before


def wait_stalled_inside(chain: Chain, replica: Server, proxy: CuttingProxy, start: int) -> None:
    """Waits until the proxy holds the transaction that begins at `start` back, and the replica has read a part of it:
    what has passed the proxy it may not have looked at yet."""
    wait_until(lambda: proxy.stalled, "the proxy holds the transaction back")
    end = chain.source.master_status().position
    wait_until(lambda: start < replica.replica_status()["read_position"] < end, "the replica has read the first events")


def resumed(chain: Chain) -> int:
    """How often a stream was begun inside a transaction."""
    return sum(1 for line in chain.relay.logged("dump_started") if line["resumed_in_transaction"])


def test_cut_at_many_places_of_one_transaction(attached: tuple[Chain, Server, CuttingProxy]) -> None:
    chain, replica, proxy = attached
    places = random.Random(4162)
    size = write_large_transaction(chain)  # so that its size is known
    chain.check_tables([replica], ["one"])
    assert size > ROWS * ROW_BYTES
    proxy.cut_after(*(places.randrange(LEAST_CUT_BYTES, 12_000) for _ in range(CUTS)))
    proxy.cut_now_after(places.randrange(100, 20_000))
    before = resumed(chain)
    write_large_transaction(chain)
    chain.check_tables([replica], ["one"])
    assert proxy.cut_count >= CUTS / 2
    assert resumed(chain) - before >= CUTS / 4
    assert not chain.relay.logged("dump_refused")
    assert replica.sql("SELECT n FROM one.sums") == [(2 * ROWS,)]


def test_receiving_stopped_and_started_in_mid_transaction(attached: tuple[Chain, Server, CuttingProxy]) -> None:
    chain, replica, proxy = attached
    word = "REPLICA" if replica.name == "mysql97" else "SLAVE"
    for stalled_after in (500, 7_001, 60_000, 123_457):
        before = resumed(chain)
        start = chain.source.master_status().position
        proxy.stall_after(stalled_after)
        write_large_transaction(chain)
        wait_stalled_inside(chain, replica, proxy, start)
        replica.sql(f"STOP {word} IO_THREAD")
        proxy.flow()
        replica.sql(f"START {word} IO_THREAD")
        chain.check_tables([replica], ["one"])
        assert resumed(chain) == before + 1
    assert not chain.relay.logged("dump_refused")


def test_the_relay_killed_while_a_replica_is_in_mid_transaction(attached: tuple[Chain, Server, CuttingProxy]) -> None:
    chain, replica, proxy = attached
    for stalled_after in (3_333, 90_000):
        before = resumed(chain)
        start = chain.source.master_status().position
        proxy.stall_after(stalled_after)
        write_large_transaction(chain)
        chain.wait_archived()
        wait_stalled_inside(chain, replica, proxy, start)
        chain.relay.kill()
        proxy.cut_all()
        proxy.flow()
        chain.relay.start()
        chain.check_tables([replica], ["one"])
        assert resumed(chain) == before + 1
    assert not chain.relay.logged("dump_refused")
    chain.check_archive()


@pytest.mark.parametrize("replica_name", ["mysql56", "mariadb"])
def test_receiving_stopped_while_the_replica_waits_for_space(chains: ChainFactory, replica_name: str) -> None:
    """It has read on for up to 16 KiB into a buffer of its own, and nothing of that shows in the sockets."""
    chain = chains("mysql56", options=["--binlog-format=STATEMENT"])
    chain.source.execute_many(
        [
            "CREATE DATABASE one",
            "CREATE TABLE one.t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, body LONGTEXT)"
            " ENGINE=InnoDB DEFAULT CHARSET=latin1",
        ]
    )
    chain.wait_archived()
    replica = chain.server(replica_name, options=["--relay-log-space-limit=8192"])
    chain.attach(replica)
    chain.check_tables([replica], ["one"])
    replica.sql("STOP SLAVE SQL_THREAD")
    rows = [f"INSERT INTO one.t (body) VALUES ('{'a' * 100}{number}')" for number in range(90)]
    chain.source.execute_many(["BEGIN", *rows, "COMMIT"])
    chain.wait_archived()
    wait_until(lambda: "relay log space" in str(replica.sql("SHOW PROCESSLIST")), "the replica has no space left")
    time.sleep(4.5)  # longer than the relay takes to believe that a silent replica has everything
    replica.sql("STOP SLAVE IO_THREAD")
    assert replica.replica_status()["read_position"] < chain.source.master_status().position
    replica.sql("START SLAVE")
    chain.check_tables([replica], ["one"])
    assert not chain.relay.logged("dump_refused")
    assert resumed(chain) == 1


def test_a_stream_in_tiny_pieces_with_cuts_anywhere(attached: tuple[Chain, Server, CuttingProxy]) -> None:
    chain, replica, proxy = attached
    proxy.split_bytes = 17
    places = random.Random(7592)
    proxy.cut_after(*(places.randrange(LEAST_CUT_BYTES, 60_000) for _ in range(8)))
    proxy.cut_now_after(10_000)
    light_workload(chain.source)
    wait_until(lambda: start_again(replica) and proxy.cut_count >= 4, "some cuts", 60)
    proxy.split_bytes = 1 << 16
    end = chain.source.master_status()
    wait_until(lambda: start_again(replica) and exec_position(replica) >= end, "the replica is at the end", 60)
    chain.check_tables([replica], ["one", "workload"])
    assert not chain.relay.logged("dump_refused")


@pytest.mark.parametrize(
    ("source_name", "replica_name"),
    [
        ("mysql56", "mysql56"),
        ("mysql56", "mysql97"),
        ("mysql56", "mariadb"),
        ("mariadb", "mariadb"),
        ("mariadb", "mariadb118"),
    ],
)
def test_a_replica_cut_off_between_registering_and_its_request_comes_back(
    chains: ChainFactory, source_name: str, replica_name: str
) -> None:
    chain = chains(source_name)
    chain.source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY)"])
    chain.wait_archived()
    with CuttingProxy(chain.relay.port) as proxy:
        replica = chain.server(replica_name)
        proxy.cut_behind_answer(REGISTER, times=3, client_pid=replica.pid)
        chain.attach(replica, port=proxy.port)
        chain.check_tables([replica], ["one"])
        assert proxy.cut_count == 3
        # Its library asks once more without a set-up, since the cut made its request fail.
        reasons = [line["reason"] for line in chain.relay.logged("dump_not_begun")]
        assert reasons
        assert all("closed without a word" in one for one in reasons)
        replica.stop_replica()
        proxy.cut_behind_answer(REGISTER)
        replica.start_replica()
        chain.source.sql("INSERT INTO one.t VALUES (1)")
        chain.check_tables([replica], ["one"])
        assert chain.relay.logged("dump_refused") == []


def test_a_replica_by_gtid_cut_off_between_registering_and_its_request_comes_back(chains: ChainFactory) -> None:
    chain = chains("mariadb")
    chain.source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY)"])
    with CuttingProxy(chain.relay.port) as proxy:
        replica = chain.server("mariadb")
        proxy.cut_behind_answer(REGISTER, times=8, client_pid=replica.pid)
        chain.attach(replica, port=proxy.port, use_gtid="slave_pos")
        chain.check_tables([replica], ["one"])
        assert (proxy.cut_count, chain.relay.logged("dump_refused")) == (8, [])
        assert all(line["by_gtid"] for line in chain.relay.logged("dump_started"))
        # Its library asks once more on a connection of its own, where nothing was said of a GTID.
        assert len(chain.relay.logged("dump_not_begun")) == 8
