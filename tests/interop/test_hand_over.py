"""Two relays of one source behind an address that moves: the first is killed, and its replicas go on at the second one."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.cutting_proxy import CuttingProxy
from tests.support.free_port import free_port
from tests.support.hand_over import write_load
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.table_values import check_equal
from tests.support.view_chain import ViewChain, add_views, executed_by, follow, listen_with_tls, view_keys

pytestmark = pytest.mark.interop
VIEWS = [view_keys(dependencies="writeset")]
WAITS = {"position_wait_s": 0.5, "inside_transactions": "all"}
RETRY = {"connect_retry": 1}
STOPPED = (1236, 13114, 13117, 13122)


class Pair:
    """A source that is written to, a relay and its spare, and the address under which replicas find one of them.

    to_spare: stands between the source and the spare.
    """

    def __init__(
        self,
        servers: ServerFactory,
        source: str,
        directory: Path,
        views: list[dict[str, Any]],
        listen: dict[str, Any] | None = None,
    ) -> None:
        self._open = ExitStack()
        listen = WAITS if listen is None else listen
        sections = {"listen": listen}
        self.chain = ViewChain(servers, source, directory / "first", views=views or VIEWS, sections=sections)
        self.source = self.chain.source
        self.to_spare = self._open.enter_context(CuttingProxy(self.source.port))
        given = {
            "source": {"port": self.to_spare.port},
            "listen": {**listen_with_tls(directory / "spare"), **listen},
        }
        self.spare = RelayProcess(directory / "spare", self.source, port=free_port(), server_id=4243, sections=given)
        if views:
            add_views(self.spare, views)
        self.address = self._open.enter_context(CuttingProxy(self.chain.relay.port))
        self._open.enter_context(self.chain)
        self._open.enter_context(self.spare)

    def close(self) -> None:
        self._open.close()

    def take_over(self) -> None:
        """The first relay dies, and the address is the spare's."""
        self.chain.relay.kill()
        self.address.target_port = self.spare.port
        self.address.cut_all()


def follows_or_tries(replica: Server) -> bool:
    """Always; a replica that stopped for good is a fault."""
    status = replica.replica_status()
    assert status["io_errno"] not in STOPPED, status
    assert not status["sql_errno"], status
    return True


def told_to_wait(spare: RelayProcess) -> list[dict[str, Any]]:
    """What the spare said to those that have more than it has; each time it is 1105."""
    refused = spare.logged("dump_refused")
    assert all(line["number"] == 1105 for line in refused), refused
    return refused


def check_all_equal(pair: Pair, replicas: list[Server]) -> None:
    """They come to the source's end by themselves, and have its tables."""
    end = pair.source.master_status()
    pair.spare.wait_archived(end.file, end.position)
    for replica in replicas:

        def is_there(replica: Server = replica) -> bool:
            follows_or_tries(replica)
            ((count,),) = pair.source.sql("SELECT COUNT(*) FROM load_.t")
            return bool(replica.sql("SELECT COUNT(*) FROM load_.t") == [(count,)])

        wait_until(is_there, f"{replica!r} has all: {replica.replica_status()}", 60)
        check_equal(pair.source, replica, ["load_"])


@pytest.fixture(params=["the spare has all", "the spare is behind"])
def is_behind(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "the spare is behind")


def hand_over(pair: Pair, replicas: list[Server], *, is_behind: bool) -> None:
    with write_load(pair.source) as count:
        wait_until(lambda: count() > 60, "there is some load")
        if is_behind:
            pair.to_spare.stall_after(0)
            begun = count()
            wait_until(lambda: count() > begun + 60, "there is more that the spare does not have")
            for replica in replicas:
                wait_until(
                    lambda r=replica: r.sql(f"SELECT COUNT(*) FROM load_.t WHERE n > {begun + 10}")[0][0] > 0,
                    "it is ahead",
                )
        pair.take_over()
        if is_behind:
            wait_until(lambda: len(told_to_wait(pair.spare)) >= 2 * len(replicas), "they are told to come again", 40)
            assert all(follows_or_tries(replica) for replica in replicas)
            pair.to_spare.flow()
        begun = count()
        wait_until(lambda: count() > begun + 60, "the load goes on")
    check_all_equal(pair, replicas)


