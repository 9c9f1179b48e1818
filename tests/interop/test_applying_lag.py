"""How far real replicas have applied, by status, JSON and metrics: while they apply nothing, afterwards, and where nobody knows it."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until
from tests.support.free_port import free_port
from tests.support.http_relay import get_json, http_section, metric
from tests.support.source_proof import proof_of
from tests.support.view_chain import ViewChain

pytestmark = pytest.mark.interop
WATCHER: Final = "relay_watch"
SECRET: Final = "the-watchers-password"
LONG: Final = "x" * 8000
ALL: Final = "everything that it is served"


def watched(server: Server, password: str = SECRET, grants: bool = True) -> dict[str, Any]:
    """Make the account at the replica; return its [[replica]]."""
    privilege = "SLAVE MONITOR" if server.flavour == "mariadb" else "REPLICATION CLIENT"
    statements = ["SET sql_log_bin = 0", f"CREATE USER '{WATCHER}'@'%' IDENTIFIED BY '{SECRET}'"]
    if grants:
        statements.append(f"GRANT {privilege} ON *.* TO '{WATCHER}'@'%'")
    server.execute_many(statements)
    section = {"host": "127.0.0.1", "port": server.port, "user": WATCHER, "password": password}
    return section | (proof_of(server, {}) or {"ssl_mode": "disabled"})


def sql_thread(server: Server, verb: str) -> None:
    server.sql(f"{verb} {server.replica_word} SQL_THREAD")


class Watched:
    """A chain with [http], and how its one replica is shown."""

    def __init__(self, chain: Chain, port: int) -> None:
        self.chain, self.port = chain, port

    def row(self) -> dict[str, Any]:
        rows = [one for one in get_json(self.port, "replicas")["items"] if one["state"] != "gone"]
        return rows[0] if rows else {"applied": None, "applied_text": "", "behind_bytes": None}

    def applied(self) -> dict[str, Any]:
        return self.row()["applied"] or {"known": False, "text": "", "behind_bytes": None, "applies": None}

    def until(self, told: str) -> str:
        wait_until(lambda: told in self.row()["applied_text"], f"the replica's row says {told!r}", 30)
        return str(self.row()["applied_text"])

    def status(self) -> str:
        ended = self.chain.relay.command("status")
        assert SECRET not in ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture
def watched_chain(chains: ChainFactory) -> Iterator[Any]:
    def make(source: str) -> Watched:
        port = free_port()
        chain = chains(source, sections=http_section(port))
        chain.source.execute_many(
            ["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(9000)) ENGINE=InnoDB"]
        )
        chain.wait_published()
        return Watched(chain, port)

    yield make


@pytest.mark.parametrize(
    ("source", "replica"), [("mysql56", "mysql97"), ("mariadb", "mariadb"), ("mysql56", "mysql56")]
)
def test_the_lag_grows_while_nothing_is_applied_and_is_none_afterwards(
    watched_chain: Any, source: str, replica: str
) -> None:
    seen = watched_chain(source)
    chain = seen.chain
    server = chain.replica(replica)
    chain.relay.add_replica(**watched(server))
    chain.relay.reload()
    seen.until(ALL)
    assert (seen.applied()["behind_bytes"], seen.applied()["behind_s"]) == (0, 0.0)
    address = f"127.0.0.1:{server.port}"
    assert metric(seen.port, "replica_applied_lag_bytes", replica=address) == 0

    sql_thread(server, "STOP")
    chain.source.execute_many([f"INSERT INTO shop.t VALUES ({number}, '{LONG}')" for number in range(20)])
    chain.wait_published()
    seen.until("SQL thread is stopped")
    wait_until(lambda: (seen.applied()["behind_bytes"] or 0) > 160_000, "all twenty to be behind", 30)
    assert seen.row()["behind_bytes"] == 0, "it was sent everything"
    before_s = seen.applied()["behind_s"]
    wait_until(lambda: seen.applied()["behind_s"] > before_s, "the time to grow", 30)
    assert metric(seen.port, "replica_applying", replica=address) == 0
    text = seen.status()
    assert "0 bytes behind" in text and "KiB" in text and "its SQL thread is stopped" in text and "no problems" in text

    sql_thread(server, "START")
    assert seen.until(ALL) == ALL
    assert seen.applied()["behind_bytes"] == 0
    assert f"applied: {ALL}" in seen.status()


@pytest.mark.parametrize("replica", ["mysql97", "mariadb"])
def test_an_idle_source_that_begins_a_file_leaves_nobody_behind(watched_chain: Any, replica: str) -> None:
    seen = watched_chain("mysql56" if replica == "mysql97" else "mariadb")
    server = seen.chain.replica(replica)
    if replica == "mariadb":
        # Another connection, which leads elsewhere.
        server.sql("CHANGE MASTER 'a' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'replica'")
    seen.chain.relay.add_replica(**watched(server))
    seen.chain.relay.reload()
    seen.until(ALL)
    seen.chain.source.sql("FLUSH LOGS")
    end = seen.chain.wait_published()
    wait_until(lambda: seen.applied().get("file") == end.file, "the replica to say the new file", 30)
    assert seen.row()["applied_text"] == ALL, seen.applied()


def test_a_replica_of_a_view_is_behind_by_transactions(servers: ServerFactory, tmp_path: Path) -> None:
    port = free_port()
    with ViewChain(servers, "mysql56", tmp_path / "relay", sections=http_section(port)) as chain:
        seen = Watched(chain, port)
        chain.source.execute_many(["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(9000))"])
        server = chain.view_replica()
        chain.relay.add_replica(**watched(server))
        chain.relay.reload()
        seen.until(ALL)
        sql_thread(server, "STOP")
        chain.source.execute_many([f"INSERT INTO shop.t VALUES ({number}, '{LONG}')" for number in range(20)])
        chain.wait_viewed()
        assert "KiB, 20 transactions, " in seen.until("20 transactions")
        sql_thread(server, "START")
        seen.until(ALL)


def test_a_mariadb_replica_by_gtid_is_behind_by_transactions(watched_chain: Any) -> None:
    seen = watched_chain("mariadb")
    server = seen.chain.replica("mariadb", use_gtid="slave_pos")
    seen.chain.relay.add_replica(**watched(server))
    seen.chain.relay.reload()
    seen.until(ALL)
    sql_thread(server, "STOP")
    seen.chain.source.execute_many([f"INSERT INTO shop.t VALUES ({number}, '{LONG}')" for number in range(3)])
    seen.until("3 transactions")
    sql_thread(server, "START")
    seen.until(ALL)


def test_an_error_that_stops_it_is_shown_and_a_problem(watched_chain: Any) -> None:
    seen = watched_chain("mysql56")
    server = seen.chain.replica("mysql97")
    seen.chain.relay.add_replica(**watched(server))
    seen.chain.relay.reload()
    seen.until(ALL)
    server.execute_many(["SET sql_log_bin = 0", "INSERT INTO shop.t VALUES (7, 'mine')"])
    seen.chain.source.sql("INSERT INTO shop.t VALUES (7, 'theirs')")
    text = seen.until("its last error: 1062")
    assert "its SQL thread is stopped" in text
    ended = seen.chain.relay.command("status")
    assert ended.returncode == 1 and "PROBLEM   replica 127.0.0.1" in ended.stdout and "1062" in ended.stdout


def test_a_delay_is_named(watched_chain: Any) -> None:
    seen = watched_chain("mysql56")
    server = seen.chain.replica("mysql97", delay=3600)
    seen.chain.relay.add_replica(**watched(server))
    seen.chain.relay.reload()
    text = seen.until("a delay of 1 h 0 min is set there")
    assert "behind" in text and "stopped" not in text


@pytest.mark.parametrize("replica", ["mysql97", "mariadb"])
def test_a_wrong_password_says_so_and_no_secret_is_shown(watched_chain: Any, replica: str) -> None:
    seen = watched_chain("mysql56" if replica == "mysql97" else "mariadb")
    wrong = "not-the-password"
    server = seen.chain.replica(replica)
    seen.chain.relay.add_replica(**watched(server, wrong))
    seen.chain.relay.reload()

    def elsewhere() -> list[dict[str, Any]]:
        return list(get_json(seen.port, "replicas")["applied_elsewhere"])

    wait_until(lambda: elsewhere() and "refuses the user" in elsewhere()[0]["text"], "the refusal to be shown", 30)
    (one,) = elsewhere()
    assert not one["known"] and one["text"].startswith("not known: the replica 127.0.0.1") and "1045" in one["text"]
    assert metric(seen.port, "replica_applied_known") == 0
    assert "or it is one that does not answer" in seen.row()["applied_text"]
    shown = seen.status() + json.dumps(get_json(seen.port, "overview")) + seen.chain.relay.log_path.read_text()
    assert "refuses the user" in shown and wrong not in shown and SECRET not in shown


def test_an_account_that_may_not_ask_is_told_what_it_lacks(watched_chain: Any) -> None:
    seen = watched_chain("mariadb")
    server = seen.chain.replica("mariadb")
    seen.chain.relay.add_replica(**watched(server, grants=False))
    seen.chain.relay.reload()
    assert "SLAVE MONITOR" in seen.until("refuses to say how far it is")


def test_a_replica_that_goes_away_is_not_known_any_more(watched_chain: Any) -> None:
    seen = watched_chain("mysql56")
    server = seen.chain.replica("mysql97")
    seen.chain.relay.add_replica(**watched(server))
    seen.chain.relay.reload()
    seen.until(ALL)
    server.stop()

    def gone() -> dict[str, Any] | None:
        (row,) = get_json(seen.port, "replicas")["items"]
        return dict(row["applied"]) if row["state"] == "gone" else None

    wait_until(lambda: (gone() or {}).get("known") is False, "it is not known any more", 30)
    assert (gone() or {})["text"].startswith("not known: the replica ")


def test_a_replica_that_hangs_is_not_known_until_it_answers_again(watched_chain: Any) -> None:
    seen = watched_chain("mysql56")
    server = seen.chain.replica("mysql97")
    seen.chain.relay.add_replica(**watched(server))
    seen.chain.relay.reload()
    seen.until(ALL)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        assert seen.until("not known: ").startswith("not known: the replica did not answer within 5 s")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    seen.until(ALL)


def test_without_an_account_it_is_not_known(watched_chain: Any) -> None:
    seen = watched_chain("mysql56")
    seen.chain.replica("mysql56")
    seen.until("not known: relay.toml gives no account at this replica ([[replica]])")
    assert seen.row()["applied"] is None
    assert "applied: not known: relay.toml gives no account" in seen.status()


def test_without_http_status_asks_by_itself(chains: ChainFactory) -> None:
    chain = chains("mysql56")
    chain.source.execute_many(["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)"])
    server = chain.replica("mysql97")
    chain.relay.add_replica(**watched(server))
    chain.relay.reload()
    wait_until(lambda: f"applied: {ALL}" in chain.relay.command("status").stdout, "the replica has all", 30)
    sql_thread(server, "STOP")
    chain.source.sql("INSERT INTO shop.t VALUES (1)")
    chain.wait_published()
    found = json.loads(chain.relay.command("status", "--json").stdout)
    (one,) = found["replicas"]
    assert one["applied"]["behind_bytes"] > 0 and "its SQL thread is stopped" in one["applied_text"]
