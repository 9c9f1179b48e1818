"""A second relay whose view begins inside a file hands out the GTIDs of the first one's: real servers."""

import contextlib
import json
from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess
from tests.support.table_values import check_equal
from tests.support.view_chain import (
    UUID_OF_VIEW,
    VIEW,
    ViewChain,
    account_of,
    add_views,
    executed_by,
    follow,
    listen_with_tls,
    view_keys,
    wait_executed,
)
from tests.support.view_files import binlogs_in, transactions_in
from tests.support.view_workload import kept_workload

pytestmark = pytest.mark.interop


def write(source: Server, count: int, begin: int) -> None:
    """Transactions of both engines and of several statements."""
    for number in range(begin, begin + count):
        source.sql(f"INSERT INTO d.i (id, v) VALUES ({number}, {number})")
        source.sql(f"INSERT INTO d.m (id, v) VALUES ({number}, {number})")
        source.sql(f"UPDATE d.i SET v = v + {number}")


def second_relay(directory: Path, source: Server, start: dict[str, object]) -> RelayProcess:
    """Of the same source, with the same view and this start."""
    directory.mkdir()
    relay = RelayProcess(directory, source, port=free_port(), sections={"listen": listen_with_tls(directory)})
    add_views(relay, [view_keys(start=start)])
    return relay


@pytest.mark.parametrize("binlog_format", ["ROW", "MIXED"])
def test_a_replica_moves_from_one_relay_to_the_other_inside_a_file(
    servers: ServerFactory, tmp_path: Path, binlog_format: str
) -> None:
    with contextlib.ExitStack() as ends:
        chain = ends.enter_context(ViewChain(servers, "mysql56", tmp_path / "first"))
        replica = chain.view_replica()
        kept_workload(chain.source, binlog_format, "keep")
        chain.source.sql("CREATE DATABASE d")
        chain.source.sql("CREATE TABLE d.i (id INT PRIMARY KEY, v INT) ENGINE=InnoDB")
        chain.source.sql("CREATE TABLE d.m (id INT PRIMARY KEY, v INT) ENGINE=MyISAM")
        write(chain.source, 20, 0)
        there = chain.wait_viewed()
        assert there.source.offset > 200, "inside a file"
        chain.check_replica(replica, ["workload", "d"])
        replica.stop_replica()

        found = json.loads(chain.relay.command("view", "find", VIEW, "--source", str(there.source), "--json").stdout)
        assert found["newest_assigned"] == f"{UUID_OF_VIEW}:{there.gno}"
        start = {"file": there.source.file, "position": there.source.offset, "next": there.gno + 1}
        second = ends.enter_context(second_relay(tmp_path / "second", chain.source, start))
        write(chain.source, 20, 20)
        follow(replica, second.port)
        write(chain.source, 20, 40)
        chain.source.sql("FLUSH BINARY LOGS")
        write(chain.source, 20, 60)

        end = chain.wait_viewed()
        wait_executed(replica, f"{UUID_OF_VIEW}:1-{end.gno}", second)
        check_equal(chain.source, replica, ["workload", "d"])
        assert executed_by(replica) == f"{UUID_OF_VIEW}:1-{end.gno}" == chain.gtids_of_view()
        made = second.archive / "views" / VIEW
        wait_until(
            lambda: len(transactions_in(made)) == end.gno - there.gno, "the second view has all behind its start"
        )
        whole, begun = transactions_in(chain.view_directory()), transactions_in(made)
        assert begun == {number: events for number, events in whole.items() if number > there.gno}
        assert next(path.name for path in binlogs_in(made)) == there.source.file

        # Restarted, and made again, it is the same.
        kept = {path.name: path.read_bytes() for path in binlogs_in(made)}
        second.stop()
        done = second.command("view", "verify", VIEW)
        assert done.returncode == 0, done.stdout + done.stderr
        done = second.command("view", "rebuild", VIEW)
        assert done.returncode == 0, done.stdout + done.stderr
        second.start()
        wait_until(lambda: len(transactions_in(made)) == end.gno - there.gno, "it is made again")
        assert {path.name: path.read_bytes() for path in binlogs_in(made)} == kept
        # A replica without what came before is refused by name, as where a server has purged it.
        empty = chain.server("mysql97", ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"])
        follow(empty, second.port)
        wait_until(lambda: empty.replica_status()["io_errno"] == 13114, "an empty replica is refused", 30)
        assert second.sql("SELECT @@GLOBAL.gtid_purged", account_of(VIEW))[0][0] == f"{UUID_OF_VIEW}:1-{there.gno}"


def test_a_start_inside_a_transaction_is_told_where_people_look(servers: ServerFactory, tmp_path: Path) -> None:
    with contextlib.ExitStack() as ends:
        chain = ends.enter_context(ViewChain(servers, "mysql56", tmp_path / "first"))
        chain.source.sql("CREATE DATABASE d")
        at = chain.source.master_status()
        chain.source.sql("CREATE TABLE d.i (id INT PRIMARY KEY, v INT) ENGINE=InnoDB")
        behind = chain.source.master_status()
        start = {"file": at.file, "position": at.position + 30, "next": 2}
        second = ends.enter_context(second_relay(tmp_path / "second", chain.source, start))
        wait_until(lambda: second.logged("view_stopped"), "the view stops")
        (told,) = second.logged("view_stopped")
        assert (told["reason"], told["file"], told["offset"]) == ("start_inside_transaction", at.file, at.position + 30)
        near = f"{at.file}:{at.position} before, {at.file}:{behind.position} after"
        assert near in told["what"]
        done = second.command("view", "list")
        assert "start_inside_transaction" in done.stdout and near in done.stdout, done.stdout + done.stderr