def test_replicas_of_a_mysql_by_position_and_by_gtid_go_on_at_the_spare(
    servers: ServerFactory, tmp_path: Path, is_behind: bool
) -> None:
    pair = Pair(servers, "mysql56", tmp_path, VIEWS)
    try:
        old, new = pair.chain.server("mysql56"), pair.chain.server("mysql97")
        first = pair.chain.first_position()
        old.attach("127.0.0.1", pair.address.port, REPLICA_USER, REPLICA_PASSWORD, first.file, first.position, **RETRY)
        follow(new, pair.address.port, **RETRY)
        hand_over(pair, [old, new], is_behind=is_behind)
        assert "-" in executed_by(new)
    finally:
        pair.close()


def test_replicas_of_a_mariadb_by_gtid_go_on_at_the_spare(
    servers: ServerFactory, tmp_path: Path, is_behind: bool
) -> None:
    pair = Pair(servers, "mariadb", tmp_path, [])
    try:
        replica = pair.chain.server("mariadb")
        replica.attach("127.0.0.1", pair.address.port, REPLICA_USER, REPLICA_PASSWORD, use_gtid="slave_pos", **RETRY)
        hand_over(pair, [replica], is_behind=is_behind)
    finally:
        pair.close()


def die_inside_a_transaction(pair: Pair, replica: Server) -> None:
    """The first relay dies while the replica has a part of a transaction."""
    pair.source.execute_many(
        ["CREATE DATABASE load_", "CREATE TABLE load_.t (id INT AUTO_INCREMENT PRIMARY KEY, b MEDIUMBLOB)"]
    )
    wait_until(lambda: replica.sql("SHOW TABLES FROM load_") if has_database(replica) else False, "it follows", 30)
    rows = ["INSERT INTO load_.t (b) VALUES (REPEAT('x', 100000))"] * 60
    pair.address.stall_after(3_000_000)
    pair.source.execute_many(["SET binlog_format = ROW", "BEGIN", *rows, "COMMIT"])
    wait_until(lambda: pair.address.stalled, "a part of the transaction is sent")
    end = pair.source.master_status()
    pair.spare.wait_archived(end.file, end.position)
    before = replica.replica_status()["exec_position"]
    wait_until(lambda: replica.replica_status()["read_position"] > before + 1_000_000, "it has a part of it")
    pair.take_over()
    pair.address.flow()


def has_database(replica: Server) -> bool:
    return bool(replica.sql("SHOW DATABASES LIKE 'load_'"))


@pytest.mark.parametrize("name", ["mysql56", "mysql97", "mariadb"])
def test_a_replica_by_position_that_has_a_part_of_a_transaction_gets_the_rest_of_it_from_the_spare(
    servers: ServerFactory, tmp_path: Path, name: str
) -> None:
    pair = Pair(servers, "mysql56" if name != "mariadb" else name, tmp_path, [])
    try:
        replica = pair.chain.server(name)
        pair.chain.attach(replica, port=pair.address.port, **RETRY)
        die_inside_a_transaction(pair, replica)
        check_all_equal(pair, [replica])
    finally:
        pair.close()


def test_without_the_setting_it_is_refused_by_name_and_stops(servers: ServerFactory, tmp_path: Path) -> None:
    pair = Pair(servers, "mysql56", tmp_path, [], {"position_wait_s": 0.5})
    try:
        replica = pair.chain.server("mysql56")
        pair.chain.attach(replica, port=pair.address.port, **RETRY)
        die_inside_a_transaction(pair, replica)
        wait_until(lambda: replica.replica_status()["io_errno"] == 1236, "it is refused", 30)
        assert "is inside the transaction" in replica.replica_status()["io_error"]
    finally:
        pair.close()
