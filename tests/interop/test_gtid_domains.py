"""Domains of GTIDs that a MariaDB source forgets: `FLUSH BINARY LOGS DELETE_DOMAIN_ID`."""

import itertools

import pytest

from deploy.servers import Server
from tests.interop.conftest import ChainFactory
from tests.interop.test_gtid_mariadb import attach, attach_to_source, check_same, position
from tests.support.chain import Chain, purge_before_newest, wait_until

pytestmark = pytest.mark.interop
DOMAIN = 11
_keys = itertools.count(1000)


@pytest.fixture
def chain(chains: ChainFactory) -> Chain:
    """A source whose binlog has a group of the domain 11."""
    made = chains("mariadb", sections={"[account]": {"admin": True}})
    made.source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)"])
    write_to_domain(made.source, 1)
    return made


def write_to_domain(source: Server, number: int) -> None:
    source.execute_many(
        [
            f"SET gtid_domain_id = {DOMAIN}, server_id = 111, gtid_seq_no = {number}",
            f"INSERT INTO d.t VALUES ({next(_keys)})",
        ]
    )


def forget_domain(source: Server) -> None:
    source.sql("FLUSH BINARY LOGS")
    purge_before_newest(source)
    source.sql(f"FLUSH BINARY LOGS DELETE_DOMAIN_ID=({DOMAIN})")
    assert str(DOMAIN) not in source.sql("SELECT @@GLOBAL.gtid_binlog_state")[0][0].split("-")


@pytest.mark.parametrize("behind", ["source", "relay"])
def test_a_replica_that_has_more_of_a_domain_is_served_once_the_source_forgot_it(chain: Chain, behind: str) -> None:
    replica = chain.server("mariadb")
    attach(replica, chain.relay.port)
    check_same(chain, replica)
    replica.stop_replica()
    write_to_domain(chain.source, 2)
    replica.sql(f"SET GLOBAL gtid_slave_pos = '{held_of_others(replica)},{DOMAIN}-111-3'")
    if behind == "source":
        attach_to_source(replica, chain.source)
    else:
        replica.start_replica()
    assert replica.wait_io_error()[0] == 1236

    forget_domain(chain.source)
    replica.start_replica()
    chain.source.sql("INSERT INTO d.t VALUES (100)")
    wait_until(lambda: replica.sql("SELECT a FROM d.t WHERE a = 100"), "what comes next is applied")

    # The source begins the domain again, behind what the replica has of it.
    write_to_domain(chain.source, 1)
    wait_until(lambda: replica.replica_status()["io_errno"] == 1236, "the replica is told")
    forget_domain(chain.source)
    replica.start_replica()
    chain.source.sql("INSERT INTO d.t VALUES (101)")
    wait_until(lambda: replica.sql("SELECT a FROM d.t WHERE a = 101"), "what comes next is applied")


@pytest.mark.parametrize("position_in_domain", ["", f",{DOMAIN}-111-1", f",{DOMAIN}-111-9"])
def test_behind_what_was_purged_a_replica_is_served_as_by_the_source_that_forgot(
    chain: Chain, position_in_domain: str
) -> None:
    for number in (2, 3, 4):
        write_to_domain(chain.source, number)
        chain.source.sql("FLUSH BINARY LOGS")
    chain.wait_published()  # before the source purges it
    forget_domain(chain.source)
    before = position(chain.source, "gtid_binlog_pos")
    chain.source.sql("INSERT INTO d.t VALUES (100)")
    end = chain.wait_published()
    # The archive keeps files of the time when the source still knew the domain, but not its beginning.
    names = [row[0] for row in chain.relay.sql("SHOW BINARY LOGS")]
    chain.relay.sql(f"PURGE BINARY LOGS TO '{names[2]}'")
    for behind in ("source", "relay"):
        replica = made_from_backup(chain, f"{before}{position_in_domain}")
        if behind == "source":
            attach_to_source(replica, chain.source)
        else:
            attach(replica, chain.relay.port)
        replica.wait_caught_up(*end)
        assert replica.sql("SELECT a FROM d.t") == [(100,)]
    assert not chain.relay.logged("dump_refused")


def test_what_the_archive_has_of_a_forgotten_domain_is_sent_to_who_has_its_beginning(chain: Chain) -> None:
    for number in (2, 3):
        write_to_domain(chain.source, number)
        chain.source.sql("FLUSH BINARY LOGS")
    lacking = chain.source.sql("SELECT a FROM d.t ORDER BY a")[1:]
    chain.wait_published()  # before the source purges it
    forget_domain(chain.source)
    before = position(chain.source, "gtid_binlog_pos")
    chain.source.sql("INSERT INTO d.t VALUES (100000)")
    end = chain.wait_published()
    replica = made_from_backup(chain, f"{before},{DOMAIN}-111-1")
    attach(replica, chain.relay.port)
    replica.wait_caught_up(*end)
    assert replica.sql("SELECT a FROM d.t ORDER BY a") == [*lacking, (100000,)]


def made_from_backup(chain: Chain, at: str) -> Server:
    replica = chain.server("mariadb")
    replica.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "RESET MASTER"])
    replica.sql(f"SET GLOBAL gtid_slave_pos = '{at}'")
    return replica


def test_what_a_replica_has_of_a_forgotten_domain_is_not_sent_again(chain: Chain) -> None:
    replica = chain.server("mariadb")
    attach(replica, chain.relay.port)
    check_same(chain, replica)
    replica.stop_replica()
    chain.source.sql("INSERT INTO d.t VALUES (50)")
    write_to_domain(chain.source, 2)
    forget_domain(chain.source)
    chain.source.sql("INSERT INTO d.t VALUES (100)")
    replica.start_replica()
    chain.check_tables([replica], ["d"])
    assert not chain.relay.logged("dump_refused")


def held_of_others(replica: Server) -> str:
    return ",".join(str(gtid) for gtid in position(replica, "gtid_slave_pos") if gtid.domain_id != DOMAIN)
