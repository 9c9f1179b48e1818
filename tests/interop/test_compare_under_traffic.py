"""`binlog-relay compare` while the source is written to, by an account with little, interrupted, and used wrongly."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.compare_run import ACCOUNT, CompareRun, make_account, unlogged
from tests.support.view_chain import ViewChain, wait_executed

pytestmark = pytest.mark.interop
ROWS = 4096
TABLES = (
    "CREATE DATABASE busy",
    "CREATE TABLE busy.rows_of (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, n INT NOT NULL, t VARCHAR(200)) ENGINE=InnoDB",
    "CREATE TABLE busy.hot (id INT PRIMARY KEY, n BIGINT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO busy.hot VALUES (1, 0), (2, 0)",
    "INSERT INTO busy.rows_of (n, t) VALUES (1, REPEAT('x', 150))",
    *["INSERT INTO busy.rows_of (n, t) SELECT n + 1, t FROM busy.rows_of"] * 12,
)


@pytest.fixture(scope="module")
def chain(module_servers: ServerFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewChain]:
    with ViewChain(module_servers, "mysql56", tmp_path_factory.mktemp("compare") / "relay") as made:
        made.source.execute_many(["SET binlog_format = ROW", *TABLES])
        yield made


@pytest.fixture(scope="module")
def compared(chain: ViewChain) -> CompareRun:
    """A MySQL 5.6 and a 9.7 behind its view."""
    target = chain.view_replica()
    chain.wait_viewed()
    wait_executed(target, chain.gtids_of_view(), chain.relay)
    return CompareRun(chain.relay, chain.source, target)


@pytest.fixture
def traffic(chain: ViewChain) -> Iterator[None]:
    """Transactions that change one row again and again, and others here and there."""
    ended = threading.Event()

    def write() -> None:
        with chain.source.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET binlog_format = ROW")
            number = 0
            while not ended.wait(0.002):
                number += 1
                cursor.execute("UPDATE busy.hot SET n = n + 1 WHERE id = 1")
                cursor.execute(f"UPDATE busy.rows_of SET n = n + 1 WHERE id = {1 + number * 37 % ROWS}")
                if number % 10 == 0:
                    cursor.execute("INSERT INTO busy.rows_of (n, t) VALUES (0, 'new')")
                    cursor.execute(f"DELETE FROM busy.rows_of WHERE id = {number % ROWS}")

    writer = threading.Thread(target=write)
    writer.start()
    yield
    ended.set()
    writer.join()


@pytest.mark.usefixtures("traffic")
def test_a_server_that_follows_is_equal_while_rows_change_all_the_time(compared: CompareRun) -> None:
    compared.check_equal("--chunk-seconds", "0.02", "--ignore", "auto_increment")


@pytest.mark.usefixtures("traffic")
def test_a_row_that_differs_is_proven_among_rows_that_change(compared: CompareRun, tmp_path: Path) -> None:
    unlogged(compared.target, "UPDATE busy.hot SET n = n - 1 WHERE id = 2", "DELETE FROM busy.rows_of WHERE id = 4001")
    script = tmp_path / "repair.sql"
    found = compared.records("--ignore", "auto_increment", "--script", str(script), code=1)
    assert [(one["name"], one["what"], one["key"]) for one in found][:1] == [("busy.hot", "different", {"id": 2})]
    assert {one["name"] for one in found[1:]} <= {"busy.rows_of"}
    compared.repair(script)
    compared.check_equal("--ignore", "auto_increment")


def test_an_interrupted_comparison_goes_on_and_keeps_what_it_found(compared: CompareRun, tmp_path: Path) -> None:
    unlogged(compared.target, "UPDATE busy.hot SET n = n - 1 WHERE id = 2")
    state, script = tmp_path / "state.json", tmp_path / "repair.sql"
    # MySQL 5.6 reserves numbers for INSERT … SELECT, which no replica with rows does.
    ignored = ("--ignore", "auto_increment")
    words = compared.words(
        "--json", "--state", str(state), "--script", str(script), "--chunk-seconds", "0.01", *ignored
    )
    command = [
        sys.executable,
        "-m",
        "relay",
        *words,
        "--rows-per-second",
        "200",  # the state is written every 2 s
        "--config",
        str(compared.relay.config),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        wait_until(lambda: state.exists() and kept(state).get("after"), "it is inside the second table", 60)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert kept(state)["after"] and not kept(state)["done"]
    assert "comparer" not in state.read_text()
    found = compared.records("--state", str(state), "--script", str(script), *ignored, code=1, key="summary")
    assert found[0]["different"] == 1
    assert not state.exists()
    assert script.read_text().count("DELETE FROM `busy`.`hot`") == 1
    compared.repair(script)
    compared.check_equal(*ignored)


def kept(state: Path) -> dict[str, Any]:
    """Return what is kept of the large table."""
    found: dict[str, Any] = json.loads(state.read_text())["tables"].get("busy.rows_of", {})
    return found


def test_a_replica_of_the_mirror_is_compared_by_the_source_s_own_places(compared: CompareRun, chain: ViewChain) -> None:
    replica = chain.replica("mysql56")
    replica.wait_for_source(chain.source)
    mirrored = CompareRun(chain.relay, chain.source, replica, has_account=True)
    for server in (compared, mirrored):
        chain.source.sql("FLUSH LOGS")
        server.check_equal("--ignore", "auto_increment", "--wait", "30")
    unlogged(replica, "UPDATE busy.hot SET n = n - 1 WHERE id = 2")
    found = mirrored.records("--ignore", "auto_increment", code=1)
    assert [(one["name"], one["key"]) for one in found] == [("busy.hot", {"id": 2})]


# ---- wrong uses ---------------------------------------------------------------------------------------------------------


def refusal(compared: CompareRun, code: int, **servers: str) -> str:
    """Return what a run that cannot begin says."""
    done = compared.run(**servers)
    assert (done.returncode, done.stdout) == (code, "")
    return done.stderr


def test_the_same_server_twice_is_refused(compared: CompareRun) -> None:
    text = refusal(compared, 2, target=compared.account(compared.source))
    assert "are the same server" in text and "--replica" in text


def test_an_account_that_sees_too_little_is_refused_with_the_grant(compared: CompareRun) -> None:
    make_account(compared.target, ["SELECT"], "little")
    text = refusal(compared, 2, target=compared.account(compared.target, "little"))
    assert (
        "'little' lacks REPLICATION CLIENT, TRIGGER, EVENT, SHOW VIEW on *.*" in text
        and "GRANT REPLICATION CLIENT" in text
    )


def test_a_server_that_is_no_replica_and_one_that_is_not_the_source_are_refused(
    compared: CompareRun, chain: ViewChain
) -> None:
    alone = chain.server("mysql97")
    make_account(alone)
    assert "is no replica" in refusal(compared, 2, target=compared.account(alone))
    assert "it is another server" in refusal(compared, 2, source=compared.account(alone))


def test_a_wrong_host_is_told_with_the_option(compared: CompareRun) -> None:
    text = refusal(compared, 3, target=f"127.0.0.1:1,{ACCOUNT},{compared.relay.directory}/comparer.password")
    assert "127.0.0.1:1" in text and "--replica" in text


def test_a_replica_that_is_stopped_is_not_known_to_be_equal(compared: CompareRun) -> None:
    compared.target.sql("STOP REPLICA SQL_THREAD")
    assert "SQL thread is stopped" in refusal(compared, 3)
    compared.target.sql("START REPLICA SQL_THREAD")
