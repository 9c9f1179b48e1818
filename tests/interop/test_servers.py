"""The harness itself, without a relay: each server starts, stops, writes binlogs and replicates directly."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql
import pytest

from deploy.servers import SERVERS, CatchUpError, Server, ServerError, available
from tests.conftest import ROOT, ServerFactory, need_server, why_not
from tests.support.workload import DATABASE, FORMATS, full_workload, light_workload, steady_writer

pytestmark = pytest.mark.interop

NAMES = list(SERVERS)
PAIRS = [
    ("mysql56", "mysql56"),
    ("mysql56", "mysql97"),
    ("mysql56", "mariadb"),
    ("mariadb", "mariadb"),
    ("mariadb", "mariadb118"),
    ("mariadb118", "mariadb118"),
]


def follow(servers: ServerFactory, source: Server, name: str, server_id: int = 2) -> Server:
    replica = servers(name).start(server_id=server_id)
    replica.attach_to(source)
    return replica


def test_each_server_is_either_available_or_says_in_a_sentence_what_is_missing() -> None:
    answers = available()
    assert list(answers) == NAMES
    assert all(reason is None or len(reason) > 20 for reason in answers.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_server_starts_with_the_options_given_and_writes_a_binlog(servers: ServerFactory, name: str) -> None:
    server = servers(name).start(server_id=77, options=["--binlog-checksum=NONE"])
    server.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (a INT PRIMARY KEY)"])
    assert server.sql("SELECT @@server_id, @@binlog_checksum, @@port") == [(77, "NONE", server.port)]
    (binlog,) = server.binlogs()
    assert binlog.parent == server.binlog_base.parent
    assert binlog.read_bytes()[:4] == b"\xfebin"
    assert binlog.stat().st_size == server.master_status().position


@pytest.mark.parametrize("name", NAMES)
def test_committed_rows_are_there_after_a_stop_and_after_a_kill(servers: ServerFactory, name: str) -> None:
    server = servers(name).start()
    server.execute_many(
        ["CREATE DATABASE one", "CREATE TABLE one.t (a INT PRIMARY KEY)", "INSERT INTO one.t VALUES (1)"]
    )
    port = server.port
    server.restart()
    server.sql("INSERT INTO one.t VALUES (2)")
    server.kill()
    assert not server.running
    server.start()
    assert server.sql("SELECT a FROM one.t ORDER BY a") == [(1,), (2,)]
    assert server.port == port
    assert len(server.binlogs()) == 3


@pytest.mark.parametrize("name", NAMES)
def test_accounts_are_in_no_binlog(servers: ServerFactory, name: str) -> None:
    server = servers(name).start()
    account = f"'{server.replication_user}'@'%'"
    assert any("REPLICATION SLAVE" in row[0] for row in server.sql(f"SHOW GRANTS FOR {account}"))
    assert server.replication_user.encode() not in server.binlogs()[0].read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_server_that_cannot_start_says_why_with_its_error_log(servers: ServerFactory, name: str) -> None:
    with pytest.raises(ServerError, match="no-such-option"):
        servers(name).start(options=["--no-such-option-at-all"])


def test_a_server_that_dies_before_it_greets_says_how(servers: ServerFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its socket takes connections that nobody has looked at yet: they are reset when the process ends."""
    server = servers("mysql56").start()
    reads = threading.Event()
    really = pymysql.connections.Connection._get_server_information

    def greeted(connection: pymysql.connections.Connection) -> None:
        reads.set()
        really(connection)

    monkeypatch.setattr(pymysql.connections.Connection, "_get_server_information", greeted)
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.sql, "SELECT 1")
        assert reads.wait(20)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(
            pymysql.err.OperationalError, match=r"Lost connection.*it ended with status -9; from its error log"
        ):
            asked.result(20)


@pytest.mark.parametrize(("source_name", "replica_name"), PAIRS)
@pytest.mark.parametrize("binlog_format", FORMATS)
def test_a_replica_has_the_tables_of_its_source_after_the_light_workload(
    servers: ServerFactory, source_name: str, replica_name: str, binlog_format: str
) -> None:
    source = servers(source_name).start(server_id=1)
    replica = follow(servers, source, replica_name)
    end = light_workload(source, binlog_format)
    replica.wait_caught_up(*end)
    assert replica.checksum_tables([DATABASE]) == source.checksum_tables([DATABASE])


@pytest.mark.slow
@pytest.mark.parametrize("source_name", ["mysql56", "mariadb"])
def test_a_replica_has_the_tables_of_its_source_after_the_full_workload(
    servers: ServerFactory, source_name: str
) -> None:
    source = servers(source_name).start(server_id=1)
    replica = follow(servers, source, source_name)
    end = full_workload(source, "ROW")
    assert source.sql(f"SELECT COUNT(*), MIN(v), MAX(v) FROM {DATABASE}.small") == [(10_000, 0, 999)]
    assert source.sql(f"SELECT MAX(LENGTH(body)) FROM {DATABASE}.big") == [(20 * 1024 * 1024,)]
    replica.wait_caught_up(*end)
    assert replica.checksum_tables([DATABASE]) == source.checksum_tables([DATABASE])


