"""A replica moved between the source and the relay: file and position mean the same on both."""

import pytest

from deploy.servers import BinlogPosition, Server
from tests.interop.conftest import ChainFactory
from tests.support.chain import wait_until
from tests.support.workload import steady_writer

pytestmark = pytest.mark.interop

MOVES = 8


def applied_up_to(replica: Server) -> BinlogPosition:
    """Stops the replica; the position that it asks for next."""
    replica.stop_replica()
    status = replica.replica_status()
    return BinlogPosition(status["exec_file"], status["exec_position"])


@pytest.mark.parametrize(
    ("source_name", "replica_name"),
    [("mysql56", "mysql56"), ("mysql56", "mysql97"), ("mysql56", "mariadb"), ("mariadb", "mariadb")],
)
def test_a_replica_goes_back_and_forth_under_load_with_the_same_file_and_position(
    chains: ChainFactory, source_name: str, replica_name: str
) -> None:
    chain = chains(source_name, options=["--max-binlog-size=65536"])
    replica = chain.replica(replica_name)
    with steady_writer(chain.source, pause_s=0.001) as writer:
        for move in range(MOVES):
            seen = writer.committed
            wait_until(lambda seen=seen: writer.committed > seen + 100, "the writer goes on")  # type: ignore[misc]
            at = applied_up_to(replica)
            if move % 2:
                chain.attach(replica, at)
            else:
                replica.attach_to(chain.source, at)
            wait_until(lambda at=at: applied(replica) > at, "the replica goes on")  # type: ignore[misc]
        writer.stop()
    assert len(chain.source.binlogs()) > 2
    chain.check_tables([replica], ["steady"])
    chain.check_archive()


def applied(replica: Server) -> BinlogPosition:
    """Up to where the replica applied what it has; raises where it stopped."""
    status = replica.replica_status()
    assert status["sql_running"] and not status["io_errno"], status
    return BinlogPosition(status["exec_file"], status["exec_position"])
