"""As whom replicas see the relay, and what becomes of replicas with somebody else's server_id."""

import time

import pytest

from tests.interop.conftest import ChainFactory
from tests.support.chain import wait_until
from tests.support.workload import DATABASE, light_workload

pytestmark = pytest.mark.interop

RELAY_ID = 4242
REPLICAS = {"mysql56": ("mysql56", "mysql97", "mariadb"), "mariadb": ("mariadb",)}
PAIRS = [(source, replica) for source, replicas in REPLICAS.items() for replica in replicas]


@pytest.mark.parametrize("source_name", list(REPLICAS))
def test_a_relay_that_shows_itself_is_followed_under_its_own_id(chains: ChainFactory, source_name: str) -> None:
    chain = chains(source_name, sections={"listen": {"present_as": "relay"}})
    replicas = chain.replicas(REPLICAS[source_name])
    light_workload(chain.source)
    chain.source.sql("FLUSH LOGS")
    light_workload(chain.source, database="second")
    chain.check_tables(replicas, [DATABASE, "second"])
    assert chain.relay.sql("SELECT @@server_id") == [(RELAY_ID,)]
    own_uuid = (chain.relay.archive / "server_uuid").read_text().strip() if source_name == "mysql56" else None
    for replica in replicas:
        status = replica.replica_status()
        raw = status["raw"]
        assert raw.get("Source_Server_Id", raw.get("Master_Server_Id")) == RELAY_ID
        if replica.name != "mariadb":
            assert raw.get("Source_UUID", raw.get("Master_UUID")) == own_uuid
        assert status["io_running"] == "Yes"


@pytest.mark.parametrize("present_as", ["relay", "source"])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("whose", ["source", "relay"])
def test_a_replica_with_anothers_server_id_stops_and_does_not_come_again(
    chains: ChainFactory, pair: tuple[str, str], present_as: str, whose: str
) -> None:
    """Where the relay shows the source's id the replica itself sees that it is its own; with another one, the relay does."""
    source_name, replica_name = pair
    chain = chains(source_name, sections={"listen": {"present_as": present_as}})
    chain.wait_archived()
    server_id = {"source": chain.source.server_id, "relay": RELAY_ID}[whose]
    replica = chain.server(replica_name)
    replica.sql(f"SET GLOBAL server_id = {server_id}")
    chain.attach(replica)
    wait_until(lambda: replica.replica_status()["io_running"] == "No", "the replica's receiver stopped")
    status = replica.replica_status()
    if whose == present_as:
        assert status["io_errno"] in (1593, 13117), status
        assert chain.relay.logged("dump_refused") == []
        return
    assert f"This replica has server_id {server_id}, and so has" in status["io_error"], status
    assert status["io_errno"] in (1236, 13114), status
    time.sleep(2.5)  # CONNECT_RETRY is a second
    assert len(chain.relay.logged("dump_refused")) == 1


@pytest.mark.parametrize("version", ["5.6.2-log", "5.7.44-log", "8.0.36", "9.7.4"])
def test_replicas_of_all_generations_accept_another_version_of_the_source(chains: ChainFactory, version: str) -> None:
    chain = chains("mysql56", sections={"listen": {"version": version}})
    replicas = chain.replicas(REPLICAS["mysql56"])
    light_workload(chain.source)
    chain.check_tables(replicas, [DATABASE])
    assert chain.relay.sql("SELECT VERSION()") == [(version,)]


def test_replicas_of_mariadb_accept_another_version_of_the_source(chains: ChainFactory) -> None:
    chain = chains("mariadb", sections={"listen": {"version": "10.4.34-MariaDB-log"}})
    replica = chain.replica("mariadb")
    light_workload(chain.source)
    chain.check_tables([replica], [DATABASE])
    assert chain.relay.sql("SELECT VERSION()") == [("10.4.34-MariaDB-log",)]


def test_two_replicas_with_one_server_id_are_served_and_named(chains: ChainFactory) -> None:
    chain = chains("mysql56")
    replicas = [chain.server("mysql56"), chain.server("mysql97")]
    for replica in replicas:
        replica.sql("SET GLOBAL server_id = 555")
        chain.attach(replica)
    light_workload(chain.source)
    chain.check_tables(replicas, [DATABASE])
    warning = chain.relay.logged("server_id_shared")[0]
    assert warning["server_id"] == 555
    assert warning["replica_address"] != warning["other_address"]