@pytest.mark.parametrize("source_name", ["mysql56", "mariadb"])
def test_the_workload_makes_the_same_tables_each_time(servers: ServerFactory, source_name: str) -> None:
    source = servers(source_name).start()
    light_workload(source, "STATEMENT")
    first = source.checksum_tables([DATABASE])
    light_workload(source, "ROW")
    second = source.checksum_tables([DATABASE])
    # `varied` and what depends on it holds random numbers and times.
    assert set(second) <= set(first)
    assert {table for table in second if first[table] != second[table]} <= {f"{DATABASE}.varied"}


@pytest.mark.parametrize("source_name", ["mysql56", "mariadb"])
def test_the_steady_writer_goes_on_after_its_source_was_killed(servers: ServerFactory, source_name: str) -> None:
    source = servers(source_name).start(server_id=1)
    replica = follow(servers, source, source_name)
    with steady_writer(source) as writer:
        wait_until_written(writer.server, 50)
        source.kill()
        source.start()
        wait_until_written(writer.server, source.sql("SELECT transactions FROM steady.steady_total")[0][0] + 50)
        last = writer.stop()
    assert source.sql("SELECT COUNT(*), MAX(counter) FROM steady.steady") == [(2 * last, last)]
    assert source.sql("SELECT transactions, total FROM steady.steady_total") == [(last, last * (last + 1) // 2)]
    replica.wait_for_source(source)
    assert replica.checksum_tables(["steady"]) == source.checksum_tables(["steady"])


def wait_until_written(server: Server, number: int) -> None:
    deadline = time.monotonic() + 30
    while server.sql("SELECT transactions FROM steady.steady_total")[0][0] < number:
        assert time.monotonic() < deadline, f"the writer did not come to transaction {number}"
        time.sleep(0.02)


@pytest.mark.parametrize("name", NAMES)
def test_waiting_for_a_replica_that_stopped_gives_its_errors(servers: ServerFactory, name: str) -> None:
    source_name = name if SERVERS[name].flavour == "mariadb" else "mysql56"
    source = servers(source_name).start(server_id=1)
    replica = servers(name).start(server_id=2)
    replica.attach("127.0.0.1", source.port, file="mysql-bin.000099", position=4)
    errno, _ = replica.wait_io_error()
    # The same refusal, 1236, under MySQL 9.7's own number.
    assert errno == (13114 if name == "mysql97" else 1236)
    with pytest.raises(CatchUpError, match="Could not find first log file"):
        replica.wait_caught_up("mysql-bin.000099", 1000)


@pytest.mark.parametrize("name", ["mariadb", "mariadb118", "mysql97"])
def test_the_stock_mysqlbinlog_reads_a_binlog(servers: ServerFactory, name: str) -> None:
    server = servers(name).start()
    server.sql("CREATE DATABASE one")
    done = subprocess.run(
        [*server.mysqlbinlog(), "--no-defaults", "--verify-binlog-checksum", str(server.binlogs()[0])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "CREATE DATABASE one" in done.stdout


def test_servers_die_with_the_process_that_started_them() -> None:
    name = next((name for name in NAMES if available()[name] is None), "mariadb")
    need_server(name)
    script = (
        "import sys, threading\n"
        "from deploy.servers import SERVERS\n"
        f"server = SERVERS[{name!r}]()\n"
        # From a thread that ends at once: the server must outlive it, but not the process.
        "thread = threading.Thread(target=server.start)\n"
        "thread.start(); thread.join()\n"
        "print(server.pid, server.directory, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid, directory = parent.stdout.readline().split()
        try:
            time.sleep(0.3)
            assert is_alive(int(pid))
            os.kill(parent.pid, signal.SIGKILL)
            parent.wait()
            deadline = time.monotonic() + 10
            while is_alive(int(pid)) and time.monotonic() < deadline:
                time.sleep(0.02)
            assert not is_alive(int(pid))
        finally:
            parent.kill()
            subprocess.run(["rm", "-rf", directory], check=True)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in ("Z", "X")


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_run_says_among_its_last_lines_which_servers_it_used(processes: str) -> None:
    name = next((name for name in NAMES if why_not(name) is None), None)
    if name is None:
        pytest.skip("no server is here")
    test = f"tests/interop/test_servers.py::{test_a_server_starts_with_the_options_given_and_writes_a_binlog.__name__}[{name}]"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", processes, test],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
    )
    assert f"servers of this run: {name} {SERVERS[name].read_version()}" in done.stdout.splitlines()[-3:]
