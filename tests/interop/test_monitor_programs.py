"""Real monitors pointed at the relay: mysqld_exporter with nearly all of its collectors, and Percona Toolkit."""

import os
import re
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until
from tests.support.client_tools import need_tool
from tests.support.free_port import free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

SOURCES = ("mysql56", "mysql97", "mariadb")
COLLECTORS = (
    "auto_increment.columns", "binlog_size", "global_status", "global_variables", "info_schema.clientstats",
    "info_schema.innodb_cmp", "info_schema.innodb_cmpmem", "info_schema.innodb_metrics", "info_schema.innodb_tablespaces",
    "info_schema.processlist", "info_schema.query_response_time", "info_schema.schemastats", "info_schema.tables",
    "info_schema.tablestats", "info_schema.userstats", "perf_schema.eventsstatements", "perf_schema.eventswaits",
    "perf_schema.file_events", "perf_schema.file_instances", "perf_schema.indexiowaits", "perf_schema.memory_events",
    "perf_schema.replication_applier_status_by_worker", "perf_schema.replication_group_member_stats",
    "perf_schema.replication_group_members", "perf_schema.tableiowaits", "perf_schema.tablelocks", "slave_hosts", "slave_status",
)  # fmt: skip


@pytest.fixture(scope="module", params=SOURCES)
def chain(request: pytest.FixtureRequest, module_chains: ChainFactory) -> Chain:
    """A relay with an account for monitors."""
    source_name: str = request.param
    made = module_chains(source_name)
    # Go's driver of that time, and Perl's, log in the old way.
    made.relay.add_account(user="finder", password="finder-password", admin=True, plugin="mysql_native_password")
    made.relay.reload()
    wait_until(lambda: made.relay.archived(), "the relay has a binlog")
    return made


def collected(login: str, log: Path) -> tuple[str, set[str]]:
    """What mysqld_exporter tells of the server behind `login`, and its collectors that had an error. log: for what it says."""
    port = free_port()
    flags = [f"--web.listen-address=127.0.0.1:{port}", *(f"--collect.{name}" for name in COLLECTORS)]
    environment = {**os.environ, "DATA_SOURCE_NAME": login}
    with (
        log.open("wb") as said,
        subprocess.Popen(["prometheus-mysqld-exporter", *flags], env=environment, stderr=said) as process,
    ):
        try:
            wait_until(lambda: is_listening(port), "mysqld_exporter listens")
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                metrics = answer.read().decode()
        finally:
            process.terminate()
    return metrics, set(re.findall(r"level=error .* scraper=(\S+)", log.read_text()))


def is_listening(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=5):
            return True
    except OSError:
        return False


def test_mysqld_exporter_collects_what_it_collects_from_the_source(chain: Chain, tmp_path: Path) -> None:
    need_tool("mysqld_exporter")
    log = tmp_path / "exporter.log"
    metrics, failed = collected(f"finder:finder-password@(127.0.0.1:{chain.relay.port})/", log)
    told = log.read_text()
    # Such as columns that MariaDB does not have.
    _metrics, failed_there = collected(f"root@(127.0.0.1:{chain.source.port})/", tmp_path / "at_source.log")
    assert failed <= failed_there, told
    assert re.search(r"^mysql_up 1$", metrics, re.MULTILINE), told
    assert re.search(r"^mysql_slave_status_slave_io_running\{.*\} 1$", metrics, re.MULTILINE)
    assert re.search(r"^mysql_info_schema_processlist_threads\{.*\} 1$", metrics, re.MULTILINE)
    assert re.search(r"^mysql_binlog_files 1$", metrics, re.MULTILINE)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_pt_slave_find_finds_the_replicas_of_the_relay(chain: Chain) -> None:
    need_tool("percona-toolkit")
    source = chain.source
    replica = chain.server(type(source).name, options=["--report-host=127.0.0.1", f"--report-port={free_port()}"])
    chain.attach(replica)
    wait_until(lambda: chain.relay.sql("SHOW SLAVE HOSTS"), "the replica has registered")
    done = run(
        "pt-slave-find", "--host", "127.0.0.1", "--port", str(chain.relay.port), "--user", "finder", "--password",
        "finder-password", "--recursion-method", "hosts",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"127.0.0.1:{chain.relay.port}" in done.stdout
    assert source.version in done.stdout
    assert "Is a slave, has 1 slaves connected, is read_only" in done.stdout


def test_pt_heartbeat_is_told_that_there_is_no_such_table(chain: Chain) -> None:
    need_tool("percona-toolkit")
    login = f"h=127.0.0.1,P={chain.relay.port},u=finder,p=finder-password"
    done = run("pt-heartbeat", "--check", "-D", "percona", "--master-server-id", "1", login)
    assert done.returncode != 0
    assert "Unknown database 'percona'" in done.stderr
